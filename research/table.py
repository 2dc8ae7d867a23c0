"""The tables of ``docs/research/protocol-results.md``, generated from the log of evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.protocol import LOG, ROOT, Study, read_log

PAGE = ROOT / "docs" / "research" / "protocol-results.md"
BEGIN, END = "<!-- table: python -m research table -->", "<!-- end of table -->"
PARTS = ("test", "development")
SMALLEST = 0.02  # proportion below which a value of a tag is left out of the composition
# Intervals of calibration errors that were logged earlier may exclude the value and the true error.
CALIBRATION_SINCE = "2026-11-19T01:30"
Record = Mapping[str, Any]


def write_table(studies: Sequence[Study[Any]], page: Path = PAGE, log: Path = LOG) -> str:
    """Write the tables into the page, between its two markers, and return them."""
    made = "\n".join(_list_lines(studies, read_log(log)))
    text = page.read_text(encoding="utf-8")
    head, _, after = text.partition(BEGIN)
    _, _, tail = after.partition(END)
    page.write_text(f"{head}{BEGIN}\n{made}\n{END}{tail}", encoding="utf-8")
    return made


def _list_lines(studies: Sequence[Study[Any]], log: Sequence[Record]) -> Iterator[str]:
    yield "| study | metric | target | locked test set | development set | test-set evaluations |"
    yield "|---|---|---|---|---|---|"
    for study in studies:
        records = [record for record in log if record["study"] == study.name]
        evaluations = [record for record in records if record["part"] == "test"]
        last = {part: _last(records, part) for part in PARTS}
        if not any(last.values()):
            continue
        for claim in study.claims:
            target = "–"
            if claim.target is not None:
                sign = "≤" if claim.lower_is_better else "≥"
                target = f"{sign} {100 * claim.target:.1f}"
            cells = [_cell(last[part], claim.name) for part in PARTS]
            row = (study.name, claim.name, target, *cells, str(len(evaluations)))
            yield f"| {' | '.join(row)} |"
    yield ""
    yield from _list_compositions(studies, log)
    yield from _list_reported(log)


def _list_reported(log: Sequence[Record]) -> Iterator[str]:
    """List values for official test sets that others measured and reported."""
    reported = [record for record in log if record["part"] == "reported"]
    if not reported:
        return
    yield ""
    yield "## Official test sets"
    yield ""
    yield (
        "These official test sets are not available to this project. Others measured the values"
        " and reported them; no choice used them."
    )
    yield ""
    yield "| system | metric | official test set | development data |"
    yield "|---|---|---|---|"
    for record in reported:
        for name, measured in record["metrics"].items():
            cells = [_percent(measured.get(key)) for key in ("value", "development")]
            yield f"| {record['study']} | {name} | {cells[0]} | {cells[1]} |"


def _list_compositions(studies: Sequence[Study[Any]], log: Sequence[Record]) -> Iterator[str]:
    yield "## Composition of the locked test sets"
    yield ""
    yield "| study | memes (groups) | date, commit | composition | seen before the set was locked |"
    yield "|---|---|---|---|---|"
    reweighted = []
    for study in studies:
        last = _last([record for record in log if record["study"] == study.name], "test")
        if last is None:
            yield f"| {study.name} | – | no test-set evaluation | – | {study.exposure or '–'} |"
            continue
        parts = "; ".join(
            f"{tag}: {_compose(values)}" for tag, values in last["composition"].items()
        )
        size = f"{last['rows']:,} ({last['groups']:,})"
        when = f"{last['date'][:10]}, {last['commit']}"
        yield f"| {study.name} | {size} | {when} | {parts} | {study.exposure or '–'} |"
        reweighted += [
            (study.name, name, metric, value)
            for name, metrics in last["reweighted"].items()
            for metric, value in metrics.items()
            if value is not None
        ]
    if reweighted:
        yield ""
        yield "Locked-test-set values, re-weighted to another composition:"
        yield ""
        yield "| study | composition | metric | value |"
        yield "|---|---|---|---|"
        for name, composition, metric, value in reweighted:
            yield f"| {name} | {composition} | {metric} | {_percent(value)} |"


def _compose(values: Mapping[str, float]) -> str:
    kept = {name: value for name, value in values.items() if value >= SMALLEST}
    listed = [f"{name or 'none'} {value:.0%}" for name, value in kept.items()]
    return ", ".join([*listed, *(["others below 2%"] if len(kept) < len(values) else [])])


def _last(records: Sequence[Record], part: str) -> Record | None:
    return next((record for record in reversed(records) if record["part"] == part), None)


def _cell(record: Record | None, name: str) -> str:
    measured = (record or {"metrics": {}})["metrics"].get(name)
    if measured is None:
        return "–"
    span = ""
    if measured.get("low") is not None and _has_interval(record, name):
        span = f" ({_percent(measured['low'])}–{_percent(measured['high'])})"
    count = f", n = {measured['n']:,}" if measured.get("n") else ""
    return f"{_percent(measured['value'])}{span}{count}"


def _has_interval(record: Record | None, name: str) -> bool:
    """Tell whether the logged interval may be shown; earlier ones of calibration errors may not."""
    return "calibration error" not in name or (record or {}).get("date", "") >= CALIBRATION_SINCE


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
