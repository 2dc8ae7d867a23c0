"""``memantics build knowledge`` as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError
from memantics.core.meaning import DIMENSIONS
from memantics.core.memes import Meme, read_memes
from memantics.core.samples import IMAGES, image_path
from memantics.understanding.extraction.plan import PLANS
from memantics.understanding.extraction.report import adopt_memes, read_background, safe_id
from memantics.understanding.knowledge.records import read_knowledge
from tests.commands import Shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "my memes"
    place.mkdir()
    for name in ("en-001", "en-002"):
        shutil.copy(image_path(name), place / f"{name}.png")
    return place


@pytest.mark.slow
def test_a_folder_of_images_becomes_a_build(shell: Shell, folder: Path) -> None:
    shutil.copy(image_path("en-003"), folder / "odd name (1).png")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    ran = shell.run("build", "knowledge", folder, "--model", "fake/builder", "--out", "b")
    assert ran.code == 0, ran.err
    assert "skipped broken: image broken.png" in ran.out
    build = shell.folder / "b"
    report = json.loads((build / "report.json").read_text())
    assert report["memes"] == 3
    assert report["statuses"] == {"answered": 30, "refused": 0, "unparsed": 0, "failed": 0}
    knowledge = list(read_knowledge(build))
    assert [own.meme for own in knowledge] == [meme.id for meme in read_memes(build)]
    assert all((build / "images" / own.image).is_file() for own in knowledge)
    assert not [own for known in knowledge for own in known.dangling()]
    first = (build / "knowledge.jsonl").read_bytes()
    calls = (build / "calls.jsonl").read_bytes()
    again = shell.run("build", "knowledge", folder, "--model", "fake/builder", "--out", "b")
    assert again.code == 0
    assert (build / "knowledge.jsonl").read_bytes() == first
    assert (build / "calls.jsonl").read_bytes() == calls


@pytest.mark.slow
def test_a_recording_of_the_calls_replays_the_build(shell: Shell, folder: Path) -> None:
    shell.run("build", "knowledge", folder, "--model", "fake/builder", "--out", "b")
    ran = shell.run("build", "knowledge", folder, "-m", "recorded/b/calls.jsonl", "--out", "c")
    assert ran.code == 0, ran.err

    def labels(name: str) -> list[str]:
        found = read_knowledge(shell.folder / name)
        return [own.label for known in found for own in known.individuals]

    assert labels("c") == labels("b")


@pytest.mark.slow
def test_failed_steps_end_with_exit_code_1(shell: Shell, folder: Path) -> None:
    ran = shell.run("build", "knowledge", folder, "-m", "fake/babble", "--attempts", "1")
    assert ran.code == 0
    assert "the reply holds no JSON" in ran.out
    (shell.folder / "empty.jsonl").write_text('{"prompt": "x", "text": "y"}\n')
    ran = shell.run("build", "knowledge", folder, "-m", "recorded/empty.jsonl", "--out", "c")
    assert ran.code == 1
    assert "contains no answer to this request" in ran.out


def test_explain_shows_the_graph_and_asks_nothing(shell: Shell) -> None:
    said = shell.done("build", "knowledge", "--explain", "--order", "official")
    assert "Scene" in said
    assert "in a second pass" in said
    assert not list(shell.folder.glob("builds/*"))


@pytest.mark.parametrize("order", PLANS)
def test_every_order_can_be_read_by_programs(order: str, shell: Shell) -> None:
    shown = json.loads(shell.run("build", "knowledge", "--order", order, "--explain", "--json").out)
    assert shown["order"] == order
    assert len(shown["steps"]) == 10
    assert sorted(name for wave in shown["waves"] for name in wave) == sorted(DIMENSIONS)


def test_what_a_user_can_fix_is_one_line(shell: Shell) -> None:
    assert "no model given" in shell.refused("build", "knowledge", "sample")
    assert not (shell.folder / "builds").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "no meme folder was given"),
        (["nowhere"], "nowhere: is not a folder"),
        (["sample", "--order", "papre"], "did you mean paper"),
        (["sample", "--background", "nothing.txt"], "nothing.txt: cannot read the file"),
    ],
)
def test_what_else_a_user_can_fix(shell: Shell, words: list[str], expected: str) -> None:
    assert expected in shell.refused("build", "knowledge", *words, "-m", "fake/builder")


def test_background_files_are_read_in_bounds(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Second.", encoding="utf-8")
    (tmp_path / "a.txt").write_text("First.", encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"\xff")
    assert read_background(tmp_path) == "[a.txt]\nFirst.\n\n[b.md]\nSecond."
    with pytest.raises(DataError, match="is not UTF-8"):
        read_background(tmp_path / "c.png")
    (tmp_path / "big.txt").write_text("x" * 70_000)
    with pytest.raises(DataError, match="more than 64,000"):
        read_background(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no \.txt or"):
        read_background(tmp_path / "empty")


def test_ids_stay_apart_and_inside(tmp_path: Path) -> None:
    image = IMAGES / "en-001.png"
    hostile = [Meme("../../x", image), Meme("a b", image), Meme("a-b", image), Meme("键盘", image)]
    adopted = adopt_memes(hostile, tmp_path).memes
    assert len({meme.id for meme in adopted}) == 4
    assert all(meme.image.parent == tmp_path / "images" for meme in adopted)
    assert [meme.id for meme in read_memes(tmp_path)] == [meme.id for meme in adopted]
    assert safe_id("///").startswith("meme-")


def test_memes_without_any_readable_image_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no")
    with pytest.raises(InputError, match="none of the 1 memes has a readable image"):
        adopt_memes([Meme("x", tmp_path / "x.png")], tmp_path / "build")
