"""The protocol's table: what was measured, on which part, after how many looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.protocol import LOG, ROOT, Study, read_log

PAGE = ROOT / "docs" / "research" / "protocol.md"
BEGIN, END = "<!-- table: python -m research table -->", "<!-- end of table -->"
Record = Mapping[str, Any]


def write_table(studies: Sequence[Study[Any]], page: Path = PAGE, log: Path = LOG) -> str:
    """Put the table into the page, between its two marks; return it."""
    made = "\n".join(_list_lines(studies, read_log(log)))
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n{made}\n{END}{tail}", encoding="utf-8")
    return made


def _list_lines(studies: Sequence[Study[Any]], log: Sequence[Record]) -> Iterator[str]:
    yield ("| study | figure | wanted | rest, nested folds | sealed part, last look | looks |")
    yield "|---|---|---|---|---|---|"
    for study in studies:
        own = [record for record in log if record["study"] == study.name]
        looks = [record for record in own if record["part"] == "sealed"]
        last = {part: _last(own, part) for part in ("rest", "sealed")}
        for claim in study.claims:
            wanted = "–"
            if claim.wanted is not None:
                sign = "≤" if claim.lower_is_better else "≥"
                wanted = f"{sign} {100 * claim.wanted:.1f}"
            cells = [_cell(last[part], claim.name) for part in ("rest", "sealed")]
            row = (study.name, claim.name, wanted, *cells, str(len(looks)))
            yield f"| {' | '.join(row)} |"
    yield ""
    yield from _list_compositions(studies, log)
    yield from _list_reported(log)


def _list_reported(log: Sequence[Record]) -> Iterator[str]:
    """Figures on official parts that are not at hand: as they were reported to us."""
    reported = [record for record in log if record["part"] == "reported"]
    if not reported:
        return
    yield ""
    yield "Reported for official parts that are not at hand here, and were never used to choose:"
    yield ""
    yield "| what | figure | development data | official unseen part |"
    yield "|---|---|---|---|"
    for record in reported:
        for name, own in record["figures"].items():
            told = [_percent(own.get(key)) for key in ("inside", "value")]
            yield f"| {record['study']} | {name} | {told[0]} | {told[1]} |"


def _list_compositions(studies: Sequence[Study[Any]], log: Sequence[Record]) -> Iterator[str]:
    yield "What the sealed parts are made of, and figures re-weighted to other compositions:"
    yield ""
    for study in studies:
        last = _last([record for record in log if record["study"] == study.name], "sealed")
        if last is None:
            yield f"- **{study.name}** ({study.data}): not looked at yet. {study.seen}".rstrip()
            continue
        parts = "; ".join(
            f"{tag}: " + ", ".join(f"{name or 'none'} {share:.0%}" for name, share in own.items())
            for tag, own in last["composition"].items()
        )
        size = f"{last['rows']:,} memes in {last['groups']:,} groups"
        where = f"{last['date']}, commit {last['commit']}"
        yield f"- **{study.name}** ({study.data}): {size}; {where}. {parts}. {study.seen}".rstrip()
        for name, figures in last["reweighted"].items():
            told = ", ".join(f"{key} {_percent(value)}" for key, value in figures.items())
            yield f"  - as in {name}: {told}"


def _last(records: Sequence[Record], part: str) -> Record | None:
    return next((own for own in reversed(records) if own["part"] == part), None)


def _cell(record: Record | None, name: str) -> str:
    own = (record or {"figures": {}})["figures"].get(name)
    if own is None:
        return "–"
    span = ""
    if own.get("low") is not None:
        span = f" ({_percent(own['low'])}–{_percent(own['high'])})"
    count = f", n = {own['n']:,}" if own.get("n") else ""
    return f"{_percent(own['value'])}{span}{count}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
