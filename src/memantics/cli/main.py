"""``memantics``: the commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from memantics import __version__
from memantics.core.errors import InputError, MemanticsError, Unavailable

# Where each command is. A module is imported when its command is asked for: all of them together
# take a second, and nobody uses more than one at a time.
COMMANDS = {
    "run": "evaluation:run",
    "analyze": "analyze:analyze",
    "score": "evaluation:score",
    "report": "evaluation:report",
    "collect": "collect:collect_memes",
    "gallery": "gallery:show_gallery",
    "compare": "comparison:compare",
    "audit": "audit:audit_benchmark",
    "export-inspect": "inspection:export",
    "humans": "humans:export_humans",
    "pun": "pun:read_puns",
    "reappraise": "reappraise:reappraise",
    "publish": "publish:publish",
}
GROUPS = {
    "data": "data:app",
    "annotate": "annotate:app",
    "detector": "detector:app",
    "kb": "kb:app",
    "models": "models:app",
}
BUILD = {
    "knowledge": "build:build_knowledge",
    "questions": "build:make_questions",
    "captions": "build_drafts:build_captions",
    "intents": "build_drafts:build_intents",
    "chats": "build_drafts:make_chats",
    "reappraisal": "build_reappraisal:build_reappraisal",
}

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions, or choose another place",
    errno.EROFS: "choose another place: this one can only be read",
    errno.ENOSPC: "make room on the disk, then run the same command again",
    errno.EDQUOT: "make room on the disk, then run the same command again",
}


def make_app(words: list[str] | None = None) -> typer.Typer:
    """The command line; with a user's words, only the command that they ask for, if they do."""
    app = typer.Typer(
        name="memantics",
        help="A workbench for computational meme understanding.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_options)
    first, second = (*(words or []), "", "")[:2]
    known = first in COMMANDS or first in GROUPS or first in ("build", "--version")
    if first == "build" or not known:
        app.add_typer(_make_build(second), name="build")
    for name, place in GROUPS.items():
        if name == first or not known:
            app.add_typer(_find(place), name=name)
    for name, place in COMMANDS.items():
        if name == first or not known:
            app.command(name)(_find(place))
    if len(app.registered_commands) + len(app.registered_groups) <= 1:
        # A lone command would take the place of the whole: its name would be its first argument.
        app.command("help", hidden=True)(_show_help)
    return app


def _make_build(wanted: str) -> typer.Typer:
    group = typer.Typer(
        help="Build a benchmark from memes: knowledge, questions, and drafts for people to check.",
        no_args_is_help=True,
    )
    for name, place in BUILD.items():
        if wanted not in BUILD or name == wanted:
            group.command(name)(_find(place))
    if len(group.registered_commands) == 1:
        group.command("help", hidden=True)(_show_help)
    return group


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"memantics.cli.{module}"), name)


def _show_help() -> None:
    """Stand beside a lone command."""
    typer.echo("memantics --help lists all commands")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"memantics {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line: 0 done, 1 failed items, 2 the user can fix it, 130 interrupted."""
    try:
        code = make_app(sys.argv[1:])(prog_name="memantics", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        _refuse(error)
    except (InputError, Unavailable) as error:
        _fail(str(error), 2)
    except MemanticsError as error:
        _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        _leave_quietly()
    except SystemExit as stop:
        # Typer ends with 1 where the reader of our output went away.
        if isinstance(stop.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = _REMEDIES.get(error.errno or 0, "check that the place can be read and written")
        _fail(f"{where}{error.strerror or error}; {hint}", 2)
    sys.exit(code)


def _refuse(error: typer.TyperException) -> NoReturn:
    """One line, as for all that a user can fix, in the place of Typer's box."""
    said = " ".join(error.format_message().split()).rstrip(".")
    context: typer.Context | None = getattr(error, "ctx", None)
    if said:  # where there is nothing to say, the help was shown
        command = context.command_path if context else "memantics"
        typer.echo(f"error: {said[:1].lower()}{said[1:]}; see {command} --help", err=True)
    sys.exit(error.exit_code)


def _leave_quietly() -> NoReturn:
    """End well: whoever read our output (head, less) has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _fail(line: str, code: int) -> NoReturn:
    typer.echo(f"error: {line}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
