"""Whatever a user gets wrong: one line that says what, where and what next; never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from PIL import Image

from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmark, find_tasks
from memantics.core.data import Source
from tests.background import serve_in_background
from tests.commands import Shell
from tests.faults import FaultServer

SAMPLES = {name: find_benchmark(name).folder / "sample" for name in ("mquest", "punmemecn")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "mqest", "-m", "fake/keys"], ["unknown benchmark 'mqest'", "did you mean mquest"]),
        (["run", "mquest/q", "-m", "fake/keys"], ["unknown task 'mquest/q'", "mquest/qa"]),
        (["run", "mquest", "-m", "opnai/x"], ["unknown model kind 'opnai'", "openai"]),
        (["run", "mquest", "-m", "openai"], ["has no name", "openai/NAME"]),
        (["run", "mquest", "-m", "openai/x"], ["needs the URL", "--base-url"]),
        (["run", "mquest", "-m", "baseline/best"], ["unknown model 'baseline/best'"]),
        (["run", "mquest", "-m", "embedded/x"], ["unknown model", "embedded/reader"]),
        (["run", "mquest", "-m", "recorded/none.jsonl"], ["none.jsonl"]),
        (["run", "mquest", "-m", "fake/keys", "--split", "dev"], ["split", "'dev'", "ten"]),
        (["run", "mquest", "-m", "fake/keys", "--set", "ordre=x"], ["option 'ordre'", "order"]),
        (
            ["run", "mquest", "-m", "fake/keys", "--set", "order=x"],
            ["order", "'x'", "answer_first"],
        ),
        (["run", "mquest", "-m", "fake/keys", "--set", "order"], ["not NAME=VALUE"]),
        (["run", "mquest", "-m", "fake/keys", "--invalid", "guess"], ["'guess'", "retry:N"]),
        (["run", "mquest", "-m", "fake/keys", "--price", "cheap"], ["'cheap'", "IN,OUT"]),
        (["run", "mquest", "-m", "fake/keys", "--data", "release"], ["no release", "data add"]),
        (["data", "add", "mquest", "nowhere"], ["no such folder"]),
        (["data", "add", "nothing", "."], ["unknown benchmark 'nothing'"]),
        (["data", "check", "mquest"], ["no release of mquest is registered"]),
        (["data", "stats", "mquest", "--data", "all"], ["'sample', 'release'"]),
        (["analyse"], ["no such command 'analyse'", "analyze", "memantics --help"]),
        (["run", "mquest"], ["missing option '--model'", "memantics run --help"]),
        (["run", "mquest", "-m", "fake/keys", "--limit", "two"], ["'--limit'", "integer"]),
        (["data", "list", "--jsn"], ["--jsn", "--json"]),
        (["score", "nowhere"], ["not a run directory", "memantics run"]),
        (["report", "nowhere"], ["not a run directory"]),
    ],
)
def test_wrong_words(shell: Shell, arguments: list[str], words: list[str]) -> None:
    line = shell.refused(*arguments)
    assert all(word in line for word in words), line


def test_a_wrong_folder_says_what_was_looked_for(shell: Shell) -> None:
    (shell.folder / "photos").mkdir()
    for name, wanted in (
        ("punmemecn", "_Meta.json"),
        ("mquest", "_qa"),
        ("memeintent", "sigdial.json"),
        ("toxicn_mm", "train_data_discription"),
        ("mer_bench", "index_final.json"),
    ):
        assert wanted in shell.refused("data", "add", name, "photos")


def test_corrupt_json_is_named_with_its_row(shell: Shell) -> None:
    folder = shell.folder / "release"
    shutil.copytree(SAMPLES["punmemecn"], folder)
    path = folder / "_Meta.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[6] = '  "CN9": {,'
    path.write_text("\n".join(lines), encoding="utf-8")
    line = shell.refused("data", "add", "punmemecn", folder)
    assert "_Meta.json" in line
    assert "line 7" in line


def test_a_bad_value_is_named_with_its_key(shell: Shell) -> None:
    folder = shell.folder / "release"
    shutil.copytree(SAMPLES["punmemecn"], folder)
    path = folder / "_Meta.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    key = list(table)[6]
    table[key]["meme_sentiment"] = "nobody-neutral"
    path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    assert key in shell.refused("data", "add", "punmemecn", folder)


def registered(shell: Shell) -> Path:
    """A copy of the sample, registered as if it were the release."""
    folder = shell.folder / "release"
    shutil.copytree(SAMPLES["punmemecn"], folder)
    shutil.copytree(SAMPLE_IMAGES, folder / "pictures")
    ran = shell.run("data", "add", "punmemecn", folder, "--images", folder / "pictures")
    assert ran.code == 0, ran
    return folder / "pictures"


def test_a_missing_image_is_found_before_anything_is_asked(shell: Shell) -> None:
    pictures = registered(shell)
    victim = sorted(pictures.glob("CN*.png"))[12]  # the first ones are worked examples
    victim.unlink()
    assert victim.stem in shell.refused("run", "punmemecn/detection", "-m", "fake/keys")
    words = ("run", "punmemecn/detection", "-m", "fake/keys", "--set", "images=present", "--json")
    assert shell.run(*words).code == 0


@pytest.mark.slow
def test_hostile_images_fail_by_name_and_the_rest_goes_on(shell: Shell) -> None:
    pictures = registered(shell)
    source = Source("release", pictures.parent, pictures)
    items = list(find_tasks(["punmemecn/detection"])[0].make({}, "all", source, None).items())
    # A limit of six takes the triples of the first two memes.
    asked = [item for item in items if item.group in (items[0].group, items[1].group)]
    victims = [item.images[0].path for item in asked[:4]]
    Image.new("1", (21_000, 2)).save(victims[0])
    victims[1].write_bytes(b"<svg onload=alert(1)>")
    victims[2].write_bytes(b"")
    whole = victims[3].read_bytes()
    victims[3].write_bytes(whole[:20])
    words = ("run", "punmemecn/detection", "-m", "embedded/reader", "--limit", "6", "--json")
    ran = shell.run(*words)
    assert ran.code == 1
    assert "4 items failed" in ran.err
    [result] = json.loads(ran.out)
    assert result["scores"]["counts"] == {"answered": 2, "refused": 0, "unparsed": 0, "failed": 4}
    answers = (shell.folder / result["folder"] / "answers.jsonl").read_text(encoding="utf-8")
    for victim, reason in zip(victims, ("pixels", "format", "format", "truncated"), strict=True):
        assert any(victim.name in line and reason in line for line in answers.splitlines())


def ask_server(url: str) -> tuple[str, ...]:
    return ("run", "mquest", "-m", "openai/x", "--base-url", url, "--data", "sample")


@pytest.mark.slow
def test_an_unreachable_server(shell: Shell) -> None:
    line = shell.refused(*ask_server("http://127.0.0.1:9/v1"))
    assert "cannot be reached" in line
    assert "--base-url" in line


def test_a_wrong_key_is_said_and_never_shown(shell: Shell) -> None:
    with serve_in_background(FaultServer(always="401")) as server:
        line = shell.refused(*ask_server(server.url), OPENAI_API_KEY="sk-secret-123")
    assert "OPENAI_API_KEY" in line
    assert "sk-secret" not in line
    files = [path for path in shell.folder.rglob("*") if path.is_file()]
    assert files
    assert not any(b"sk-secret" in path.read_bytes() for path in files)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where it likes")
def test_a_read_only_disk(shell: Shell) -> None:
    locked = shell.folder / "locked"
    locked.mkdir(mode=0o500)
    assert "--out" in shell.refused("run", "mquest", "-m", "fake/keys", "--out", locked / "runs")


def test_a_place_that_cannot_be_written(shell: Shell) -> None:
    """A file where a folder should be fails for root too."""
    (shell.folder / "taken").write_text("")
    line = shell.refused("run", "mquest", "-m", "fake/keys", "--out", "taken/runs")
    assert "cannot be written" in line
    assert "--out" in line
    line = shell.refused(
        "run", "mquest", "-m", "fake/keys", MEMANTICS_HOME=str(shell.folder / "taken")
    )
    assert "MEMANTICS_HOME" in line


def test_a_file_that_cannot_be_had_comes_with_a_next_step(shell: Shell) -> None:
    """Also where no command foresaw it."""
    (shell.folder / "deep.json").mkdir()
    line = shell.refused("audit", "mquest", "--published", "deep.json")
    assert "give a JSON file" in line
    (shell.folder / "rows.json").write_text("[{]", encoding="utf-8")
    line = shell.refused("audit", "mquest", "--published", "rows.json")
    assert "docs/how-to/audit-a-benchmark.md" in line
    assert "reinstall" not in line


def test_a_reader_that_has_seen_enough_is_no_failure(shell: Shell) -> None:
    shell.done("kb", "import", "sample")
    words = [sys.executable, "-m", "memantics.cli.main", "kb", "export"]
    with subprocess.Popen(
        words, cwd=shell.folder, env=shell.environment, stdout=PIPE, stderr=PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 0
