"""The audit as one self-contained page, in the style of the report: no script, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup
from pydantic import JsonValue

from memantics import __version__
from memantics.core.card import Card
from memantics.core.data import dump_json
from memantics.core.finding import VERDICTS, Finding, FindingVerdict, Gap
from memantics.core.formatting import show_figure, show_span
from memantics.core.journal import write_text
from memantics.core.records import Score
from memantics.core.result import Result
from memantics.report.kit import Shown, fill_page
from memantics.report.plot import Mark, draw_axis, draw_curve, draw_strip, fit_scale
from memantics.report.runs import STARTER_NOTE
from memantics.run.facts import DataFacts

_LINES = 5
_LEAST_P = 0.001
_TONES: dict[FindingVerdict, int] = {"broken": 1, "worth knowing": 6, "sound": 2}
# The report's badges: right, wrong, invalid.
_BADGES: dict[FindingVerdict, str] = {"broken": "v1", "worth knowing": "v2", "sound": "v0"}


@dataclass(frozen=True, slots=True)
class Audit(Result):
    """What an audit found, broken things first; ``gaps`` are what could not be measured.

    ``failed`` counts calls that failed: the same audit asks them again. ``files`` are what was
    written beside it, by what they are.
    """

    card: Card
    data: DataFacts
    findings: Sequence[Finding]
    gaps: Sequence[Gap]
    models: tuple[str, ...]
    failed: int = 0
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[str, ...]:
        """What a reader should know before trusting a score, in five lines at most."""
        return tuple(map(_say_first, [f for f in self.findings if f.verdict != "sound"][:_LINES]))

    @property
    def counts(self) -> dict[FindingVerdict, int]:
        """How many findings have each verdict."""
        return {text: sum(f.verdict == text for f in self.findings) for text in VERDICTS}

    def save(self, out: str | Path) -> Path:
        """Write one self-contained page; returns the file."""
        return write_text(out, render_page(self), "audit")

    def to_dict(self) -> dict[str, JsonValue]:
        """The audit as plain data."""
        return {
            "benchmark": self.card.name,
            "version": __version__,
            "data": asdict(self.data),
            "models": list(self.models),
            "counts": {str(name): count for name, count in self.counts.items()},
            "findings": [asdict(finding) for finding in self.findings],
            "gaps": [asdict(gap) for gap in self.gaps],
            "lines": list(self.lines),
            "files": {what: str(path) for what, path in self.files.items()},
        }


def show_p(p: float) -> str:
    """A p-value in words.

    >>> show_p(0.0312), show_p(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return f"p = {p:.2g}" if p >= _LEAST_P else f"p < {_LEAST_P:g}"


def _say_first(finding: Finding) -> str:
    """A finding in one line: what it means, and its figure with interval and n."""
    figure, span = finding.figure, show_span(finding.figure)
    words = [f"{figure.key.replace('_', ' ')} {show_figure(figure.value)}"]
    words += [f"95 % {span}"] if span else []
    words += [f"n = {figure.n:,}"] if figure.n else []
    words += [f"{show_p(finding.p)} after Holm"] if finding.p is not None else []
    return f"{finding.title}: {finding.meaning} ({', '.join(words)})"


def render_page(audit: Audit) -> str:
    """The page as text."""
    blocks = [_make_block(place, finding) for place, finding in enumerate(audit.findings, 1)]
    return fill_page(
        "audit.html",
        ("page.css",),
        sheet=audit,
        blocks=blocks,
        badges=_BADGES,
        show_p=show_p,
        starter_note=STARTER_NOTE if audit.data.kind == "starter" else "",
        warning=audit.card.warning if audit.data.kind == "release" else "",
    )


def _make_block(place: int, finding: Finding) -> Shown:
    """One finding with its drawings."""
    reference = None if finding.expected is None else Score("", finding.expected, 0)
    scale = fit_scale([finding.figure, reference])
    # A breakdown may hold figures of another kind: each kind has its own scale.
    kinds = {row.key for row in finding.rows}
    scales = {
        key: fit_scale([row for row in finding.rows if row.key == key]) for key in sorted(kinds)
    }
    tone = _TONES[finding.verdict]
    return {
        "finding": finding,
        "slug": f"finding-{place}",
        "badge": _BADGES[finding.verdict],
        "axis": draw_axis(scale),
        "strip": draw_strip([Mark(finding.title, finding.figure, tone)], scale, finding.expected),
        "rows": [
            (row, draw_strip([Mark(row.label, row, tone)], scales[row.key])) for row in finding.rows
        ],
        "curve": _draw_nearness(finding),
    }


def _draw_nearness(finding: Finding) -> Markup:
    points = [row for row in finding.rows if row.by == "nearness"]
    across = "accuracy by cosine to the nearest training meme, random folds"
    return draw_curve(points, across) if len(points) > 1 else Markup("")


# What goes with an audit's page: a badge as SVG, a BibTeX entry, and JSON for other tools.

_LETTER = 6.4  # pixels of a letter at 11 pixels, on average
_COLOURS = {"broken": "#b3261e", "worth knowing": "#8a5a00", "sound": "#2e6b34"}


def draw_badge(audit: Audit) -> str:
    """A badge that says how many findings break a score, or are worth knowing."""
    counts = audit.counts
    worst = next((name for name, count in counts.items() if count), "sound")
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    left, right = "Memantics audit", said or "nothing measured"
    widths = [round(len(text) * _LETTER + 16) for text in (left, right)]
    label, colour = f"{left} of {audit.card.title}: {right}", _COLOURS[worst]
    shown = {"label": label, "left": left, "right": right, "colour": colour}
    return fill_page("badge.svg", (), whole=sum(widths), wide=widths[0], **shown) + "\n"


def cite_audit(audit: Audit) -> str:
    """A BibTeX entry for the audit: the data are pinned by their checksum."""
    title = audit.card.title.replace("{", "").replace("}", "")
    pinned = audit.data.checksum[:12] or "none"
    return (
        f"@misc{{memantics-audit-{audit.card.name}-{pinned},\n"
        f"  title = {{Audit of {title}}},\n"
        "  author = {{Memantics}},\n"
        f"  year = {{{datetime.now(UTC).year}}},\n"
        f"  note = {{Memantics {__version__}, {len(audit.findings)} findings, data SHA-256 "
        f"{pinned}}}\n}}\n"
    )


def write_companions(audit: Audit, folder: Path) -> dict[str, Path]:
    """Write badge, citation and JSON into a folder; by what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "badge": write_text(folder / "badge.svg", draw_badge(audit), "audit"),
        "citation": write_text(folder / "audit.bib", cite_audit(audit), "audit"),
        "JSON": write_text(folder / "audit.json", dump_json(audit.to_dict()), "audit"),
    }
