"""Audit checks for options that reveal the answer, and trivial baselines that ignore the meme."""

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
# Significance level; stricter than 5 % because an audit page contains several tests.
_UNEVEN = 0.002


def find_option_flaws(exam: Exam) -> Iterator[Finding]:
    """Find flaws in the answer options of a task; empty for tasks without options."""
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
    """Return the answer options of a choice item."""
    field = choice_field(item)
    return field.options if field is not None else ()


def fold(text: str) -> str:
    """Normalise the text of an option: ignore case and a final full stop.

    >>> fold(" None of the others. ")
    'none of the others'
    """
    return text.strip().rstrip(".").strip().casefold()


def has_own_texts(items: Sequence[Item]) -> bool:
    """Whether option texts differ between items (otherwise only their images differ)."""
    return len({tuple(sorted(fold(o.text) for o in list_options(item))) for item in items}) > 1


def find_recurring(items: Sequence[Item]) -> list[str]:
    """Find options that appear in at least half of the items, such as "none of the others".

    Such an option is independent of the meme, so it should be correct as often as the other
    options.
    """
    counts = Counter(text for item in items for text in {fold(o.text) for o in list_options(item)})
    return sorted(text for text, count in counts.items() if count >= _RECURRING * len(items))


def find_never_correct(exam: Exam) -> frozenset[str]:
    """Find recurring options that are correct so rarely that a model can always exclude them."""
    if not exam.lettered or not has_own_texts(exam.items):
        return frozenset()
    return frozenset(
        text
        for text in find_recurring(exam.items)
        if _weigh_recurring(offers(exam.items, text)) == "broken"
    )


@dataclass(frozen=True, slots=True)
class Offers:
    """The items that contain an option: whether it is correct, the meme, and the option count."""

    right: list[bool]
    groups: list[str]
    fair: float

    @property
    def span(self) -> tuple[float, float]:
        """95% confidence interval of the proportion of items in which the option is correct."""
        return clustered_wilson(self.right, self.groups) or (0.0, 1.0)


def offers(items: Sequence[Item], text: str) -> Offers:
    """Collect every item that has an option with this text."""
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
        # If two options are equally long, neither is strictly the longest.
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
        {"skipped": ", without recurring options" if recurring else ""},
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
        words.append(f"{missing} of {size} offered classes are never correct in this copy.")
    if rare:
        words.append(f"Classes below 2 %: {', '.join(rare)}.")
    score, verdict, values = place(rows[0]), rank(bool(words)), {"words": " ".join(words)}
    fair = 1 / size
    return _WORDS.find(
        "options.classes", score, verdict, values, expected=fair, task=exam.name, rows=rows
    )


def chi_square_p(counts: Sequence[int]) -> float:
    """Return the p-value of a chi-square test of counts against a uniform distribution.

    >>> round(chi_square_p([10, 20, 30, 40]), 6), chi_square_p([5, 5])
    (0.00017, 1.0)
    """
    total, freedom = sum(counts), len(counts) - 1
    if not total or freedom < 1:
        return 1.0
    fair = total / len(counts)
    return chi_square_tail(sum((count - fair) ** 2 for count in counts) / fair, freedom)


# Trivial baselines, scored like any model.

ShortcutKind = Literal["trivial", "options", "text"]
_FAR = 0.1
_SLACK = 0.03
TITLES: Mapping[str, str] = {
    "constant": "Baseline: the same text for every item",
    "longest": "Baseline: the longest option",
    "majority": "Baseline: the majority class",
    "positive": "Baseline: always the positive class",
}


@dataclass(frozen=True, slots=True)
class ChanceLevel:
    """The expected score of random guessing (chance level), and how it was computed."""

    value: float | None
    words: str


async def answer_trivially(items: Sequence[Item], task: Task, model: Model) -> list[Outcome]:
    """Answer every item with a trivial baseline that uses only the answer format."""
    reader = ReplyReader(task)
    outcomes = []
    for item in items:
        # Image names seed the random choice, so equal questions get different answers.
        parts = (Image(Path(item.id.replace("/", "-"))),)
        reply = await model.answer(Request((Message("user", parts),), item.form))
        outcomes.append(reader.read(item, reply.text))
    return outcomes


class ReplyReader:
    """Parses replies as the task does; replies to the same options are parsed once."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._known: dict[tuple[str, tuple[Field, ...]], JsonValue] = {}

    def read(self, item: Item, text: str) -> Outcome:
        """Parse a reply into an outcome."""
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
    """Compute the chance level: expected score of a uniform guess, or mean of random baselines."""
    first = exam.items[0]
    if choice_field(first) is not None and exam.task.main == "accuracy":
        never_correct = find_never_correct(exam)
        shares = [1 / max(1, len(remaining_options(item, never_correct))) for item in exam.items]
        words = "random guess without never-correct options" if never_correct else "random guess"
        return ChanceLevel(sum(shares) / len(shares), words)
    if first.form.reply == "text" or not coins:
        return ChanceLevel(None, "")
    values = [
        exam.score(await answer_trivially(exam.items, exam.task, coin)).value for coin in coins
    ]
    known = [value for value in values if value is not None]
    return ChanceLevel(
        sum(known) / len(known) if known else None, f"mean of {len(known)} random baselines"
    )


def remaining_options(item: Item, never_correct: frozenset[str]) -> list[Option]:
    """Return the options of an item except those that are never correct."""
    return [option for option in list_options(item) if fold(option.text) not in never_correct]


async def find_shortcuts(
    exam: Exam, chance: ChanceLevel, trivial: Sequence[Model]
) -> list[Finding]:
    """Make one audit finding per trivial baseline that applies to the task."""
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
        # Options with letters have no fixed meaning; the check of positions covers this case.
        return not exam.lettered and any(field.majority is not None for field in fields)
    return exam.items[0].form.reply == "text"


def _avoid_recurring(exam: Exam) -> Iterator[Finding]:
    """Compute the expected score of a random guess that excludes never-correct options."""
    never_correct = find_never_correct(exam)
    if not never_correct:
        return
    hits, sizes = [], []
    for item in exam.items:
        remaining = remaining_options(item, never_correct)
        hits.append(any(option.key == item.gold for option in remaining))
        sizes.append(len(remaining))
    groups = [item.group for item in exam.items]
    size = sum(sizes) / len(sizes)
    low, high = clustered_wilson(hits, groups) or (0.0, 1.0)
    value = sum(hit / options for hit, options in zip(hits, sizes, strict=True)) / len(hits)
    score = Score("accuracy", value, len(hits), low / size, high / size)
    nominal = sum(1 / len(list_options(item)) for item in exam.items) / len(exam.items)
    yield judge_shortcut(
        exam,
        "shortcut.skip_never_correct",
        "Baseline: random guess without never-correct options",
        score,
        ChanceLevel(nominal, "random guess among all options"),
    )


def judge_shortcut(
    exam: Exam,
    key: str,
    title: str,
    score: Score,
    chance: ChanceLevel,
    kind: ShortcutKind = "trivial",
) -> Finding:
    """Compare a trivial baseline with the chance level and with published scores."""
    value = score.value or 0.0
    below = sum(published_score <= value for published_score in exam.published)
    verdict = _weigh(score, chance, below, len(exam.published), kind)
    words = _meaning(score, chance, verdict)
    if exam.published:
        published = len(exam.published)
        words += f" {below} of {published} published scores of this task are not above it."
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
    """Give the verdict on a trivial baseline, from the chance level and the published scores.

    The verdict is "broken" if the baseline is far above chance, or at least as high as a third of
    the published scores.
    """
    if chance.value is None:
        return rank(below > 0, broken=published > 0 and below == published)
    # The score of a trained baseline varies between folds by more than its confidence interval.
    slack = 0.0 if kind == "trivial" else _SLACK
    if not is_above(score, chance.value + slack):
        return "sound"
    far = (score.value or 0.0) - chance.value >= _FAR
    rivals = bool(published) and 3 * below >= published
    # Text that helps to answer is not a flaw by itself, so the verdict is never "broken".
    return rank(True, broken=kind != "text" and (far or rivals))


def _meaning(score: Score, chance: ChanceLevel, verdict: FindingVerdict) -> str:
    if chance.value is None:
        return f"This baseline scores {score.value or 0:.3f} without the meme."
    if verdict == "sound":
        return "This baseline is not above the chance level."
    return f"This baseline scores {score.value or 0:.3f}; the chance level is {chance.value:.3f}."
