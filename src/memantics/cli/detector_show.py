"""What ``memantics detector`` prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.text import Text

from memantics.cli.terminal import console, plain, table
from memantics.core.records import Score
from memantics.detector.comparison import Comparison
from memantics.detector.evaluation import Evaluation
from memantics.detector.examples import Example, Loaded
from memantics.detector.explanation import Explanation
from memantics.detector.fast import Prediction
from memantics.detector.robustness import Robustness
from memantics.detector.screening import SAMPLE_NOTE

SEEN = "this detector was trained on these files; only memes it has not seen tell how good it is"
SAMPLE = SAMPLE_NOTE
_SHOWN = 40
_WIDTH = 34


def show_loaded(loaded: Loaded) -> None:
    """How many memes there are, and which were left out."""
    out = console()
    harmful = sum(e.label == 1 for e in loaded.examples)
    out.print(plain(f"{loaded.name}: {len(loaded.examples):,} memes, {harmful:,} harmful"))
    for note in loaded.notes:
        out.print(plain(f"note: {note}", "dim"))
    show_skips(loaded)


def show_skips(loaded: Loaded) -> None:
    """Which rows were left out, and why."""
    out = console()
    for skip in loaded.skips[:5]:
        out.print(plain(f"left out: {skip.file}: row {skip.row}: {skip.reason}", "yellow"))
    if len(loaded.skips) > 5:
        out.print(plain(f"left out: {len(loaded.skips):,} in all", "yellow"))


def show_fold(done: int, total: int) -> None:
    """Progress of a cross-validation, beside the output."""
    sys.stderr.write(f"fold {done} of {total}\n")


def show_evaluation(found: Evaluation, title: str) -> None:
    """Table 5's figures, parts, calibration and baselines."""
    made = table([("task", "left"), ("figure", "left"), ("value", "right"), ("95 %", "right")])
    made.title = plain(title, "bold")
    for task, scores in (("harmful", found.harmful), ("types", found.types)):
        for score in scores:
            made.add_row(task, score.key.replace("_", "-"), _share(score.value), _span(score))
    for score in found.recalls:
        made.add_row(f"by {score.by}", f"recall/{score.label}", _share(score.value), _span(score))
    for name, (first, second) in found.baselines.items():
        beside = "" if second is None else f", types {_share(second)}"
        made.add_row("baseline", f"macro-f1 {name}", _share(first), beside.lstrip(", "))
    out = console()
    out.print(made)
    out.print(
        plain(
            f"{found.count:,} memes; chances are off by {100 * found.calibration_error:.1f} points"
            " on average"
        )
    )


def show_robustness(found: Robustness) -> None:
    """Recall under disguise, and near-duplicates."""
    out = console()
    if found.evasions:
        made = table(
            [("disguise", "left"), ("recall", "right"), ("95 %", "right"), ("text alone", "right")],
            "Harmful memes found when their text is disguised",
        )
        for own in found.evasions:
            span = f"{_share(own.low)}–{_share(own.high)}"
            made.add_row(own.attack, _share(own.recall), span, _share(own.alone))
        out.print(made)
        out.print(plain(f"{found.evasions[0].count} harmful memes"))
    if found.leakage is not None:
        leak = found.leakage
        out.print(
            plain(
                f"{leak.duplicates:,} of {leak.count:,} memes have a near-duplicate in"
                f" {leak.where}; macro-F1 {_share(leak.everything)} with them,"
                f" {_share(leak.clean)} without"
            )
        )
    for note in found.notes:
        out.print(plain(f"note: {note}", "dim"))


def show_predictions(examples: Sequence[Example], said: Sequence[Prediction]) -> None:
    """The first predictions as a table."""
    made = table([("id", "left"), ("verdict", "left"), ("harm", "right"), ("text", "left")])
    for example, own in list(zip(examples, said, strict=True))[:_SHOWN]:
        kind = f", {own.type}" if own.label and own.type not in (None, "none") else ""
        text = " ".join(example.text.split())
        shown = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
        made.add_row(plain(example.id), f"{own.name}{kind}", f"{own.probability:.2f}", plain(shown))
    out = console()
    out.print(made)
    if len(said) > _SHOWN:
        out.print(plain(f"{len(said):,} in all; --json or --out gives every one"))


def show_comparison(found: Comparison, first: str, second: str) -> None:
    """Both figures, the difference and the counts behind it."""
    made = table([("", "left"), ("macro-F1", "right"), ("only it is right", "right")])
    made.add_row(plain(first), _share(found.first), f"{found.only_first:,}")
    made.add_row(plain(second), _share(found.second), f"{found.only_second:,}")
    out = console()
    out.print(made)
    span = (
        f" (95 %: {100 * found.low:+.1f} to {100 * found.high:+.1f})"
        if (found.low is not None and found.high is not None)
        else ""
    )
    out.print(
        plain(f"difference {100 * found.difference:+.1f} points{span}, {found.count:,} memes")
    )
    out.print(plain(f"McNemar's exact test: p = {found.p:.3g}"))


def show_explanation(found: Explanation) -> None:
    """The verdict, the texts with what speaks for harm marked, and the strongest pieces."""
    out = console()
    said = found.prediction
    head = Text(f"{said.name}, chance of harm {said.probability:.2f}", "bold")
    if said.label and said.type not in (None, "none"):
        head.append(f", {said.type}")
    out.print(head)
    out.print(
        plain(
            f"score {found.score:+.2f} = {found.base:+.2f} for any meme"
            f" {found.score - found.base:+.2f} for this one; harmful from {found.needed:+.2f}"
        )
    )
    for share in found.fields:
        line = Text(f"{share.field.replace('_', ' ')} {share.total:+.2f}  ", "dim")
        top = max(map(abs, share.characters), default=0.0) or 1.0
        for letter, value in zip(plain(share.text).plain, share.characters, strict=False):
            line.append(letter, _colour(value / top))
        out.print(line)
    made = table([("piece", "left"), ("of", "left"), ("as", "left"), ("moves", "right")])
    for part in found.strongest(12):
        moved = f"{part.contribution:+.3f}"
        made.add_row(plain(part.text), part.field.replace("_", " "), part.kind, moved)
    out.print(made)
    out.print(plain("+ speaks for harm, - against; all pieces add up to the score", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _span(score: Score) -> str:
    return "–" if score.low is None else f"{_share(score.low)}–{_share(score.high)}"
