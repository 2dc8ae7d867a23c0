"""``memantics``: the commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from memantics import __version__
from memantics.cli import (
    analyze,
    annotate,
    audit,
    build,
    build_captions,
    build_chats,
    build_intents,
    build_questions,
    build_reappraisal,
    collect,
    comparison,
    data,
    detector,
    evaluation,
    gallery,
    humans,
    inspection,
    kb,
    models,
    publish,
    pun,
    reappraise,
)
from memantics.core.errors import InputError, MemanticsError, Unavailable

app = typer.Typer(
    name="memantics",
    help="A workbench for computational meme understanding.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
build.app.command("questions")(build_questions.make_questions)
build.app.command("captions")(build_captions.build_captions)
build.app.command("intents")(build_intents.build_intents)
build.app.command("chats")(build_chats.make_chats)
build.app.command("reappraisal")(build_reappraisal.build_reappraisal)
app.add_typer(build.app, name="build")
app.add_typer(data.app, name="data")
app.add_typer(annotate.app, name="annotate")
app.add_typer(detector.app, name="detector")
app.add_typer(kb.app, name="kb")
app.add_typer(models.app, name="models")
app.command("run")(evaluation.run)
app.command("analyze")(analyze.analyze)
app.command("score")(evaluation.score)
app.command("report")(evaluation.report)
app.command("collect")(collect.collect_memes)
app.command("gallery")(gallery.show_gallery)
app.command("compare")(comparison.compare)
app.command("audit")(audit.audit_benchmark)
app.command("export-inspect")(inspection.export)
app.command("humans")(humans.export_humans)
app.command("pun")(pun.read_puns)
app.command("reappraise")(reappraise.reappraise)
app.command("publish")(publish.publish)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"memantics {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line: 0 done, 1 failed items, 2 the user can fix it, 130 interrupted."""
    try:
        app()
    except (InputError, Unavailable) as error:
        _fail(error, 2)
    except MemanticsError as error:
        _fail(error, 1)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (head, less): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        typer.echo(f"error:{where}: {error.strerror or error}", err=True)
        sys.exit(2)


def _fail(error: MemanticsError, code: int) -> None:
    typer.echo(f"error: {error}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
