"""Probable label errors: counts in training, ranking, a review queue, and the measured error rate.

Near-duplicates with contradicting labels come first. Then come memes that confident learning flags:
their label contradicts confident held-out predictions (``metrics.confident``).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from memantics.benchmarks.dataset_votes import VOTES
from memantics.core import queue
from memantics.core.errors import InputError
from memantics.core.finding import Finding, Gap, rank
from memantics.core.labels import name_group
from memantics.core.records import Score
from memantics.metrics.calibration import estimate_joint, find_doubtful, name_confidently
from memantics.metrics.interval import bootstrap, sum_by_cluster, wilson
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.moderation.columns import USUAL
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.fast import Prediction
from memantics.moderation.held_out import FAST, JUDGES, HeldOutVerdicts, number_labels
from memantics.moderation.resplit import KNOW, WORDING, Draft, Grouping, list_cases, measure_macro

WORKFLOW = "review-labels"
FIRST = 100  # probable label errors in the review queue
OTHERS = 100  # random memes in the queue, to estimate the error rate
# Minimum gain of the classifiers over the accuracy of the majority class, as a proportion of the
# largest possible gain. Below it, most contradictions to labels are errors of the classifiers,
# which do not use images.
_AGREED = 0.7
_COPIES, _JUDGES = "a near-duplicate has another label", "held-out classifiers predict another"


@dataclass(frozen=True, slots=True)
class LabelIssue:
    """A probable label error: the label, the suggested label, and the reason."""

    id: str
    label: str
    suggested: str
    chance: float
    why: str


def rank_label_issues(
    data: Loaded, copies: Sequence[str], chances: Floats
) -> tuple[LabelIssue, ...]:
    """Rank probable label errors: contradicting near-duplicates first, then by probability."""
    labels, classes = number_labels(data), data.labels.classes
    judged = find_doubtful(labels, chances).tolist()
    contradicted = _find_contradicted(copies, labels, chances)
    known = set(contradicted)
    places = [*contradicted, *(place for place in judged if place not in known)]
    issues = []
    for place in places:
        others = chances[place].copy()
        others[labels[place]] = -1.0
        issues.append(
            LabelIssue(
                data.examples[place].id,
                classes[labels[place]],
                classes[int(settle(others).argmax())],
                float(chances[place, labels[place]]),
                _COPIES if place in known else _JUDGES,
            )
        )
    return tuple(issues)


def _find_contradicted(groups: Sequence[str], labels: Ints, chances: Floats) -> list[int]:
    """Find memes with a minority label among their near-duplicates, least probable first.

    If labels are equally frequent, the one with the lowest probability counts as the minority.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    found = []
    for places in members.values():
        counts = Counter(int(labels[place]) for place in places)
        if len(counts) < 2:
            continue
        held = {
            name: settle(float(np.mean([chances[p, name] for p in places if labels[p] == name])))
            for name in counts
        }
        kept = max(counts, key=lambda name: (counts[name], held[name], -name))
        found += [place for place in places if labels[place] != kept]
    given_chances = {place: settle(float(chances[place, labels[place]])) for place in found}
    return sorted(found, key=lambda place: (given_chances[place], place))


def judge_copies(data: Loaded, copies: Sequence[str]) -> Draft | None:
    """Measure how often near-duplicates have contradicting labels."""
    labels = number_labels(data)
    members: dict[str, list[int]] = {}
    for place, group in enumerate(copies):
        members.setdefault(group, []).append(place)
    flags = {}
    for group, places in members.items():
        if len(places) > 1:
            top = Counter(labels[places].tolist()).most_common(1)[0][1]
            flags[group] = (len(places) - top, len(places))
    if len(flags) < 2:
        return None
    sums = np.array(list(flags.values()), float)
    value = float(sums[:, 0].sum() / sums[:, 1].sum())
    low, high = bootstrap(sums, lambda table: table[:, 0] / table[:, 1]) or (0.0, 1.0)
    size = value * float(sums[:, 1].sum()) / len(labels)
    pictures = any(example.image for example in data.examples)
    score = Score("proportion", value, int(sums[:, 1].sum()), low, high)
    why = (
        "" if pictures else " Images are not available: equal texts may have other meanings there."
    )
    values = {"many": int(sums[:, 0].sum()), "why": why}
    name = data.labels.name
    finding = WORDING.find("labels.copies", score, "worth knowing", values, task=name)
    p = 1 - NormalDist().cdf((value - 0.01) / max((high - low) / 3.92, 1e-9))
    return Draft(finding, p, size)


def _is_weak(right: float, top: float) -> bool:
    """Whether classifiers gain too little over the majority class to call labels wrong.

    >>> _is_weak(0.69, 0.65), _is_weak(0.95, 0.65)
    (True, False)
    """
    return bool(settle(right - top) < settle(_AGREED * (1 - top)))


def judge_noise(data: Loaded, texts: Grouping, held: HeldOutVerdicts) -> tuple[Draft | None, Gap]:
    """Estimate the label error rate from classifiers; report a gap if they are too weak."""
    labels, chances, classes = number_labels(data), held.mean, len(data.labels.classes)
    joint = estimate_joint(labels, chances)
    share = float(joint.sum() - np.trace(joint))
    right = float((settle(chances).argmax(axis=1) == labels).mean())
    top = float(np.bincount(labels).max() / len(labels))
    who = "classifiers" if len(held.judges) > len(JUDGES) else "text-only classifiers"
    gap = Gap(
        data.labels.name,
        "label error rate",
        f"{who} agree with {right:.0%} of the labels (majority class: {top:.0%}), "
        "so most disagreement is their own error",
        "review the queue, then use --reviewed ANNOTATIONS",
    )
    if _is_weak(right, top):
        return None, gap
    said = name_confidently(labels, chances)
    marks = np.eye(classes)[labels]
    off = marks * ((said >= 0) & (said != labels))[:, None]
    sums = sum_by_cluster(np.hstack([off, marks * (said >= 0)[:, None], marks]), texts.groups)

    def rate(table: Floats) -> Floats:
        wrong, sure, sizes = (table[:, n * classes : (n + 1) * classes] for n in range(3))
        return np.asarray((wrong / np.maximum(sure, 1) * sizes).sum(axis=1) / sizes.sum(axis=1))

    low, high = bootstrap(sums, rate) or (0.0, 1.0)
    flagged = find_doubtful(labels, chances)
    finding = WORDING.find(
        "labels.noise",
        Score("proportion", share, len(labels), low, high),
        "worth knowing",
        {"judges": len(held.judges), "share": share},
        task=data.labels.name,
        rows=(
            Score("accuracy", right, len(labels), by="judges", label="agreement of classifiers"),
        ),
        details=(f"{len(flagged):,} memes are ranked, of {len(labels):,}",),
    )
    p = 1 - NormalDist().cdf((share - KNOW) / max((high - low) / 3.92, 1e-9))
    return Draft(finding, p, share), gap


def queue_label_issues(
    data: Loaded, issues: Sequence[LabelIssue], folder: Path, *, warning: str = ""
) -> int:
    """Write a review queue: the top label issues mixed with as many random memes."""
    first = {issue.id: rank for rank, issue in enumerate(issues[:FIRST], 1)}
    rest = [place for place, example in enumerate(data.examples) if example.id not in first]
    rng = np.random.default_rng(0)
    drawn = {
        data.examples[rest[n]].id
        for n in rng.choice(len(rest), min(OTHERS, len(rest)), replace=False).tolist()
    }
    items = []
    for example, gold in zip(data.examples, data.gold, strict=True):
        if example.id not in first and example.id not in drawn:
            continue
        shown = [
            queue.Shown(label="text", value=example.text),
            queue.Shown(label="label", value=gold[0]),
        ]
        shown.append(queue.Shown(label="labels", value=list(data.labels.classes), kind="list"))
        pictures = [queue.copy_picture(example.image, folder, example.id)] if example.image else []
        items.append(
            queue.QueueItem(
                id=example.id,
                group=example.id,
                images=pictures,
                shown=shown,
                hidden={"rank": first.get(example.id, 0), "memes": len(data.examples)},
            )
        )
    # Items are shuffled, so that the order does not bias annotators.
    items.sort(key=lambda item: hashlib.sha256(item.id.encode()).digest())
    languages = data.list_languages()
    card = queue.QueueCard(
        title=f"Labels of {data.labels.name}",
        workflow=WORKFLOW,
        language="zh" if languages == ["zh"] else "en",
        warning=warning,
        origin="memantics audit --labels",
    )
    return queue.write_queue(folder, card, items)


def judge_reviews(
    data: Loaded, texts: Grouping, held: HeldOutVerdicts, annotations: Path
) -> tuple[Finding, ...]:
    """Estimate the label error rate from reviews, and metrics without the wrong labels."""
    given = {annotation.item: annotation for annotation in queue.read_annotations(annotations)}
    known = [v for v in given.values() if v.workflow == WORKFLOW and v.kept]
    if not known:
        raise InputError(
            f"{annotations} has no reviewed labels", hint="review the queue of --labels first"
        )
    wrong = {v.item for v in known if v.values.get("fits") == "no"}
    first = [v.item in wrong for v in known if v.hidden.get("rank")]
    rest = [v.item in wrong for v in known if not v.hidden.get("rank")]
    size = len(data.examples)
    low, high = wilson(sum(rest), len(rest)) or (0.0, 1.0)
    beyond = (size - len(first)) / size
    shares = [
        sum(first) / size + beyond * part for part in (sum(rest) / max(1, len(rest)), low, high)
    ]
    cases = list_cases(data, texts, held.find(FAST))
    rows = (
        Score(
            "proportion", sum(first) / max(1, len(first)), len(first), by="memes", label="doubtful"
        ),
        Score("proportion", sum(rest) / max(1, len(rest)), len(rest), by="memes", label="drawn"),
        measure_macro(cases, "judge", f"{FAST}, all memes"),
        measure_macro(
            [c for c in cases if c.id not in wrong], "judge", f"{FAST}, without wrong labels"
        ),
    )
    counts = {"first": len(first), "rest": len(rest), "wrong": len(wrong), "known": len(known)}
    found = WORDING.find(
        "labels.reviewed",
        Score("proportion", shares[0], len(known), shares[1], shares[2]),
        rank(bool(settle(shares[1]) >= KNOW)),
        counts,
        task=data.labels.name,
        rows=rows,
    )
    return (found,)


# Counts that training prints before it writes a detector.


def count_contradictions(examples: Sequence[Example]) -> tuple[int, int]:
    """Count texts that have both labels, and the memes with such a text.

    A detector of texts cannot tell these memes apart: the image decides, or a label is wrong.

    >>> memes = [Example("a", "Hi!", label=0), Example("b", "hi", label=1)]
    >>> count_contradictions(memes)
    (1, 2)
    """
    labels: dict[str, list[int]] = defaultdict(list)
    for example in examples:
        key = name_group(example.text)
        if key and example.label is not None:
            labels[key].append(example.label)
    both = [found for found in labels.values() if len(set(found)) > 1]
    return len(both), sum(map(len, both))


def _name_label(source: str) -> str:
    """Return the label that training data were named by, as an audit takes it.

    >>> _name_label("crowd/tone_votes=mean,rude"), _name_label("sample")
    ('crowd/tone', 'NAME/LABEL')
    """
    name, equals, _ = source.partition("=")
    return name.removesuffix(VOTES) if equals and name.count("/") == 1 else "NAME/LABEL"


def describe_label_issues(loaded: Loaded, said: Sequence[Prediction]) -> tuple[str, ...]:
    """Report contradictory and likely wrong labels in one line each, with the command for review.

    Args:
        loaded: The training data.
        said: A held-out prediction per example, in order.
    """
    lines = []
    texts, memes = count_contradictions(loaded.examples)
    if texts:
        lines.append(
            f"{memes:,} memes share a text with a meme of the other label ({texts:,} texts): a"
            " detector of texts cannot tell them apart"
        )
    labels = np.array([int(e.label or 0) for e in loaded.examples], np.int64)
    chances = np.array([(1 - one.probability, one.probability) for one in said])
    wrong = len(find_doubtful(labels, chances)) if len(set(labels.tolist())) > 1 else 0
    if wrong:
        column = loaded.columns.get("label", "label")
        table = f"{loaded.name}/{column}" if loaded.columns else _name_label(loaded.source)
        text = loaded.columns.get("text", "text")
        first = "" if text.lower() in USUAL["text"] else f"rename the column {text} to text, and "
        right = float((settle(chances).argmax(axis=1) == labels).mean())
        if _is_weak(right, float(np.bincount(labels).max() / len(labels))):
            found = (
                f"{wrong:,} labels contradict held-out predictions, which agree with {right:.0%} of"
                " all labels: most of these are errors of the detector, some may be wrong labels"
            )
        else:
            found = f"{wrong:,} labels are likely wrong by held-out predictions"
        lines.append(f"{found}; {first}review them with 'memantics audit {table} --labels'")
    return tuple(lines)
