"""The model card that is written at each training: data, licence, selection, figures, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from memantics import __version__
from memantics.core.data import dump_json
from memantics.core.errors import InputError, first_fault
from memantics.core.files import replace_file, write_text
from memantics.core.prompt import fill_template
from memantics.core.records import Score
from memantics.moderation.evaluation import DetectorEvaluation, name_metric
from memantics.moderation.examples import Loaded
from memantics.moderation.fast import FastDetector
from memantics.moderation.labels import LabelEvaluation
from memantics.moderation.operating_points import (
    TargetErrors,
    ThresholdMetrics,
    tabulate_targets,
    tabulate_thresholds,
)

LIMITS = (
    "It reads texts and captions, not images; what only an image says stays unseen.",
    "It repeats the judgement of those who labelled its data, with their blind spots.",
    "It was fitted to one time and place; words change, and so do obfuscations.",
    "Its file holds the pieces of its training texts: share it only where you may share these.",
    "It is a filter for people who decide, not a judge: look at what it finds.",
)
SAMPLE_LIMIT = (
    "Trained on the sample data of a few dozen memes: it shows how things work, and its"
    " verdicts mean nothing beyond that."
)
SAMPLE_NOTE = (
    "judged by a detector trained on the sample data's few dozen memes: an example of how it"
    " works, not a verdict to act on; train your own with 'memantics detector train'"
)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a reader should know before using a detector."""

    name: str
    data: str
    licence: str
    checksum: str
    examples: int
    harmful: int | None
    skipped: int
    settings: Mapping[str, object]
    selection: str
    metrics: Mapping[str, Sequence[Score]]
    metrics_note: str
    limits: tuple[str, ...]
    made_by: str = f"memantics {__version__}"
    notes: tuple[str, ...] = field(default=())
    labels: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[TargetErrors, ...] = ()
    thresholds: tuple[ThresholdMetrics, ...] = ()
    threshold: float | None = None

    def dump(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def make_card(
    detector: FastDetector,
    loaded: Loaded,
    evaluation: DetectorEvaluation | LabelEvaluation,
    note: str,
) -> ModelCard:
    """The card of a detector that was trained just now."""
    settings, classifier = detector.settings, bool(detector.labels.name)
    if isinstance(evaluation, DetectorEvaluation):
        metrics = {"harmful": evaluation.harmful, "types": evaluation.types}
    else:
        metrics = {"all": evaluation.metrics, "classes": evaluation.classes}
    chosen = "calibration and thresholds"
    if detector.decision.threshold is not None:
        chosen = f"threshold {detector.decision.threshold:.3f}, calibration and type biases"
    kind = f"classifier for {detector.labels.name}" if classifier else "fast detector"
    return ModelCard(
        name=f"{kind}, preset {settings.preset}",
        data=loaded.name,
        licence=loaded.licence,
        checksum=loaded.checksum,
        examples=len(loaded.examples),
        harmful=None if classifier else loaded.counts["harmful"],
        skipped=len(loaded.skips),
        settings=asdict(settings),
        selection=(
            f"ridge {detector.ridge} of {list(settings.ridges)},"
            f" {chosen}: all on predictions for"
            f" {'groups' if classifier else 'examples'} held out in {settings.inner_folds}"
            f" {settings.inner} folds of the training data; no test data was looked at"
        ),
        metrics=metrics,
        metrics_note=note,
        limits=(SAMPLE_LIMIT, *LIMITS) if loaded.sample else LIMITS,
        notes=loaded.notes,
        labels=loaded.counts if classifier else {},
        targets=evaluation.targets if isinstance(evaluation, DetectorEvaluation) else (),
        thresholds=evaluation.thresholds if isinstance(evaluation, DetectorEvaluation) else (),
        threshold=detector.decision.threshold,
    )


def format_card(card: ModelCard) -> str:
    """The card as Markdown."""
    filters = {
        "clean": clean_markdown,
        "count": "{:,}".format,
        "metric": name_metric,
        "share": lambda value: "–" if value is None else f"{100 * value:.1f}",
        "cell": _clean_cell,
    }
    return fill_template(
        __file__,
        "card.md",
        filters,
        card=card,
        labels=_count_labels(card),
        thresholds=tabulate_thresholds(card.thresholds, card.threshold),
        targets=tabulate_targets(card.targets),
    )


def _clean_cell(text: str) -> str:
    return clean_markdown(text) if text[-1:] != "*" else f"{clean_markdown(text[:-1])}\\*"


_CARDS = TypeAdapter(ModelCard)


def read_stored(stored: Mapping[str, object], name: str) -> ModelCard:
    """The card inside a model's file, among what else is stored there."""
    known = {field.name for field in fields(ModelCard)}
    try:
        return _CARDS.validate_python({key: value for key, value in stored.items() if key in known})
    except ValidationError as error:
        problem = f"{name} holds no model card ({first_fault(error)})"
        raise InputError(
            problem, hint="give a file that 'memantics detector train' wrote"
        ) from error


def _count_labels(card: ModelCard) -> str:
    if card.harmful is not None:
        return f", {card.harmful:,} of them harmful"
    counts = (f"{clean_markdown(name)} {count:,}" for name, count in card.labels.items())
    return f" ({', '.join(counts)})"


def write_card(card: ModelCard, model: Path, picture: str = "") -> tuple[Path, Path]:
    """Write the card beside a model, as Markdown and as JSON; return both places.

    ``picture`` is SVG of what thresholds do, which the Markdown shows.
    """
    pages = place_card(model)
    text = format_card(card)
    if picture:
        place = pages[0].with_suffix(".svg")
        replace_file(place, picture.encode(), "picture of the model card")
        shown = f"![Precision and recall along thresholds]({quote(place.name)})"
        text = text.replace("## Thresholds\n", f"## Thresholds\n\n{shown}\n", 1)
    for page, body in zip(pages, (text, dump_json(card.dump())), strict=True):
        write_text(page, body, "model card")
    return pages


def place_card(model: Path) -> tuple[Path, Path]:
    """Where the cards of a model lie."""
    # Only .zip goes: the cards of model.v1 and model.v2 must not take each other's place.
    stem = model.name.removesuffix(".zip")
    return model.with_name(f"{stem}.card.md"), model.with_name(f"{stem}.card.json")


def clean_markdown(text: str) -> str:
    r"""Text from outside, in one line and without the signs that Markdown reads.

    >>> clean_markdown("a|b\n# c")
    'a b   c'
    """
    return "".join(" " if c in "|`<>[]*_#\n\r" else c for c in text)
