"""What each perturbation does to an item, without a model: both sides of every rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.factories import letter_field
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.memes import image_key
from memantics.core.records import Field, Form, Image, Item, Option, Outcome
from memantics.core.task import Task, Unparsed
from memantics.evaluation.perturb import RESTS
from memantics.evaluation.perturbations import (
    PERTURBATIONS,
    PerturbationTools,
    change_caption,
    check_perturbation,
    halve,
    permute_options,
    perturb_task,
)

FORM = Form(
    "Which?", (letter_field(["cat", "dog", "cow"]),), "zh", context={"text": "我又要加班了"}
)


def mark(word: str, path: Path) -> Path:
    return path.with_stem(f"{path.stem}-{word}")


def tools(**rewordings: str) -> PerturbationTools:
    return PerturbationTools(
        lambda path: mark("blank", path),
        lambda path: mark("erased", path),
        lambda path: f"one does not simply {path.stem}",
        rewordings,
    )


def make(name: str, *pictures: str, tags: Mapping[str, str] | None = None) -> Item:
    """An item of the meme that its name begins with."""
    images = tuple(Image(Path(picture)) for picture in pictures or (f"{name[0]}.png",))
    return Item(name, name[0], "A", FORM, images, tags or {})


def never(*_: object) -> Any:
    raise AssertionError


def pose(*items: Item) -> Task:
    return Task("toy/choice", lambda: iter(items), never, never, lambda _: (), "accuracy")


def names(items: Sequence[Item]) -> list[list[str]]:
    return [[image.path.name for image in item.images] for item in items]


@pytest.mark.parametrize(
    "perturbation", ["colour=red", "image", "image=gone", "contamination=", ""]
)
def test_an_unknown_probe_is_refused(perturbation: str) -> None:
    with pytest.raises(UnknownName, match="unknown"):
        check_perturbation(perturbation)
    assert check_perturbation("contamination=id") == ("contamination", "id")


def test_without_tools_a_task_only_knows_its_probe() -> None:
    task = pose(make("a1"), make("b1"))
    changed = perturb_task(task, "image=blank", None)
    assert (changed.perturbation, names(list(changed.items()))) == (
        "image=blank",
        [["a.png"], ["b.png"]],
    )


def test_blank_pictures_leave_the_rest() -> None:
    (item,) = perturb_task(pose(make("a1", "x.png", "y.png")), "image=blank", tools()).items()
    assert item == make("a1", "x-blank.png", "y-blank.png")


def test_pictures_go_round_among_memes_with_as_many() -> None:
    lone = replace(make("z1"), images=())
    pairs = [make("d1", "d1.png", "d2.png"), make("e1", "e1.png", "e2.png")]
    items = [make("a1"), make("a2"), make("b1"), make("c1"), lone, *pairs]
    found = list(perturb_task(pose(*items), "image=swapped", tools()).items())
    shown = names(found)
    assert [item.id for item in found] == [item.id for item in items]
    assert shown[0] == shown[1], "both items of a meme see the same"
    given = [shown[place][0] for place in (0, 2, 3)]
    assert sorted(given) == ["a.png", "b.png", "c.png"]
    assert all(own != other for own, other in zip(("a.png", "b.png", "c.png"), given, strict=True))
    assert shown[4:] == [[], ["e1.png", "e2.png"], ["d1.png", "d2.png"]]
    with pytest.raises(DataError, match="at least two memes"):
        list(perturb_task(pose(make("a1"), make("a2")), "image=swapped", tools()).items())


def test_a_fed_task_is_changed_too() -> None:
    plain = pose(make("a1"), make("b1"))
    fed = replace(plain, feed=lambda _: pose(make("c1"), make("d1")))
    changed = perturb_task(fed, "image=blank", tools())
    assert changed.feed is not None
    again = changed.feed({})
    assert again.perturbation == "image=blank"
    assert names(list(again.items())) == [["c-blank.png"], ["d-blank.png"]]
    assert perturb_task(plain, "image=blank", tools()).feed is None


def test_captions_are_changed_when_an_item_is_asked() -> None:
    task = perturb_task(pose(make("a1")), "caption=removed", tools())
    (item,) = task.items()
    assert item == make("a1")
    assert task.complete is not None
    done = task.complete(item)
    assert (done.form.context, names([done])) == ({"text": ""}, [["a-erased.png"]])
    before = replace(pose(make("a1")), complete=lambda item: replace(item, gold="done before"))
    chained = perturb_task(before, "caption=removed", tools()).complete
    assert chained is not None
    assert (chained(item).gold, chained(item).form.context["text"]) == ("done before", "")
    assert perturb_task(before, "image=blank", tools()).complete is before.complete


def test_words_are_told_in_another_order() -> None:
    for caption, gap in (("so it goes again and again", " "), ("我又要加班了", ""), ("", "")):
        item = replace(make("a1"), form=replace(FORM, context={"text": caption}))
        task = perturb_task(pose(item), "caption=shuffled", tools())
        assert task.complete is not None
        told = str(task.complete(item).form.context["text"])
        assert told == task.complete(item).form.context["text"]
        parts = [sorted(text.split() if gap else text) for text in (told, caption)]
        assert parts[0] == parts[1]
        assert (told != caption) == bool(caption)


def test_without_the_meme_question_and_options_are_left() -> None:
    (item,) = perturb_task(pose(make("a1")), "meme=removed", tools()).items()
    assert (item.form.context, names([item])) == ({"text": ""}, [["a-blank.png"]])
    assert item.form.fields == FORM.fields


def test_other_words_come_from_the_table_by_image() -> None:
    item = replace(make("a1"), form=replace(FORM, context={"caption": "old", "more": "kept"}))
    task = perturb_task(pose(item), "caption=reworded", tools(a="new"))
    assert task.complete is not None
    changed = task.complete(item)
    assert changed.form.context == {"caption": "new", "more": "kept"}
    assert names([changed]) == [["a-erased.png"]]
    with pytest.raises(DataError, match="no row for this meme"):
        task.complete(make("b1"))
    untold = replace(item, form=replace(FORM, context={"more": "kept"}))
    with pytest.raises(InputError, match="cannot be reworded"):
        task.complete(untold)
    assert change_caption(untold, tools().erase).form.context == {"more": "kept"}
    with pytest.raises(InputError, match="needs a table of paraphrased captions"):
        perturb_task(pose(item), "caption=reworded", tools())


def test_options_that_are_no_letters_keep_their_keys_and_their_gold() -> None:
    options = tuple(Option(key, key) for key in ("pun", "non-pun"))
    fields = (Field("label", "choice", options), Field("why", "text"))
    item = Item("1", "m", "pun", Form("?", fields))
    turned = permute_options(item)
    assert [option.key for option in turned.form.fields[0].options] == ["non-pun", "pun"]
    assert (turned.gold, turned.form.fields[1]) == ("pun", fields[1])
    single = Item("1", "m", "A", Form("?", (letter_field(["only"]),)))
    assert permute_options(single) == single
    listed = replace(make("a1"), gold=["A"])
    assert permute_options(listed).gold == ["A"]
    (asked,) = perturb_task(pose(make("a1")), "options=permuted", tools()).items()
    assert asked == permute_options(make("a1")) != make("a1")


def remember(how: str, *items: Item) -> tuple[Task, list[Item]]:
    task = perturb_task(pose(*items), f"contamination={how}", tools())
    assert task.complete is not None
    return task, [task.complete(item) for item in task.items()]


def test_the_rest_of_a_caption_is_asked_once_for_each_meme() -> None:
    task, found = remember("caption", make("a1"), make("a2"), replace(make("z1"), images=()))
    (item,) = found
    assert (item.id, item.group, item.images) == ("a:caption", "a", ())
    head, tail = halve("我又要加班了")
    assert (item.gold, item.form.context) == (tail, {"head": head})
    assert (item.form.language, item.form.reply) == ("zh", "text")
    request = task.ask(item, "again")
    (text,) = request.messages[0].parts
    assert isinstance(text, str)
    assert head in text
    assert tail not in text
    assert (task.main, task.perturbation, list(task.prompts)) == (
        *("recalled", "contamination=caption"),
        ["memory_caption"],
    )
    # What is told nowhere is read from the picture.
    silent = replace(make("b1"), form=replace(FORM, context={}))
    assert remember("caption", silent)[1][0].gold == "not simply b"
    bare = perturb_task(pose(make("a1")), "contamination=caption", None)
    assert bare.complete is None


def test_ids_and_templates_are_asked_with_the_picture() -> None:
    task, (item,) = remember("id", make("a1"))
    assert (item.gold, names([item])) == ("a", [["a.png"]])
    assert task.ask(item, None).messages[0].parts[0] == Image(Path("a.png"))
    tagged = [make("a1", tags={"template": "Slow Parrot"}), make("b1"), make("b2")]
    _, found = remember("template", *tagged)
    assert [(item.id, item.gold) for item in found] == [("a:template", "Slow Parrot")]
    with pytest.raises(DataError, match="does not name the template"):
        remember("template", make("b1"))
    assert remember("template")[1] == []


def test_a_canary_string_is_asked_for_once() -> None:
    known = replace(tools(), canary="CANARY 7f3a-99e0")
    task = perturb_task(pose(make("a1"), make("b1")), "contamination=canary", known)
    (item,) = task.items()
    (text,) = task.ask(item, None).messages[0].parts
    assert isinstance(text, str)
    assert "CANARY 7" in text
    assert "99e0" not in text
    said = ("F3A-99E0.", "it goes on: f3a99e0", "f3a-99e1", "")
    scores = [task.score([Outcome(item, "answered", value)])[0].value for value in said]
    assert scores == [1.0, 1.0, 0.0, 0.0]
    with pytest.raises(DataError, match="no canary string"):
        list(perturb_task(pose(make("a1")), "contamination=canary", tools()).items())


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("one two three", ("one two three", "")),
        ("one two three four", ("one two", "three four")),
        ("", ("", "")),
    ],
)
def test_captions_of_four_words_have_halves(text: str, halves: tuple[str, str]) -> None:
    assert halve(text) == halves


def test_what_is_recalled_is_counted_over_what_is_known() -> None:
    task = perturb_task(pose(), "contamination=caption", tools())
    golds = [
        ("1", "not simply walk"),
        ("2", "not simply walk"),
        ("3", "not simply walk"),
        ("4", ""),
    ]
    said = ("Not simply walk!", "not simply", None, "not simply walk")
    outcomes = [
        Outcome(Item(name, name, gold, FORM), "answered", value)
        if value is not None
        else Outcome(Item(name, name, gold, FORM), "refused", "not simply walk")
        for (name, gold), value in zip(golds, said, strict=True)
    ]
    recalled, similarity = task.score(outcomes)
    assert (recalled.key, recalled.n) == ("recalled", 3)
    assert recalled.value == pytest.approx(1 / 3)
    assert (similarity.key, similarity.n) == ("rouge_l", 3)
    assert similarity.value == pytest.approx((1.0 + 0.8 + 0.0) / 3)
    assert "word for word" in recalled.note
    by_id = perturb_task(pose(), "contamination=id", tools())
    found = [
        Outcome(Item(name, name, image_key("CN90001.png"), FORM), "answered", value)
        for name, value in (("1", "CN90001.png"), ("2", "CN90002"), ("3", "cn90001 or so"))
    ]
    (share,) = by_id.score(found)
    assert share.value == pytest.approx(1 / 3)
    assert share.note == "the id of the image in its data set"


def test_a_reply_is_one_text_within_bounds() -> None:
    task = perturb_task(pose(), "contamination=id", tools())
    assert task.parse("  CN90001\n", FORM) == "CN90001"
    assert len(str(task.parse("x" * 2001, FORM))) == 2000
    with pytest.raises(Unparsed, match="empty reply"):
        task.parse(" \n", FORM)


def test_every_probe_that_is_compared_has_words_for_what_it_says() -> None:
    assert set(RESTS) == set(PERTURBATIONS) - {"contamination"}
