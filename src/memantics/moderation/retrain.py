"""``detector retrain``: what people decided goes into a new detector, compared with the old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.training import describe_trained

_SHOWN = 5
_AND = ", and "  # between the names of what was learnt from
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Retrained(Result):
    """Old and new on memes that neither learnt from, and on those that people reviewed.

    ``refused`` says why the new one was not written; empty where it was.
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
        """Macro-F1 of both on both parts, with the difference."""
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
            "memes", ">count", ">old macro-F1", ">new", ">difference", ">95 %", ">only old right",
            ">only new right",
        )  # fmt: skip
        return Table(columns, tuple(rows), "Old and new, meme by meme")


def retrain(
    model: Annotated[Path, Argument("The detector file that judged them.", metavar="OLD")],
    *,
    annotations: Annotated[
        Sequence[Path],
        Flag("Annotations of people, such as 'annotate export' writes; may be repeated."),
    ],
    data: Annotated[
        str | None,
        Flag(
            "What the old detector learnt from, as in train. Default: found by its name and"
            " checksum beside the detector or here."
        ),
    ] = None,
    split: Annotated[str, Flag("Part of a release: train, test or all.")] = "train",
    labels: LabelVersionFlag = "v1",
    out: Annotated[Path | None, Flag("The file to write. Default: the old one's.")] = None,
    force: Annotated[bool, Flag("Write the new one even where the old one is better.")] = False,
    watch: Callable[[str], None] = lambda _: None,
) -> Retrained:
    """Learn from old labels and people's decisions, compare with the old detector, replace it."""
    old = Detector.load(model)
    if not isinstance(old.machine, FastJudge):
        raise InputError(f"{model} is a network", hint="train it again with --data")
    known = load_examples(data, split, labels) if data else find_training(old, split, labels)
    need_labels(known.examples, known.name)
    decided = decisions.read_decisions(annotations)
    if not decided.examples:
        alone = f"; {decided.textless:,} annotations are on pictures without a text"
        raise InputError(
            f"people decided on no text{alone if decided.textless else ''}",
            hint="ask more of them, or resolve ties; add images with 'match-list add'",
        )
    kept, changed = decisions.put_together(known.examples, decided)
    watch(f"{len(kept):,} memes of {known.name}, {len(decided.examples):,} that people decided")
    held = [example for example in kept if decisions.is_held_out(example)]
    rest = [example for example in kept if not decisions.is_held_out(example)]
    watch(f"compare on {len(held):,} memes that are held out")
    before, after = _train(old.machine, rest, None), _train(old.machine, rest, decided)
    on_held = compare(held, *(_ask(old.machine, each, held) for each in (before, after)))
    watch("train the new detector")
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
    """Why the old detector stays: the new one is worse beyond chance, or nowhere better."""
    if force:
        return ""
    for name, found in (("held-out", held), ("reviewed", reviewed)):
        if found.high is not None and found.high < 0:
            return f"the new one is worse on the {name} memes, beyond chance"
    if held.difference < 0 and reviewed.difference <= 0:
        return "the new one is worse on the held-out memes, and no better on the reviewed ones"
    return ""


def find_training(old: Detector, split: str, labels: LabelVersionFlag) -> Loaded:
    """The data a detector was trained on, known by their checksum."""
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
        f"what {old.name} learnt from ({name or 'not said'}) is not at hand", hint="add --data"
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
    left = f"; {decided.undecided:,} stay undecided" if decided.undecided else ""
    notes = (f"{len(decided.examples):,} memes decided by {decided.people:,} people{left}",)
    if not decided.textless:
        return notes
    alone = f"{decided.textless:,} annotations on pictures without a text were left out"
    return (*notes, f"{alone}: this detector learns from texts; use 'match-list add' for images")


def _save(old: Detector, loaded: Loaded, trained: Trained, target: Path) -> tuple[str, ...]:
    """Write the new detector with its card; a rule of the old one chooses its threshold anew."""
    assert isinstance(old.machine, FastJudge)
    found, card, facts = describe_trained(loaded, trained)
    assert isinstance(found, DetectorEvaluation)
    made = Detector(replace(old.machine, detector=trained.detector, card=facts), target.name)
    made.record_training(loaded, found, card)
    notes: list[str] = []
    point = old.stored_point
    if point is not None and point.rule:
        try:
            chosen = OperatingPoint(made.find_threshold(point.rule), point.review_range, point.rule)
            facts["point"] = asdict(chosen)
            notes += made.describe_point(chosen)
        except InputError as error:
            notes.append(f"its rule {point.rule} was dropped: {error}")
    elif point is not None:
        notes.append("the operating point of the old one was not taken over: set it again")
    made.save(target)
    return tuple(notes)


def _list_changes(
    examples: Sequence[Example], was: Sequence[Prediction], told: Sequence[Prediction]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reviewed memes that only the new one, and only the old one, judges as people do."""
    better: list[str] = []
    worse: list[str] = []
    for example, before, after in zip(examples, was, told, strict=True):
        short = cut_off(example.text, _WIDTH)
        line = f"{('harmless', 'harmful')[example.label or 0]}: {short}"
        if (before.label == example.label) != (after.label == example.label):
            (better if after.label == example.label else worse).append(line)
    return tuple(better[:_SHOWN]), tuple(worse[:_SHOWN])
