"""``python -m perf.report [--json] [--items N]``: loading time of the report of a large run.

Runs of 2,000 and of 50,000 items are asked by a model that answers at once, scored, and shown on
one page each, with every item and its answer. Chromium opens them in turns; the time counts from
the address to the page's load event and its first row. Making the page is CPU time. The promise is
about items with the same four options; records with options of their own, which make the page a
third larger, are shown beside it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson

ROOT = Path(__file__).resolve().parent.parent
FEW, MANY, TURNS = 2_000, 50_000, 3
OPEN, MAKE = 1.6, 1.0


@dataclass(frozen=True, slots=True)
class Opened:
    """One page: how it was made, and how it opens."""

    name: str
    items: int
    make: float
    megabytes: float
    seconds: float


def make_page(folder: Path, count: int, *source: str) -> tuple[Path, float]:
    """Return a run of so many items on a page; CPU milliseconds of making it, by item."""
    folder.mkdir()
    for phase in ("ask", "score"):
        command = [sys.executable, "-m", "perf.large_run", phase, str(folder), str(count), *source]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    import memantics as mm

    run = next(path for path in (folder / "runs").iterdir() if path.is_dir())
    begin = time.process_time()
    page = mm.report(run, folder / "report.html")
    return page, (time.process_time() - begin) * 1000 / count


def open_pages(pages: dict[str, Path]) -> dict[str, float]:
    """Seconds until each page is there, median of the turns."""
    from tests.browser import launch

    spans: dict[str, list[float]] = {name: [] for name in pages}
    with launch() as browser:
        for _ in range(TURNS):
            for name, path in pages.items():
                page = browser.new_page()
                begin = time.monotonic()
                page.goto(path.as_uri(), wait_until="load")
                page.locator("table tbody tr").first.wait_for()
                spans[name].append(time.monotonic() - begin)
                page.close()
    return {name: median(found) for name, found in spans.items()}


def measure(many: int) -> tuple[Opened, ...]:
    """Make the pages and open them."""
    wanted: dict[str, tuple[int, tuple[str, ...]]] = {
        "same options, few": (FEW, ()),
        "same options, many": (many, ()),
        "options of their own": (many, ("read",)),
    }
    with tempfile.TemporaryDirectory() as place:
        made = {
            name: make_page(Path(place) / name, count, *how)
            for name, (count, how) in wanted.items()
        }
        spans = open_pages({name: path for name, (path, _) in made.items()})
        return tuple(
            Opened(name, wanted[name][0], cpu, path.stat().st_size / 1e6, spans[name])
            for name, (path, cpu) in made.items()
        )


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.report", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--items", type=int, default=MANY, help="items of the large run")
    given = parser.parse_args()
    found = measure(given.items)
    few, many, _ = found
    growth = many.make / few.make
    kept = {"open": many.seconds <= OPEN, "make": growth <= MAKE}
    if given.json:
        print(orjson.dumps([asdict(page) for page in found]).decode())
    else:
        for page in found:
            print(
                f"report of {page.items:>6,} items, {page.name}: {page.megabytes:.1f} MB, made in "
                f"{page.make:.2f} CPU ms an item, opens in {page.seconds:.2f} s"
            )
        words = {True: "kept", False: "MISSED"}
        print(f"opens, seconds at most {OPEN}: {many.seconds:.2f}  {words[kept['open']]}")
        print(
            f"CPU an item, large / small run, at most {MAKE}: {growth:.2f}  {words[kept['make']]}"
        )
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
