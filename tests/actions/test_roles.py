"""Text that is no caption stays out of what every command says, and is named beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

import memantics as mm
from memantics.construction.collect.collect import make_settings
from memantics.construction.collect.looks import look_at
from memantics.core.images import load
from memantics.core.lines import TextChoice
from memantics.core.memes import BESIDE, KIND, Meme
from memantics.models.embedded.ocr import RapidReader, RememberingOcr, open_reader
from memantics.moderation.detect import Moderator
from memantics.moderation.screening import ScreenSettings
from memantics.moderation.subjects import Subject
from memantics.understanding.editing import line_reader
from memantics.understanding.reading import read_once
from memantics.understanding.reappraisal.stages import ReappraisalSubject, _request
from memantics.understanding.vision.page import read_page
from memantics.understanding.vision.typefaces import BALOO
from memantics.workbench.studio import Picture, Studio, read_text
from tests.vision.worded import CASES, Worded

pytestmark = pytest.mark.slow
NAMES = ("map", "calculator", "number plate", "watermark", "chat", "screenshot", "mahjong tiles")


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
        assert {"text", "box", "role", "probability"} <= set(data["printed"][0])  # type: ignore[arg-type, index]
    kinds = {path.stem: {s.part: s.says for s in mm.analyze(path).shows} for path in drawn}
    assert kinds["chat"]["medium"] == "screenshot of a chat"
    assert kinds["screenshot"]["medium"] == "screenshot"
    assert "screenshot" not in kinds["number-plate"].get("medium", "").removeprefix("drawing or ")


def open_doors(path: Path, folder: Path) -> dict[str, Callable[[TextChoice], str]]:
    """Every way to the caption of an image, by the name of the command."""
    data, detector = path.read_bytes(), mm.Detector.load_sample()

    def collect(choice: TextChoice) -> str:
        (folder / path.name).write_bytes(data)
        (kept,) = mm.collect(folder, make_settings(text=choice), page=False).memes
        return kept.text

    def screen(choice: TextChoice) -> str:
        settings = ScreenSettings(readings="none", printed=choice)
        (row,) = mm.screen([path], settings, out=folder / choice).rows_iter()
        return str(row["caption"])

    def serve(choice: TextChoice) -> str:
        (subject,) = Moderator(detector, text=choice).read([data])
        assert isinstance(subject, Subject)
        return subject.example.text

    def show(choice: TextChoice) -> str:
        ocr = RememberingOcr(RapidReader(), None, choice)
        return read_text(Studio(detector, ocr=ocr), Picture(data, "meme")).text

    def reappraise(choice: TextChoice) -> str:
        with open_reader(text=choice) as ocr:
            page = read_page(load(path), line_reader(ocr)(data, path.name))
        return " ".join(caption.text for caption in page.captions)

    return {
        "analyze": lambda choice: mm.analyze(path, settings=mm.AnalyzeSettings(text=choice)).text,
        "build": lambda choice: asyncio.run(read_once([Meme("m", path)], text=choice))[0].text,
        "collect": collect,
        "predict": lambda choice: detector.prepare(path, choice)[0].text,
        "reappraise": reappraise,
        "screen": screen,
        "serve": serve,
        "studio": show,
    }


def test_all_text_is_taken_where_a_person_says_so(
    drawn: dict[Path, Worded], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    path = next(path for path in drawn if path.stem == "watermark")
    for name, take in open_doors(path, tmp_path).items():
        assert "memelord" in take("all"), name
        assert "memelord" not in take("caption"), name


def test_words_that_were_run_together_are_parted(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("wordfreq")
    path, folder = tmp_path / "run.png", tmp_path / "collected"
    folder.mkdir()
    image = Image.new("RGB", (760, 420), "#d8e6d0")
    ImageDraw.Draw(image).text((380, 60), "internationalboxing day", "black", BALOO.at(56), "mm")
    image.save(path)
    for name, take in open_doors(path, folder).items():
        assert "international boxing day" in take("caption"), name


def test_prompts_name_the_kind_of_picture_where_it_is_sure(drawn: dict[Path, Worded]) -> None:
    memes = {meme.id: meme for meme in asyncio.run(read_once([Meme(p.stem, p) for p in drawn]))}
    kinds = {name: meme.notes.get(KIND, "") for name, meme in memes.items()}
    assert kinds.pop("chat") == "screenshot of a chat"
    assert kinds.pop("screenshot") == "screenshot"
    assert set(kinds.values()) == {""}
    path = memes["chat"].image
    assert mm.analyze(path).meme.notes[KIND] == "screenshot of a chat"
    page = read_page(load(path), ())
    request = _request(
        ReappraisalSubject("m", path, page, notes=memes["chat"].notes), "plan", (), {}
    )
    told = "".join(part for part in request.messages[0].parts if isinstance(part, str))
    assert KIND in told
    assert "screenshot of a chat" in told


def test_text_of_a_screen_begins_at_the_left_on_plain_ground(drawn: dict[Path, Worded]) -> None:
    for path, case in drawn.items():
        rough = path.with_suffix(".jpg")
        case.image.convert("RGB").save(rough, quality=30)
        with open_reader() as ocr:
            lines = line_reader(ocr)(rough.read_bytes(), rough.name)
        page = read_page(load(rough), lines)
        rough.unlink()
        screen = path.stem in ("chat", "screenshot")
        assert page.kind.startswith("screenshot") == screen, path.stem
        for caption in page.captions if screen else ():
            assert caption.ink.ground.flat, caption.text
            assert caption.lettering.align == "left", caption.text


def test_screen_has_captions_and_what_was_left_out(
    drawn: dict[Path, Worded], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    done = mm.screen(list(drawn), ScreenSettings(readings="none"), out=tmp_path / "out")
    rows = {Path(row["id"]).stem: row for row in done.rows_iter()}
    for path, case in drawn.items():
        row = rows[path.stem]
        check(row["caption"], case)
        assert row["other_text"]
        for text in (row["caption"], row["other_text"]):
            assert set(text.split("\n")) <= set(row["text"].split("\n"))
    everything = ScreenSettings(readings="none", printed="all")
    done = mm.screen(list(drawn), everything, out=tmp_path / "all")
    for row in done.rows_iter():
        assert row["caption"] == row["text"]
        assert row["other_text"] == ""


def test_build_and_collect_read_captions(drawn: dict[Path, Worded]) -> None:
    memes = [Meme(path.stem, path) for path in drawn]
    for meme, case in zip(asyncio.run(read_once(memes)), drawn.values(), strict=True):
        check(meme.text, case)
        assert meme.notes[BESIDE]
    with open_reader() as ocr:
        for path, case in drawn.items():
            look = look_at(path, ocr)
            check(look.text, case)
            assert look.other_text
            assert bool(look.watermark) == (path.stem == "watermark")


def test_reappraise_rewrites_captions_alone(drawn: dict[Path, Worded]) -> None:
    with open_reader() as ocr:
        read = line_reader(ocr)
        for path, case in drawn.items():
            page = read_page(load(path), read(path.read_bytes(), path.name))
            check("".join(caption.text for caption in page.captions), case)
