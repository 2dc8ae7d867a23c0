"""``python -m perf.knowledge [--json] [--repeats N] [DIR]``: speed of the knowledge store.

The same 200 Turtle files, one named graph each, are loaded into our store's engine and into
rdflib, and asked the same query of three patterns; then our import reads, maps and stores them,
and checks every graph against the shapes. Every contestant runs in its own process, they take
turns, and the median CPU time counts. Without a folder, the official knowledge bases beside the
checkout are used, or the sample data in their form, repeated until there are 200.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import orjson

from perf.__main__ import Check, say

if TYPE_CHECKING:
    from pyoxigraph import Store

ROOT = Path(__file__).resolve().parent.parent
OFFICIAL = ROOT.parent / "shared" / "data" / "mquest" / "kb"
FILES = 200
TARGET = 8.0
SECONDS = 10.0
NAMESPACES = (
    "http://example.org/multimodal-taxonomy#",
    "http://w3c.org/memes-ontology/general#",
    "urn:memantics:ontology#",
)
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
# Every block has three patterns; the relation's name depends on the file's namespace.
BLOCKS = (
    f"{{ GRAPH ?g {{ ?t <{namespace}hasToxicElement> ?e . ?t {LABEL} ?label . "
    f"?e {LABEL} ?element }} }}"
    for namespace in NAMESPACES
)
QUERY = f"SELECT ?g ?label ?element {{ {' UNION '.join(BLOCKS)} }}"
Measurements = dict[str, float]


@dataclass(frozen=True, slots=True)
class Result:
    """CPU seconds by contestant and step, and whether the targets were met."""

    files: int
    statements: int
    cpu_s: dict[str, Measurements]
    checks: tuple[Check, ...]


def list_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.ttl"))[:FILES]


def count_rows(store: Store) -> int:
    from pyoxigraph import QuerySolutions

    found = store.query(QUERY)
    assert isinstance(found, QuerySolutions)
    return sum(1 for _ in found)


def run_store(folder: Path) -> Measurements:
    """Our engine, files as they are."""
    from pyoxigraph import NamedNode, RdfFormat, Store

    store = Store()
    start = time.process_time()
    for path in list_files(folder):
        store.load(path=path, format=RdfFormat.TURTLE, to_graph=NamedNode(f"urn:{path.stem}"))
    loaded = time.process_time()
    rows = count_rows(store)
    done = time.process_time()
    return {
        "load": loaded - start,
        "query": done - loaded,
        "rows": rows,
        "statements": len(store),
    }


def run_rdflib(folder: Path) -> Measurements:
    """Return the usual library, files as they are."""
    import rdflib

    store = rdflib.Dataset()
    start = time.process_time()
    for path in list_files(folder):
        store.graph(rdflib.URIRef(f"urn:{path.stem}")).parse(path, format="turtle")
    loaded = time.process_time()
    rows = len(list(store.query(QUERY)))
    done = time.process_time()
    return {
        "load": loaded - start,
        "query": done - loaded,
        "rows": rows,
        "statements": sum(1 for _ in store.quads()),
    }


def run_import(folder: Path) -> Measurements:
    """Our import: read, map, store, count; then the shapes, over all graphs."""
    from memantics.understanding.knowledge.sources import import_path
    from memantics.understanding.knowledge.store import GraphStore
    from memantics.understanding.knowledge.validation import validate

    store = GraphStore.in_memory()
    start = time.process_time()
    import_path(store, folder)
    loaded = time.process_time()
    rows = count_rows(store.graphs)
    asked = time.process_time()
    validate(store)
    done = time.process_time()
    return {
        "load": loaded - start,
        "query": asked - loaded,
        "validate": done - asked,
        "rows": rows,
        "statements": len(store.graphs),
    }


CONTESTANTS: dict[str, Callable[[Path], Measurements]] = {
    "store": run_store,
    "rdflib": run_rdflib,
    "import": run_import,
}


def make_files(folder: Path) -> Path:
    """Files in the official form, from the sample data: both of a meme, under new names."""
    sample = ROOT / "src" / "memantics" / "benchmarks" / "mquest" / "sample" / "kb"
    memes = sorted(path.name.partition("_")[0] for path in sample.glob("*.ttl"))
    for number in range(FILES):
        meme = memes[number % len(memes)]
        for path in sample.glob(f"{meme}_*"):
            name = path.name.replace(meme, f"{number:05}", 1)
            (folder / name).write_bytes(path.read_bytes())
    return folder


def run(kind: str, folder: Path) -> Measurements:
    """Return one contestant, once, in a process of its own."""
    command = [sys.executable, "-m", "perf.knowledge", "--contestant", kind, str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    measurements: Measurements = orjson.loads(done.stdout)
    say(f"  {kind:<7} load {measurements['load']:7.3f}  query {measurements['query']:8.4f} CPU s")
    return measurements


def measure(folder: Path, repeats: int) -> Result:
    """Run everything and return the exit code."""
    runs: dict[str, list[Measurements]] = {kind: [] for kind in CONTESTANTS}
    for _ in range(repeats):
        for kind in CONTESTANTS:
            runs[kind].append(run(kind, folder))
    cpu = {
        kind: {
            step: median(measurement[step] for measurement in measurements)
            for step in measurements[0]
        }
        for kind, measurements in runs.items()
    }
    ours, theirs, whole = cpu["store"], cpu["rdflib"], cpu["import"]
    if ours["rows"] != theirs["rows"]:
        raise SystemExit(f"answers differ: {ours['rows']} rows and {theirs['rows']} rows")
    checks = [
        at_least("rdflib / store, loading, at least", theirs["load"] / ours["load"]),
        at_least("rdflib / store, querying, at least", theirs["query"] / ours["query"]),
        Check(
            "shapes over all graphs, CPU s at most",
            whole["validate"],
            SECONDS,
            whole["validate"] <= SECONDS,
        ),
    ]
    if folder.resolve() == OFFICIAL.resolve():
        # Importing does more than loading; it wins by reading the copied ontology once.
        ratio = theirs["load"] / whole["load"]
        checks.append(at_least("rdflib's load / our whole import, at least", ratio))
    return Result(len(list_files(folder)), int(ours["statements"]), cpu, tuple(checks))


def at_least(what: str, value: float) -> Check:
    return Check(what, value, TARGET, value >= TARGET)


def show(result: Result) -> str:
    """Return the table for people."""
    names = {
        "store": "our store, files as they are",
        "rdflib": "rdflib, files as they are",
        "import": "our import: mapped, counted, stored",
    }
    lines = [
        f"{result.files} files, {result.statements:,} statements",
        f"{'':<44}{'load, CPU s':>12}{'query, CPU s':>14}{'rows':>7}",
    ]
    lines += [
        f"{names[kind]:<44}{one['load']:>12.3f}{one['query']:>14.4f}{one['rows']:>7.0f}"
        for kind, one in result.cpu_s.items()
    ]
    lines += ["", f"{'target':<44}{'figure':>12}{'target':>8}"]
    lines += [
        f"{c.what:<44}{c.value:>12.2f}{c.target:>8.2f}  {'kept' if c.kept else 'MISSED'}"
        for c in result.checks
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.knowledge", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of Turtle files")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--repeats", type=int, default=3, help="turns per contestant")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.contestant:
        sys.stdout.buffer.write(orjson.dumps(CONTESTANTS[given.contestant](given.folder)))
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or (OFFICIAL if OFFICIAL.is_dir() else make_files(Path(place)))
        result = measure(folder, given.repeats)
    if given.json:
        print(orjson.dumps(asdict(result)).decode())
    else:
        print(show(result))
    return 0 if all(check.kept for check in result.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
