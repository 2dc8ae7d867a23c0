"""Requests, schemas and queues of drafts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memantics.core.errors import ImageError
from memantics.core.language import Guess
from memantics.core.memes import Meme
from memantics.core.model import Taken
from memantics.core.prompt import enclose
from memantics.core.queue import QueueItem, read_queue
from memantics.core.records import Field as FormField
from memantics.core.records import Form, Image, Message, Option, Request, Sampling, Status
from memantics.core.samples import image_path, read_samples
from memantics.core.task import Unparsed
from memantics.models import drafts
from memantics.models.drafts import (
    DraftSource,
    Miss,
    Tally,
    array,
    check_wording,
    choice,
    count_statuses,
    make_request,
    name_language,
    note_source,
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


def test_a_role_comes_before_the_turn() -> None:
    asked = make_request("Say it.", SCHEMA, system="You are brief.")
    assert asked.messages == (
        Message("system", ("You are brief.",)), Message("user", ("Say it.",)),
    )  # fmt: skip


def test_languages_have_names() -> None:
    assert [name_language(code) for code in ("zh", "de", "hi")] == ["Chinese", "German", "Hindi"]
    assert name_language("x" * 30) == f"the language with the code {'x' * 20}"
    assert name_language("a\nb") == "the language with the code a b"


def test_material_is_bounded_and_enclosed() -> None:
    shown = show_material({"a\nname " + "x" * 60: "y" * 4001, "two": "b\x00c\nd"})
    first, second = shown.split("\n\n")
    assert first.startswith(f"<{('a name ' + 'x' * 60)[:40]} ")
    assert first.split("\n")[1:2] == ["y" * 2000], "a line has 2,000 characters at most"
    assert second == enclose("two", "b c\nd")
    long = show_material({"a": "\n".join(["z" * 999] * 5)})
    assert long.count("z") == 4 * 999, "4,000 characters with their line breaks"


def taken(name: str, status: Status, attempts: int = 1) -> Taken[str]:
    return Taken(name, status, None, f"why {name}", attempts, "hash", "model", "now")


def test_results_of_steps_are_counted() -> None:
    tally = Tally()
    steps: tuple[tuple[str, Status, int], ...] = (
        ("a", "answered", 1), ("b", "answered", 2), ("c", "answered", 3), ("d", "failed", 2),
        ("e", "refused", 1), ("f", "failed", 1),
    )  # fmt: skip
    for name, status, attempts in steps:
        tally.add(taken(name, status, attempts))
    assert tally.repaired == 2
    assert tally.misses == [
        Miss("d", "failed", "why d"), Miss("e", "refused", "why e"), Miss("f", "failed", "why f"),
    ]  # fmt: skip
    other = Tally()
    other.add(taken("g", "refused"))
    assert count_statuses([tally, other]) == {
        "answered": 3, "refused": 2, "unparsed": 0, "failed": 2,
    }  # fmt: skip
    assert count_statuses([]) == dict.fromkeys(("answered", "refused", "unparsed", "failed"), 0)
    assert note_source(taken("a", "answered")) == DraftSource("model", "hash", "now")


def test_a_wording_is_one_line_with_words() -> None:
    assert check_wording(" a\n cat\u202e ", "caption", "en", 9) == "a cat"
    for empty in ("", "…", "123 !", "😀"):
        with pytest.raises(Unparsed, match=r"^the title has no words$"):
            check_wording(empty, "title", "en", 9)
    with pytest.raises(Unparsed, match=r"^the title repeats itself$"):
        check_wording("one two three four five six " * 3, "title", "en", 400)
    # What is longer than four times the limit is not looked at.
    with pytest.raises(Unparsed, match="has 40 characters: write at most 10"):
        check_wording("x" * 99, "title", "en", 10)


@pytest.mark.parametrize(
    ("confidence", "letters", "found", "fits"),
    [
        (0.8, 12, "de", False),
        (0.79, 12, "de", True),
        (0.8, 11, "de", True),
        (0.8, 12, "en", True),
        (0.8, 12, "und", True),
    ],
)
def test_a_language_counts_where_it_is_certain(
    confidence: float, letters: int, found: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "guess_language", lambda _: Guess(found, confidence, "model"))
    said = "ab " * (letters // 2) + "a" * (letters % 2)
    if fits:
        assert check_wording(said, "caption", "en", 99) == said.strip()
        return
    with pytest.raises(
        Unparsed, match=r"^the caption is not in English: write it in that language$"
    ):
        check_wording(said, "caption", "en", 99)


def test_six_words_three_times_are_a_repetition() -> None:
    assert repeats_itself("a b c d e f A B C D E F x a, b c d e f")
    assert not repeats_itself("a b c d e f a b c d e f x a b c d e g")
    assert not repeats_itself("a b c d e " * 2 + "a b c d e")
    assert repeats_itself("哈" * 8), "six characters three times, overlapping"
    assert not repeats_itself("哈" * 7)
    assert not repeats_itself("x" * 99), "a long word is one word"
    assert not repeats_itself("a_b_c_d_e_f_" * 2)
    assert repeats_itself("a_b_c_d_e_f_" * 3)
