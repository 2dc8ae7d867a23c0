"""What goes with an audit's page: a badge as SVG, a BibTeX entry, and JSON for other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from markupsafe import escape

from memantics import __version__
from memantics.core.data import dump_json
from memantics.core.journal import replace_file
from memantics.report.pages.audit import Audit

_LETTER = 6.4  # pixels of a letter at 11 pixels, on average
_COLOURS = {"broken": "#b3261e", "worth knowing": "#8a5a00", "sound": "#2e6b34"}


def draw_badge(audit: Audit) -> str:
    """A badge that says how many findings break a score, or are worth knowing."""
    counts = audit.counts
    worst = next((name for name, count in counts.items() if count), "sound")
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    left, right = "Memantics audit", said or "nothing measured"
    widths = [round(len(text) * _LETTER + 16) for text in (left, right)]
    whole, middle = sum(widths), widths[0] + widths[1] / 2
    label = escape(f"{left} of {audit.card.title}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<rect width="{whole}" height="20" rx="3" fill="#444"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" rx="3" '
        f'fill="{_COLOURS[worst]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">'
        f'<text x="{widths[0] / 2}" y="14">{left}</text>'
        f'<text x="{middle}" y="14">{right}</text></g></svg>\n'
    )


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
    made = {
        "badge": (folder / "badge.svg", draw_badge(audit)),
        "citation": (folder / "audit.bib", cite_audit(audit)),
        "JSON": (folder / "audit.json", dump_json(audit.to_dict())),
    }
    for path, body in made.values():
        replace_file(path, body.encode("utf-8", "replace"), "audit")
    return {what: path for what, (path, _) in made.items()}
