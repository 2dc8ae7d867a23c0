"""Published benchmarks run at once, and their files are what they say they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.starter import StarterMeme, image_path
from tests.commands import Shell
from tests.construct.publish.queues import judge, make_queue, pick_memes

KINDS = {"targeted": "targeted", "sexual": "innuendo", "offence": "offence"}


def label(meme: StarterMeme) -> dict[str, JsonValue]:
    if not meme.harm.harmful:
        return {"harmful": "no"}
    kind = KINDS.get(meme.harm.type, "dispirited")
    values: dict[str, JsonValue] = {"harmful": "yes", "type": kind, "modality": "fusion"}
    return values | ({"target": "age"} if kind == "targeted" else {})


@pytest.fixture
def harms(tmp_path: Path) -> Path:
    memes = pick_memes("zh", 43)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    judge(
        queue, "label-by-vote", {meme.id: label(meme) for meme in memes}, frozenset({memes[0].id})
    )
    return queue


def test_a_vote_becomes_a_benchmark_that_runs(shell: Shell, harms: Path) -> None:
    said = shell.done("publish", str(harms), "--name", "office_harm", "--licence", "CC0-1.0")
    assert "42 memes" in said
    assert "memantics run office_harm" in said
    told = shell.done("run", "office_harm/detection", "-m", "fake/keys")
    assert "starter" not in told
    (run,) = (shell.folder / "runs").iterdir()
    facts = json.loads((run / "run.json").read_text())
    assert (facts["task"], facts["data"]["kind"]) == ("office_harm/detection", "release")
    assert len((run / "items.jsonl").read_text().splitlines()) == 42


def test_the_card_tells_review_and_audit(shell: Shell, harms: Path) -> None:
    shell.done("publish", str(harms), "--name", "office_harm", "--licence", "CC0-1.0")
    card = (shell.folder / "published" / "office_harm" / "README.md").read_text()
    assert "| kept | 42 |" in card
    assert "| dropped: not understood | 1 |" in card
    assert "Krippendorff's alpha, harmful | 1.000 (n = 43)" in card
    assert "## Audit" in card
    assert "Content warning" in card


def test_parquet_holds_images_and_labels(shell: Shell, harms: Path) -> None:
    import pyarrow.parquet as pq

    shell.done("publish", str(harms), "--name", "office_harm", "--licence", "CC0-1.0")
    folder = shell.folder / "published" / "office_harm" / "parquet"
    memes = pq.read_table(folder / "memes.parquet").to_pylist()
    labels = pq.read_table(folder / "labels.parquet").to_pylist()
    assert {row["meme"] for row in labels} == {row["id"] for row in memes}
    assert all(row["image"]["bytes"].startswith(b"\x89PNG") for row in memes)


def test_intents_are_published_in_their_family(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("en", 36) if meme.intents]
    queue = make_queue(tmp_path / "queue", "collect-and-edit", memes)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {"intents": list(meme.intents), "background": list(meme.background)}
        for meme in memes
    }
    judge(queue, "collect-and-edit", values)
    shell.done("publish", str(queue), "--name", "my_intents", "--licence", "CC0-1.0")
    shell.done("run", "my_intents/intent", "-m", "fake/echo")
    (run,) = (shell.folder / "runs").glob("my-intents-*")
    items = [json.loads(line)["item"] for line in (run / "items.jsonl").read_text().splitlines()]
    assert len(items) == len(memes)
    rows = json.loads(
        (shell.folder / "published" / "my_intents" / "data" / "sigdial.json").read_text()
    )
    assert [row["intents"] for row in rows.values()] == [list(meme.intents) for meme in memes]


def test_puns_are_published_in_their_family(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:8]
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values: dict[str, dict[str, JsonValue]] = {}
    for meme in memes:
        assert meme.pun
        is_pun = meme.pun.is_pun and bool(meme.pun.reading)
        values[meme.id] = {
            "caption": meme.pun.caption,
            "pun": "yes" if is_pun else "no",
            "sentiment_target": "self",
            "sentiment_type": "negative",
            "explanation": meme.explanation,
        }
        if is_pun:
            values[meme.id] |= {"pun_word": meme.pun.caption, "homophone": meme.pun.reading}
    judge(queue, "pun-form", values)
    shell.done("publish", str(queue), "--name", "my_puns", "--licence", "CC0-1.0")
    shell.done("run", "my_puns/detection", "-m", "fake/keys")


def test_unreviewed_drafts_need_a_word(shell: Shell, tmp_path: Path) -> None:
    memes = pick_memes("en", 2)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    line = shell.refused("publish", str(queue), "--name", "drafts", "--licence", "CC0-1.0")
    assert "--unreviewed" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "Bad Name"), "does not fit"),
        (("--name", "mquest"), "exists already"),
        (("--name", "fine", "--out", "taken"), "holds other files"),
    ],
)
def test_bad_wishes_are_refused(
    shell: Shell, harms: Path, arguments: tuple[str, ...], said: str
) -> None:
    (shell.folder / "taken" / "fine").mkdir(parents=True)
    (shell.folder / "taken" / "fine" / "mine.txt").write_text("precious")
    assert said in shell.refused("publish", str(harms), "--licence", "CC0-1.0", *arguments)
    assert (shell.folder / "taken" / "fine" / "mine.txt").read_text() == "precious"


def test_publishing_again_replaces_ones_own(shell: Shell, harms: Path) -> None:
    for version in ("1.0.0", "1.1.0"):
        shell.done(
            "publish", str(harms), "--name", "mine", "--licence", "CC0-1.0", "--version", version
        )
    assert '"1.1.0"' in (shell.folder / "published" / "mine" / "card.toml").read_text()


READ = """
import itertools, json, sys
import mlcroissant
data = mlcroissant.Dataset("croissant.json")
assert not data.metadata.issues.errors, data.metadata.issues.errors
assert not data.metadata.issues.warnings, data.metadata.issues.warnings
first = next(iter(data.records("memes")))
labels = list(data.records("labels"))
print(first["memes/id"].decode(), first["memes/image"].size[0] > 0, len(labels))
"""


def test_croissant_is_read_by_its_own_library(shell: Shell, harms: Path) -> None:
    shell.done("publish", str(harms), "--name", "office_harm", "--licence", "CC0-1.0")
    folder = shell.folder / "published" / "office_harm"
    done = subprocess.run(
        [sys.executable, "-c", READ], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["True", "42"]


def test_chats_join_the_puns_that_they_are_about(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:8]
    folder = tmp_path / "memes"
    folder.mkdir()
    lines = []
    for meme in memes:
        (folder / meme.file).write_bytes(image_path(meme.id).read_bytes())
        notes = {"meaning": meme.meaning, "description": meme.description}
        line = {"id": meme.id, "image": meme.file, "text": meme.text, "language": "zh"}
        lines.append(json.dumps(line | {"notes": notes}))
    (folder / "memes.jsonl").write_text("\n".join(lines))
    ran = shell.run("build", "chats", folder, "-m", "fake/drafter", "--out", "chats")
    assert ran.code in (0, 1), ran
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {
            "caption": meme.text,
            "pun": "yes",
            "pun_word": meme.text,
            "homophone": meme.text,
            "explanation": "",
        }
        for meme in memes
    }
    judge(queue, "pun-form", values)
    publish = ("publish", queue, "--name", "spoken", "--licence", "CC0-1.0", "--unreviewed")
    shell.done(*publish, "--chats", "chats")
    data = shell.folder / "published" / "spoken" / "data"
    chats = json.loads((data / "_Chat(hard).json").read_text())
    assert chats
    shell.done("run", "spoken/chat", "-m", "fake/keys")
