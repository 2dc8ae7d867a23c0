"""Screening: what is judged, what is not and why, from every kind of source."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.cli.screen import watch_shards
from memantics.core.errors import InputError
from memantics.core.queue import read_queue
from memantics.moderation.scale.driver import ScaleProgress, read_manifest
from memantics.moderation.screen import Screened, screen
from memantics.moderation.screening import ScreenSettings, read_rows
from tests.commands import Shell
from tests.scale.inline import InlineEngine


def run(sources: Any, out: Path, **settings: Any) -> tuple[Screened, dict[str, dict[str, Any]]]:
    done = screen(sources, ScreenSettings(**settings), out=out, engine=InlineEngine())
    return done, {row["id"]: row for row in read_rows(out)}


def write_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Screened, dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "meme.png").write_bytes((SAMPLE_IMAGES / "CN90001.png").read_bytes())
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    from PIL import Image

    Image.new("RGB", (300, 200), "white").save(folder / "blank.png")
    source = write_lines(
        folder / "memes.jsonl",
        {"id": "zh", "text": "今天又要加班了，好累"},
        {"id": "en", "text": "you are all stupid and I hate every one of you"},
        {"id": "ko", "text": "너희 모두 정말 싫어"},
        {"id": "empty", "text": "   "},
        {"id": "image", "image": "meme.png"},
        {"id": "blank", "image": "blank.png"},
        {"id": "broken", "image": "broken.png"},
        {"id": "missing", "image": "nowhere.png"},
        {"id": "outside", "image": "../../../etc/passwd"},
        {"id": "given", "image": "meme.png", "text": "给出的文字优先"},
    )
    return run(source, folder / "out", explain=True, threshold=0.0)


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("zh", "scored", ""),
        ("en", "scored", ""),
        ("ko", "not_scored", "the text is in ko, a script without training texts"),
        ("empty", "not_scored", "the text is empty"),
        ("image", "scored", ""),
        ("blank", "not_scored", "no text was found in the image"),
        ("broken", "failed", "not one of PNG"),
        ("missing", "failed", "no such file"),
        ("outside", "failed", "outside"),
        ("given", "scored", ""),
    ],
)
def test_nothing_is_judged_blindly(
    mixed: tuple[Screened, dict[str, dict[str, Any]]], name: str, status: str, reason: str
) -> None:
    row = mixed[1][name]
    assert row["status"] == status
    assert reason in row["reason"]
    assert status == "scored" or row["label"] == "review"
    assert (row["probability"] is not None) == (status == "scored")


def test_a_row_says_where_its_text_is_from(
    mixed: tuple[Screened, dict[str, dict[str, Any]]],
) -> None:
    done, rows = mixed
    assert (rows["image"]["text_source"], rows["image"]["caption"]) == ("ocr", "最近有点键忘")
    assert rows["image"]["caption"] in rows["image"]["text"].split("\n")
    assert (rows["given"]["text_source"], rows["zh"]["text_source"]) == ("given", "given")
    assert rows["image"]["readings"][0] == "最近有点健忘"
    assert len(rows["image"]["sha256"]) == 64
    assert len(rows["image"]["phash"]) == 16
    assert rows["zh"]["sha256"] is None
    assert rows["zh"]["attributions"]
    assert done.statuses == {"scored": 4, "not_scored": 3, "failed": 3}
    assert done.labels == {"harmless": 0, "harmful": 4, "review": 0}
    page = (done.folder / "summary.html").read_text(encoding="utf-8")
    assert "Screening results" in page
    assert "the detector was trained on en, zh" in page


def test_usual_columns_are_found_in_any_case(tmp_path: Path) -> None:
    table = tmp_path / "export.csv"
    table.write_text("Post_ID, Caption,Likes\np1,今天又要加班了，好累,3\n", encoding="utf-8")
    done, rows = run(table, tmp_path / "out")
    assert done.statuses == {"scored": 1, "not_scored": 0, "failed": 0}
    assert rows["p1"]["text"] == "今天又要加班了，好累"


@pytest.mark.parametrize("limit", [1.0, 0.0])
def test_a_text_is_scored_though_its_image_cannot_be_read(tmp_path: Path, limit: float) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    text = "今天又要加班了，好累"
    source = write_lines(
        tmp_path / "posts.jsonl",
        {"id": "plain", "text": text},
        {"id": "deleted", "image": "deleted.png", "text": text},
        {"id": "broken", "image": "broken.png", "text": text},
        {"id": "remote", "image": "https://example.org/a.png", "text": text},
        {"id": "bytes", "image": 7, "text": text},
        {"id": "outside", "image": "../../../etc/passwd", "text": text},
        {"id": "blank", "image": "deleted.png", "text": " "},
    )
    settings = ScreenSettings(threshold=limit, readings="none")
    done = screen(source, settings, out=tmp_path / "out", engine=InlineEngine(), save="webdataset")
    rows = {row["id"]: row for row in done.rows_iter()}
    assert (rows["plain"]["label"], rows["plain"]["reason"]) == (
        "harmful" if limit == 0 else "harmless",
        "",
    )
    reasons = {
        "deleted": "no such file",
        "broken": "not one of PNG",
        "remote": "is a URL",
        "bytes": "neither a path nor bytes",
        "outside": "outside",
    }
    for name, reason in reasons.items():
        row = rows[name]
        assert (row["status"], row["sha256"]) == ("scored", None)
        assert row["probability"] == rows["plain"]["probability"]
        # A meme to block is blocked; any other one goes to people, who see why.
        assert row["label"] == ("harmful" if limit == 0 else "review")
        if limit:
            assert row["reason"].startswith("only the text was scored, not the image: ")
            assert reason in row["reason"]
    assert (rows["blank"]["status"], rows["blank"]["label"]) == ("failed", "review")
    assert done.statuses == {"scored": 6, "not_scored": 0, "failed": 1}
    # Flagged texts are copied without their images, too.
    assert done.saved == (6 if limit == 0 else 5)
    if limit:
        _, items = read_queue(tmp_path / "out" / "review")
        shown = [{one.label: one.value for one in item.shown} for item in items]
        assert [str(one.get("text", "")).strip() for one in shown] == [text] * 5 + [""]
        assert all("image" in str(one["why"]) or "no such file" in str(one["why"]) for one in shown)


def test_the_threshold_belongs_to_harm_and_review_takes_both_ends(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", {"id": "a", "text": "今天又要加班了，好累"})
    _, rows = run(source, tmp_path / "first")
    chance = rows["a"]["probability"]
    _, rows = run(source, tmp_path / "at", threshold=chance)
    assert rows["a"]["label"] == "harmful"
    # The detector's own threshold is higher: it names no type of harm.
    assert rows["a"]["type"] is None
    assert max(rows["a"]["types"], key=lambda own: own["probability"])["type"] == "none"
    _, rows = run(source, tmp_path / "above", threshold=min(1.0, chance + 2e-6))
    assert rows["a"]["label"] == "harmless"
    done, rows = run(source, tmp_path / "review", review_range=(chance, 1.0))
    assert rows["a"]["label"] == "review"
    assert done.review_queue is not None
    card, items = read_queue(done.review_queue)
    assert card.workflow == "review"
    # The categories of the form are the harm types of the detector.
    types = {entry["type"] for entry in rows["a"]["types"]} - {"none"}
    assert {option.value for option in card.options["category"]} == types
    assert all(option.en and option.zh for option in card.options["category"])
    assert card.language == "zh"
    assert [item.group for item in items] == ["a"]


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 0.5, "operating_point": "precision=0.9"},
        {"threshold": 1.1},
        {"review_range": (0.7, 0.3)},
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ScreenSettings(**settings)


@pytest.mark.slow
def test_the_command_writes_parts_csv_and_a_page(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write_lines(
        tmp_path / "a.jsonl",
        {"id": "=1+1", "text": "今天又要加班了"},
        {"id": "b", "image": "no.png"},
    )
    done = shell.run("screen", "a.jsonl", "--csv", "--workers", "1")
    assert done.code == 1
    assert "2 memes: 1 scored, 0 not scored, 1 failed" in done.out
    assert "failed: 1; add --retry-failed" in done.err
    lines = (tmp_path / "screened" / "verdicts.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("'=1+1,scored,")
    again = shell.run("screen", "a.jsonl", "--workers", "1", "--json")
    assert json.loads(again.out)["done_now"] == 0
    # Another choice of the caption gives other verdicts, so it does not resume these.
    other = shell.refused("screen", "a.jsonl", "--workers", "1", "--text", "all")
    assert "was started with other settings: text" in other


def test_progress_is_told_once_a_second_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    watch = watch_shards()
    for rows, seconds in ((1, 0.5), (2, 1.49), (3, 1.5), (4, 2.0), (5, 2.1), (6, 2.2)):
        watch(ScaleProgress(rows, {}, rows, seconds, 1.0, total=6))
    told = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert told == ["1", "3", "6"]


def test_the_command_refuses_what_is_no_source(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "no such file or folder" in shell.refused("screen", "nothing.png")
    assert "LOW..HIGH" in shell.refused("screen", "x", "--review-range", "often")
    assert "add --engine ray" in shell.refused("screen", "x", "--address", "auto")


def test_pandas_and_datasets_read_what_is_written(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    datasets = pytest.importorskip("datasets")
    source = write_lines(tmp_path / "a.jsonl", {"id": "a", "text": "今天又要加班了，好累"})
    done, _ = run(source, tmp_path / "out")
    assert list(pandas.read_parquet(done.folder / "parts")["id"]) == ["a"]
    parts = str(done.folder / "parts" / "*.parquet")
    read = datasets.load_dataset("parquet", data_files=parts, cache_dir=str(tmp_path / "cache"))
    assert read["train"][0]["status"] == "scored"


@pytest.mark.slow
def test_a_pipe_is_a_source(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memantics.cli.main", "screen", "-", "--workers", "1", "--json"],
        input='{"id": "a", "text": "今天又要加班了，好累"}\n{"id": "b", "text": ""}\nno JSON\n',
        cwd=tmp_path,
        env=dict(os.environ) | {"MEMANTICS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["statuses"] == {"scored": 1, "not_scored": 1, "failed": 1}
    assert "failed: 1;" in done.stderr
    # How many will come is not known before the pipe ends.
    assert "3 memes (" in done.stderr


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "memantics.cli.main", "screen", "-", "--shard-size", "1"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=dict(os.environ) | {"MEMANTICS_HOME": str(tmp_path / "home")},
        text=True,
        start_new_session=True,
    )
    with running:
        assert running.stdin is not None
        running.stdin.write('{"text": "a"}\n')
        running.stdin.flush()
        while not (tmp_path / "screened" / "manifest.jsonl").exists():
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted: finished answers are kept; run the same command again to resume" in said


def test_images_come_in_smaller_shards_than_texts(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", {"text": "你好"}, {"image": "no.png"})
    each = math.ceil(2 / (2 * (os.cpu_count() or 1)))  # few images are divided among all cores
    for first, size in (("text", 1000), ("image", each)):
        run(source, tmp_path / first)
        settings, _ = read_manifest(tmp_path / first)
        assert settings is not None
        assert settings["shard_size"] == size
        source = write_lines(tmp_path / "a.jsonl", {"image": "no.png"}, {"text": "你好"})
    # A folder goes on with the size that it was begun with, however many memes came since.
    more = [{"image": f"{n}.png"} for n in range(5)]
    assert run(write_lines(source, {"image": "no.png"}, *more), tmp_path / "image")
    settings, _ = read_manifest(tmp_path / "image")
    assert settings is not None
    assert settings["shard_size"] == each


def test_a_name_that_is_not_utf8_loses_nothing_else(tmp_path: Path) -> None:
    memes = tmp_path / "memes"
    memes.mkdir()
    sound = (SAMPLE_IMAGES / "CN90001.png").read_bytes()
    for name, data in ((b"a\xff.png", sound), (b"b\xfe.png", sound[:500]), (b"c.png", sound)):
        (memes / os.fsdecode(name)).write_bytes(data)
    for _ in range(2):
        done, rows = run(memes, tmp_path / "out")
        ends = {name: row["status"] for name, row in rows.items()}
        assert ends == {"a\\udcff.png": "scored", "b\\udcfe.png": "failed", "c.png": "scored"}
        assert "b\\udcfe.png: truncated" in rows["b\\udcfe.png"]["reason"]
    assert done.done_now == 0  # the references of the first time are known again
