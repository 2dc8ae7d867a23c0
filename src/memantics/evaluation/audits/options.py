"""What needs no understanding: what options give away, and answers that read nothing, scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.benchmarks.factories import proportion_score
from memantics.core.finding import Finding, FindingVerdict, FindingWords, rank
from memantics.core.model import Model
from memantics.core.records import Field, Image, Item, Message, Option, Outcome, Request, Score
from memantics.core.task import Task, Unparsed
from memantics.evaluation.audits.subject import Exam, choice_field, is_above, is_judge, place
from memantics.metrics.comparison import chi_square_tail
from memantics.metrics.interval import clustered_wilson

_WORDS = FindingWords(__file__)

_RECURRING = 0.5
_RARE = 0.02
_UNEVEN = 0.002  # one of several tests of a page


def find_option_flaws(exam: Exam) -> Iterator[Finding]:
    """Findings about the options of a task; nothing for tasks without any."""
    if not exam.items or choice_field(exam.items[0]) is None:
        return
    if not exam.lettered:
        yield _judge_classes(exam)
        return
    yield _judge_places(exam)
    if has_own_texts(exam.items):
        recurring = find_recurring(exam.items)
        yield from (_judge_recurring(exam, text) for text in recurring)
        yield _judge_lengths(exam)


def list_options(item: Item) -> tuple[Option, ...]:
    """The options of a choice item."""
    field = choice_field(item)
    return field.options if field is not None else ()


def fold(text: str) -> str:
    """An option's text, whatever its case and final point.

    >>> fold(" None of the others. ")
    'none of the others'
    """
    return text.strip().rstrip(".").strip().casefold()


def has_own_texts(items: Sequence[Item]) -> bool:
    """Whether the texts of options differ from item to item (else only their images do)."""
    return len({tuple(sorted(fold(o.text) for o in list_options(item))) for item in items}) > 1


def find_recurring(items: Sequence[Item]) -> list[str]:
    """Options that stand in at least half of the items, such as "none of the others".

    They say nothing about one meme, so a reader expects each to be right as often as any other.
    """
    counts = Counter(text for item in items for text in {fold(o.text) for o in list_options(item)})
    return sorted(text for text, count in counts.items() if count >= _RECURRING * len(items))


def find_never_correct(exam: Exam) -> frozenset[str]:
    """Recurring options that are right so seldom that everybody may pass them over."""
    if not exam.lettered or not has_own_texts(exam.items):
        return frozenset()
    return frozenset(
        text
        for text in find_recurring(exam.items)
        if _weigh_recurring(offers(exam.items, text)) == "broken"
    )


@dataclass(frozen=True, slots=True)
class Offers:
    """Where an option was offered: whether it was right, of which meme, beside how many."""

    right: list[bool]
    groups: list[str]
    fair: float

    @property
    def span(self) -> tuple[float, float]:
        """The interval of its share."""
        return clustered_wilson(self.right, self.groups) or (0.0, 1.0)


def offers(items: Sequence[Item], text: str) -> Offers:
    """Every item that offers an option of this text."""
    right, groups, fair = [], [], 0.0
    for item in items:
        options = list_options(item)
        keys = {o.key for o in options if fold(o.text) == text}
        if keys:
            right.append(item.gold in keys)
            groups.append(item.group)
            fair += len(keys) / len(options)
    return Offers(right, groups, fair / len(right) if right else 0.0)


def _weigh_recurring(found: Offers) -> FindingVerdict:
    low, high = found.span
    return rank(high < found.fair or low > found.fair, broken=high < found.fair / 4)


def _judge_recurring(exam: Exam, text: str) -> Finding:
    found = offers(exam.items, text)
    right, n = sum(found.right), len(found.right)
    verdict = _weigh_recurring(found)
    all_options = round(1 / found.fair)
    left = all_options - 1
    values = {"text": text, "right": right, "items": n, "left": left, "options": all_options}
    score = Score("proportion", right / n, n, *found.span)
    fair = found.fair
    return _WORDS.find(
        "options.never_correct", score, verdict, values, expected=fair, task=exam.name
    )


def _judge_places(exam: Exam) -> Finding:
    places = [
        next(i for i, o in enumerate(list_options(item)) if o.key == item.gold)
        for item in exam.items
    ]
    size = max(len(list_options(item)) for item in exam.items)
    counts = Counter(places)
    groups = [item.group for item in exam.items]
    rows = tuple(
        proportion_score(
            "proportion",
            [position == n for position in places],
            groups,
            "position",
            "ABCDEFGHIJ"[n],
        )
        for n in range(size)
    )
    p = chi_square_p([counts[n] for n in range(size)])
    top = max(rows, key=lambda row: row.value or 0.0)
    excess = (top.value or 0.0) - 1 / size
    verdict = rank(p < _UNEVEN, broken=p < _UNEVEN and excess >= 0.1)
    values, fair = {"p": p, "top": top.label}, 1 / size
    return _WORDS.find(
        "options.position", place(top), verdict, values, expected=fair, task=exam.name, rows=rows
    )


def _judge_lengths(exam: Exam) -> Finding:
    recurring = frozenset(find_recurring(exam.items))
    longest, shortest, groups, fair = [], [], [], 0.0
    for item in exam.items:
        real = [o for o in list_options(item) if fold(o.text) not in recurring]
        key = next((o for o in real if o.key == item.gold), None)
        if key is None or len(real) < 2:
            continue
        others = [len(o.text) for o in real if o is not key]
        longest.append(len(key.text) > max(others))
        shortest.append(len(key.text) < min(others))
        groups.append(item.group)
        sizes = sorted(len(o.text) for o in real)
        # Ties count: where two options are longest, no key is strictly so.
        fair += (sizes[-1] > sizes[-2]) / len(real)
    n = len(groups)
    expected = fair / n if n else None
    score = proportion_score("proportion", longest, groups)
    least = proportion_score("proportion", shortest, groups, "key", "strictly shortest")
    leak = expected is not None and is_above(score, expected)
    far = leak and (score.value or 0) - (expected or 0) >= 0.1
    return _WORDS.find(
        "options.length",
        score,
        rank(leak, broken=far),
        {"left_out": ", recurring options left out" if recurring else ""},
        expected=expected,
        task=exam.name,
        rows=(place(score, "key", "strictly longest"), least),
    )


def _judge_classes(exam: Exam) -> Finding:
    golds = [str(item.gold) for item in exam.items]
    groups = [item.group for item in exam.items]
    counts = Counter(golds)
    size = len(list_options(exam.items[0]))
    rows = tuple(
        proportion_score("proportion", [gold == name for gold in golds], groups, "class", name)
        for name, _ in counts.most_common()
    )
    missing = size - len(counts)
    rare = [row.label for row in rows if (row.value or 0) < _RARE]
    words = []
    if missing:
        words.append(f"{missing} of {size} classes that are offered are never right here.")
    if rare:
        words.append(f"Classes below 2 %: {', '.join(rare)}.")
    score, verdict, values = place(rows[0]), rank(bool(words)), {"words": " ".join(words)}
    fair = 1 / size
    return _WORDS.find(
        "options.classes", score, verdict, values, expected=fair, task=exam.name, rows=rows
    )


def chi_square_p(counts: Sequence[int]) -> float:
    """How likely counts at least as uneven are where every cell is equally likely.

    >>> round(chi_square_p([10, 20, 30, 40]), 6), chi_square_p([5, 5])
    (0.00017, 1.0)
    """
    total, freedom = sum(counts), len(counts) - 1
    if not total or freedom < 1:
        return 1.0
    fair = total / len(counts)
    return chi_square_tail(sum((count - fair) ** 2 for count in counts) / fair, freedom)


# Answers that need no understanding, scored like any model: what do they reach?

ShortcutKind = Literal["trivial", "options", "text"]
_FAR = 0.1
_SLACK = 0.03
TITLES: Mapping[str, str] = {
    "constant": "Saying the same every time",
    "longest": "Picking the longest option",
    "majority": "Always the commonest answer",
    "positive": "Always the positive class",
}


@dataclass(frozen=True, slots=True)
class ChanceLevel:
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


async def find_chance_level(exam: Exam, coins: Sequence[Model]) -> ChanceLevel:
    """The main figure of a guess: among the options that live, or the mean of seeded coins."""
    first = exam.items[0]
    if choice_field(first) is not None and exam.task.main == "accuracy":
        dead = find_never_correct(exam)
        shares = [1 / max(1, len(live_options(item, dead))) for item in exam.items]
        words = "a guess among the options that are not dead" if dead else "a guess"
        return ChanceLevel(sum(shares) / len(shares), words)
    if first.form.reply == "text" or not coins:
        return ChanceLevel(None, "")
    values = [
        exam.score(await answer_trivially(exam.items, exam.task, coin)).value for coin in coins
    ]
    known = [value for value in values if value is not None]
    return ChanceLevel(
        sum(known) / len(known) if known else None, f"mean of {len(known)} seeded coins"
    )


def live_options(item: Item, dead: frozenset[str]) -> list[Option]:
    """The options of an item that are ever right."""
    return [option for option in list_options(item) if fold(option.text) not in dead]


async def find_shortcuts(
    exam: Exam, chance: ChanceLevel, trivial: Sequence[Model]
) -> list[Finding]:
    """One finding for each trivial answer that the task admits."""
    if not exam.items or is_judge(exam.items[0]):
        return []
    found = []
    for model in trivial:
        strategy = model.name.removeprefix("baseline/")
        if not _fits(strategy, exam):
            continue
        score = exam.score(await answer_trivially(exam.items, exam.task, model))
        title = TITLES.get(strategy, strategy)
        found.append(judge_shortcut(exam, f"shortcut.{strategy}", title, score, chance))
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
    dead = find_never_correct(exam)
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
    value = sum(hit / options for hit, options in zip(hits, sizes, strict=True)) / len(hits)
    score = Score("accuracy", value, len(hits), low / size, high / size)
    nominal = sum(1 / len(list_options(item)) for item in exam.items) / len(exam.items)
    yield judge_shortcut(
        exam,
        "shortcut.skip_never_correct",
        "Guessing, but never the dead option",
        score,
        ChanceLevel(nominal, "a guess among all options"),
    )


def judge_shortcut(
    exam: Exam,
    key: str,
    title: str,
    score: Score,
    chance: ChanceLevel,
    kind: ShortcutKind = "trivial",
) -> Finding:
    """Hold a figure against chance and against what was published."""
    value = score.value or 0.0
    below = sum(published_score <= value for published_score in exam.published)
    verdict = _weigh(score, chance, below, len(exam.published), kind)
    words = _meaning(score, chance, verdict)
    if exam.published:
        published = len(exam.published)
        words += f" {below} of {published} published figures of this task are not above it."
    return _WORDS.find(
        f"shortcut.{kind}",
        replace(place(score), key=exam.task.main),
        verdict,
        {"main": exam.main_words, "title": title, "words": words},
        key=key,
        expected=chance.value,
        reference=chance.words,
        task=exam.name,
    )


def _weigh(
    score: Score, chance: ChanceLevel, below: int, published: int, kind: ShortcutKind
) -> FindingVerdict:
    """Broken: far above chance, or no lower than a third of what was published."""
    if chance.value is None:
        return rank(below > 0, broken=published > 0 and below == published)
    # What was learnt varies with the folds, more than the interval of its answers shows.
    slack = 0.0 if kind == "trivial" else _SLACK
    if not is_above(score, chance.value + slack):
        return "sound"
    far = (score.value or 0.0) - chance.value >= _FAR
    rivals = bool(published) and 3 * below >= published
    # That a meme's text tells something is no flaw; how much, a reader wants to know.
    return rank(True, broken=kind != "text" and (far or rivals))


def _meaning(score: Score, chance: ChanceLevel, verdict: FindingVerdict) -> str:
    if chance.value is None:
        return f"It reaches {score.value or 0:.3f} without looking at any meme."
    if verdict == "sound":
        return "It is no better than guessing."
    return f"It is above guessing ({score.value or 0:.3f} against {chance.value:.3f})."
