"""False positives on identity terms: harmless sentences about groups, scored by a detector.

A detector that learnt from hateful memes may react to the name of an attacked group. The sentences
of ``identity_terms.toml`` name 28 groups per language in neutral and kind contexts, so that every
flagged sentence is a false positive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from memantics.core.data import toml_beside
from memantics.core.result import Result, Table
from memantics.metrics.interval import clustered_wilson
from memantics.moderation.operating_points import OperatingPoint, Rate, rate

EVERY_GROUP: Final = "all groups"
LANGUAGES: Final = ("en", "zh")
_NAMED = 3  # groups that a line on rates names
_OFTEN = 0.5  # false positive rate of a group from which training warns
_WARNED = 8  # maximum number of groups that the warning names
NEEDS_IMAGE: Final = (
    "false positive rates on identity terms were not measured: the detector needs an image"
)
Scorer = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class IdentitySentence:
    """A harmless sentence and the group that it names."""

    language: str
    group: str
    text: str


@dataclass(frozen=True, slots=True)
class IdentityErrors(Result):
    """The false positive rate of a detector on harmless sentences about one group."""

    language: str
    group: str
    flagged: Rate


@cache
def list_identity_sentences(language: str) -> tuple[IdentitySentence, ...]:
    """List the sentences of a language; empty for a language without sentences.

    >>> len(list_identity_sentences("en")), len(list_identity_sentences("de"))
    (336, 0)
    """
    content = toml_beside(__file__, "identity_terms.toml").get(language)
    if content is None:
        return ()
    return tuple(
        IdentitySentence(
            language, group, form.format(group=group, Group=group[0].upper() + group[1:])
        )
        for group in content["groups"]
        for form in (*content["neutral"], *content["kind"])
    )


def measure_identity_terms(
    score: Scorer, point: OperatingPoint, languages: Sequence[str]
) -> tuple[IdentityErrors, ...]:
    """Measure false positive rates over all groups and per group, the highest rate first.

    Args:
        score: Returns the probability of harm for each text.
        point: The operating point; a sentence in its review or block band is a false positive.
        languages: Languages of the detector; those without sentences are left out.

    >>> rows = measure_identity_terms(lambda texts: [0.9] * len(texts), OperatingPoint(0.5), ["en"])
    >>> rows[0].group, rows[0].flagged.value
    ('all groups', 1.0)
    """
    found: list[IdentityErrors] = []
    for language in dict.fromkeys(languages):
        sentences = list_identity_sentences(language)
        if not sentences:
            continue
        flags = _flag(score, point, sentences)
        by_group: dict[str, list[bool]] = defaultdict(list)
        for sentence, flagged in zip(sentences, flags, strict=True):
            by_group[sentence.group].append(flagged)
        low, high = clustered_wilson(flags, [one.group for one in sentences]) or (None, None)
        overall = Rate(len(flags), sum(flags) / len(flags), low, high)
        found.append(IdentityErrors(language, EVERY_GROUP, overall))
        rows = [
            IdentityErrors(language, group, rate(sum(hits), len(hits)))
            for group, hits in by_group.items()
        ]
        found += sorted(rows, key=lambda row: (-(row.flagged.value or 0), row.group))
    return tuple(found)


def describe_identity(rows: Sequence[IdentityErrors], *, counterfactual: bool = False) -> list[str]:
    """Describe the false positive rate on identity terms, one line per language.

    Args:
        rows: Rates of all groups and of each group.
        counterfactual: The detector was trained with counterfactual copies.

    >>> rows = measure_identity_terms(lambda texts: [0.9] * len(texts), OperatingPoint(0.5), ["zh"])
    >>> print(describe_identity(rows)[0][:66])
    identity terms (zh): 100.0 % of 336 harmless sentences that name a
    """
    lines = []
    for whole in (row for row in rows if row.group == EVERY_GROUP):
        groups = [row for row in rows if row.language == whole.language and row is not whole]
        worst = [row for row in groups if row.flagged.value][:_NAMED]
        low, high = whole.flagged.low or 0.0, whole.flagged.high or 0.0
        line = (
            f"identity terms ({whole.language}): {100 * (whole.flagged.value or 0):.1f} % of"
            f" {whole.flagged.count:,} harmless sentences that name a group are flagged"
            f" (95 % CI {100 * low:.1f} to {100 * high:.1f})"
        )
        if worst:
            named = (f"{row.group} {100 * (row.flagged.value or 0):.0f} %" for row in worst)
            line += f"; most: {', '.join(named)}"
            line += "" if counterfactual else "; --counterfactual may lower these rates"
        lines.append(line)
    return lines


def warn_identity(
    rows: Sequence[IdentityErrors], command: str, *, counterfactual: bool = False
) -> list[str]:
    """Warn of the groups whose harmless sentences are flagged as often as not, with the remedy.

    Args:
        rows: Rates of all groups and of each group.
        command: The command that trains the detector.
        counterfactual: The detector was trained with counterfactual copies.

    >>> rows = measure_identity_terms(lambda texts: [0.9] * len(texts), OperatingPoint(0.5), ["en"])
    >>> warn_identity(rows, "memantics detector train")[0].partition(" about ")[2][:38]
    '28 groups (en) are flagged: Africans, '
    """
    lines = []
    for language in dict.fromkeys(row.language for row in rows):
        groups = [
            row.group
            for row in rows
            if row.language == language
            and row.group != EVERY_GROUP
            and (row.flagged.value or 0.0) >= _OFTEN
        ]
        if not groups:
            continue
        named = ", ".join(groups[:_WARNED])
        more = f" and {len(groups) - _WARNED} more" if len(groups) > _WARNED else ""
        noun = "group" if len(groups) == 1 else "groups"
        remedy = (
            "add harmless memes about them to the training data, or review instead of blocking"
            " ('memantics detector set --review-range')"
            if counterfactual
            else f"train again with copies that name other groups: '{command} --counterfactual',"
            " and your other options"
        )
        lines.append(
            f"warning: half or more of the harmless sentences about {len(groups)} {noun}"
            f" ({language}) are flagged: {named}{more}; {remedy}"
        )
    return lines


def explain_more_false_positives(
    before: Scorer,
    after: Scorer,
    points: tuple[OperatingPoint, OperatingPoint],
    languages: Sequence[str],
) -> str:
    """Describe by how much a new detector flags more identity sentences; empty if it does not.

    >>> calm, alarmed = (lambda texts: [0.1] * len(texts)), (lambda texts: [0.9] * len(texts))
    >>> point = OperatingPoint(0.5)
    >>> explain_more_false_positives(alarmed, calm, (point, point), ["en"])
    ''
    >>> explain_more_false_positives(calm, alarmed, (point, point), ["zh"])[:52]
    'the new detector flags 336 of 336 harmless sentences'
    """
    sentences = [one for name in dict.fromkeys(languages) for one in list_identity_sentences(name)]
    if not sentences:
        return ""
    was, now = _flag(before, points[0], sentences), _flag(after, points[1], sentences)
    if sum(now) <= sum(was):
        return ""
    more: dict[str, int] = defaultdict(int)
    for sentence, old, new in zip(sentences, was, now, strict=True):
        more[sentence.group] += new - old
    worst = sorted(
        (group for group in more if more[group] > 0), key=lambda name: (-more[name], name)
    )
    return (
        f"the new detector flags {sum(now):,} of {len(now):,} harmless sentences about groups, the"
        f" old one {sum(was):,}; most of the increase: {', '.join(worst[:_NAMED])}"
    )


def _flag(
    score: Scorer, point: OperatingPoint, sentences: Sequence[IdentitySentence]
) -> list[bool]:
    return [point.band(chance) != "allow" for chance in score([one.text for one in sentences])]


def tabulate_identity(rows: Sequence[IdentityErrors]) -> Table:
    """Tabulate false positive rates by group, in per cent with 95 % confidence intervals."""
    cells = []
    for row in rows:
        span = "–"
        if row.flagged.low is not None and row.flagged.high is not None:
            span = f"{100 * row.flagged.low:.1f} to {100 * row.flagged.high:.1f}"
        share = f"{100 * (row.flagged.value or 0):.1f}"
        cells.append((row.language, row.group, f"{row.flagged.count:,}", share, span))
    columns = ("language", "group", ">sentences", ">false positive rate", ">95 % CI")
    return Table(columns, tuple(cells), "Harmless sentences about groups that are flagged")
