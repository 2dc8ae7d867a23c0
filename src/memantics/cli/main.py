"""``memantics``: the commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperGroup

from memantics import __version__
from memantics.cli.terminal import guard_streams, say, tell
from memantics.core.errors import InputError, MemanticsError, Unavailable

# Where each command is, and its line in the help. A module is imported when its command runs: all
# of them together take two seconds, and nobody uses more than one at a time.
COMMANDS = {
    "run": ("evaluation:run", "Ask models the questions of benchmarks, and score the answers."),
    "analyze": (
        "analyze:analyze",
        "Say what memes say, show, mean, intend and pun on, and whom they may hurt.",
    ),
    "score": ("evaluation:score", "Score finished answers again; no model is asked."),
    "report": ("showing:report", "Compare runs on one self-contained page, or as a table."),
    "collect": (
        "collect:collect_memes",
        "Read a folder of images: text, language, copies, templates, filters. Deletes nothing.",
    ),
    "gallery": (
        "showing:show_gallery",
        "Show what editors made of memes: source, outputs, scores, failures, on one page.",
    ),
    "compare": (
        "comparison:compare",
        "Say which run is better, by how much and how surely, and list the items that changed.",
    ),
    "audit": (
        "audit:audit_benchmark",
        "Audit a benchmark: shortcuts, dead options, leaks, infeasible tables.",
    ),
    "export-inspect": (
        "showing:export_inspect",
        "Write runs as logs of Inspect, one file each (extra: inspect).",
    ),
    "humans": (
        "showing:export_humans",
        "Export answers for rating by people: a blind queue, and the key that tells who said what.",
    ),
    "pun": ("pun:read_puns", "Say what captions may mean when they are read aloud."),
    "reappraise": (
        "reappraise:reappraise",
        "Turn negative memes around: captions rewritten in place, panels and layout kept.",
    ),
    "publish": (
        "publish:publish",
        "Publish a reviewed queue: a benchmark folder, Parquet, Croissant and a data card.",
    ),
    "data": ("data:app", "Register, check and describe official releases."),
    "annotate": (
        "annotate:app",
        "Annotate in the browser: judge, edit, review, vote. 'annotate QUEUE' opens a queue.",
    ),
    "detector": ("detector:app", "Detectors of harmful memes."),
    "kb": ("kb:app", "Knowledge about memes: import, ask, check, draw, export."),
    "models": ("data:models", "List the kinds of models."),
    "build knowledge": (
        "build:build_knowledge",
        "Extract what memes show, say and mean, one structured call for each dimension.",
    ),
    "build questions": (
        "build:make_questions",
        "Write questions about what is known, try them, and level the set.",
    ),
    "build captions": (
        "build_drafts:build_captions",
        "Mine what words mean and pictures show, in each meme's language, for detectors and chats.",
    ),
    "build intents": (
        "build_drafts:build_intents",
        "Draft background knowledge and ranked intents; people edit and review them in a queue.",
    ),
    "build chats": (
        "build_drafts:make_chats",
        "Write chats that end in a meme, keep the best, and add near and random wrong answers.",
    ),
    "build reappraisal": (
        "reappraise:build_reappraisal",
        "Turn every meme of a folder around with one or more editors; people check the drafts.",
    ),
}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
BUILD = "Build a benchmark from memes: knowledge, questions, and drafts for people to check."

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions, or choose another place",
    errno.EROFS: "choose another place: this one can only be read",
    errno.ENOSPC: "make room on the disk, then run the same command again",
    errno.EDQUOT: "make room on the disk, then run the same command again",
}


class LazyGroup(TyperGroup):
    """Lists commands from the table, and imports the one that runs."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the command that a user's words name."""
        name, listed, rest = super().resolve_command(ctx, args)
        path = f"build {name}" if self.name == "build" else str(name)
        if listed is None or path not in COMMANDS:
            return name, listed, rest
        alone = typer.Typer(add_completion=False, context_settings=_CONTEXT)
        _add(alone, path, _find(COMMANDS[path][0]))
        made = typer.main.get_command(alone)
        command = made.commands[str(name)] if isinstance(made, TyperGroup) else made
        return name, command, rest


def make_app(*, lazy: bool = True) -> typer.Typer:
    """The command line; unless ``lazy``, with every command's module imported."""
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
    build = typer.Typer(help=BUILD, cls=group, no_args_is_help=True)
    app.add_typer(build, name="build")
    for path, (place, text) in COMMANDS.items():
        found = _list_only(text) if lazy else _find(place)
        _add(build if path.startswith("build ") else app, path, found)
    return app


def _add(app: typer.Typer, path: str, found: Any) -> None:
    name = path.removeprefix("build ")
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        app.command(name)(found)


def _list_only(text: str) -> Callable[[], None]:
    """Stand for a command in the list of the help."""

    def stand() -> None:
        raise AssertionError("a command of the list was run in place of the real one")

    stand.__doc__ = text
    return stand


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"memantics.cli.{module}"), name)


def _version(value: bool) -> None:
    if value:
        say(f"memantics {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line: 0 done, 1 failed items, 2 the user can fix it, 130 interrupted."""
    with guard_streams():
        _main()


def _main() -> NoReturn:
    try:
        code = make_app()(prog_name="memantics", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
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
        # Typer ends with 1 where the reader of our output went away.
        if isinstance(stop.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except (UnicodeEncodeError, TypeError) as error:
        # orjson's word for the same is a TypeError.
        if isinstance(error, TypeError) and "surrogates not allowed" not in str(error):
            raise
        _fail(f"a file name or text is not UTF-8 ({error}); rename the file", 2)
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
        tell(f"error: {said[:1].lower()}{said[1:]}; see {command} --help")
    sys.exit(error.exit_code)


def _leave_quietly() -> NoReturn:
    """End well: whoever read our output (head, less) has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _fail(line: str, code: int) -> NoReturn:
    tell(f"error: {line}")
    sys.exit(code)


if __name__ == "__main__":
    main()
