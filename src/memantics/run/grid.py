"""Options with several values: one run for every combination of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from memantics.core.card import TaskCard
from memantics.core.errors import InputError, UnknownName, require_known

# A comma that no backslash stands before.
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Setting:
    """An option as the user set it; ``where`` is a benchmark, a task, or empty for all tasks."""

    where: str
    option: str
    values: tuple[str, ...]

    def concerns(self, task: str) -> bool:
        """Whether it is about that task."""
        return not self.where or task == self.where or task.startswith(f"{self.where}/")


def read_settings(flag: str, texts: Sequence[str] | None) -> tuple[Setting, ...]:
    r"""Read ``[NAME[/TASK]:]OPTION=VALUE[,VALUE…]``; ``\,`` is a comma inside a value.

    >>> read_settings("--set", ["mquest:order=answer_first,letter_only"])
    (Setting(where='mquest', option='order', values=('answer_first', 'letter_only')),)
    """
    read: dict[tuple[str, str], Setting] = {}
    for text in texts or ():
        head, equals, tail = text.partition("=")
        where, _, option = head.rpartition(":")
        if not equals or not option:
            raise InputError(
                f"{flag} {text!r} is not NAME=VALUE",
                hint=f"such as {flag} order=seeded or {flag} mquest/qa:order=answer_first",
            )
        if (where, option) in read:
            raise InputError(
                f"{flag} {head} is given twice", hint=f"for a run of each, {flag} {head}=A,B"
            )
        values = tuple(part.replace("\\,", ",") for part in _COMMA.split(tail))
        read[where, option] = Setting(where, option, tuple(dict.fromkeys(values)))
    return tuple(read.values())


def check_settings(
    settings: Sequence[Setting], asked: Mapping[str, TaskCard], known: Mapping[str, TaskCard]
) -> None:
    """Refuse an option or a value that a task does not have.

    ``asked`` are the tasks that are run, ``known`` all tasks: an option may also be meant for a
    task whose answers another one needs.
    """
    for setting in settings:
        cards = {
            task: card
            for task, card in (known if setting.where else asked).items()
            if setting.concerns(task)
        }
        if not cards:
            raise UnknownName(
                "task", setting.where, {*known, *(t.partition("/")[0] for t in known)}
            )
        names = {option.name for card in cards.values() for option in card.option}
        require_known("option", setting.option, names)
        for value in setting.values:
            _check_value(setting, value, cards)


def _check_value(setting: Setting, value: str, cards: Mapping[str, TaskCard]) -> None:
    allowed: dict[str, tuple[str, ...]] = {
        task: option.choices
        for task, card in cards.items()
        for option in card.option
        if option.name == setting.option
    }
    taken = [task for task, choices in allowed.items() if not choices or value in choices]
    if not taken:
        every = {choice for choices in allowed.values() for choice in choices}
        raise UnknownName(f"value of option {setting.option}:", value, every)
    for task in allowed:
        if task not in taken:
            raise InputError(
                f"option {setting.option} of {task} has no value {value!r}",
                hint=f"name the task that has it: --set {taken[0]}:{setting.option}={value}",
            )


def expand(task: str, card: TaskCard, settings: Sequence[Setting]) -> tuple[dict[str, str], ...]:
    """The options of each run of a task: every combination of the values that were set.

    What is said about a task goes before what is said about its benchmark, and that before what
    is said about all.

    >>> from memantics.core.card import OptionCard
    >>> options = tuple(OptionCard(name=name, help="", default="1") for name in ("prompt", "seed"))
    >>> card = TaskCard(name="chat", title="", main="accuracy", baselines=(), option=options)
    >>> expand("pun/chat", card, read_settings("--set", ["seed=4", "prompt=1,2", "pun:seed=5"]))
    ({'prompt': '1', 'seed': '5'}, {'prompt': '2', 'seed': '5'})
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for option in card.option:
        group = [s for s in settings if s.option == option.name and s.concerns(task)]
        if group:
            chosen[option.name] = max(group, key=lambda setting: len(setting.where)).values
    return tuple(dict(zip(chosen, values, strict=True)) for values in product(*chosen.values()))


def fix(task: str, card: TaskCard, settings: Sequence[Setting]) -> dict[str, str]:
    """The options of a task that is asked for another's sake: only what names it counts."""
    named = [setting for setting in settings if setting.where == task]
    for setting in named:
        if len(setting.values) > 1:
            raise InputError(
                f"{task} is needed once, with one value of {setting.option}",
                hint=f"--set {task}:{setting.option}={setting.values[0]}",
            )
    return expand(task, card, named)[0]
