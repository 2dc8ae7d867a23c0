"""One reading of a meme is given to every step: what is printed, its language, how it sounds."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from memantics.construction.build import knowledge
from memantics.construction.questions.asking import QuestionSubject, ask_draft
from memantics.construction.questions.records import plan_slots
from memantics.core.errors import InputError
from memantics.core.memes import BESIDE, HOMOPHONES, TEMPLATE, Meme, read_memes
from memantics.core.samples import image_path
from memantics.understanding import reading
from memantics.understanding.analysis.records import (
    HomophoneFinding,
    describe_homophones,
    find_homophones,
)
from memantics.understanding.captions.mine import make_step
from memantics.understanding.extraction.plan import DEFAULT, Situation, ask_individuals
from memantics.understanding.intents.draft import (
    IntentSettings,
    make_background_step,
    make_intent_step,
)
from memantics.understanding.knowledge.records import Individual, Knowledge
from memantics.understanding.phonetics.homophones import load_lattice
from memantics.understanding.reading import find_hints, read_once, tell_templates
from tests.commands import Shell
from tests.construction.extract.scripts import text_of
from tests.construction.questions.scripts import one_step
from tests.core_install import block_extras


@pytest.fixture(scope="module")
def trigram() -> None:
    try:
        load_lattice("trigram", None)
    except InputError as error:
        pytest.skip(f"no trigram model: {error}")


def read(*memes: Meme, limit: int | None = None) -> tuple[Meme, ...]:
    return asyncio.run(read_once(memes, limit))


def test_a_plain_folder_is_read_before_anything_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "memes"
    folder.mkdir()
    shutil.copy(image_path("en-001"), folder)
    (folder / "broken.png").write_bytes(b"no image")
    built = knowledge(folder, model="fake/builder", out=tmp_path / "b")
    (meme,) = read_memes(built.folder)
    assert "awkward" in meme.text.casefold()
    assert "robot" in meme.notes[BESIDE].casefold()
    assert meme.language == "en"
    assert [skip.row for skip in built.skips] == ["broken"]


def test_what_a_person_gave_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = [HomophoneFinding("鸭梨山大", "压力山大", 0.82)]
    monkeypatch.setattr(reading, "find_homophones", lambda *_: heard)
    plain = Meme("a", image_path("en-001"), "鸭梨山大", notes={"meaning": "stress"})
    (told,) = read(plain)
    assert (told.text, told.language) == ("鸭梨山大", "zh")
    assert told.notes == {"meaning": "stress", HOMOPHONES: "压力山大 (82% sure)"}
    given = Meme("a", image_path("en-001"), "鸭梨山大", "ja", {"reading": "压力"})
    assert read(given) == (given,)
    heard.clear()
    assert HOMOPHONES not in read(plain)[0].notes


@pytest.mark.slow
def test_on_the_core_alone_reading_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "memes").mkdir()
    shutil.copy(image_path("en-001"), tmp_path / "memes")
    ran = Shell(tmp_path).apart.run(
        *("build", "knowledge", "memes", "--model", "fake/builder", "--out", "b"),
        **block_extras(tmp_path / "core"),
    )
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "pip install 'memantics[offline]'" in ran.err


def test_only_the_first_are_read_where_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "find_homophones", lambda *_: [])
    memes = [Meme(name, image_path("en-001"), "hello there") for name in "abc"]
    assert [own.language for own in read(*memes, limit=2)] == ["en", "en", ""]
    assert [own.language for own in read(*memes)] == ["en", "en", "en"]
    assert read() == ()


def template_cluster(
    *texts: str, name: str = "a", notes: dict[str, str] | None = None
) -> list[Meme]:
    """Memes on one picture; an empty name: they are of no template cluster."""
    return [
        Meme(str(place), image_path("en-001"), text, notes=notes or {}, template_cluster=name)
        for place, text in enumerate(texts)
    ]


def notes_of(memes: list[Meme]) -> list[str | None]:
    return [meme.notes.get(TEMPLATE) for meme in tell_templates(memes)]


def test_memes_of_one_template_are_told_what_the_others_say() -> None:
    said = "other memes of this collection have the same picture and say: "
    assert notes_of(template_cluster("no", "yes")) == [f"{said}“yes”", f"{said}“no”"]
    assert notes_of(template_cluster(*"abcde"))[4] == f"{said}“a”; “b”; “c”"
    assert notes_of(template_cluster("no", "")) == [None, f"{said}“no”"]
    assert notes_of(template_cluster("no", "很" * 81))[0] == f"{said}“{'很' * 79}…”"


@pytest.mark.parametrize(
    "memes",
    [
        pytest.param(template_cluster("no", "yes", name=""), id="of no template cluster"),
        pytest.param(template_cluster("no"), id="alone"),
        pytest.param(template_cluster("no", "no"), id="with the same text"),
    ],
)
def test_nothing_is_said_of_a_template_that_tells_nothing(memes: list[Meme]) -> None:
    assert notes_of(memes) == [None] * len(memes)


def test_a_note_on_the_template_that_was_given_stays() -> None:
    assert notes_of(template_cluster("no", "yes", notes={TEMPLATE: "Drake"})) == ["Drake", "Drake"]


def test_siblings_beyond_the_limit_are_told_of_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "find_homophones", lambda *_: [])
    first, _ = read(*template_cluster("no", "yes"), limit=1)
    assert "“yes”" in first.notes[TEMPLATE]


def test_sound_and_template_are_told_to_every_step() -> None:
    notes = {HOMOPHONES: "压力山大 (82% sure)", TEMPLATE: "others say: “加油”"}
    meme = Meme("a", image_path("en-001"), "鸭梨山大", "zh", notes)
    known = Knowledge("a", (Individual("Scene", "pear", "a pear"),))
    (slot, *_) = plan_slots(known, one_step())
    seen = [
        *(ask_individuals(Situation(meme), step, {}, ()) for step in DEFAULT.steps),
        make_background_step(meme, "zh", IntentSettings()).request,
        make_intent_step(meme, "zh", (), IntentSettings()).request,
        ask_draft(QuestionSubject(meme, known), slot, one_step()),
    ]
    for request in seen:
        assert "压力山大 (82% sure)" in text_of(request)
        assert "others say: “加油”" in text_of(request)
    # What words mean is asked without the picture, so nothing is said of it.
    words = text_of(make_step(meme, "text_caption", "zh").request)
    assert "压力山大 (82% sure)" in words
    assert "加油" not in words


@pytest.mark.usefixtures("trigram")
@pytest.mark.parametrize(
    ("caption", "hint"),
    [
        ("真是乌龟办走读\n鳖不住校了", "憋不住笑了"),  # the pun is on the second line
        ("天气冷\n鸭梨\n鸭梨山大", "压力山大"),  # a label beside it
        ("真是乌龟办走读 鳖不住校了", "憋不住笑了"),  # lines that were joined by a space
        ("真是乌龟办走读\n鳖不\n住校\n了\n哈哈哈哈", "憋不住笑了"),  # broken over three lines
    ],
)
def test_a_hint_is_found_in_every_line_of_a_caption(caption: str, hint: str) -> None:
    whole = describe_homophones(find_homophones(caption, "zh"))
    assert whole == {}, "the caption as a whole hides it"
    assert find_hints(caption, "zh")[HOMOPHONES].startswith(hint)


@pytest.mark.usefixtures("trigram")
def test_a_pun_across_two_lines_is_found() -> None:
    assert find_hints("蕉个\n朋友", "zh") == {HOMOPHONES: "交个朋友 (99% sure)"}
    assert find_hints("今天\n天气不错", "zh") == {}
