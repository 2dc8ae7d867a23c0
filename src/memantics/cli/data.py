"""``memantics data``: register, check and describe official releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_json, show_value, table
from memantics.core.data import Found, Source, Statistic
from memantics.core.errors import InputError
from memantics.core.registry import Registered, find_registered, read_registry, write_registered
from memantics.core.statistic import compare, read_expected
from memantics.registry import Benchmark, find_benchmark, find_benchmarks, find_source

app = typer.Typer(help="Register, check and describe official releases.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A benchmark, such as mquest.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VERDICT_STYLES = {
    "reproduced": "green",
    "differs": "yellow",
    "not recomputable": "dim",
    "no reference": "dim",
}


@app.command("add")
def add(
    name: Name,
    folder: Annotated[Path, typer.Argument(help="Where you downloaded or cloned it.")],
    images: Annotated[
        Path | None, typer.Option(help="The folder with its images, where they lie apart.")
    ] = None,
) -> None:
    """Register a release, check it, and show its figures beside the paper's."""
    benchmark = find_benchmark(name)
    source = Source("release", _folder(folder), _folder(images) if images else None)
    found, statistics = _read(benchmark, source)
    write_registered(
        Registered(
            name=name,
            root=source.root,
            images=source.images,
            records=found.records,
            checksum=found.checksum,
            added=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    )
    _show_found(benchmark, found)
    _show_statistics(_printed(statistics, name))
    console().print(f"registered: memantics run {name} --data release")


@app.command("list")
def show_list(as_json: AsJson = False) -> None:
    """List the benchmarks, their tasks and whether you have registered a release."""
    registered = read_registry()
    known = find_benchmarks()
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": benchmark.card.title,
                    "languages": benchmark.card.languages,
                    "tasks": [f"{name}/{task.name}" for task in benchmark.card.task],
                    "runnable": benchmark.runnable,
                    "release": registered.get(name),
                }
                for name, benchmark in known.items()
            ]
        )
        return
    rows = table([("benchmark", "left"), ("tasks", "left"), ("release", "left")])
    for name, benchmark in known.items():
        tasks = ", ".join(task.name for task in benchmark.card.task)
        entry = registered.get(name)
        where = f"{entry.records:,} in {entry.root}" if entry else "starter sample only"
        state = tasks if benchmark.runnable else f"({tasks}: read only)"
        rows.add_row(name, state, plain(where))
    console().print(rows)


@app.command("check")
def check(name: Name) -> None:
    """Read a registered release again and say whether it is still the same."""
    benchmark = find_benchmark(name)
    entry = find_registered(name)
    found, statistics = _read(benchmark, entry.source)
    _show_found(benchmark, found)
    _show_statistics(_printed(statistics, name))
    if found.checksum != entry.checksum:
        raise InputError(
            f"{name}: the files changed since {entry.added} (checksum {found.checksum[:12]},"
            f" was {entry.checksum[:12]})",
            hint=f"if that is meant: memantics data add {name} {entry.root}",
        )
    console().print(f"unchanged since {entry.added} (checksum {found.checksum[:12]})")


@app.command("stats")
def stats(
    name: Name,
    as_json: AsJson = False,
    data: flags.Data = None,
) -> None:
    """Recompute the paper's figures from your copy."""
    benchmark = find_benchmark(name)
    source = find_source(benchmark, data)
    found, statistics = _read(benchmark, source)
    if as_json:
        print_json(
            {
                "benchmark": name,
                "data": source.kind,
                "records": found.records,
                "complete": benchmark.card.release.complete if benchmark.card.release else None,
                "checksum": found.checksum,
                "found": asdict(found),
                "statistics": [asdict(row) for row in statistics],
            }
        )
        return
    _show_found(benchmark, found, source.kind == "starter")
    _show_statistics(statistics)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(f"no such folder: {path}", hint="give the folder you cloned or unpacked")
    return path.resolve()


def _read(benchmark: Benchmark, source: Source) -> tuple[Found, list[Statistic]]:
    quiet = not console().is_terminal
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), transient=True, disable=quiet
    ) as bar:
        step = bar.add_task(f"reading {benchmark.card.name}")
        release = benchmark.open(source)
        found = benchmark.survey(release)
        bar.update(step, description="recomputing the paper's figures")
        expected = read_expected(benchmark.folder / "expected" / "statistics.json")
        return found, compare(expected, benchmark.recompute(release))


def _show_found(benchmark: Benchmark, found: Found, starter: bool = False) -> None:
    out = console()
    release = benchmark.card.release
    size = f"{found.records:,}"
    if starter:
        size += " (starter sample, not the release)"
    elif release is not None and found.records != release.complete:
        size += f" of {release.complete:,}: a part, so figures that count differ"
    out.print(plain(f"{benchmark.card.title}: {size}", "bold"))
    counts = ", ".join(f"{name} {count:,}" for name, count in found.counts.items())
    out.print(plain(f"  {counts}"))
    if found.images_expected:
        out.print(f"  images: {found.images_found:,} of {found.images_expected:,}")
    for what, count in found.repairs.items():
        out.print(plain(f"  repaired: {what}: {count:,}"))
    for reason, count in _reasons(found).items():
        out.print(plain(f"  left out: {count:,} × {reason}"))
    for note in found.notes:
        out.print(plain(f"  note: {note}", "yellow"))


def _reasons(found: Found) -> dict[str, int]:
    counts: dict[str, int] = {}
    for skip in found.skips:
        counts[skip.reason] = counts.get(skip.reason, 0) + 1
    return counts


def _printed(rows: Sequence[Statistic], name: str) -> list[Statistic]:
    """The figures that the paper prints; the rest is a command away."""
    kept = [row for row in rows if row.paper is not None]
    console().print(
        f"The paper's {len(kept)} figures follow; all {len(rows)}: memantics data stats {name}",
        style="dim",
    )
    return kept


def _show_statistics(rows: Sequence[Statistic]) -> None:
    shown = table(
        [("figure", "left"), ("paper", "right"), ("this copy", "right"), ("verdict", "left")],
        "Recomputed from this copy",
    )
    for row in rows:
        paper = row.paper if row.paper is not None else row.known
        mark = "" if row.paper is not None or row.known is None else "*"
        shown.add_row(
            plain(row.title),
            show_value(paper) + mark,
            show_value(row.value),
            plain(row.verdict, VERDICT_STYLES[row.verdict]),
        )
    out = console()
    out.print(shown)
    if any(row.paper is None and row.known is not None for row in rows):
        out.print("* not printed in the paper: what the complete release gives", style="dim")
