"""Turn public functions into commands: parameters become flags, and the result is shown.

The decorated function displays the result of the public function, and its docstring is the help of
the command::

    @expose(action.publish)
    def publish(done: Published, name: str) -> None:
        '''Publish a reviewed queue.'''
        print_lines([*done.lines(), f"next: memantics run {name} --model MODEL"])

The parameters of the decorated function select the result, any flag, or a record built from flags.
Flags that it declares itself (:mod:`memantics.core.parameters`) follow the others; ``--json`` comes
last.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from memantics.cli.terminal import print_json, show_table
from memantics.core.parameters import UNSAID, Argument, Flag, MadeBy, read_pairs
from memantics.core.result import tabulate
from memantics.web.phrases import PageLanguage

Command: TypeAlias = Callable[..., None]
AS_JSON = "Print JSON instead of a table."
AsJson = Annotated[bool, Flag(AS_JSON, "--json")]
PageFlag = Annotated[Path | None, Flag("Write a self-contained HTML page to this file.")]


PageLanguageFlag = Annotated[PageLanguage, Flag("Language of the page: en or zh.")]


def save_page(found: Any, out: PageFlag = None, language: PageLanguageFlag = "en") -> None:
    """Write the HTML page of a result to ``--out`` in one language."""
    if out is not None:
        found.save(out, language)


@dataclass(frozen=True, slots=True)
class _Field:
    """One command-line flag, and the parameter ``key`` that it sets."""

    key: str
    name: str
    kind: Any
    default: Any
    mark: Flag
    fallback: Any
    record: str = ""  # the parameter of the public function to which the flag contributes

    @property
    def parameter(self) -> inspect.Parameter:
        """Return the parameter of a Typer command for this flag."""
        mark = self.mark
        shown: dict[str, Any] = {"help": mark.help, "metavar": mark.metavar}
        shown |= {"min": mark.min, "max": mark.max, "autocompletion": mark.complete}
        names = () if isinstance(mark, Argument) else tuple(mark.flags.split())
        if not names and self.kind is bool and self.default is False:
            # a boolean flag that is off by default has no flag to turn it off
            names = (f"--{self.name.replace('_', '-')}",)
        make: Any = typer.Argument if isinstance(mark, Argument) else typer.Option
        kind = Annotated[self.kind, make(*names, **shown)]  # type: ignore[name-defined]
        default = inspect.Parameter.empty if self.default is UNSAID else self.default
        place = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, place, default=default, annotation=kind)

    def read(self, given: Mapping[str, Any], into: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Set the argument if the flag was given; yield the value under each name of the flag."""
        value = given[self.name]
        if value is not None and self.mark.read is not None:
            value = self.mark.read(value)
        if value is not None or self.fallback is UNSAID:
            into[self.key] = value
        seen = self.fallback if value is None and self.fallback is not UNSAID else value
        yield from {self.name: seen, self.key: seen}.items()


@dataclass(frozen=True, slots=True)
class _Record:
    """A parameter that is built from several flags."""

    key: str
    by: Callable[..., Any]
    parts: tuple[_Field | _Record, ...]

    def read(self, given: Mapping[str, Any], into: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Build the record and set the argument; yield the record and all its fields."""
        arguments: dict[str, Any] = {}
        for part in self.parts:
            yield from part.read(given, arguments)
        into[self.key] = made = self.by(**arguments)
        yield self.key, made


def expose(
    action: Callable[..., Any],
    *,
    json: str | None = AS_JSON,
    dump: Callable[[Any], object] = lambda done: done,
    watch: Callable[..., AbstractContextManager[Mapping[str, Any]]] = lambda: nullcontext({}),
    instead: Callable[..., bool] | None = None,
    save: Callable[..., None] | None = None,
    end: Callable[..., None] | None = None,
    defaults: Mapping[str, Any] = types.MappingProxyType({}),
    hide: Collection[str] = (),
    first: Sequence[str] = (),
) -> Callable[[Command], Command]:
    """Turn a public function into a command; the decorated function displays its result.

    ``json`` is the help of ``--json`` (None: no such flag), and ``dump`` returns the value that it
    prints. ``watch`` opens the progress display and returns it as arguments. ``instead`` may do
    something else and return True. ``save`` writes the result to a file. ``end`` reports failures
    and sets the exit code. The parameters of these hooks select flags too. ``defaults`` overrides
    defaults, ``hide`` removes flags, and ``first`` lists flags that come first.
    """

    def decorate(show: Command) -> Command:
        # Flags for model calls are the same in every command, and come after the specific flags.
        parts = tuple(_find_parts(action, defaults, hide))
        more = [_read_extra(hook) for hook in (instead, watch, save, show) if hook is not None]
        flags = [*_flatten(parts), *(flag for found in more for flag in found)]
        flags.sort(key=lambda flag: _rank(flag, first))
        listed = [flag.parameter for flag in flags]
        if json is not None:
            listed.append(
                _Field("", "as_json", bool, False, Flag(json, "--json"), UNSAID).parameter
            )

        @functools.wraps(show)
        def command(**given: Any) -> None:
            scope, arguments = dict(given), dict[str, Any]()
            for part in parts:
                scope.update(part.read(given, arguments))
            if instead is not None and _call(instead, scope):
                return
            with _call(watch, scope) as watchers:
                done = action(**arguments, **watchers)
            if save is not None:
                _call(save, scope, done)
            if json is not None and given["as_json"]:
                print_json(dump(done))
            else:
                _call(show, scope, done)
            if end is not None:
                _call(end, scope, done)

        command.__annotations__ = {each.name: each.annotation for each in listed} | {"return": None}
        command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        return command

    return decorate


def make_default_group(first: str) -> type[TyperGroup]:
    """Make a command group in which ``group FOLDER`` means ``group FIRST FOLDER``."""

    class DefaultGroup(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Insert the default subcommand if none is given."""
            if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
                args = [first, *args]
            return super().parse_args(ctx, args)

    return DefaultGroup


def make_command(verb: Callable[..., Any]) -> Command:
    """Turn a public function into a command whose help is the first line of its docstring.

    The result is shown as its ``table()``, else as a table of records; ``--json`` prints it.
    """

    def show(done: Any) -> None:
        show_table(done.table() if hasattr(done, "table") else tabulate(done))

    show.__name__ = verb.__name__
    show.__doc__ = inspect.cleandoc(verb.__doc__ or "").partition("\n\n")[0]
    return expose(verb)(show)


def spread_with(
    *, hide: Collection[str] = (), first: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Turn a function that displays its result itself into a command; see :func:`expose`."""

    def decorate(function: Command) -> Command:
        def show(_: None) -> None:
            pass

        show.__name__, show.__doc__ = function.__name__, function.__doc__
        return expose(function, json=None, hide=hide, first=first)(show)

    return decorate


spread = spread_with()


def _call(hook: Callable[..., Any], scope: Mapping[str, Any], *done: object) -> Any:
    """Call a hook with the result and the flag values that its other parameters select."""
    wanted = list(inspect.signature(hook).parameters)[len(done) :]
    return hook(*done, **{name: scope[name] for name in wanted})


def _rank(flag: _Field, first: Sequence[str]) -> int:
    if isinstance(flag.mark, Argument):
        return -1
    if flag.record == "calls":
        return len(first) + 1
    return first.index(flag.key) if flag.key in first else len(first)


def _flatten(parts: Iterable[_Field | _Record]) -> Iterator[_Field]:
    for part in parts:
        if isinstance(part, _Record):
            yield from _flatten(part.parts)
        else:
            yield part


def _read_extra(hook: Callable[..., Any]) -> list[_Field]:
    return list(_flatten(_find_parts(hook, {}, ())))


def _find_parts(
    function: Callable[..., Any], defaults: Mapping[str, Any], hide: Collection[str]
) -> Iterator[_Field | _Record]:
    """Yield the annotated parameters of a function, or the annotated fields of a record."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        key, hint, default = parameter.name, hints.get(parameter.name), parameter.default
        if key not in hide:
            fallback = UNSAID if default is parameter.empty else default
            yield from _find_part(key, hint, fallback, defaults, hide)


def _find_part(
    key: str, hint: Any, fallback: Any, defaults: Mapping[str, Any], hide: Collection[str]
) -> Iterator[_Field | _Record]:
    found = [kind for kind in (hint, *get_args(hint)) if get_origin(kind) is Annotated]
    marks = [each for kind in found for each in get_args(kind)[1:]]
    mark = next((each for each in marks if isinstance(each, Flag | MadeBy)), None)
    if isinstance(mark, Flag):
        yield _make_flag(key, hint, fallback, mark, defaults)
        return
    kinds: list[Any] = (
        [mark.by] if mark else [kind for kind in _members(hint) if is_dataclass(kind)]
    )
    parts = tuple(part for kind in kinds for part in _find_parts(kind, defaults, hide))
    if parts:
        yield _Record(key, kinds[0], tuple(_tell(part, key) for part in parts))


def _tell(part: _Field | _Record, record: str) -> _Field | _Record:
    return replace(part, record=record) if isinstance(part, _Field) else part


def _make_flag(
    key: str, hint: Any, fallback: Any, mark: Flag, defaults: Mapping[str, Any]
) -> _Field:
    name = mark.flags if isinstance(mark, Argument) and mark.flags else mark.name or key
    kind, many, pairs = (mark.kind, False, False) if mark.kind else _read_kind(hint)
    if many or pairs:
        kind = list[kind]  # type: ignore[valid-type]
    if pairs and mark.read is None:
        flag = mark.flags or f"--{key.replace('_', '-')}"
        mark = replace(mark, read=functools.partial(read_pairs, flag))
    default = defaults.get(name, fallback if mark.default is UNSAID else mark.default)
    if default is not UNSAID and not isinstance(default, str | int | float | Path):
        default = None  # None, or an empty list
    if kind is Path and isinstance(default, str):
        default = Path(default)
    return _Field(key, name, kind | None if default is None else kind, default, mark, fallback)


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the member types of a union without annotations; for other types, the type itself."""
    if get_origin(hint) is Annotated:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for each in get_args(hint) for kind in _members(each))
    return (hint,)


def _read_kind(hint: Any) -> tuple[Any, bool, bool]:
    """Return the command-line type of a parameter, and whether it takes several values or pairs."""
    members = [kind for kind in _members(hint) if kind is not type(None)]
    for kind in members:
        origin = get_origin(kind)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return str, False, True
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return _read_kind(get_args(kind)[0])[0], True, False
    return (Path if Path in members else members[0]), False, False
