"""Names to benchmarks and tasks: ours, those of the user, and the published."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memantics.core.card import read_card
from memantics.core.errors import DataError, InputError, UnknownName, require_known
from memantics.core.published import PublishedRow, read_published
from memantics.core.registry import home, is_inside, read_registry, read_shelf
from memantics.core.writing import Writer
from memantics.registry.contract import RECIPES, Benchmark, TaskRef, list_recipes, list_roots
from memantics.tasks.recipe import make_card, read_recipe

# Data sets that are told by a recipe: those that ship, and ``*.toml`` of the user's folders.


def find_recipes() -> dict[str, Benchmark]:
    """Every recipe by the name of its file; it becomes a benchmark without a sample.

    What ``data add`` wrote for a table of the user's takes the place of one of the same name.
    """
    roots = [RECIPES, *list_roots()[1:], find_own_recipes()]
    paths = [path for root in roots for path in list_recipes(root)]
    return {
        path.stem: Benchmark(path.parent, make_card(path.stem, read_recipe(path)), path)
        for path in paths
    }


def find_own_recipes() -> Path:
    """The folder of recipes that ``data add`` writes for tables."""
    return home() / "recipes"


def find_benchmarks() -> dict[str, Benchmark]:
    """Every folder with a card: ours, those below ``$MEMANTICS_BENCHMARKS``, and the published."""
    cards: dict[Path, None] = {}
    for root in list_roots():
        paths = sorted(root.glob("*/card.toml"))
        if not paths and not list_recipes(root):
            raise InputError(
                f"MEMANTICS_BENCHMARKS: no benchmark below {root}",
                hint="name the folder in which the benchmarks' folders lie",
            )
        cards |= dict.fromkeys(path.resolve() for path in paths)
    cards |= dict.fromkeys(folder / "card.toml" for folder in read_shelf())
    found: dict[str, Benchmark] = {}
    for path in cards:
        card = read_card(path)
        if card.name in found:
            raise DataError(path, f"a benchmark {card.name!r} exists already")
        found[card.name] = Benchmark(path.parent, card)
    return found


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name."""
    known = find_benchmarks() | find_recipes()
    require_known("benchmark", name, known)
    return known[name]


def find_warning(image: Path | None, collection: str = "") -> str:
    """The content warning of the registered release that an image, or a collection, is of."""
    for name, release in read_registry().items():
        places = [path.resolve() for path in (release.root, release.images) if path is not None]
        if name == collection or (image is not None and is_inside(image, places)):
            return find_benchmark(name).card.warning
    return ""


def find_tasks(names: list[str]) -> list[TaskRef]:
    """Tasks by ``NAME``, ``NAME/TASK`` or ``suite``; each once, in the order asked.

    A benchmark that was published here is in the suite only where it is named beside it.
    """
    refs: dict[str, TaskRef] = {}
    for name in names:
        for ref in _expand(name):
            refs.setdefault(ref.name, ref)
    return list(refs.values())


def _expand(name: str) -> list[TaskRef]:
    if name == "suite":
        benchmarks = (b for b in find_benchmarks().values() if b.runnable and not b.card.like)
        return [ref for benchmark in benchmarks for ref in _tasks_of(benchmark)]
    head, _, tail = name.partition("/")
    known = find_benchmarks() | find_recipes()
    if head not in known:
        raise UnknownName("benchmark", head, [*known, "suite"])
    benchmark = known[head]
    if not benchmark.runnable:
        ready = ", ".join(b.card.name for b in known.values() if b.runnable)
        raise InputError(
            f"{head} can be read but not run yet", hint=f"benchmarks that run: {ready}"
        )
    return [TaskRef(benchmark, benchmark.card.find_task(tail))] if tail else _tasks_of(benchmark)


def _tasks_of(benchmark: Benchmark) -> list[TaskRef]:
    return [TaskRef(benchmark, task) for task in benchmark.card.task]


def find_published(tasks: Iterable[str]) -> dict[str, list[PublishedRow]]:
    """Papers' rows by task; a benchmark that is not here has none, and its runs still show."""
    heads = {task.partition("/")[0] for task in tasks}
    found: dict[str, list[PublishedRow]] = {}
    for name, benchmark in find_benchmarks().items():
        if name in heads:
            for row in read_published(benchmark.folder / "expected" / "published.json"):
                found.setdefault(f"{name}/{row.task}", []).append(row)
    return found


# Which benchmark's format the results of a workflow are published in.


def find_writer(workflow: str) -> tuple[Benchmark, Writer]:
    """The benchmark whose card names the workflow, and the writer of its format."""
    known = {
        name: benchmark
        for benchmark in find_benchmarks().values()
        for name in (benchmark.card.publish.workflows if benchmark.card.publish else ())
    }
    if workflow not in known:
        raise UnknownName("workflow to publish from:", workflow, sorted(known))
    benchmark = known[workflow]
    writer = getattr(benchmark.load_part("write"), "WRITER", None)
    if not isinstance(writer, Writer):
        raise DataError(
            benchmark.folder / "write.py",
            "holds no WRITER of type Writer",
            hint="see docs/add-a-benchmark.md",
        )
    return benchmark, writer
