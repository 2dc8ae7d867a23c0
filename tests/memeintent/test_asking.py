"""What models are asked: the twelve settings, what comes first, what is left out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from memantics.benchmarks.memeintent.asking import (
    Demonstration,
    read_asking,
    read_wording,
    split_facts,
)
from memantics.benchmarks.memeintent.plugin import parse_reply
from memantics.benchmarks.registry import find_tasks
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.records import Image, Request
from memantics.core.task import Task, Unparsed
from tests.places import SHARED_DATA, needs_shared_data
from tests.setups import make_setup

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = list(itertools.product(("vlm", "text"), ("zero", "few"), ("none", "auto", "human")))


def make(name: str, options: Mapping[str, str], source: Source | None = None) -> Task:
    ref = find_tasks([f"memeintent/{name}"])[0]
    return ref.make(options, "all", source or ref.benchmark.sample(), None)


def feed(task: Task, answer: str = "* a fact\n* another") -> Task:
    memes = [item.group for item in task.items()]
    answers = {need.name: dict.fromkeys(memes, answer) for need in task.needs}
    return task.feed(answers) if task.feed else task


def show(request: Request) -> str:
    texts = []
    for message in request.messages:
        parts = ("[image]" if isinstance(part, Image) else part for part in message.parts)
        texts.append(f"--- {message.role} ---\n" + "\n".join(parts))
    return "\n".join(texts) + "\n"


def examples() -> tuple[Demonstration, ...]:
    setup = make_setup("memeintent/intent", {"shots": "few"}, None)
    return read_wording(read_asking(setup), setup.prompts).demonstrations


@pytest.mark.parametrize(("role", "shots", "background"), SETTINGS)
def test_the_twelve_settings_ask_as_agreed(role: str, shots: str, background: str) -> None:
    """A change of wording changes scores, so it must be seen (MEMANTICS_GOLDEN=write)."""
    task = feed(make("intent", {"role": role, "shots": shots, "background": background}))
    request = task.ask(next(task.items()), None)
    path = GOLDEN / f"{role}-{shots}-{background}.txt"
    if os.environ.get("MEMANTICS_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(show(request), encoding="utf-8")
    assert show(request) == path.read_text(encoding="utf-8")
    assert request.sampling.max_tokens == 100
    images = [p for m in request.messages for p in m.parts if isinstance(p, Image)]
    assert len(images) == (role == "vlm")
    assert len(request.messages) == (9 if shots == "few" else 1)


@pytest.mark.parametrize(("name", "role"), [("background", "vlm"), ("background", "text")])
def test_background_is_asked_in_the_same_set_up(name: str, role: str) -> None:
    task = make(name, {"role": role, "shots": "few"})
    request = task.ask(next(task.items()), None)
    assert request.sampling.max_tokens == 500
    assert [m.role for m in request.messages] == ["user", "assistant"] * 4 + ["user"]
    assert str(request.messages[1].parts[0]).startswith("* ")


def test_generated_background_comes_from_the_same_role_and_shots() -> None:
    options = {"role": "text", "shots": "few", "background": "auto", "captions": "model"}
    task = make("intent", options)
    background, caption = task.needs
    assert (background.task, background.captioner) == ("memeintent/background", False)
    assert background.options["role"] == "text"
    assert background.options["shots"] == "few"
    assert background.options["captions"] == "model"
    assert (caption.task, caption.captioner) == ("memeintent/caption", True)
    # What is needed can itself be made, and needs the caption in turn.
    first = make("background", background.options)
    assert [need.task for need in first.needs] == ["memeintent/caption"]
    assert make("caption", caption.options).needs == ()


def test_what_is_needed_must_be_fed_before_asking() -> None:
    task = make("intent", {"background": "auto"})
    item = next(task.items())
    with pytest.raises(InputError, match="needs the answers of memeintent/background"):
        task.ask(item, None)
    assert make("intent", {"background": "human"}).feed is None


def test_fed_answers_reach_only_their_meme() -> None:
    task = make("intent", {"background": "auto", "captions": "model"})
    assert task.feed is not None
    one, two, three = [item.group for item in task.items()][:3]
    fed = task.feed(
        {
            "background": {one: "- robots tick boxes\n• sweat means fear", two: "None."},
            "image_caption": {one: "a robot", two: "a bug", three: "a cat"},
        }
    )
    first, second, third = list(fed.items())[:3]
    assert first.form.context["background"] == "* robots tick boxes\n* sweat means fear"
    assert first.form.context["image_caption"] == "a robot"
    assert "a robot" in show(fed.ask(first, None))
    assert "background" not in second.form.context
    assert [item.tags["background"] for item in (first, second, third)] == [
        "given",
        "empty",
        "missing",
    ]
    assert "What one should know" not in show(fed.ask(third, None))


def test_empty_human_background_passes_nothing() -> None:
    items = list(make("intent", {"background": "human"}).items())
    empty = [item for item in items if item.tags["background"] == "empty"]
    assert empty
    assert all("background" not in item.form.context for item in empty)
    task = make("intent", {"background": "human"})
    assert "*" not in show(task.ask(empty[0], None))


def test_examples_are_none_of_the_memes() -> None:
    shown = examples()
    assert len(shown) == 4
    for item in make("intent", {}).items():
        assert item.form.context["text"] not in {example.text for example in shown}
        assert isinstance(item.gold, list)
        assert not {example.intent for example in shown} & {str(text) for text in item.gold}
    for example in shown:
        assert example.intent.startswith("the meme ")
        assert example.background


def test_values_are_never_read_as_holes(tmp_path: Path) -> None:
    row = '{"1": {"img": "a.png", "text": "$5 $given", "image_caption": "c", "bks": "* $text",'
    (tmp_path / "sigdial.json").write_text(row + ' "intents": ["the meme begs"]}}')
    source = Source("release", tmp_path)
    task = make("intent", {"role": "text", "background": "human"}, source)
    text = show(task.ask(next(task.items()), None))
    assert "$5 $given" in text
    assert "* $text" in text


def test_missing_images_are_refused_left_out_or_not_needed(tmp_path: Path) -> None:
    row = '{"1": {"img": "a.png", "text": "t", "image_caption": "c", "bks": "* ",'
    (tmp_path / "sigdial.json").write_text(row + ' "intents": ["the meme begs"]}}')
    source = Source("release", tmp_path)
    with pytest.raises(DataError, match="role=text"):
        next(make("intent", {}, source).items())
    assert not list(make("intent", {"images": "present"}, source).items())
    assert len(list(make("intent", {"role": "text"}, source).items())) == 1
    with pytest.raises(DataError):
        next(make("intent", {"role": "text", "captions": "model"}, source).items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": "0"}, "max_tokens"),
        ({"bertscore": "nowhere"}, "no such folder"),
        ({"nli": "."}, "config.json is missing"),
        ({"nli": ".", "nli_labels": "1-x"}, "nli_labels"),
        ({"bertscore": ".", "bertscore_layer": "-1"}, "bertscore_layer"),
    ],
)
def test_bad_options_are_refused_before_anything_is_asked(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make("intent", options)


def test_unknown_values_are_refused() -> None:
    with pytest.raises(UnknownName, match="background"):
        make("intent", {"background": "some"})


@pytest.mark.parametrize("name", ["intent", "background", "caption"])
def test_decoding_and_length_are_options(name: str) -> None:
    task = make(name, {"decoding": "server", "max_tokens": "server"})
    sampling = task.ask(next(task.items()), None).sampling
    assert (sampling.temperature, sampling.max_tokens) == (None, None)


def test_a_complaint_is_passed_on() -> None:
    task = make("intent", {})
    assert "(empty reply)" in show(task.ask(next(task.items()), "empty reply"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" the meme jokes. ", "the meme jokes."),
        ("<think>a\nb</think>\nthe meme jokes", "the meme jokes"),
        ("one\ntwo", "one\ntwo"),
        ("\x00the\x1b meme", "the meme"),
    ],
)
def test_replies_are_taken_as_they_are(text: str, value: str) -> None:
    assert parse_reply(text, first_line=False) == value


@pytest.mark.parametrize("text", ["", " \n", "…", "\x00", "<think>the meme", "***"])
def test_replies_without_a_word_are_unparsed(text: str) -> None:
    with pytest.raises(Unparsed):
        parse_reply(text, first_line=False)


def test_only_the_first_line_counts_where_asked_for() -> None:
    assert parse_reply("the meme jokes\n\nNote: …", first_line=True) == "the meme jokes"


def test_facts_are_split_and_none_is_none() -> None:
    assert split_facts("* one\n\n* two") == ("one", "two")
    assert split_facts("none") == split_facts("* None.") == split_facts("") == ()
    assert split_facts("none of them can vote") == ("none of them can vote",)


@needs_shared_data
def test_the_official_part_is_asked_without_images() -> None:
    source = Source("release", SHARED_DATA / "memeintent")
    items = list(make("intent", {"role": "text", "background": "human"}, source).items())
    assert len(items) == 500
    assert sum(item.tags["background"] == "empty" for item in items) == 69
    assert not any(item.images for item in items)
