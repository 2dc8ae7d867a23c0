"""Text that is no caption stays out of what every command says, and is named beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import memantics as mm
from memantics.actions.reading import read_once
from memantics.actions.reappraise import line_reader
from memantics.actions.screen_work import ScreenSettings
from memantics.build.collect.looks import look_at
from memantics.core.images import load
from memantics.core.memes import BESIDE, Meme
from memantics.models.embedded.ocr import open_reader
from memantics.vision.page import read_page
from tests.vision.worded import CASES, Worded

pytestmark = pytest.mark.slow
NAMES = ("map", "calculator", "number plate", "watermark", "chat", "screenshot")


def squeeze(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Worded]:
    folder = tmp_path_factory.mktemp("memes")
    found = {}
    for name in NAMES:
        path = folder / f"{name.replace(' ', '-')}.png"
        found[path] = CASES[name]()
        found[path].image.save(path)
    return found


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # One home for the module: each picture is read once.
    home = tmp_path_factory.getbasetemp() / "home-of-roles"
    monkeypatch.setenv("MEMANTICS_HOME", str(home))


def check(said: str, case: Worded) -> None:
    for text in case.caption:
        assert squeeze(text) in squeeze(said), said
    for text in case.others:
        assert squeeze(text) not in squeeze(said).replace(squeeze("".join(case.caption)), ""), said


def test_analyze_takes_captions_and_names_the_rest(drawn: dict[Path, Worded]) -> None:
    for path, case in drawn.items():
        found = mm.analyze(path)
        check("".join(found.lines), case)
        check(found.text, case)
        assert found.meme.notes[BESIDE] == "\n".join(line.text for line in found.beside)
        data = found.to_dict()
        assert data["caption"] == "\n".join(found.lines)
        assert {"text", "box", "role", "chance"} <= set(data["printed"][0])  # type: ignore[arg-type, index]
    kinds = {path.stem: {s.part: s.says for s in mm.analyze(path).shows} for path in drawn}
    assert kinds["chat"]["made as"] == "screenshot of a chat"
    assert kinds["screenshot"]["made as"] == "screenshot"
    assert "screenshot" not in kinds["number-plate"].get("made as", "").removeprefix("drawing or ")


def test_all_text_is_taken_where_a_person_says_so(drawn: dict[Path, Worded]) -> None:
    path = next(path for path in drawn if path.stem == "watermark")
    assert "memelord" in mm.analyze(path, text="all").text
    assert "memelord" not in mm.analyze(path).text


def test_screen_has_captions_and_what_was_left_out(
    drawn: dict[Path, Worded], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    done = mm.screen(list(drawn), ScreenSettings(readings="none"), out=tmp_path / "out")
    rows = {Path(row["id"]).stem: row for row in done.rows_iter()}
    for path, case in drawn.items():
        row = rows[path.stem]
        if path.stem == "number-plate":  # taken too by the fast profile, docs/research/roles.md
            assert squeeze(case.caption[0]) in squeeze(row["caption"])
            continue
        check(row["caption"], case)
        assert row["left_out"]
        for text in (row["caption"], row["left_out"]):
            assert set(text.split("\n")) <= set(row["text"].split("\n"))
    everything = ScreenSettings(readings="none", printed="all")
    done = mm.screen(list(drawn), everything, out=tmp_path / "all")
    for row in done.rows_iter():
        assert row["caption"] == row["text"]
        assert row["left_out"] == ""


def test_build_and_collect_read_captions(drawn: dict[Path, Worded]) -> None:
    memes = [Meme(path.stem, path) for path in drawn]
    for meme, case in zip(asyncio.run(read_once(memes)), drawn.values(), strict=True):
        check(meme.text, case)
        assert meme.notes[BESIDE]
    with open_reader() as ocr:
        for path, case in drawn.items():
            look = look_at(path, ocr)
            check(look.text, case)
            assert look.left_out
            assert bool(look.watermark) == (path.stem == "watermark")


def test_reappraise_rewrites_captions_alone(drawn: dict[Path, Worded]) -> None:
    with open_reader() as ocr:
        read = line_reader(ocr)
        for path, case in drawn.items():
            page = read_page(load(path), read(path.read_bytes(), path.name))
            check("".join(caption.text for caption in page.captions), case)
