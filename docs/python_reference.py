"""The page of public Python names: signatures, settings records and errors, from docstrings.

A public function explains itself in the sections ``Args``, ``Returns``, ``Raises`` and ``Example``
of its docstring, a settings record in ``Attributes``. ``help()`` shows the same text.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_type_hints

import memantics
from memantics.core.parameters import Flag

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")
Parameter = tuple[str, str, str, str]  # name, type, default, meaning
# Public names that are modules: their functions are public, too.
MODULES = ("build", "samples")


class Docstring(NamedTuple):
    """A docstring by its sections; ``text`` is what stands before them."""

    text: str
    entries: dict[str, str]
    returns: str
    raises: dict[str, str]
    example: str


def read_docstring(of: Any) -> Docstring:
    """The sections of a docstring.

    >>> def weigh(meme: str) -> int:
    ...     '''Weigh a meme.
    ...
    ...     Args:
    ...         meme: Its id, which
    ...             must be known.
    ...
    ...     Returns:
    ...         Its weight.
    ...     '''
    ...     return 1
    >>> read_docstring(weigh).entries, read_docstring(weigh).returns
    ({'meme': 'Its id, which must be known.'}, 'Its weight.')
    """
    head = rf"^({'|'.join(SECTIONS)}):$"
    text, *rest = re.split(head, inspect.getdoc(of) or "", flags=re.MULTILINE)
    found = dict(zip(rest[::2], map(textwrap.dedent, rest[1::2]), strict=True))
    entries = _read_entries(found.get("Args", "") or found.get("Attributes", ""))
    returns = " ".join(found.get("Returns", "").split())
    example = found.get("Example", "").strip("\n")
    return Docstring(text, entries, returns, _read_entries(found.get("Raises", "")), example)


def _read_entries(section: str) -> dict[str, str]:
    """``name: meaning`` by name; further lines of an entry are indented."""
    entries = re.split(r"^(\w+): ", section.strip("\n"), flags=re.MULTILINE)[1:]
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return {name: " ".join(meaning.split()) for name, meaning in pairs}


def list_functions() -> Iterator[tuple[str, Any]]:
    """Every public function by its name after ``mm.``, those of public modules included."""
    for name in memantics.__all__:
        found = getattr(memantics, name)
        if inspect.isfunction(found):
            yield name, found
        elif name in MODULES and isinstance(found, ModuleType):
            for inner in getattr(found, "__all__", ()):
                if inspect.isfunction(getattr(found, inner)):
                    yield f"{name}.{inner}", getattr(found, inner)


def list_settings() -> Iterator[tuple[str, Any]]:
    """Every public record of optional fields that a public function takes as an argument."""
    taken = {
        kind
        for _, function in list_functions()
        for hint in _arguments(function)
        for kind in (_strip(hint), *map(_strip, typing.get_args(_strip(hint))))
        if dataclasses.is_dataclass(kind)
    }
    public = {name: getattr(memantics, name) for name in memantics.__all__}
    public |= {f"build.{name}": getattr(memantics.build, name) for name in memantics.build.__all__}
    for name, found in public.items():
        if inspect.isclass(found) and found in taken and not _required(found):
            yield name, found


def _required(record: Any) -> list[str]:
    """The fields of a record that have no default."""
    return [
        field.name
        for field in dataclasses.fields(record)
        if field.default is field.default_factory is dataclasses.MISSING
    ]


def _arguments(function: Any) -> Iterator[Any]:
    hints = get_type_hints(function, include_extras=True)
    yield from (hint for name, hint in hints.items() if name != "return")


def list_parameters(function: Any) -> Iterator[Parameter]:
    """Every parameter of a function, with its type, its default and what it means."""
    hints = get_type_hints(function, include_extras=True)
    said = read_docstring(function).entries
    for key, parameter in inspect.signature(function).parameters.items():
        default = "" if parameter.default is parameter.empty else _show(parameter.default)
        yield key, _kind(hints[key]), default, _plain(said.get(key, ""))


def list_fields(record: Any) -> Iterator[Parameter]:
    """Every field of a settings record, with its type, its default and what it means."""
    hints = get_type_hints(record, include_extras=True)
    said = read_docstring(record).entries
    for field in dataclasses.fields(record):
        hint, default = hints[field.name], field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        shown = "" if default is dataclasses.MISSING else _show(default)
        flag = next((part for part in _unwrap(hint) if isinstance(part, Flag)), None)
        meaning = said.get(field.name) or (flag.help if flag else "")
        yield field.name, _kind(hint), shown, _plain(meaning)


def _show(default: object) -> str:
    """A default as one would write it; records within records by their type alone."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return f"{type(default).__name__}(…)"
    if isinstance(default, Path):
        return f"Path({str(default)!r})"
    return repr(default)


def python_page(notice: str) -> str:
    """Functions with their parameters, settings with their fields, then records and errors."""
    parts = [notice, "# Python", "Every public name: `import memantics as mm`, then `mm.NAME`."]
    parts.append("## Functions")
    functions = dict(list_functions())
    for name, function in functions.items():
        if not name.endswith("_async"):
            parts += _describe(name, function, f"{name}_async" in functions)
    settings = dict(list_settings())
    parts.append("## Settings")
    for name, record in settings.items():
        rows = [_row(*field) for field in list_fields(record)]
        parts += [f"### `{name}`", _plain(read_docstring(record).text)]
        parts.append(_table(("field", "type", "default", "meaning"), rows))
    parts.append("## Records and errors")
    named = [(name, getattr(memantics, name)) for name in memantics.__all__]
    others = [each for each in named if inspect.isclass(each[1]) and each[0] not in settings]
    rows = [(f"`{name}`", _summary(kind)) for name, kind in others]
    return "\n\n".join([*parts, _table(("name", "what it is"), rows)]) + "\n"


def _describe(name: str, function: Any, waits: bool) -> Iterator[str]:
    said = read_docstring(function)
    yield f"### `{name}`"
    yield _plain(said.text)
    if waits:
        yield f"`{name}_async` is the asynchronous version."
    rows = [_row(*parameter) for parameter in list_parameters(function)]
    if rows:
        yield _table(("parameter", "type", "default", "meaning"), rows)
    if said.returns:
        yield f"Returns: {_plain(said.returns)}"
    if said.raises:
        yield "\n".join(f"- raises `{key}`: {_plain(why)}" for key, why in said.raises.items())
    if said.example:
        yield f"```pycon\n{said.example.replace('  # doctest: +SKIP', '')}\n```"


def _row(key: str, kind: str, default: str, meaning: str) -> tuple[str, ...]:
    return f"`{key}`", f"`{kind}`", f"`{default}`" if default else "", meaning


def _strip(hint: Any) -> Any:
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    return hint


def _unwrap(hint: Any) -> Iterator[object]:
    yield from getattr(hint, "__metadata__", ())
    for inner in typing.get_args(_strip(hint)):
        yield from getattr(inner, "__metadata__", ())


def _kind(hint: Any) -> str:
    hint = _strip(hint)
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
