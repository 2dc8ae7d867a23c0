"""Answers that need no understanding, scored like any model: what do they reach?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.core.finding import Finding, FindingVerdict, FindingWords
from memantics.core.model import Model
from memantics.core.records import Field, Image, Item, Message, Option, Outcome, Request, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.interval import clustered_wilson
from memantics.run.audit.options import find_dead, fold, has_own_texts, list_options
from memantics.run.audit.rows import is_above
from memantics.run.audit.subject import Exam, choice_field, is_judge

Kind = Literal["trivial", "options", "text"]
_FAR = 0.1
_SLACK = 0.03
_WORDS = FindingWords(__file__)
TITLES: Mapping[str, str] = {
    "constant": "Saying the same every time",
    "longest": "Picking the longest option",
    "majority": "Always the commonest answer",
    "positive": "Always the positive class",
}


@dataclass(frozen=True, slots=True)
class Chance:
    """What guessing gives, and how that was found."""

    value: float | None
    words: str


async def answer_trivially(items: Sequence[Item], task: Task, model: Model) -> list[Outcome]:
    """What a model that reads nothing but the form says to every item."""
    reader = ReplyReader(task)
    outcomes = []
    for item in items:
        # Names of images make a seeded draw differ between items with the same question.
        parts = (Image(Path(item.id.replace("/", "-"))),)
        reply = await model.answer(Request((Message("user", parts),), item.form))
        outcomes.append(reader.read(item, reply.text))
    return outcomes


class ReplyReader:
    """Reads replies as the task does, and each key of the same options only once."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._known: dict[tuple[str, tuple[Field, ...]], JsonValue] = {}

    def read(self, item: Item, text: str) -> Outcome:
        """The outcome of a reply."""
        key = (text, item.form.fields)
        try:
            if item.form.reply == "key" and key in self._known:
                return Outcome(item, "answered", self._known[key])
            value = self._task.parse(text, item.form)
        except Unparsed:
            return Outcome(item, "unparsed")
        if item.form.reply == "key":
            self._known[key] = value
        return Outcome(item, "answered", value)


async def find_chance(exam: Exam, coins: Sequence[Model]) -> Chance:
    """The main figure of a guess: among the options that live, or the mean of seeded coins."""
    first = exam.items[0]
    if choice_field(first) is not None and exam.task.main == "accuracy":
        dead = find_dead(exam)
        shares = [1 / max(1, len(live_options(item, dead))) for item in exam.items]
        words = "a guess among the options that are not dead" if dead else "a guess"
        return Chance(sum(shares) / len(shares), words)
    if first.form.reply == "text" or not coins:
        return Chance(None, "")
    values = [
        exam.score(await answer_trivially(exam.items, exam.task, coin)).value for coin in coins
    ]
    known = [value for value in values if value is not None]
    return Chance(sum(known) / len(known) if known else None, f"mean of {len(known)} seeded coins")


def live_options(item: Item, dead: frozenset[str]) -> list[Option]:
    """The options of an item that are ever right."""
    return [option for option in list_options(item) if fold(option.text) not in dead]


async def find_shortcuts(exam: Exam, chance: Chance, trivial: Sequence[Model]) -> list[Finding]:
    """One finding for each trivial answer that the task admits."""
    if not exam.items or is_judge(exam.items[0]):
        return []
    found = []
    for model in trivial:
        strategy = model.name.removeprefix("baseline/")
        if not _fits(strategy, exam):
            continue
        figure = exam.score(await answer_trivially(exam.items, exam.task, model))
        title = TITLES.get(strategy, strategy)
        found.append(judge_shortcut(exam, f"shortcut.{strategy}", title, figure, chance))
    found += _avoid_recurring(exam)
    return found


def _fits(strategy: str, exam: Exam) -> bool:
    fields = exam.items[0].form.fields
    if strategy == "longest":
        return exam.lettered and has_own_texts(exam.items)
    if strategy == "positive":
        return any(field.positive is not None for field in fields)
    if strategy == "majority":
        # Where letters mean nothing, the check of places says it without picking a winner.
        return not exam.lettered and any(field.majority is not None for field in fields)
    return exam.items[0].form.reply == "text"


def _avoid_recurring(exam: Exam) -> Iterator[Finding]:
    """A guess that never takes an option that is dead, in expectation."""
    dead = find_dead(exam)
    if not dead:
        return
    hits, sizes = [], []
    for item in exam.items:
        live = live_options(item, dead)
        hits.append(any(option.key == item.gold for option in live))
        sizes.append(len(live))
    groups = [item.group for item in exam.items]
    size = sum(sizes) / len(sizes)
    low, high = clustered_wilson(hits, groups) or (0.0, 1.0)
    value = sum(hit / number for hit, number in zip(hits, sizes, strict=True)) / len(hits)
    figure = Score("accuracy", value, len(hits), low / size, high / size)
    nominal = sum(1 / len(list_options(item)) for item in exam.items) / len(exam.items)
    yield judge_shortcut(
        exam,
        "shortcut.never_dead",
        "Guessing, but never the dead option",
        figure,
        Chance(nominal, "a guess among all options"),
    )


def judge_shortcut(
    exam: Exam, key: str, title: str, figure: Score, chance: Chance, kind: Kind = "trivial"
) -> Finding:
    """Hold a figure against chance and against what was published."""
    value = figure.value or 0.0
    below = sum(entry <= value for entry in exam.published)
    verdict = _weigh(figure, chance, below, len(exam.published), kind)
    words = _meaning(figure, chance, verdict)
    if exam.published:
        published = len(exam.published)
        words += f" {below} of {published} published figures of this task are not above it."
    found = _WORDS.find(
        f"shortcut.{kind}",
        Score(exam.task.main, figure.value, figure.n, figure.low, figure.high),
        verdict,
        main=exam.task.main.replace("_", " "),
        title=title,
        words=words,
    )
    return replace(found, key=key, expected=chance.value, reference=chance.words, task=exam.name)


def _weigh(figure: Score, chance: Chance, below: int, published: int, kind: Kind) -> FindingVerdict:
    """Broken: far above chance, or no lower than a third of what was published."""
    if chance.value is None:
        if published and below == published:
            return "broken"
        return "worth knowing" if below else "sound"
    # What was learnt varies with the folds, more than the interval of its answers shows.
    slack = 0.0 if kind == "trivial" else _SLACK
    if not is_above(figure, chance.value + slack):
        return "sound"
    far = (figure.value or 0.0) - chance.value >= _FAR
    rivals = bool(published) and 3 * below >= published
    if kind == "text":
        # That a meme's text tells something is no flaw; how much, a reader wants to know.
        return "worth knowing"
    return "broken" if far or rivals else "worth knowing"


def _meaning(figure: Score, chance: Chance, verdict: FindingVerdict) -> str:
    if chance.value is None:
        return f"It reaches {figure.value or 0:.3f} without looking at any meme."
    if verdict == "sound":
        return "It is no better than guessing."
    return f"It is above guessing ({figure.value or 0:.3f} against {chance.value:.3f})."
