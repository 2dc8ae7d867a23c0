"""Requests, schemas and queues of drafts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memantics.core.errors import ImageError
from memantics.core.memes import Meme
from memantics.core.queue import QueueItem, read_queue
from memantics.core.records import Field as FormField
from memantics.core.records import Form, Image, Message, Option, Request, Sampling
from memantics.core.samples import image_path, read_samples
from memantics.core.task import Unparsed
from memantics.models.drafts import (
    array,
    check_wording,
    choice,
    make_request,
    queue_images,
    repeats_itself,
    show_material,
    text,
    write_draft_queue,
)
from memantics.models.wire import list_keys

SCHEMA = {"type": "object"}


def test_a_request_has_one_turn_with_the_image_first() -> None:
    meme = Meme("m", Path("m.png"), "printed")
    form = Form("", (), "zh", "json", {"text": "printed"})
    warm = Sampling(temperature=0.5)
    assert make_request("Say it.", SCHEMA, meme=meme, language="zh", sampling=warm) == Request(
        (Message("user", (Image(Path("m.png")), "Say it.")),), form, warm, SCHEMA
    )
    plain = make_request("Say it.", SCHEMA)
    assert plain.messages == (Message("user", ("Say it.",)),)
    assert (plain.form, plain.sampling) == (Form("", (), "en", "json", {"text": ""}), Sampling())


def test_schemas() -> None:
    assert text() == {"type": "string"}
    assert text(7) == {"type": "string", "maxLength": 7}
    assert choice("a", "b") == {"type": "string", "enum": ["a", "b"]}
    assert array(text(), 1, 3) == {
        "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3,
    }  # fmt: skip


def test_empty_material_is_skipped() -> None:
    shown = show_material({"title": "A cat\nsleeps", "notes": "  "})
    assert "A cat\nsleeps" in shown
    assert "notes" not in shown
    assert show_material({"notes": ""}) == "Nothing is known about it."
    assert show_material({}, "Nothing.") == "Nothing."


@pytest.mark.parametrize(("length", "fits"), [(9, True), (8, False)])
def test_wordings_on_both_sides_of_the_limit(length: int, fits: bool) -> None:
    if fits:
        assert check_wording("nine char", "caption", "en", length) == "nine char"
    else:
        with pytest.raises(Unparsed, match="the caption has 9 characters: write at most 8"):
            check_wording("nine char", "caption", "en", length)


def test_wordings_in_another_language_are_refused() -> None:
    said = "Die Katze schläft heute den ganzen Tag auf dem Sofa und will nicht gestört werden."
    with pytest.raises(Unparsed, match="is not in English: write it in that language"):
        check_wording(said, "caption", "en", 200)
    assert check_wording(said, "caption", "de", 200) == said
    assert check_wording("Schadenfreude", "caption", "en", 200) == "Schadenfreude"


@pytest.mark.parametrize(("times", "found"), [(2, False), (3, True)])
def test_repetitions(times: int, found: bool) -> None:
    assert repeats_itself("one two three four five six " * times) is found
    assert repeats_itself("今天又要加班" * times) is found
    assert not repeats_itself("")


def test_queues_of_drafts(tmp_path: Path) -> None:
    def item(name: str, language: str) -> QueueItem:
        return QueueItem(id=name, group=name, hidden={"language": language})

    for languages, expected in ((("zh", "zh"), "zh"), (("zh", "en"), "en"), (("zh", "de"), "en")):
        items = [item(f"i{number}", one) for number, one in enumerate(languages)]
        assert write_draft_queue(tmp_path, "Title", "review", items, "build chats") == 2
        card, read = read_queue(tmp_path)
        assert (card.title, card.workflow, card.language) == ("Title", "review", expected)
        assert (card.origin, card.warning) == ("build chats", "Memes may be offensive.")
        assert [one.id for one in read] == ["i0", "i1"]


def test_images_are_copied_once(tmp_path: Path) -> None:
    meme = read_samples()[0]
    source = tmp_path / "A.PNG"
    shutil.copy(image_path(meme.id), source)
    queue = tmp_path / "queue"
    assert queue_images([Meme("m1", source)], queue) == {"m1": "images/m1.png"}
    copy = queue / "images" / "m1.png"
    assert copy.read_bytes() == source.read_bytes()
    before = copy.stat().st_mtime_ns
    queue_images([Meme("m1", source)], queue)
    assert copy.stat().st_mtime_ns == before
    copy.write_bytes(b"changed")
    queue_images([Meme("m1", source)], queue)
    assert copy.read_bytes() == source.read_bytes()
    source.write_bytes(b"no image")
    with pytest.raises(ImageError):
        queue_images([Meme("m2", source)], queue)


def test_only_a_form_of_one_choice_has_keys() -> None:
    one = FormField("answer", "choice", (Option("A", "a cat"), Option("B", "a dog")))
    assert list_keys(Form("", (one,), reply="key")) == ("A", "B")
    assert list_keys(Form("", (one,), reply="json")) == ()
    assert list_keys(Form("", (one, one), reply="key")) == ()
    assert list_keys(Form("", (), reply="key")) == ()
