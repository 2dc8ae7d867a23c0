"""``memantics annotate``: the web app in which people validate, edit and agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from memantics.actions import annotate as actions
from memantics.cli import queues
from memantics.cli.terminal import console, plain, print_lines, say

FIRST = "open"


class OpenByDefault(TyperGroup):
    """``annotate QUEUE`` means ``annotate open QUEUE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the first command in where none is named."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = [FIRST, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=OpenByDefault,
    help="Annotate in the browser: judge, edit, review, vote. 'annotate QUEUE' opens a queue.",
)
app.command("questionnaire")(queues.make_questionnaire)
app.command("texts")(queues.make_texts)
app.command("apply-texts")(queues.apply_texts)
app.command("errors")(queues.make_errors)

Queues = Annotated[
    list[Path] | None,
    typer.Argument(help="Queues, or folders of memes (with --workflow), to annotate."),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="FILE|URL",
        help="SQLite file or postgresql://… Default: annotate/annotate.db in the home folder.",
    ),
]
MediaFolder = Annotated[
    Path | None,
    typer.Option("--media", help="Where images are kept. Default: 'media' beside the database."),
]
Flow = Annotated[
    str | None,
    typer.Option("--workflow", help="Workflow of a folder of memes: a name, or a TOML file."),
]


@app.command(FIRST)
def open_app(
    queues: Queues = None,
    database: Database = None,
    media: MediaFolder = None,
    workflow: Flow = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Try it on the starter pack; nothing is kept.")
    ] = False,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8765,
    public_url: Annotated[
        str, typer.Option(help="The address people use, such as https://annotate.example.org.")
    ] = "",
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address of a proxy whose X-Forwarded-For is believed; none by default."),
    ] = None,
    contact: Annotated[
        str, typer.Option(help="Whom people can turn to when the work weighs on them.")
    ] = "",
) -> None:
    """Start the web app; queues that are named are opened as projects."""
    settings = actions.ServeSettings(host, port, public_url, trusted_proxy or (), contact, demo)
    storage = actions.Storage(database, media)
    actions.serve_annotations(
        storage, settings, queues or (), workflow=workflow, started=_show_start
    )


def _show_start(start: actions.AppStart) -> None:
    for done in start.imported:
        _show_import(done)
    out = console()
    out.print(plain("Open this link in a browser; it logs you in, once, within the hour:"))
    say(f"  {start.link}")  # never wrapped: people copy it
    after = "then the demonstration is gone" if start.demo else "every saved answer is kept"
    out.print(plain(f"Stop with Ctrl+C; {after}."))


@app.command("import")
def take_in(
    source: Annotated[
        Path,
        typer.Argument(help="A queue, a folder of memes, or a file from Label Studio."),
    ],
    database: Database = None,
    media: MediaFolder = None,
    workflow: Flow = None,
    project: Annotated[
        int | None, typer.Option(help="Where a Label Studio file (JSON or ZIP) goes.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="The folder with the images of a Label Studio JSON file.")
    ] = None,
) -> None:
    """Bring in a queue, memes or Label Studio tasks, without starting the web app."""
    storage = actions.Storage(database, media)
    _show_import(
        actions.import_annotations(
            storage, source, workflow=workflow, project=project, images=images
        )
    )


@app.command("export")
def hand_out(
    project: Annotated[int, typer.Argument(help="The number of the project.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    database: Database = None,
    media: MediaFolder = None,
    what: Annotated[
        Literal["verdicts", "resolved", "raw", "labelstudio", "audit"],
        typer.Option(help="Verdicts for construction, the data, or every change."),
    ] = "verdicts",
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "json", "zip"] | None,
        typer.Option(
            "--format", help="Default: jsonl; for labelstudio json, or zip with the images."
        ),
    ] = None,
) -> None:
    """Write the verdicts or the data of a project to a file."""
    actions.export_annotations(actions.Storage(database, media), project, out, what, form)
    console().print(plain(f"{what} of project {project}: {out}"))


@app.command("password")
def give_password(
    name: Annotated[str, typer.Argument(help="The name of an account; the first is 'lead'.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Give an account a new password and print it; its sessions end, and a closed one opens."""
    new = actions.reset_password(actions.Storage(database, media), name)
    console().print(plain(f"new password of {name}: {new} (change it under Settings)"))


@app.command("close")
def close_account(
    name: Annotated[str, typer.Argument(help="The name of an account.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Close an account: nobody can use it any more, what it answered stays."""
    actions.close_account(actions.Storage(database, media), name)
    console().print(plain(f"closed: {name}; 'annotate password {name}' opens it again"))


@app.command("backup")
def back_up(
    out: Annotated[Path, typer.Argument(help="File to write.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Back up database and images into one file, while the app may run."""
    _show_backup("backup", actions.back_up(actions.Storage(database, media), out))


@app.command("restore")
def bring_back(
    archive: Annotated[Path, typer.Argument(help="A file that 'annotate backup' wrote.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Restore a backup into an empty database."""
    _show_backup("restored", actions.restore_backup(actions.Storage(database, media), archive))


def _show_backup(verb: str, done: actions.BackupSummary) -> None:
    held = f"{done.answers:,} answers, {done.images:,} images"
    console().print(plain(f"{verb}: {done.file} ({held})"))


def _show_import(done: actions.ImportSummary) -> None:
    """Say what came in, and name what did not."""
    print_lines(done.lines())
