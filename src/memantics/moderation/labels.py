"""Training labels from memes and annotators' decisions, and the evaluation of classifiers.

A meme has one label or several; rare labels are merged into ``other``. Metrics are given per class,
with confidence intervals clustered by group of memes, and beside trivial baselines.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.files import read_regular
from memantics.core.labels import LabelledMeme, name_group
from memantics.core.queue import ANNOTATIONS, AggregatedAnnotation, read_annotations
from memantics.core.records import Score
from memantics.core.result import Result, Table
from memantics.metrics.weighted import Case, Measure, MetricSpec, measure
from memantics.moderation.evaluation import percent, show_span
from memantics.moderation.examples import TYPES, Example, LabelSet, Loaded, Type
from memantics.moderation.fast import LabelPrediction

# Minimum number of memes per class, for cross-validation. In large datasets a class also needs a
# minimum proportion of the memes, which is lower for multi-label data.
FEWEST_MEMBERS = 5
_FEWEST_SHARE = {False: 0.03, True: 0.01}
OTHER = "other"


def gather_examples(
    memes: Iterable[LabelledMeme],
    name: str,
    *,
    several: bool = False,
    classes: Sequence[str] | None = None,
) -> Loaded:
    """Convert labelled memes to examples with one label each, or with several.

    Without ``classes``, labels with too few memes become ``other``; if ``other`` also has too few,
    its memes are skipped. With ``classes`` (of a classifier under evaluation), an unknown label
    becomes ``other`` if that is a class; otherwise the meme is skipped.
    """
    listed, skips = _keep_labelled(memes, name, several=several)
    counts = Counter(label for meme in listed for label in meme.labels)
    fewest = max(FEWEST_MEMBERS, math.ceil(_FEWEST_SHARE[several] * len(listed)))
    known = set(classes or (label for label, count in counts.items() if count >= fewest))
    rare = sum(count for label, count in counts.items() if label not in known)
    keeps_other = OTHER in known or (classes is None and rare >= fewest and not several)
    kept: list[tuple[LabelledMeme, tuple[str, ...]]] = []
    for meme in listed:
        gold = tuple(label for label in meme.labels if label in known)
        if not several and not gold and keeps_other:
            gold = (OTHER,)
        if gold or several:
            kept.append((meme, gold))
        else:
            skips.append(Skip(name, meme.id, f"too few memes have the label {meme.labels[0]}"))
    if not kept:
        raise InputError(f"{name}: no label has enough memes for training", hint="give more memes")
    found = set(classes or ()) | {label for _, gold in kept for label in gold}
    ordered = (
        tuple(classes)
        if classes
        else tuple(sorted(found, key=lambda label: (-counts[label], label)))
    )
    notes = [f"{len(skips):,} memes were skipped"] if skips else []
    if keeps_other and classes is None and rare:
        notes.append(f"{rare:,} memes whose label has fewer than {fewest} memes became {OTHER}")
    return Loaded(
        name,
        tuple(
            Example(meme.id, meme.text, meme.text_caption, meme.image_caption, meme.image)
            for meme, _ in kept
        ),
        tuple(skips),
        tuple(notes),
        labels=LabelSet(name, ordered, several),
        gold=tuple(gold for _, gold in kept),
        groups=tuple(meme.group or name_group(meme.text) or meme.id for meme, _ in kept),
        memes=tuple(meme for meme, _ in kept),
    )


def _keep_labelled(
    memes: Iterable[LabelledMeme], name: str, *, several: bool
) -> tuple[list[LabelledMeme], list[Skip]]:
    kept: list[LabelledMeme] = []
    skips: list[Skip] = []
    for meme in memes:
        said = meme.text + meme.text_caption + meme.image_caption
        if not said.strip():
            skips.append(Skip(name, meme.id, "no text"))
        elif not several and len(meme.labels) != 1:
            skips.append(Skip(name, meme.id, f"has {len(meme.labels)} labels"))
        else:
            kept.append(meme)
    return kept, skips


# Aggregation of annotations into training labels.
#
# Each annotation counts 1 (harmful), 0 (harmless) or ½ (maybe, unsure). If the lead or another
# adjudicator decided a tie, or reviewed an appeal, only that decision counts. A mean above ½ is
# harmful, below ½ harmless. At ½ the meme is undecided and is used neither for training nor for
# evaluation. The weight of a label is twice the distance of the mean from ½: 1 for full agreement,
# ⅓ for two of three.
# Annotations replace an earlier label of the same meme: the same image with the same caption, or
# the same caption where an image is unknown.

_SHARES = {"yes": 1.0, "no": 0.0, "maybe": 0.5, "unsure": 0.5}
# names of adjudication stages: in workflows, and those that the project setting adds
_ADJUDICATE = ("adjudicate", "settle_ties")
_CATEGORIES = ("type", "category")  # fields of the forms that name the type of harm
_TYPES = {"innuendo": "sexual"}  # names in the annotation form → types of ToxiCN MM
_PARTS = 5  # one meme in five is held out


@dataclass(frozen=True, slots=True)
class Decided:
    """Memes labelled by annotators with their weights, and the number of undecided memes.

    ``textless`` counts annotations of images without text, which are not used for training.
    ``images`` are the SHA-256 digests of the memes' images, empty where unknown.
    """

    examples: tuple[Example, ...]
    weights: tuple[float, ...]
    undecided: int = 0
    people: int = 0
    textless: int = 0
    images: tuple[str, ...] = ()

    @property
    def ambiguous(self) -> int:
        """The number of memes whose caption has both labels, on different images."""
        labels: dict[str, set[int | None]] = {}
        for example in self.examples:
            labels.setdefault(_name_caption(example.text), set()).add(example.label)
        return sum(len(labels[_name_caption(one.text)]) > 1 for one in self.examples)


def _name_caption(text: str) -> str:
    return name_group(text) or text.strip()


def read_decisions(files: Iterable[Path]) -> Decided:
    """Read annotation files (or queues with one), and pool annotations of the same meme.

    The text of a meme is in the hidden field ``text``, and the digest of its image in ``sha256``,
    as in queues that ``screen`` writes. One caption on two images makes two memes. Annotations
    without a digest are pooled by caption. The review of an appeal replaces other annotations of
    its meme. Hidden gold items are skipped.
    """
    votes: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    appealed: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    texts: dict[tuple[str, str], tuple[str, str]] = {}
    people: set[str] = set()
    textless = 0
    for given in files:
        path = given / ANNOTATIONS if given.is_dir() else given
        if not path.is_file():
            raise InputError(
                f"no annotations at {path}", hint="write them with 'memantics annotate export'"
            )
        for annotation in read_annotations(path):
            if "gold" in annotation.hidden:
                continue  # an example of the policy, which tests the reviewers
            text = str(annotation.hidden.get("text") or "")
            if not text.strip():
                textless += 1
                continue
            key = _name_caption(text), str(annotation.hidden.get("sha256") or "")
            texts.setdefault(key, (str(annotation.hidden.get("id") or annotation.group), text))
            side = appealed if "decision" in annotation.hidden else votes
            side.setdefault(key, []).extend(list_votes(annotation))
            people |= {vote.annotator for vote in annotation.annotations}
    votes |= {key: said for key, said in appealed.items() if said}
    made = [(key, *decide(said)) for key, said in votes.items()]
    kept = [one for one in made if one[2] > 0]
    examples = tuple(
        Example(f"reviewed/{texts[key][0]}", texts[key][1], label=label, type=kind)
        for key, label, _, kind in kept
    )
    weights = tuple(weight for _, _, weight, _ in kept)
    images = tuple(image for (_, image), *_ in kept)
    return Decided(examples, weights, len(made) - len(kept), len(people), textless, images)


def list_votes(annotation: AggregatedAnnotation) -> list[Mapping[str, object]]:
    """List the annotations that count: the adjudicator's, else all, else the aggregated values."""
    last = [vote.values for vote in annotation.annotations if vote.stage in _ADJUDICATE]
    found = last or [vote.values for vote in annotation.annotations] or [annotation.values]
    return [values for values in found if values.get("harmful") in _SHARES]


def decide(votes: Sequence[Mapping[str, object]]) -> tuple[int, float, Type | None]:
    """Aggregate annotations to label, weight and type; the weight is 0 if undecided.

    >>> decide([{"harmful": "yes", "type": "offence"}, {"harmful": "maybe"}])
    (1, 0.5, 'offence')
    >>> decide([{"harmful": "yes", "category": "sexual"}, {"harmful": "unsure"}])
    (1, 0.5, 'sexual')
    >>> decide([{"harmful": "yes"}, {"harmful": "no"}])[1], decide([])[1]
    (0.0, 0.0)
    """
    shares = [_SHARES[str(values["harmful"])] for values in votes]
    mean = sum(shares) / len(shares) if shares else 0.5
    label, weight = int(mean > 0.5), round(abs(2 * mean - 1), 9)
    if not label:
        return label, weight, "none"
    given = [values.get(field) for values in votes for field in _CATEGORIES]
    named = Counter(str(value) for value in given if value)
    kind = min(named, key=lambda name: (-named[name], name), default="")
    found = _TYPES.get(kind, kind)
    return label, weight, next((known for known in TYPES if known == found), None)


def put_together(known: Sequence[Example], decided: Decided) -> tuple[list[Example], int]:
    """Remove memes with new annotations from the old data; also count the labels that changed.

    A meme with an image has new annotations if both its image and its caption were annotated. If
    the image is unknown, an annotation of the same caption is enough, unless annotations of that
    caption on different images disagree.
    """
    said: dict[str, dict[str, int | None]] = {}
    images = decided.images or ("",) * len(decided.examples)
    for example, image in zip(decided.examples, images, strict=True):
        said.setdefault(name_group(example.text), {})[image] = example.label
    kept, changed = [], 0
    for example in known:
        key = name_group(example.text)
        labels = _choose_labels(said.get(key, {}) if key else {}, example)
        if len(labels) == 1:
            changed += example.label not in labels
        else:
            kept.append(example)
    return kept, changed


def _choose_labels(said: Mapping[str, int | None], example: Example) -> set[int | None]:
    """List the new labels of a meme; the input has the labels of its caption by image digest."""
    image = _hash_image(example) if said else ""
    if not image:
        return set(said.values())
    wanted = image if image in said else ""
    return {said[wanted]} if wanted in said else set()


def _hash_image(example: Example) -> str:
    """Compute the SHA-256 digest of the image file; empty if there is none."""
    if example.image is None or not example.image.is_file():
        return ""
    return hashlib.sha256(read_regular(example.image)).hexdigest()


def is_held_out(example: Example) -> bool:
    """Check whether a meme is in the fixed fifth held out for comparison, by a hash of its text."""
    key = name_group(example.text) or example.id
    return hashlib.sha256(key.encode()).digest()[0] % _PARTS == 0


def hide_labels(examples: Iterable[Example]) -> list[Example]:
    """Return the examples without labels."""
    return [replace(e, label=None, type=None, modality=None, target=None) for e in examples]


@dataclass(frozen=True, slots=True)
class LabelEvaluation(Result):
    """Metrics of a classifier on labelled memes.

    ``figures`` are accuracy, macro-F1 and calibration error; for multi-label data they are means
    over labels. ``classes`` has F1 (and AUROC for multi-label data) of each class. ``baselines``
    are accuracy and macro-F1 of trivial baselines.
    """

    label: str
    count: int
    groups: int
    metrics: tuple[Score, ...]
    classes: tuple[Score, ...]
    baselines: Mapping[str, tuple[float, float]]

    def find(self, key: str) -> float | None:
        """Return one metric: ``accuracy``, ``macro_f1``, ``auroc`` or ``calibration_error``."""
        return next((score.value for score in self.metrics if score.key == key), None)

    def table(self, title: str = "") -> Table:
        """Show all metrics in per cent with confidence intervals."""
        rows = [
            (
                score.label or "all",
                score.key.replace("_", " "),
                percent(score.value),
                show_span(score),
                str(score.n),
            )
            for score in (*self.metrics, *self.classes)
        ]
        for name, (right, macro) in self.baselines.items():
            rows.append(("baseline", name, percent(right), f"macro-F1 {percent(macro)}", ""))
        return Table(("class", "metric", ">value", ">95 % CI", ">n"), tuple(rows), title)

    def _repr_html_(self) -> str:
        return self.table(f"{self.label}: {self.count:,} memes")._repr_html_()


def evaluate_labels(
    data: Loaded, said: Sequence[LabelPrediction], resamples: int = 1000
) -> LabelEvaluation:
    """Evaluate predictions, with 95 % confidence intervals by a cluster bootstrap over groups."""
    if data.labels.several:
        metrics, classes = _rate_several(data, said, resamples)
    else:
        metrics, classes = _rate_one(data, said, resamples)
    return LabelEvaluation(
        label=data.labels.name,
        count=len(data.examples),
        groups=len(set(data.groups)),
        metrics=metrics,
        classes=classes,
        baselines=_rate_baselines(data),
    )


def list_cases(data: Loaded, said: Sequence[LabelPrediction], label: str = "") -> list[Case]:
    """Pair labels with predictions; for multi-label data, test only whether ``label`` applies."""
    cases = []
    for place, prediction in enumerate(said):
        gold, group, name = data.gold[place], data.groups[place], data.examples[place].id
        if label:
            yes = "yes" if label in gold else "no"
            held = "yes" if label in prediction.labels else "no"
            cases.append(Case(name, group, yes, held, prediction.chances[label]))
        else:
            cases.append(Case(name, group, gold[0], prediction.label, prediction.probability))
    return cases


LabelScores = tuple[tuple[Score, ...], tuple[Score, ...]]


def _rate_one(data: Loaded, said: Sequence[LabelPrediction], resamples: int) -> LabelScores:
    cases = list_cases(data, said)
    metrics = [
        _score(key, measure(cases, MetricSpec(key), resamples=resamples))
        for key in ("accuracy", "macro_f1", "calibration_error")
    ]
    known = Counter(gold[0] for gold in data.gold)
    classes = [
        _score("f1", measure(cases, MetricSpec("f1", name), resamples=resamples), name, known[name])
        for name in data.labels.classes
        if known[name]
    ]
    return tuple(metrics), tuple(classes)


def _rate_several(data: Loaded, said: Sequence[LabelPrediction], resamples: int) -> LabelScores:
    classes: list[Score] = []
    means: dict[str, list[float]] = {}
    for name in data.labels.classes:
        cases = list_cases(data, said, name)
        positives = sum(case.gold == "yes" for case in cases)
        for key in ("auroc", "f1", "macro_f1", "accuracy", "calibration_error"):
            shown = key in ("auroc", "f1")
            found = measure(cases, MetricSpec(key, "yes"), resamples=resamples if shown else 0)
            if found.value is not None:
                means.setdefault(key, []).append(found.value)
            if shown:
                classes.append(_score(key, found, name, positives))
    metrics = [
        Score(key, float(np.mean(values)), len(data.examples)) for key, values in means.items()
    ]
    return tuple(metrics), tuple(classes)


def _score(key: str, found: Measure, label: str = "", n: int | None = None) -> Score:
    by = "class" if label else ""
    return Score(
        key, found.value, found.cases if n is None else n, found.low, found.high, by, label
    )


def _rate_baselines(data: Loaded) -> dict[str, tuple[float, float]]:
    """Compute accuracy and macro-F1 of the majority class and of random labels."""
    size = len(data.gold)
    if data.labels.several:
        shares = [sum(name in gold for gold in data.gold) / size for name in data.labels.classes]
        never = [(1 - p, (1 - p) * 2 / (2 - p) / 2) for p in shares]
        return {
            "no label": (
                float(np.mean([a for a, _ in never])),
                float(np.mean([m for _, m in never])),
            )
        }
    known = Counter(gold[0] for gold in data.gold)
    top = max(known.values()) / size
    drawn = sum((count / size) ** 2 for count in known.values())
    return {
        "majority class": (top, 2 * top / (1 + top) / len(known)),
        "random by class frequency": (drawn, 1 / len(known)),
    }
