"""The model card that training writes: data, licence, selection, metrics and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import fmean
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
from memantics.moderation.identity import IdentityErrors, tabulate_identity
from memantics.moderation.labels import LabelEvaluation
from memantics.moderation.operating_points import (
    TargetErrors,
    ThresholdMetrics,
    tabulate_targets,
    tabulate_thresholds,
)

LIMITS = (
    "It reads texts and captions, not images: it misses harm that is only in the image.",
    "It reproduces the judgements of its annotators, including their biases.",
    "It was trained on data of one time and place: new words and obfuscations reduce its accuracy.",
    "Its file contains n-grams of its training texts: share it only if you may share those texts.",
    "It is a filter for human reviewers: do not act on its verdicts without review.",
)
SAMPLE_LIMIT = (
    "Trained on the sample data of a few dozen memes, for demonstration only: do not use its"
    " verdicts for moderation."
)
SAMPLE_NOTE = (
    "scored by a detector trained on the sample data (a few dozen memes), for demonstration only;"
    " train your own with 'memantics detector train'"
)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The contents of a model card: data, selection, metrics and limits of a detector.

    ``repeats`` has the held-out macro-F1 for each seed of the inner folds.
    """

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
    identity: tuple[IdentityErrors, ...] = ()
    repeats: tuple[float, ...] = ()

    def dump(self) -> dict[str, object]:
        """Return the card as JSON values."""
        return asdict(self)


def make_card(
    detector: FastDetector,
    loaded: Loaded,
    evaluation: DetectorEvaluation | LabelEvaluation,
    note: str,
    repeats: Sequence[float] = (),
) -> ModelCard:
    """Make the model card of a newly trained detector."""
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
            f"ridge {detector.ridge} of {list(settings.ridges)}{_explain_choice(repeats)};"
            f" {chosen}: all on predictions for"
            f" {'groups' if classifier else 'examples'} held out in {settings.inner_folds}"
            f" {settings.inner} folds of the training data; no test data were used"
        ),
        metrics=metrics,
        metrics_note=note,
        limits=(SAMPLE_LIMIT, *LIMITS) if loaded.sample else LIMITS,
        notes=loaded.notes,
        labels=loaded.counts if classifier else {},
        targets=evaluation.targets if isinstance(evaluation, DetectorEvaluation) else (),
        thresholds=evaluation.thresholds if isinstance(evaluation, DetectorEvaluation) else (),
        threshold=detector.decision.threshold,
        repeats=tuple(repeats),
    )


def _explain_choice(repeats: Sequence[float]) -> str:
    if len(repeats) < 2:
        return ""
    return (
        f" (the strongest within one standard error of the best, over {len(repeats)} seeds of the"
        " folds)"
    )


def format_card(card: ModelCard) -> str:
    """Format the card as Markdown."""
    filters = {
        "clean": clean_markdown,
        "note": escape_markdown,
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
        repeats=_describe_repeats(card.repeats),
        labels=_count_labels(card),
        thresholds=tabulate_thresholds(card.thresholds, card.threshold),
        targets=tabulate_targets(card.targets),
        identity=tabulate_identity(card.identity),
    )


def _describe_repeats(repeats: Sequence[float]) -> str:
    """Describe how much the held-out macro-F1 depends on the seed of the folds."""
    if len(repeats) < 2:
        return ""
    mean, worst, best = (100 * pick(repeats) for pick in (fmean, min, max))
    return (
        f"Held-out macro-F1 over {len(repeats)} seeds of the folds: mean {mean:.1f}, worst"
        f" {worst:.1f}, best {best:.1f}. The file does not depend on the order of the rows."
    )


def _clean_cell(text: str) -> str:
    return clean_markdown(text) if text[-1:] != "*" else f"{clean_markdown(text[:-1])}\\*"


_CARDS = TypeAdapter(ModelCard)


def read_stored(stored: Mapping[str, object], name: str) -> ModelCard:
    """Read the model card among the metadata stored in a detector file."""
    known = {field.name for field in fields(ModelCard)}
    try:
        return _CARDS.validate_python({key: value for key, value in stored.items() if key in known})
    except ValidationError as error:
        problem = f"{name} has no valid model card ({first_fault(error)})"
        raise InputError(
            problem, hint="give a file that 'memantics detector train' wrote"
        ) from error


def _count_labels(card: ModelCard) -> str:
    if card.harmful is not None:
        return f", {card.harmful:,} of them harmful"
    counts = (f"{clean_markdown(name)} {count:,}" for name, count in card.labels.items())
    return f" ({', '.join(counts)})"


def write_card(card: ModelCard, model: Path, picture: str = "") -> tuple[Path, Path]:
    """Write the card beside a model, as Markdown and as JSON; return both paths.

    ``picture`` is an SVG of precision and recall by threshold, shown in the Markdown file.
    """
    pages = place_card(model)
    text = format_card(card)
    if picture:
        place = pages[0].with_suffix(".svg")
        replace_file(place, picture.encode(), "chart of the model card")
        shown = f"![Precision and recall along thresholds]({quote(place.name)})"
        text = text.replace("## Thresholds\n", f"## Thresholds\n\n{shown}\n", 1)
    for page, body in zip(pages, (text, dump_json(card.dump())), strict=True):
        write_text(page, body, "model card")
    return pages


def place_card(model: Path) -> tuple[Path, Path]:
    """Return the paths of a model's cards: Markdown and JSON."""
    # Only .zip is removed: the cards of model.v1 and model.v2 need different names.
    stem = model.name.removesuffix(".zip")
    return model.with_name(f"{stem}.card.md"), model.with_name(f"{stem}.card.json")


def escape_markdown(text: str) -> str:
    r"""Put a text in one line, with escapes where Markdown would read syntax.

    >>> print(escape_markdown("id = post_id"), escape_markdown("a*b"))
    id = post\_id a\*b
    """
    return re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", " ".join(text.split()))


def clean_markdown(text: str) -> str:
    r"""Put a text in one line and remove Markdown syntax.

    >>> clean_markdown("a|b\n# c")
    'a b   c'
    """
    return "".join(" " if c in "|`<>[]*_#\n\r" else c for c in text)
