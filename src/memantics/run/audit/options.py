"""What the options of a question give away: dead ones, where the key stands, how long it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memantics.core.finding import Finding, FindingVerdict, FindingWords
from memantics.core.records import Item, Option, Score
from memantics.metrics.comparison import chi_square_tail
from memantics.metrics.interval import clustered_wilson
from memantics.run.audit.rows import is_above, share
from memantics.run.audit.subject import Exam, choice_field

_WORDS = FindingWords(__file__)

_RECURRING = 0.5
_RARE = 0.02


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


def find_dead(exam: Exam) -> frozenset[str]:
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
    if high < found.fair / 4:
        return "broken"
    return "worth knowing" if high < found.fair or low > found.fair else "sound"


def _judge_recurring(exam: Exam, text: str) -> Finding:
    found = offers(exam.items, text)
    right, n = sum(found.right), len(found.right)
    verdict = _weigh_recurring(found)
    all_options = round(1 / found.fair)
    values = {"right": right, "items": n, "left": all_options - 1, "options": all_options}
    figure = Score("share", right / n, n, *found.span)
    told = _WORDS.find("options.dead", figure, verdict, text=text, **values)
    return replace(told, expected=found.fair, task=exam.name)


def _judge_places(exam: Exam) -> Finding:
    places = [
        next(i for i, o in enumerate(list_options(item)) if o.key == item.gold)
        for item in exam.items
    ]
    size = max(len(list_options(item)) for item in exam.items)
    counts = Counter(places)
    groups = [item.group for item in exam.items]
    rows = tuple(
        share([number == place for number in places], groups, "position", "ABCDEFGHIJ"[place])
        for place in range(size)
    )
    p = chi_square_p([counts[place] for place in range(size)])
    top = max(rows, key=lambda row: row.value or 0.0)
    excess = (top.value or 0.0) - 1 / size
    even = p >= 0.01
    verdict: FindingVerdict = "sound" if even else "broken" if excess >= 0.1 else "worth knowing"
    figure = Score("share", top.value, top.n, top.low, top.high)
    found = _WORDS.find("options.position", figure, verdict, p=p, top=top.label)
    return replace(found, expected=1 / size, task=exam.name, rows=rows)


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
    figure = share(longest, groups)
    least = share(shortest, groups, "key", "strictly shortest")
    leak = expected is not None and is_above(figure, expected)
    far = leak and (figure.value or 0) - (expected or 0) >= 0.1
    verdict: FindingVerdict = "broken" if far else "worth knowing" if leak else "sound"
    left_out = ", recurring options left out" if recurring else ""
    found = _WORDS.find("options.length", figure, verdict, left_out=left_out)
    rows = (share(longest, groups, "key", "strictly longest"), least)
    return replace(found, expected=expected, task=exam.name, rows=rows)


def _judge_classes(exam: Exam) -> Finding:
    golds = [str(item.gold) for item in exam.items]
    groups = [item.group for item in exam.items]
    counts = Counter(golds)
    size = len(list_options(exam.items[0]))
    rows = tuple(
        share([gold == name for gold in golds], groups, "class", name)
        for name, _ in counts.most_common()
    )
    missing = size - len(counts)
    rare = [row.label for row in rows if (row.value or 0) < _RARE]
    words = []
    if missing:
        words.append(f"{missing} of {size} classes that are offered are never right here.")
    if rare:
        words.append(f"Classes below 2 %: {', '.join(rare)}.")
    figure = Score("share", rows[0].value, rows[0].n, rows[0].low, rows[0].high)
    uneven: FindingVerdict = "worth knowing" if words else "sound"
    found = _WORDS.find("options.classes", figure, uneven, words=" ".join(words))
    return replace(found, expected=1 / size, task=exam.name, rows=rows)


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
