"""What goes with an audit's page: a badge as SVG, a BibTeX entry, and JSON for other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from memantics import __version__
from memantics.core.data import dump_json
from memantics.core.journal import replace_file
from memantics.report.page import fill_page
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
    made = {
        "badge": (folder / "badge.svg", draw_badge(audit)),
        "citation": (folder / "audit.bib", cite_audit(audit)),
        "JSON": (folder / "audit.json", dump_json(audit.to_dict())),
    }
    for path, body in made.values():
        replace_file(path, body.encode("utf-8", "replace"), "audit")
    return {what: path for what, (path, _) in made.items()}
