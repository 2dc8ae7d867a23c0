"""Retrain a detector on old labels and new annotations, and compare it with the old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from memantics.core.errors import InputError, MemanticsError
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.text import cut_off
from memantics.moderation import labels as decisions
from memantics.moderation.columns import ExampleColumns
from memantics.moderation.data import RELEASE, SAMPLE, LabelVersionFlag, load_examples
from memantics.moderation.detect import Detector
from memantics.moderation.evaluation import DetectorEvaluation
from memantics.moderation.examples import Example, Loaded, need_labels
from memantics.moderation.fast import Prediction, Trained
from memantics.moderation.identity import explain_more_false_positives
from memantics.moderation.judges import FastJudge
from memantics.moderation.obfuscation import Augmented
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.replacement import (
    LEVEL,
    ReplacementComparison,
    ShuffleTest,
    compare_detectors,
    match_threshold,
    measure_gain,
    tabulate,
)
from memantics.moderation.rules import choose_point, count_scores
from memantics.moderation.training import COUNTERFACTUAL, describe_trained, fit_augmented

_SHOWN = 5
_AND = ", and "  # joins the names of training data
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Retrained(Result):
    """Comparison of the old and the new detector on held-out and on reviewed memes.

    ``refused`` is the reason why the new detector was not written; empty if it was written.
    ``shuffled`` tests the gain on reviewed memes against shuffled labels. ``warnings`` are changes
    for the worse that do not stop the replacement.
    """

    file: str
    refused: str
    learnt_from: int
    reviewed: int
    undecided: int
    changed: int
    held_out: ReplacementComparison
    on_reviewed: ReplacementComparison
    shuffled: ShuffleTest
    better: tuple[str, ...]
    worse: tuple[str, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def table(self) -> Table:
        """Show AUROC, precision and recall of both detectors on both sets of memes."""
        return tabulate((("held out", self.held_out), ("reviewed", self.on_reviewed)))


def retrain(
    model: Annotated[Path, Argument("Detector file to retrain.", metavar="OLD")],
    *,
    annotations: Annotated[
        Sequence[Path],
        Flag("Annotation file, as 'annotate export' writes it; repeatable."),
    ],
    data: Annotated[
        str | None,
        Flag(
            "Training data of the old detector, as in train. Default: found by name and checksum"
            " beside the detector or in the current folder."
        ),
    ] = None,
    split: Annotated[str, Flag("Split of a release: train, test or all.")] = "train",
    labels: LabelVersionFlag = "v1",
    columns: ExampleColumns | None = None,
    out: Annotated[Path | None, Flag("File to write. Default: replace the old detector.")] = None,
    counterfactual: Annotated[
        bool,
        Flag(
            "Add copies of harmless texts that name a group, with the names of other groups."
            " Default: as the old detector was trained."
        ),
    ] = False,
    force: Annotated[
        bool, Flag("Write the new detector even if it does not pass the test.")
    ] = False,
    watch: Callable[[str], None] = lambda _: None,
) -> Retrained:
    """Train a new detector on old labels and new annotations, and replace the old one.

    Both are compared on a fixed held-out part and on the reviewed memes, at one operating point.
    The old file is kept if the new detector is significantly worse, or if its gain is within that
    of shuffled labels, unless ``force`` is set.

    Args:
        model: Detector file to retrain; neural networks are not supported.
        annotations: Annotation files, as ``annotate export`` writes them.
        data: Training data of the old detector. Default: found by name and checksum.
        split: Split of a release: train, test or all.
        labels: Version of the ToxiCN MM labels.
        columns: Columns of a table. Default: those of the table that it was trained on.
        out: File to write. Default: replace the old detector.
        counterfactual: Add copies of harmless texts that name a group, with the names of other
            groups. Default: as the old detector was trained.
        force: Write the new detector even if it is worse.
        watch: Called with each progress message.

    Raises:
        InputError: If the training data are not found, or no annotation has a text.
    """
    old = _open_old(model)
    known = _load_known(old, data, split, labels, columns)
    decided = _read_annotations(annotations)
    kept, changed = decisions.put_together(known.examples, decided)
    watch(f"{len(kept):,} memes of {known.name}, {len(decided.examples):,} annotated memes")
    was = bool(old.card.get(COUNTERFACTUAL))
    found = _compare(old, kept, decided, (was, was or counterfactual), watch)
    refused = explain_refusal(found.held_out, found.reviewed, found.gain, force=force)
    name = f"{known.name}{_AND}{len(decided.examples):,} reviewed memes"
    loaded = replace(known, name=name, examples=(*kept, *decided.examples))
    target, notes = out or model, (*_describe_decided(decided), *_describe_gain(found.gain))
    if not refused:
        notes += found.notes
        loaded = replace(loaded, notes=(*loaded.notes, *found.notes))
        notes += _save(old, loaded, found, target)
    better, worse = _list_changes(decided.examples, found)
    counts = len(loaded.examples), len(decided.examples), decided.undecided, changed
    return Retrained(
        str(target),
        refused,
        *counts,
        found.held_out,
        found.reviewed,
        found.gain,
        better,
        worse,
        notes,
        _warn_identity(old, found.trained),
    )


def _open_old(model: Path) -> Detector:
    old = Detector.load(model)
    if not isinstance(old.machine, FastJudge):
        raise InputError(
            f"{model} is a neural network, which cannot be retrained",
            hint="train a new one with 'detector train-neural --data'",
        )
    return old


def _load_known(
    old: Detector,
    data: str | None,
    split: str,
    labels: LabelVersionFlag,
    columns: ExampleColumns | None,
) -> Loaded:
    """Load the labelled training data of the old detector; find them if they are not given."""
    known = (
        load_examples(data, split, labels, columns=old.read_columns(columns))
        if data
        else find_training(old, split, labels)
    )
    need_labels(known.examples, known.name)
    return known


class _Compared(NamedTuple):
    """The new detector, predictions of both for the annotated memes, and their comparisons."""

    trained: Trained
    was: Sequence[Prediction]
    told: Sequence[Prediction]
    held_out: ReplacementComparison
    reviewed: ReplacementComparison
    gain: ShuffleTest
    notes: tuple[str, ...]


def _compare(
    old: Detector,
    kept: Sequence[Example],
    decided: decisions.Decided,
    counterfactual: tuple[bool, bool],
    watch: Callable[[str], None],
) -> _Compared:
    """Train the new detector, and compare it with the old one.

    ``counterfactual`` tells whether the old and the new detector use counterfactual copies.
    """
    assert isinstance(old.machine, FastJudge)
    on_held = _compare_held(old, kept, decided, counterfactual, watch)
    watch("training the new detector")
    trained, notes = _train(old.machine, kept, decided, counterfactual[1])
    told = trained.held_out[len(kept) : len(kept) + len(decided.examples)]
    was = old.machine.predict(decisions.hide_labels(decided.examples))
    on_reviewed = _compare_reviewed(old, trained, kept, decided, was, told)
    watch(f"testing the gain against shuffled labels of {len(decided.examples):,} memes")
    before = [one.probability for one in was]
    ridge = trained.detector.ridge
    gain = measure_gain(old.machine, kept, decided.examples, decided.weights, before, ridge)
    return _Compared(trained, was, told, on_held, on_reviewed, gain, notes)


def _read_annotations(files: Sequence[Path]) -> decisions.Decided:
    decided = decisions.read_decisions(files)
    if not decided.examples:
        alone = f"; {decided.textless:,} annotations are on images without text"
        raise InputError(
            f"the annotations decide on no text{alone if decided.textless else ''}",
            hint="collect more annotations or resolve ties; add images with 'match-list add'",
        )
    return decided


def _compare_held(
    old: Detector,
    kept: Sequence[Example],
    decided: decisions.Decided,
    counterfactual: tuple[bool, bool],
    watch: Callable[[str], None],
) -> ReplacementComparison:
    """Compare trainings without and with the annotations on memes that neither has seen."""
    assert isinstance(old.machine, FastJudge)
    held = [example for example in kept if decisions.is_held_out(example)]
    rest = [example for example in kept if not decisions.is_held_out(example)]
    watch(f"comparing on {len(held):,} held-out memes")
    first_of, second_of = counterfactual
    before, _ = _train(old.machine, rest, None, first_of)
    after, _ = _train(old.machine, rest, decided, second_of)
    pair = before, after
    judges = [replace(old.machine, detector=each.detector) for each in pair]
    hidden = decisions.hide_labels(held)
    said = [[one.probability for one in judge.predict(hidden)] for judge in judges]
    chosen = [_apply_rule(each, rest, old.point, old.threshold) for each in pair]
    first = chosen[0] or (pair[0].detector.decision.threshold or 0.5)
    second = chosen[1] if chosen[0] and chosen[1] else match_threshold(said[0], first, said[1])
    return compare_detectors(held, said[0], said[1], (first, second))


def _compare_reviewed(
    old: Detector,
    trained: Trained,
    kept: Sequence[Example],
    decided: decisions.Decided,
    was: Sequence[Prediction],
    told: Sequence[Prediction],
) -> ReplacementComparison:
    """Compare on the annotated memes; those of the new detector are held-out predictions."""
    first = old.point.threshold
    chosen = _apply_rule(trained, kept, old.point, old.threshold)
    before, after = [one.probability for one in was], [one.probability for one in told]
    second = chosen if chosen else match_threshold(before, first, after)
    return compare_detectors(decided.examples, before, after, (first, second))


def _apply_rule(
    trained: Trained, known: Sequence[Example], point: OperatingPoint, threshold: float
) -> float | None:
    """Apply the stored rule to held-out predictions; None without a rule that can be applied."""
    if not point.rule:
        return None
    said = trained.held_out[: len(known)]
    pairs = [(one.probability, e.label == 1) for one, e in zip(said, known, strict=True)]
    try:
        return choose_point(count_scores(pairs), point.rule, point.volume, threshold).threshold
    except InputError:
        return None


def explain_refusal(
    held: ReplacementComparison,
    reviewed: ReplacementComparison,
    gain: ShuffleTest,
    *,
    force: bool = False,
) -> str:
    """Explain why the old detector is kept; empty if the new one may replace it.

    It is kept if the AUROC of the new one is significantly lower, or if its gain on the reviewed
    memes is within what shuffled labels give.
    """
    if force:
        return ""
    for name, found in (("held-out", held), ("reviewed", reviewed)):
        if found.high is not None and found.high < 0:
            return f"the new detector is significantly worse on the {name} memes"
    if gain.gain is not None and gain.gain <= 0:
        return "the new detector ranks the reviewed memes no better than the old one"
    if gain.p is not None and gain.p > LEVEL:
        return (
            f"the gain on {reviewed.memes:,} reviewed memes is within that of shuffled labels"
            f" (p = {gain.p:.2f}), so it may be chance; annotate more memes"
        )
    if gain.p is None and (held.difference or 0.0) <= 0:
        return "all annotations have one label, and the AUROC on held-out memes is not higher"
    return ""


def _describe_gain(gain: ShuffleTest) -> tuple[str, ...]:
    if gain.p is None or gain.gain is None or gain.highest is None:
        return ("the gain was not tested against shuffled labels: all annotations have one label",)
    null = f"highest of {gain.shuffles} shuffles of their labels {100 * gain.highest:+.1f}"
    real = f"gain in AUROC on reviewed memes {100 * gain.gain:+.1f}"
    return (f"shuffle test, trained without augmentation: {real}; {null} (p = {gain.p:.2f})",)


def _warn_identity(old: Detector, trained: Trained) -> tuple[str, ...]:
    """Warn if the new detector flags more harmless sentences about groups than the old one."""

    def score(judge: FastJudge, texts: Sequence[str]) -> list[float]:
        examples = [Example(str(n), text) for n, text in enumerate(texts)]
        return [one.probability for one in judge.predict(examples)]

    assert isinstance(old.machine, FastJudge)
    made = replace(old.machine, detector=trained.detector)
    points = (
        OperatingPoint(old.threshold),
        OperatingPoint(trained.detector.decision.threshold or 0.5),
    )
    more = explain_more_false_positives(
        partial(score, old.machine), partial(score, made), points, old.languages
    )
    return (more,) if more else ()


def find_training(old: Detector, split: str, labels: LabelVersionFlag) -> Loaded:
    """Find the training data of a detector by name and checksum."""
    name = str(old.card.get("data", "")).partition(_AND)[0]
    places = [folder / name for folder in ((old.path or Path()).parent, Path()) if name]
    named = [source] if (source := str(old.card.get("source", ""))) else []
    for place in (*(str(path) for path in places if path.exists()), *named, RELEASE, SAMPLE):
        try:
            found = load_examples(place, split, labels, columns=old.read_columns())
        except MemanticsError:
            continue
        if old.has_seen(found):
            return found
    raise InputError(
        f"the training data of {old.name} ({name or 'unknown'}) were not found",
        hint="give them with --data",
    )


def _train(
    judge: FastJudge,
    known: Sequence[Example],
    decided: decisions.Decided | None,
    counterfactual: bool,
) -> tuple[Trained, tuple[str, ...]]:
    more, weights = (decided.examples, decided.weights) if decided else ((), ())
    examples = judge.look((*known, *more))
    heavy = (*([1.0] * len(known)), *weights)
    plain = Augmented(tuple(examples), tuple(range(len(examples))))
    settings = judge.detector.settings
    return fit_augmented(plain, settings, judge.embedder, counterfactual, heavy)


def _describe_decided(decided: decisions.Decided) -> tuple[str, ...]:
    left = f"; {decided.undecided:,} are undecided" if decided.undecided else ""
    labelled = f"{len(decided.examples):,} memes labelled by {decided.people:,} annotators{left}"
    notes: tuple[str, ...] = (labelled,)
    if decided.ambiguous:
        same = f"{decided.ambiguous:,} annotated memes share a caption and have different labels"
        notes += (f"{same}: a detector that reads only texts cannot tell them apart",)
    if not decided.textless:
        return notes
    alone = f"{decided.textless:,} annotations of images without text were skipped"
    return (*notes, f"{alone}: this detector scores texts; use 'match-list add' for images")


def _save(old: Detector, loaded: Loaded, compared: _Compared, target: Path) -> tuple[str, ...]:
    """Write the new detector with its card; the stored operating-point rule is applied again."""
    assert isinstance(old.machine, FastJudge)
    trained = compared.trained
    found, card, facts = describe_trained(loaded, trained, old.machine.embedder)
    assert isinstance(found, DetectorEvaluation)
    facts |= {COUNTERFACTUAL: True} if compared.notes else {}
    made = Detector(replace(old.machine, detector=trained.detector, card=facts), target.name)
    made.record_training(loaded, found, card)
    notes: list[str] = []
    point = old.stored_point
    if point is not None and point.rule:
        try:
            chosen = made.find_point(point.rule, point.volume)
            chosen = replace(
                chosen,
                review_range=chosen.review_range or point.review_range,
                homophones=point.homophones,
            )
        except InputError as error:
            chosen = point
            notes.append(f"{point.rule} cannot be applied to the new detector: {error}")
            notes.append("threshold and review range are those of the old detector")
        facts |= {"point": asdict(chosen), "point_date": date.today().isoformat()}
        notes += made.describe_point(chosen)
    elif point is not None:
        facts |= {"point": asdict(point), "point_date": date.today().isoformat()}
        notes.append("threshold and review range are those of the old detector")
        notes += made.describe_point(point)
    made.save(target)
    return tuple(notes)


def _list_changes(
    examples: Sequence[Example], found: _Compared
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List reviewed memes that only the new detector, and only the old one, labels correctly."""
    better: list[str] = []
    worse: list[str] = []
    old, new = (OperatingPoint(value) for value in found.reviewed.thresholds)
    for example, before, after in zip(examples, found.was, found.told, strict=True):
        short = cut_off(example.text, _WIDTH)
        line = f"{('harmless', 'harmful')[example.label or 0]}: {short}"
        right = [
            point.is_harmful(one.probability) == bool(example.label)
            for point, one in ((old, before), (new, after))
        ]
        if right[0] != right[1]:
            (better if right[1] else worse).append(line)
    return tuple(better[:_SHOWN]), tuple(worse[:_SHOWN])
