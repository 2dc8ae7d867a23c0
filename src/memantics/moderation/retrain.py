"""Retrain a detector on old labels and new annotations, and compare it with the old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated

from memantics.core.errors import InputError, MemanticsError
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.text import cut_off
from memantics.moderation import labels as decisions
from memantics.moderation.data import RELEASE, SAMPLE, LabelVersionFlag, load_examples
from memantics.moderation.detect import Detector
from memantics.moderation.evaluation import DetectorComparison, DetectorEvaluation, compare
from memantics.moderation.examples import Example, Loaded, need_labels
from memantics.moderation.fast import Prediction, Trained, fit
from memantics.moderation.judges import FastJudge
from memantics.moderation.training import describe_trained

_SHOWN = 5
_AND = ", and "  # joins the names of training data
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Retrained(Result):
    """Comparison of the old and the new detector on held-out and on reviewed memes.

    ``refused`` is the reason why the new detector was not written; empty if it was written.
    """

    file: str
    refused: str
    learnt_from: int
    reviewed: int
    undecided: int
    changed: int
    held_out: DetectorComparison
    on_reviewed: DetectorComparison
    better: tuple[str, ...]
    worse: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Show macro-F1 of both detectors on both sets, with the difference."""
        rows = []
        for name, found in (("held out", self.held_out), ("reviewed", self.on_reviewed)):
            span = "–"
            if found.low is not None and found.high is not None:
                span = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
            moved = f"{100 * found.difference:+.1f}"
            values = (f"{100 * found.first:.1f}", f"{100 * found.second:.1f}", moved, span)
            only = (f"{found.only_first:,}", f"{found.only_second:,}")
            rows.append((name, f"{found.count:,}", *values, *only))
        columns = (
            "memes", ">count", ">old macro-F1", ">new macro-F1", ">difference", ">95 % CI",
            ">only old correct", ">only new correct",
        )  # fmt: skip
        return Table(columns, tuple(rows), "Old and new detector, paired by meme")


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
    out: Annotated[Path | None, Flag("File to write. Default: replace the old detector.")] = None,
    force: Annotated[
        bool, Flag("Write the new detector even if it is significantly worse.")
    ] = False,
    watch: Callable[[str], None] = lambda _: None,
) -> Retrained:
    """Train a new detector on old labels and new annotations, and replace the old one.

    Both are compared on a fixed held-out part and on the reviewed memes. The old file is kept if
    the new detector is significantly worse, unless ``force`` is set.

    Args:
        model: Detector file to retrain; neural networks are not supported.
        annotations: Annotation files, as ``annotate export`` writes them.
        data: Training data of the old detector. Default: found by name and checksum.
        split: Split of a release: train, test or all.
        labels: Version of the ToxiCN MM labels.
        out: File to write. Default: replace the old detector.
        force: Write the new detector even if it is worse.
        watch: Called with each progress message.

    Raises:
        InputError: If the training data are not found, or no annotation has a text.
    """
    old = Detector.load(model)
    if not isinstance(old.machine, FastJudge):
        raise InputError(
            f"{model} is a neural network, which cannot be retrained",
            hint="train a new one with 'detector train-neural --data'",
        )
    known = load_examples(data, split, labels) if data else find_training(old, split, labels)
    need_labels(known.examples, known.name)
    decided = decisions.read_decisions(annotations)
    if not decided.examples:
        alone = f"; {decided.textless:,} annotations are on images without text"
        raise InputError(
            f"the annotations decide on no text{alone if decided.textless else ''}",
            hint="collect more annotations or resolve ties; add images with 'match-list add'",
        )
    kept, changed = decisions.put_together(known.examples, decided)
    watch(f"{len(kept):,} memes of {known.name}, {len(decided.examples):,} annotated memes")
    held = [example for example in kept if decisions.is_held_out(example)]
    rest = [example for example in kept if not decisions.is_held_out(example)]
    watch(f"comparing on {len(held):,} held-out memes")
    before, after = _train(old.machine, rest, None), _train(old.machine, rest, decided)
    on_held = compare(held, *(_ask(old.machine, each, held) for each in (before, after)))
    watch("training the new detector")
    trained = _train(old.machine, kept, decided)
    told = trained.held_out[len(kept) : len(kept) + len(decided.examples)]
    was = old.say(decisions.hide_labels(decided.examples))
    on_reviewed = compare(decided.examples, was, told)
    refused = explain_refusal(on_held, on_reviewed, force=force)
    name = f"{known.name}{_AND}{len(decided.examples):,} reviewed memes"
    loaded = replace(known, name=name, examples=(*kept, *decided.examples))
    target, notes = out or model, _describe_decided(decided)
    if not refused:
        notes += _save(old, loaded, trained, target)
    better, worse = _list_changes(decided.examples, was, told)
    counts = len(loaded.examples), len(decided.examples), decided.undecided, changed
    return Retrained(str(target), refused, *counts, on_held, on_reviewed, better, worse, notes)


def explain_refusal(
    held: DetectorComparison, reviewed: DetectorComparison, *, force: bool = False
) -> str:
    """Explain why the old detector is kept; empty if the new one may replace it.

    It is kept if the new one is significantly worse, or worse on held-out memes and not better on
    reviewed ones.
    """
    if force:
        return ""
    for name, found in (("held-out", held), ("reviewed", reviewed)):
        if found.high is not None and found.high < 0:
            return f"the new detector is significantly worse on the {name} memes"
    if held.difference < 0 and reviewed.difference <= 0:
        return "the new detector is worse on held-out memes and not better on reviewed memes"
    return ""


def find_training(old: Detector, split: str, labels: LabelVersionFlag) -> Loaded:
    """Find the training data of a detector by name and checksum."""
    name = str(old.card.get("data", "")).partition(_AND)[0]
    places = [folder / name for folder in ((old.path or Path()).parent, Path()) if name]
    for place in (*(str(path) for path in places if path.exists()), RELEASE, SAMPLE):
        try:
            found = load_examples(place, split, labels)
        except MemanticsError:
            continue
        if old.has_seen(found):
            return found
    raise InputError(
        f"the training data of {old.name} ({name or 'unknown'}) were not found",
        hint="give them with --data",
    )


def _train(
    judge: FastJudge, known: Sequence[Example], decided: decisions.Decided | None
) -> Trained:
    more, weights = (decided.examples, decided.weights) if decided else ((), ())
    examples = judge.look((*known, *more))
    heavy = (*([1.0] * len(known)), *weights)
    return fit(examples, judge.detector.settings, judge.embedder, weights=heavy)


def _ask(judge: FastJudge, trained: Trained, held: Sequence[Example]) -> list[Prediction]:
    return replace(judge, detector=trained.detector).predict(decisions.hide_labels(held))


def _describe_decided(decided: decisions.Decided) -> tuple[str, ...]:
    left = f"; {decided.undecided:,} are undecided" if decided.undecided else ""
    notes = (f"{len(decided.examples):,} memes labelled by {decided.people:,} annotators{left}",)
    if not decided.textless:
        return notes
    alone = f"{decided.textless:,} annotations of images without text were skipped"
    return (*notes, f"{alone}: this detector scores texts; use 'match-list add' for images")


def _save(old: Detector, loaded: Loaded, trained: Trained, target: Path) -> tuple[str, ...]:
    """Write the new detector with its card; the stored operating-point rule is applied again."""
    assert isinstance(old.machine, FastJudge)
    found, card, facts = describe_trained(loaded, trained)
    assert isinstance(found, DetectorEvaluation)
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
    examples: Sequence[Example], was: Sequence[Prediction], told: Sequence[Prediction]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List reviewed memes that only the new, and that only the old detector gets right."""
    better: list[str] = []
    worse: list[str] = []
    for example, before, after in zip(examples, was, told, strict=True):
        short = cut_off(example.text, _WIDTH)
        line = f"{('harmless', 'harmful')[example.label or 0]}: {short}"
        if (before.label == example.label) != (after.label == example.label):
            (better if after.label == example.label else worse).append(line)
    return tuple(better[:_SHOWN]), tuple(worse[:_SHOWN])
