"""List the elements of the five papers: tables, figures, values in the text and procedures.

Run ``python -m research.paper_elements`` to write ``docs/research/papers-list.md``. Elements are
read from the pages of ``memantics paper`` on the sample data, procedures from
``docs/research/papers-elements.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.benchmarks.paper import Cell
from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import find_benchmark
from memantics.evaluation.paper import paper

NAMES = {
    "mquest": "M-QUEST",
    "memeintent": "MemeIntent",
    "toxicn_mm": "ToxiCN MM",
    "mer_bench": "MER-Bench",
    "punmemecn": "PunMemeCN",
}
DOCS = Path(__file__).resolve().parents[1] / "docs" / "research"
PAGE = DOCS / "papers-list.md"
MARK = "<!-- elements: written by python -m research.paper_elements -->"
# Parts whose rows are single statements of the text.
_TEXT = ("Values in the text", "Section 3.1", "Section 3.3")
# Parts of the pages that the papers do not have.
_OURS = ("Further statistics", "Hard negatives")
# Tables that differ from the rule: source of the values, and when they are compared.
_OTHERWISE = {
    ("ToxiCN MM", "Table 5"): ("detectors and runs", "trained rows: the paper's encoders"),
    ("MER-Bench", "Table II"): ("runs", "the authors' prompts and judge; per editor"),
    ("MER-Bench", "Table III"): ("runs", "the authors' prompts and judge; all 14 editors"),
    ("M-QUEST", "Table 1"): ("data and annotations", "first row: the complete release"),
    ("PunMemeCN", "Table 1"): ("measurements", "distinct-n: the complete release"),
    ("PunMemeCN", "Table 4"): ("detectors", "never: the authors' split is unknown"),
    ("PunMemeCN", "Table 5"): ("runs", "never: the authors' memes were not released"),
}
_PROMPTS = {
    "official": "the authors' prompts",
    "printed": "never: the paper's prompts were not released as files",
    "none": "no prompts",
}


@dataclass(frozen=True, slots=True)
class PaperElement:
    """An element of a paper, the source of its value, and when the value is compared."""

    paper: str
    name: str
    source: str
    compared: str

    @property
    def line(self) -> str:
        """The row of the table."""
        return f"| {self.paper} | {self.name} | {self.source} | {self.compared} |"


def list_elements() -> list[PaperElement]:
    """List all elements, paper by paper, and then the procedures."""
    return [*_list_values(), *_list_procedures()]


def _list_values() -> Iterator[PaperElement]:
    for name, title in NAMES.items():
        rows = read_published(find_benchmark(name).home / "expected" / "published.json")
        for part in paper(name, data="sample").parts:
            if part.label in _OURS or part.caption.startswith("Not in the paper"):
                continue
            if part.label in _TEXT:
                for row in part.rows:
                    yield PaperElement(
                        title, f"{part.label}: {row.label}", *_describe((row.cells[0],))
                    )
                continue
            printed = [row for row in rows if row.source == part.label]
            told = _OTHERWISE.get((title, part.label)) or _describe([*part.cells], printed)
            yield PaperElement(title, part.label, *told)


def _describe(cells: Sequence[Cell], printed: Sequence[PublishedRow] = ()) -> tuple[str, str]:
    """Return the source of the values of cells, and when they are compared with the paper."""
    states = {cell.status for cell in cells} - {"none"}
    commands = [cell.fill for cell in cells if cell.fill]
    if not states:
        return "texts and images", "nothing to compare"
    if states <= {"closed"}:
        return "quoted", "never: only the paper has it"
    if states <= {"arithmetic", "closed"}:
        return "printed values", "never: derived from other printed values"
    source = "data" if states == {"computed"} else _name_source(commands)
    if printed:
        told = dict.fromkeys(_PROMPTS[row.wording] for row in printed if row.wording in _PROMPTS)
        sizes = any(row.sizes or row.counted for row in printed)
        return source, "; ".join(told) if sizes else "never: the paper does not state n"
    if source == "data":
        return source, "the complete release, if the paper prints the value"
    return source, "never: the paper prints no value, or its people and runs differ"


def _name_source(commands: Sequence[str]) -> str:
    for verb, source in (
        ("human-eval", "human ratings"),
        ("annotate", "annotations"),
        ("--annotations", "annotations"),
        ("detector", "detectors"),
        ("--statistics", "measurements"),
        ("memantics run", "runs"),
        ("memantics edit", "runs"),
    ):
        if any(verb in command for command in commands):
            return source
    return "data"


def _list_procedures() -> Iterator[PaperElement]:
    text = (DOCS / "papers-elements.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        found = re.match(r"\| ([^:|]+): ([^|]+) \| `", line)
        if found:
            title, name = found.groups()
            yield PaperElement(title, f"procedure: {name}", "one command", "no value")


def write_page() -> str:
    """Return the page with the table of all elements and the count by paper."""
    found = list_elements()
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    counts = [f"{title} {sum(one.paper == title for one in found)}" for title in NAMES.values()]
    lines = [
        f"{head}{MARK}",
        "",
        f"All {len(found)} elements: {', '.join(counts)}.",
        "",
        "| paper | element | source of the value | compared with |",
        "|---|---|---|---|",
        *(one.line for one in found),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
