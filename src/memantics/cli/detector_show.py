"""What ``memantics detector`` prints."""

from __future__ import annotations

from rich.text import Text

from memantics.cli.terminal import console, plain, show_table
from memantics.detector.evaluation import Evaluation
from memantics.detector.examples import Loaded
from memantics.detector.explanation import Explanation
from memantics.detector.robustness import Robustness


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


def show_evaluation(found: Evaluation, title: str) -> None:
    """Table 5's figures, parts, calibration and baselines."""
    show_table(found.table(title))
    error = f"calibration error {100 * found.calibration_error:.1f} points"
    console().print(plain(f"{found.count:,} memes; {error}"))


def show_robustness(found: Robustness) -> None:
    """Recall under disguise, and near-duplicates."""
    if found.evasions:
        show_table(found.table())
    for line in found.lines:
        console().print(plain(line))
    for note in found.notes:
        console().print(plain(f"note: {note}", "dim"))


def show_explanation(found: Explanation) -> None:
    """The verdict, the texts with what speaks for harm marked, and the strongest pieces."""
    out = console()
    verdict, score = found.lines
    out.print(Text(verdict, "bold"))
    out.print(plain(score))
    for share in found.fields:
        line = Text(f"{share.field.replace('_', ' ')} {share.total:+.2f}  ", "dim")
        top = max(map(abs, share.characters), default=0.0) or 1.0
        for letter, value in zip(plain(share.text).plain, share.characters, strict=False):
            line.append(letter, _colour(value / top))
        out.print(line)
    show_table(found.table())
    out.print(plain("+ speaks for harm, - against; all pieces add up to the score", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"
