"""The page of public Python names: what each is, and what every parameter means.

A parameter's meaning is said once: in its own type (a ``Flag``), in the docstring that names it, or
by the flag of the same name on the command that does the same.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

import typer.main

import memantics
from memantics.cli.main import make_app
from memantics.core.parameters import Flag
from memantics.models.client import AskingOptions, make_asking
from memantics.understanding.reappraise import EditingOptions

# Functions whose command has another name; all others have the command of their own name.
COMMANDS = {"evaluate": "run", "detect_pun": "pun", "read_aloud": "pun"}
# What means the same everywhere and is no flag.
SHARED = {
    "progress": "Called with how far it is; `bar` draws it.",
    "use_cache": "False asks again even what is known.",
}
Parameter = tuple[str, str, str, str]  # name, type, default, meaning


def python_page(notice: str) -> str:
    """Functions with their parameters, then records and errors with what they say of themselves."""
    names = [(name, getattr(memantics, name)) for name in memantics.__all__ if name[0] != "_"]
    parts = [notice, "# Python", "Every public name: `import memantics as mm`, then `mm.NAME`."]
    parts.append("## Functions")
    for name, function in names:
        if inspect.isfunction(function) and not name.endswith("_async"):
            waits = getattr(memantics, f"{name}_async", None)
            parts += list(_describe(name, waits or function, waits is not None))
    parts.append("## Records and errors")
    rows = [(f"`{name}`", _summary(kind)) for name, kind in names if inspect.isclass(kind)]
    return "\n\n".join([*parts, _table(("name", "what it is"), rows)]) + "\n"


def list_parameters(name: str, function: Any) -> Iterator[Parameter]:
    """Every parameter that can be given by keyword; ``**options`` one by one."""
    hints = get_type_hints(function, include_extras=True)
    doc = inspect.getdoc(function) or ""
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            options = typing.get_args(hints[key])[0]
            said = "\n\n".join(
                inspect.cleandoc(part.__doc__ or "") for part in _list_bases(options)
            )
            for option, hint in get_type_hints(options, include_extras=True).items():
                yield option, _kind(hint), "", _meaning(name, option, hint, f"{doc}\n\n{said}")
        else:
            default = "" if parameter.default is parameter.empty else f"{parameter.default!r}"
            yield key, _kind(hints[key]), default, _meaning(name, key, hints[key], doc)


def _list_bases(options: Any) -> Iterator[Any]:
    """Options, and those that they extend: a typed dictionary does not know its bases."""
    yield options
    for base in (EditingOptions, AskingOptions):
        if set(base.__annotations__) < set(options.__annotations__):
            yield base


def _describe(name: str, function: Any, waits: bool) -> Iterator[str]:
    yield f"### `{name}`"
    doc = _plain(inspect.getdoc(function) or "")
    yield doc + (f"\n\n`{name}_async` is the same, to be awaited." if waits else "")
    rows = [
        (f"`{key}`", f"`{kind}`", f"`{default}`" if default else "", meaning)
        for key, kind, default, meaning in list_parameters(name, function)
    ]
    if rows:
        yield _table(("parameter", "type", "default", "meaning"), rows)


def _meaning(name: str, key: str, hint: Any, doc: str) -> str:
    flag = next((part for part in _unwrap(hint) if isinstance(part, Flag)), None)
    if flag is not None:
        return flag.help
    sentences = re.split(r"(?<=[.;])\s+", doc.replace("\n", " "))
    found = next((sentence for sentence in sentences if f"``{key}``" in sentence), "")
    if found:
        return _plain(found).strip().rstrip(";")
    twin = getattr(memantics, name.removesuffix("_async"), None)
    if name.endswith("_async") and twin is not None:
        return next(
            (said for one, _, _, said in list_parameters(twin.__name__, twin) if one == key), ""
        )
    return SHARED.get(key) or _list_flags(name.removesuffix("_async")).get(key, "")


def _unwrap(hint: Any) -> Iterator[object]:
    yield from getattr(hint, "__metadata__", ())
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (
        typing.Union,
        typing.NotRequired,
        typing.Required,
    ):
        for inner in typing.get_args(hint):
            yield from _unwrap(inner)


@cache
def _open_app() -> Any:
    return typer.main.get_command(make_app(lazy=False))


@cache
def _list_flags(name: str) -> Mapping[str, str]:
    """What the flags of the command that does the same mean, and those of asking a model."""
    asking = {
        key: part.help
        for key, hint in get_type_hints(make_asking, include_extras=True).items()
        for part in _unwrap(hint)
        if isinstance(part, Flag)
    }
    command = _open_app().commands.get(COMMANDS.get(name, name).replace("_", "-"))
    flags = getattr(command, "params", ())
    return asking | {flag.name: flag.help or "" for flag in flags}


def _kind(hint: Any) -> str:
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    text = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", text.replace("typing.Annotated", "Annotated"))
    return re.sub(r"Annotated\[(.+?), (?:Flag|Argument|MadeBy)\(.*?\)\]", r"\1", text)


def _summary(kind: type) -> str:
    return _plain((inspect.getdoc(kind) or "").partition("\n\n")[0])


def _plain(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.partition("\n>>>")[0])
    return text.replace("``", "`").strip()


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in line) + " |"
        for line in lines
    )
