"""Group-disjoint evaluation: how much groups of memes predict labels and inflate scores.

Groups are templates, times, sources, authors or texts. Each classifier is scored twice:
with random folds, as papers do, and with group-disjoint folds. The difference is the part of the
score that depends on memes of the same group in training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memantics.core.data import GroupKind, SplitFile, SplitRow, sum_split
from memantics.core.errors import ImageError, InputError
from memantics.core.finding import Finding, FindingWords
from memantics.core.images import load
from memantics.core.labels import name_group
from memantics.core.records import Score
from memantics.core.text import split_pieces
from memantics.metrics.comparison import holm
from memantics.metrics.grouping import deal_groups, join_pairs, list_near_pairs, weigh_vote
from memantics.metrics.interval import percentile_span
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.metrics.weighted import Case, MetricSpec, measure, prepare
from memantics.moderation.examples import Loaded, natural_key
from memantics.moderation.held_out import (
    FAST,
    HeldOut,
    HeldOutVerdicts,
    RunAnswers,
    list_strata,
    number_labels,
)
from memantics.understanding.vision.hashes import find_pairs, hash_image

FOLDS = 5
NEAR_TEXT = 0.8
# maximum distance, as in ``collect``, of images with one template and different texts
CLUSTER_BITS = 8
_BLOCKS = 50
_KNOWN = 0.9  # minimum proportion of memes with a date, source or author
WORDS: dict[GroupKind, str] = {
    "template": "memes with one image (perceptual hash within 8 bits) or nearly the same text",
    "time": "neighbours in the order of collection (date, else id)",
    "source": "memes of one source",
    "author": "memes of one author",
    "text": "memes with nearly the same text (Jaccard 0.8 on words or Chinese characters)",
}
ALPHA = 0.025  # half of a family-wise error rate of 5 %; the other half is for the audit of tasks
KNOW, BREAK = 0.02, 0.1  # minimum effect sizes of the verdicts worth knowing and broken
_BESIDE = 10  # number of neighbours on each side, in the order of collection
_RESAMPLES = 500
_EDGES = (0.2, 0.4, 0.6, 0.8)
_FEW = 20
_MACRO, _ACCURACY = MetricSpec("macro_f1"), MetricSpec("accuracy")
WORDING = FindingWords(__file__)
_SOUND = f"The effect is below {KNOW:g} or not significant."


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of memes, and group-disjoint folds.

    ``order`` is the order of memes in time, for groups by time.
    """

    by: GroupKind
    groups: tuple[str, ...]
    folds: Ints
    order: Ints | None = None

    @property
    def sizes(self) -> Ints:
        """Size of each meme's group."""
        counts = Counter(self.groups)
        return np.array([counts[group] for group in self.groups], np.int64)


def group_memes(data: Loaded, by: GroupKind) -> Grouping:
    """Group memes; raise InputError if the data lack the needed column or images."""
    if by == "time":
        return _group_in_time(data)
    pairs = _list_bound(data)
    if by in ("source", "author"):
        keys = [getattr(meme, by) for meme in data.memes]
        named, known = len(set(keys) - {""}), sum(map(bool, keys))
        if known < _KNOWN * len(keys) or named < FOLDS:
            have = f"{known:,} of {len(keys):,} memes have {'an' if by == 'author' else 'a'} {by}"
            raise InputError(f"only {have}, {named:,} different", hint=f"add a column {by}")
        pairs += _join_equal(keys)
    else:
        pairs += list_near_pairs([e.text for e in data.examples], NEAR_TEXT, split_pieces)
    if by == "template":
        pairs += _list_alike(data)
    roots = join_pairs(len(data.examples), pairs)
    groups = tuple(data.examples[root].id for root in roots)
    return Grouping(by, groups, deal_groups(list_strata(data), groups, FOLDS))


def find_copies(data: Loaded) -> tuple[str, ...]:
    """Group memes with nearly the same text, ignoring groups in the data."""
    texts = [example.text for example in data.examples]
    roots = join_pairs(len(texts), list_near_pairs(texts, NEAR_TEXT, split_pieces))
    return tuple(data.examples[root].id for root in roots)


def _list_bound(data: Loaded) -> list[tuple[int, int]]:
    """List pairs of memes that belong to one group according to the data."""
    return _join_equal(data.groups)


def _join_equal(keys: tuple[str, ...] | list[str]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    return [(first.setdefault(key, place), place) for place, key in enumerate(keys) if key]


def _list_alike(data: Loaded) -> list[tuple[int, int]]:
    template_clusters = [meme.template_cluster for meme in data.memes]
    if any(template_clusters):
        return _join_equal(template_clusters)
    looks: dict[int, int] = {}
    for place, example in enumerate(data.examples):
        if example.image is not None:
            try:
                looks[place] = hash_image(load(example.image))
            except ImageError:
                continue
    if len(looks) < _KNOWN * len(data.examples):
        have = f"only {len(looks):,} of {len(data.examples):,} images are available"
        raise InputError(have, hint="add the images, or use --resplit text")
    places = list(looks)
    return [(places[a], places[b]) for a, b, _ in find_pairs(list(looks.values()), CLUSTER_BITS)]


def _group_in_time(data: Loaded) -> Grouping:
    dates = [meme.date for meme in data.memes]
    dated = sum(map(bool, dates)) >= _KNOWN * len(dates)
    names = [
        f"{date}\0{example.id}" if dated else example.id
        for date, example in zip(dates, data.examples, strict=True)
    ]
    order = np.array(sorted(range(len(names)), key=lambda place: natural_key(names[place])))
    folds, blocks = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for count, target in ((FOLDS, folds), (min(_BLOCKS, len(names)), blocks)):
        target[order] = np.arange(len(names)) * count // len(names)
    return Grouping("time", tuple(f"block {n + 1}" for n in blocks.tolist()), folds, order)


def make_split(data: Loaded, grouping: Grouping) -> SplitFile:
    """Make a split file: three folds for training, one for development, one for test."""
    parts = ("train",) * (FOLDS - 2) + ("dev", "test")
    rows = [
        SplitRow.model_validate(
            {"id": example.id, "part": parts[fold], "fold": fold, "group": group}
        )
        for example, fold, group in zip(
            data.examples, grouping.folds.tolist(), grouping.groups, strict=True
        )
    ]
    return SplitFile(
        data=data.labels.name,
        data_checksum=data.checksum,
        by=grouping.by,
        checksum=sum_split((row.id, row.part) for row in rows),
        rows=rows,
    )


class Draft(NamedTuple):
    """A finding before correction for multiple tests: its text, p-value and effect size."""

    finding: Finding
    p: float
    size: float


def settle_verdicts(drafts: Sequence[Draft]) -> list[Finding]:
    """Decide on all findings by Holm-corrected p-values and effect sizes."""
    findings = []
    for draft, p in zip(drafts, holm([draft.p for draft in drafts]), strict=True):
        size = settle(draft.size, 6)
        found = replace(draft.finding, verdict="broken" if size >= BREAK else "worth knowing", p=p)
        if settle(p, 6) >= ALPHA or size < KNOW:
            found = replace(found, verdict="sound", meaning=_SOUND, advice="No action needed.")
        findings.append(found)
    return findings


def judge_groups(data: Loaded, grouping: Grouping) -> Draft | None:
    """Measure how well the other memes of a group predict a meme's label without its content."""
    labels, classes = number_labels(data), len(data.labels.classes)
    groups: Sequence[str] = grouping.groups
    order = grouping.order
    if order is not None:
        labels, groups = labels[order], [groups[place] for place in order.tolist()]
    vote = weigh_vote(labels, groups, classes, beside=0 if order is None else _BESIDE)
    if vote is None:
        return None
    chance, share = 1 / classes, vote.voted / len(labels)
    size = (vote.value - chance) / (1 - chance) * share
    many = sum(count > 1 for count in Counter(groups).values()) if order is None else 0
    what = (
        f"its {2 * _BESIDE} neighbours in the order of collection"
        if order is not None
        else f"the other memes of its {grouping.by}"
    )
    finding = WORDING.find(
        "group",
        Score("balanced_accuracy", vote.value, vote.voted, vote.low, vote.high),
        "worth knowing",
        {
            "by": _name(grouping.by),
            "what": what,
            "words": _tell(data, grouping),
            "labels": data.labels.name,
            "shuffled": vote.shuffled,
            "value": vote.value,
            "chance": chance,
        },
        key=f"group.{grouping.by}",
        expected=chance,
        details=(f"{many:,} groups of two or more memes",) if many else (),
        task=data.labels.name,
        rows=(
            Score(
                "proportion",
                share,
                len(labels),
                by="memes",
                label="memes with others in their group",
            ),
        ),
    )
    return Draft(finding, vote.p, size)


def _tell(data: Loaded, grouping: Grouping) -> str:
    """Describe what forms a group, including groups given in the data."""
    named = [meme.group for meme in data.memes if meme.group != name_group(meme.text)]
    bound = grouping.order is None and len(set(named)) < len(named)
    return WORDS[grouping.by] + (", or of one group in the data" if bound else "")


def _name(by: GroupKind) -> str:
    return "crawl" if by == "time" else by


def judge_resplit(
    data: Loaded,
    grouping: Grouping,
    random: HeldOutVerdicts,
    again: HeldOutVerdicts,
    disjoint: HeldOutVerdicts,
) -> Draft:
    """Measure the score drop with group-disjoint folds.

    ``again`` has predictions with other random folds, to estimate the variation between folds.
    """
    rows: list[Score] = []
    falls: dict[str, tuple[Score, float]] = {}
    moves = [
        _score(list_cases(data, grouping, one)) - _score(list_cases(data, grouping, other))
        for one, other in zip(random.judges, again.judges, strict=True)
    ]
    # The variation between random folds is averaged over all classifiers, since one is noisy.
    common = float(np.sqrt(np.mean(np.square(moves))))
    for before, after, moved in zip(random.judges, disjoint.judges, moves, strict=True):
        cases = [list_cases(data, grouping, judge) for judge in (before, after)]
        for label, held in zip(("random folds", "disjoint folds"), cases, strict=True):
            rows.append(measure_macro(held, "judge", f"{before.name}, {label}"))
        reach = max(common, abs(moved))
        falls[before.name] = _compare(cases[0], cases[1], reach, before.name)
    fall, p = falls[FAST]
    known = [score for score, _ in falls.values()]
    baseline = measure_macro(_list_constant(data, grouping), "judge", "majority class")
    crossing = _list_crossing(data, grouping)
    nearness = _list_nearness(data, grouping, random)
    by, words, by_how_much = _name(grouping.by), _tell(data, grouping), fall.value or 0.0
    finding = WORDING.find(
        "resplit",
        Score("difference", fall.value, fall.n, fall.low, fall.high),
        "worth knowing",
        {"by": by, "judge": FAST, "words": words, "fall": by_how_much},
        key=f"resplit.{grouping.by}",
        task=data.labels.name,
        rows=(*known, *rows, baseline, *crossing, *nearness),
    )
    return Draft(finding, p, by_how_much)


def score_runs(data: Loaded, grouping: Grouping, runs: Sequence[RunAnswers]) -> tuple[Score, ...]:
    """Measure accuracy of runs on memes whose group is in the training split, and on others.

    Without a training split, compare memes in groups of several with single memes. Groups by time
    have no such comparison.
    """
    train = {g for m, g in zip(data.memes, grouping.groups, strict=True) if m.split == "train"}
    places = {example.id: place for place, example in enumerate(data.examples)}
    rows = []
    for run in runs:
        held = [(places[name], right) for name, right in run.right if name in places]
        parted = bool(train) and any(data.memes[place].split != "train" for place, _ in held)
        if parted:
            held = [one for one in held if data.memes[one[0]].split != "train"]
            known = [grouping.groups[place] in train for place, _ in held]
        elif grouping.order is None:
            known = [bool(grouping.sizes[place] > 1) for place, _ in held]
        else:
            continue
        cases = [
            Case(str(n), grouping.groups[place], "right", "right" if right else "wrong")
            for n, (place, right) in enumerate(held)
        ]
        words = (
            ("group in train", "group not in train") if parted else ("group of several", "alone")
        )
        rows += _list_parts(run.name, cases, np.array(known, bool), words)
    return tuple(rows)


def _list_parts(
    name: str, cases: Sequence[Case], known: NDArray[np.bool_], words: tuple[str, str]
) -> list[Score]:
    """Compute the accuracy on two parts of the memes and the difference; none for small parts."""
    if min(known.sum(), (~known).sum()) < _FEW:
        return []
    rows = []
    for label, mask in zip(words, (known, ~known), strict=True):
        part = [case for case, kept in zip(cases, mask.tolist(), strict=True) if kept]
        found = measure(part, _ACCURACY, resamples=_RESAMPLES)
        said = f"{name}, {label}"
        rows.append(Score("accuracy", found.value, len(part), found.low, found.high, "run", said))
    rate = prepare(cases, _ACCURACY)

    def differ(weights: Floats) -> float:
        return (rate(weights * known) or 0.0) - (rate(weights * ~known) or 0.0)

    low, high = percentile_span(_draw(cases, differ))
    value = differ(np.ones(len(cases)))
    return [*rows, Score("difference", value, len(cases), low, high, "run", f"{name}, difference")]


def list_cases(data: Loaded, grouping: Grouping, judge: HeldOut) -> list[Case]:
    """Pair the predictions of one classifier with the labels, as cases for metrics."""
    classes = data.labels.classes
    return [
        Case(example.id, group, gold[0], classes[said])
        for example, group, gold, said in zip(
            data.examples, grouping.groups, data.gold, judge.said.tolist(), strict=True
        )
    ]


def _list_constant(data: Loaded, grouping: Grouping) -> list[Case]:
    top = data.labels.classes[int(np.bincount(number_labels(data)).argmax())]
    return [
        Case(example.id, group, gold, top)
        for example, group, gold in zip(
            data.examples, grouping.groups, list_strata(data), strict=True
        )
    ]


def measure_macro(cases: Sequence[Case], by: str, label: str) -> Score:
    """Compute macro-F1 of cases, as a row of a breakdown."""
    found = measure(cases, _MACRO, resamples=_RESAMPLES)
    return Score("macro_f1", found.value, found.cases, found.low, found.high, by, label)


def _score(cases: Sequence[Case]) -> float:
    return prepare(cases, _MACRO)(np.ones(len(cases))) or 0.0


def _compare(
    first: Sequence[Case], second: Sequence[Case], moved: float, name: str
) -> tuple[Score, float]:
    """Compute the score drop by a cluster bootstrap, and its one-sided p-value.

    ``moved`` is the variation between random folds; it widens the confidence interval.
    """
    rates = [prepare(cases, _MACRO) for cases in (first, second)]

    def differ(weights: Floats) -> float:
        before, after = (rate(weights) or 0.0 for rate in rates)
        return before - after

    value = differ(np.ones(len(first)))
    drawn = _draw(first, differ)
    low, high = percentile_span(drawn)
    spread = max(float(np.hypot(drawn.std(), moved)), 1e-9)
    p = 1 - NormalDist().cdf(value / spread)
    reach = NormalDist().inv_cdf(0.975) * moved
    low, high = (
        value - float(np.hypot(value - low, reach)),
        value + float(np.hypot(high - value, reach)),
    )
    return Score("difference", value, len(first), low, high, "judge", f"{name}, score drop"), p


def _draw(cases: Sequence[Case], rate: Callable[[Floats], float]) -> Floats:
    order: dict[str, int] = {}
    places = np.array([order.setdefault(case.group, len(order)) for case in cases], np.int64)
    rng = np.random.default_rng(0)
    shares = np.full(len(order), 1 / len(order))
    rows = rng.multinomial(len(order), shares, size=_RESAMPLES)
    return np.array([rate(row[places].astype(float)) for row in rows])


def _list_crossing(data: Loaded, grouping: Grouping) -> list[Score]:
    """Count memes in the release's test split that share a group with its training split."""
    splits = [meme.split for meme in data.memes]
    if not {"train", "test"} <= set(splits) or grouping.order is not None:
        return []
    pairs = list(zip(splits, grouping.groups, strict=True))
    train = {group for split, group in pairs if split == "train"}
    test = [group in train for split, group in pairs if split == "test"]
    share = sum(test) / len(test)
    label = "test memes whose group is in the training split"
    return [Score("proportion", share, len(test), by="memes", label=label)]


def _list_nearness(data: Loaded, grouping: Grouping, random: HeldOutVerdicts) -> list[Score]:
    """Compute accuracy of the fast detector by cosine similarity to the nearest training meme."""
    right: Ints = (random.find(FAST).said == number_labels(data)).astype(np.int64)
    places = np.searchsorted(_EDGES, settle(random.nearness, 5), side="right")
    rows = []
    bounds = [0.0, *_EDGES, 1.0]
    for number in range(len(bounds) - 1):
        chosen = np.flatnonzero(places == number).tolist()
        if len(chosen) < _FEW:
            continue
        cases = [
            Case(str(n), grouping.groups[n], "right", "right" if right[n] else "wrong")
            for n in chosen
        ]
        found = measure(cases, _ACCURACY, resamples=_RESAMPLES)
        label = f"nearest training meme {bounds[number]:.1f} to {bounds[number + 1]:.1f}"
        rows.append(
            Score("accuracy", found.value, found.cases, found.low, found.high, "nearness", label)
        )
    return rows
