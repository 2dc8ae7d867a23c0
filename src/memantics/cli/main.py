"""``memantics``: the table of commands, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperArgument, TyperGroup, TyperOption

from memantics import __version__
from memantics.cli.terminal import guard_streams, say, tell
from memantics.core.errors import (
    InputError,
    MemanticsError,
    Unavailable,
    explain_absence,
    explain_os_error,
)

_TABLE: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
)
# The names of the commands, the module of each, and its line in the help.
COMMANDS = {path: (place, text) for path, (place, text, *_) in _TABLE.items()}
GROUPS: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("groups.toml").read_text(encoding="utf-8")
)
for _path, (_, _, *_named) in _TABLE.items():
    for _group in _named:
        GROUPS.setdefault(_group, []).append(_path.partition(" ")[0])
_GROUP_OF = {command: group for group, commands in GROUPS.items() for command in commands}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
# Exceptions that unexpected input may cause without a specific error message.
_BEYOND: dict[type[Exception], str] = {
    UnicodeDecodeError: "an input is not UTF-8; save it as UTF-8",
    RecursionError: "an input is nested too deeply; make it flatter",
    MemoryError: "the memory is not enough for this input; give it in parts",
}
BUILD = "Build a benchmark from memes: knowledge, questions, and drafts for people to check."


# The names of types in the help; a boolean flag has no value.
_TYPES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "bool": ""}
# Typer's exception for usage errors: its name changed with 0.26 and 0.29, but that of its subclass
# did not.
_WrongWords: type[Exception] = next(
    kind
    for kind in typer.BadParameter.__mro__
    if issubclass(kind, Exception) and kind.__base__ is Exception
)
_type_of: Callable[[Any, Any], str] | None = getattr(TyperOption, "display_type", None)


def _name_type(self: Any, ctx: Any) -> str:
    """Return the metavar of an option: ``PATH…`` for a list, the values of a short choice."""
    assert _type_of is not None
    label = _type_of(self, ctx).strip("<>").removesuffix(" range")
    inner = label.removeprefix("list[").removesuffix("]") if label.startswith("list[") else label
    return _TYPES.get(inner.lower(), inner) + "…" * (inner != label)


# before version 0.29, Typer names types as Click does: TEXT, INTEGER, PATH
if _type_of is not None:
    TyperArgument.display_type = TyperOption.display_type = _name_type  # type: ignore[method-assign]


class LazyGroup(TyperGroup):
    """A command group that lists commands from the table, and imports only the one that runs."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import and return the command that the arguments name."""
        name, listed, rest = super().resolve_command(ctx, args)
        path = f"{self.name} {name}" if f"{self.name} {name}" in COMMANDS else str(name)
        if listed is None or path not in COMMANDS:
            return name, listed, rest
        alone = typer.Typer(add_completion=False, context_settings=_CONTEXT)
        _add(alone, path, _find(COMMANDS[path][0]))
        made = typer.main.get_command(alone)
        command = made.commands[str(name)] if isinstance(made, TyperGroup) else made
        return name, command, rest


def make_app(*, lazy: bool = True) -> typer.Typer:
    """Build the command line app; unless ``lazy``, import the module of every command."""
    group = LazyGroup if lazy else TyperGroup
    app = typer.Typer(
        name="memantics",
        help="A workbench for computational meme understanding.",
        cls=group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=_CONTEXT,
    )
    app.callback()(_options)
    parents = {"": app}

    def open_parent(name: str, text: str) -> typer.Typer:
        if name not in parents:
            parents[name] = typer.Typer(help=text, cls=group, no_args_is_help=True)
            app.add_typer(parents[name], name=name, rich_help_panel=_GROUP_OF.get(name))
        return parents[name]

    open_parent("build", BUILD)
    for path, (place, text) in COMMANDS.items():
        found = _list_only(text) if lazy else _find(place)
        _add(open_parent(path.rpartition(" ")[0], text), path, found)
    return app


def _add(app: typer.Typer, path: str, found: Any) -> None:
    name, panel = path.rpartition(" ")[2], _GROUP_OF.get(path)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, rich_help_panel=panel)
    else:
        app.command(name, rich_help_panel=panel)(found)


def _list_only(text: str) -> Callable[[], None]:
    """Return a placeholder for a command in the list of commands."""

    def stand() -> None:
        raise AssertionError("internal error: a placeholder command was run")

    stand.__doc__ = text
    return stand


def _find(place: str) -> Any:
    """Return the object of a command table row: a command, or a function to turn into one."""
    module, _, name = place.partition(":")
    if not module.startswith("memantics."):
        return getattr(importlib.import_module(f"memantics.cli.{module}"), name)
    from memantics.cli.expose import make_command

    return make_command(getattr(importlib.import_module(module), name))


def _version(value: bool) -> None:
    if value:
        say(f"memantics {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Handle the options that come before the command."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed items, 2 user error, 130 interrupted."""
    with guard_streams():
        _main()


def _main() -> NoReturn:
    try:
        code = _run_command()
        sys.stdout.flush()
    except _WrongWords as error:
        _refuse(error)
    except (InputError, Unavailable) as error:
        _fail(str(error), 2)
    except MemanticsError as error:
        _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        tell("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        _leave_quietly()
    except SystemExit as stop:
        # Typer exits with 1 if the reader of our output (a pipe) has closed it.
        if isinstance(stop.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except (UnicodeEncodeError, TypeError) as error:
        # For the same problem, orjson raises a TypeError.
        if isinstance(error, TypeError) and "surrogates not allowed" not in str(error):
            raise
        _fail(f"a file name or text is not UTF-8 ({error}); rename the file", 2)
    except (UnicodeDecodeError, RecursionError, MemoryError) as error:
        _fail(next(said for kind, said in _BEYOND.items() if isinstance(error, kind)), 2)
    except OSError as error:
        _fail(explain_os_error(error), 2)
    sys.exit(code)


def _run_command() -> Any:
    """Run the command; a missing optional package is reported with the name of its extra."""
    if any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ):
        from memantics.core.tracing import start_traces

        start_traces()
    try:
        return make_app()(prog_name="memantics", standalone_mode=False)
    except ModuleNotFoundError as error:
        raise (explain_absence(error) or error) from error


def _refuse(error: Any) -> NoReturn:
    """Print a usage error as one line instead of Typer's box, and exit with code 2."""
    said = " ".join(error.format_message().split()).rstrip(".")
    context: typer.Context | None = getattr(error, "ctx", None)
    if said:  # if there is no message, the help was already shown
        command = context.command_path if context else "memantics"
        tell(f"error: {said[:1].lower()}{said[1:]}; see {command} --help")
    sys.exit(error.exit_code)


def _leave_quietly() -> NoReturn:
    """Exit without an error after the reader of a pipe (head, less) has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _fail(line: str, code: int) -> NoReturn:
    tell(f"error: {line}")
    sys.exit(code)


if __name__ == "__main__":
    main()
