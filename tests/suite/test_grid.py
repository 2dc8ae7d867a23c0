"""Options with several values."""

from __future__ import annotations

import pytest

from memantics.benchmarks.card import OptionCard, TaskCard
from memantics.core.errors import InputError
from memantics.evaluation.facts import Setting, check_settings, expand, fix, read_settings


def card(name: str, **options: tuple[str, ...]) -> TaskCard:
    cards = tuple(
        OptionCard(name=option, help="", default=choices[0] if choices else "x", choices=choices)
        for option, choices in options.items()
    )
    return TaskCard(name=name, title="", main="accuracy", baselines=(), option=cards)


TASKS = {
    "pun/chat": card("chat", order=("seeded", "authors"), prompt=("1", "2", "3"), path=()),
    "quest/qa": card("qa", order=("first", "last")),
    "quest/note": card("note", prompt=("1", "2")),
}


def read(*texts: str) -> tuple[Setting, ...]:
    return read_settings("--set", texts)


def test_every_combination_once_and_only_a_tasks_own_options() -> None:
    settings = read("prompt=1,2,1", "pun:order=seeded,authors", "quest/qa:order=last")
    found = expand("pun/chat", TASKS["pun/chat"], settings)
    assert len(found) == 4
    assert {tuple(sorted(one.items())) for one in found} == {
        (("order", order), ("prompt", prompt))
        for order in ("seeded", "authors")
        for prompt in ("1", "2")
    }
    assert expand("quest/qa", TASKS["quest/qa"], settings) == ({"order": "last"},)
    assert expand("quest/qa", TASKS["quest/qa"], ()) == ({},)


def test_a_comma_inside_a_value() -> None:
    assert read(r"path=a\,b,c") == (Setting("", "path", ("a,b", "c")),)


def test_the_task_goes_before_its_benchmark_and_that_before_all() -> None:
    settings = read("prompt=1", "pun/chat:prompt=3", "pun:prompt=2")
    assert expand("pun/chat", TASKS["pun/chat"], settings) == ({"prompt": "3"},)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["order"], ["not NAME=VALUE"]),
        (["=x"], ["not NAME=VALUE"]),
        (["prompt=1", "prompt=2"], ["twice", "prompt=A,B"]),
        (["promt=1"], ["option 'promt'", "prompt"]),
        (["prompt=9"], ["'9'", "known: 1, 2, 3"]),
        (["order=last"], ["pun/chat has no value 'last'", "--set quest/qa:order=last"]),
        (["prompt=1,3"], ["quest/note has no value '3'", "--set pun/chat:prompt=3"]),
        (["quest/qq:order=last"], ["unknown task 'quest/qq'", "quest/qa"]),
    ],
)
def test_what_no_task_has_is_refused(texts: list[str], words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        check_settings(read(*texts), TASKS, TASKS)
    assert all(word in str(refused.value) for word in words), refused.value


def test_options_of_a_task_that_others_need_must_name_it() -> None:
    settings = read("prompt=1", "quest/note:prompt=2")
    assert fix("quest/note", TASKS["quest/note"], settings) == {"prompt": "2"}
    assert fix("quest/note", TASKS["quest/note"], read("prompt=1")) == {}
    with pytest.raises(InputError, match="needed by another task"):
        fix("quest/note", TASKS["quest/note"], read("quest/note:prompt=1,2"))
