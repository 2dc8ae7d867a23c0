"""``memantics annotate``: the web app in which people validate, edit and agree."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from memantics.annotate import require_extra
from memantics.cli.terminal import console, plain
from memantics.core.errors import InputError, UnknownName
from memantics.core.home import home
from memantics.core.journal import replace_file
from memantics.core.memes import read_memes
from memantics.core.queue import CARD, read_queue

if TYPE_CHECKING:
    from memantics.annotate.records import Actor, Imported
    from memantics.annotate.service import Service

FIRST = "open"
FIRST_NAME = "lead"
_LISTED = 10


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
    require_extra()
    from memantics.annotate.web.server import listen, serve
    from memantics.annotate.web.settings import WebSettings, find_secret, is_local, read_proxies

    if demo and (queues or database):
        raise InputError("--demo goes with neither a queue nor --db", hint="leave one out")
    if public_url and not public_url.startswith(("http://", "https://")):
        raise InputError(f"--public-url {public_url} is no address", hint="begin with https://")
    proxies = read_proxies(trusted_proxy or ())
    open_to_others = public_url or not is_local(host)
    secret = find_secret(bool(open_to_others), home() / "annotate" / "secret")
    with ExitStack() as stack:
        taken = stack.enter_context(listen(host, port))
        if demo:
            folder = Path(tempfile.mkdtemp(prefix="memantics-demo-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            service = stack.enter_context(_open(str(folder / "demo.db"), folder / "media"))
        else:
            service = stack.enter_context(_open(database, media))
        settings = WebSettings(
            secret, host, int(taken.getsockname()[1]), public_url, contact, demo, proxies
        )
        if demo:
            from memantics.cli.annotate_demo import make_demo

            actor, start = make_demo(service, folder)
        else:
            actor, start = find_admin(service), "/"
            for queue in queues or ():
                project, done = _add(service, actor, queue, workflow)
                _report(project, queue, done)
                start = f"/p/{project}"
        link = f"{settings.address}/enter/{service.accounts.login_link(actor)}?next={start}"
        out = console()
        out.print(plain("Open this link in a browser; it logs you in, once, within the hour:"))
        typer.echo(f"  {link}")
        out.print(
            plain(
                "Stop with Ctrl+C; every saved answer is kept."
                if not demo
                else "Stop with Ctrl+C; then the demonstration is gone."
            )
        )
        serve(service, settings, taken)


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
    require_extra()
    if source.is_file() and project is None:
        raise InputError(f"{source} is a file", hint="give --project with the number of a project")
    if not source.is_file() and (project is not None or images is not None):
        raise InputError(
            "--project and --images go with a file from Label Studio", hint="leave them out"
        )
    with _open(database, media) as service:
        actor = find_admin(service)
        if project is None:
            project, done = _add(service, actor, source, workflow)
        else:
            _require_project(service, actor, project)
            with source.open("rb") as file:
                done = service.exchange.import_tasks(actor, project, file, images)
        _report(project, source, done)


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
    require_extra()
    shape = form or ("json" if what == "labelstudio" else "jsonl")
    with _open(database, media) as service:
        actor = find_admin(service)
        _require_project(service, actor, project)
        made = service.exchange.export(actor, project, what, shape)
    replace_file(out, made.data, "export")
    console().print(plain(f"{what} of project {project}: {out}"))


@app.command("password")
def give_password(
    name: Annotated[str, typer.Argument(help="The name of an account; the first is 'lead'.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Give an account a new password and print it; its sessions end, and a closed one opens."""
    require_extra()
    new = secrets.token_urlsafe(12)
    with _open(database, media) as service:
        service.accounts.reset_password(find_admin(service), name, new)
    console().print(plain(f"new password of {name}: {new} (change it under Settings)"))


@app.command("close")
def close_account(
    name: Annotated[str, typer.Argument(help="The name of an account.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Close an account: nobody can use it any more, what it answered stays."""
    require_extra()
    with _open(database, media) as service:
        service.accounts.deactivate(find_admin(service), name)
    console().print(plain(f"closed: {name}; 'annotate password {name}' opens it again"))


@app.command("backup")
def back_up(
    out: Annotated[Path, typer.Argument(help="File to write.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Back up database and images into one file, while the app may run."""
    require_extra()
    from memantics.annotate.backup import backup

    with _open(database, media) as service:
        made = backup(service, out)
    answers = made.tables.get("revisions", 0)
    console().print(plain(f"backup: {out} ({answers:,} answers, {made.images:,} images)"))


@app.command("restore")
def bring_back(
    archive: Annotated[Path, typer.Argument(help="A file that 'annotate backup' wrote.")],
    database: Database = None,
    media: MediaFolder = None,
) -> None:
    """Restore a backup into an empty database."""
    require_extra()
    from memantics.annotate.backup import restore

    url, folder = _places(database, media)
    made = restore(archive, url, folder)
    answers = made.tables.get("revisions", 0)
    console().print(plain(f"restored: {archive} ({answers:,} answers, {made.images:,} images)"))


def _places(database: str | None, media: Path | None) -> tuple[str, Path]:
    url = database or str(home() / "annotate" / "annotate.db")
    if media is None:
        file = url.removeprefix("sqlite:///")
        beside = Path(file).parent if "://" not in file else home() / "annotate"
        media = beside / "media"
    return url, media


@contextmanager
def _open(database: str | None, media: Path | None) -> Iterator[Service]:
    from memantics.annotate.service import open_service

    url, folder = _places(database, media)
    service = open_service(url, media=folder)
    try:
        yield service
    finally:
        service.close()


def find_admin(service: Service) -> Actor:
    """The administrator that the person at the terminal is; made at the first start."""
    # Nobody knows this password: the link logs in, and 'annotate password' makes another.
    return service.accounts.local_admin() or service.accounts.create_first(
        FIRST_NAME, secrets.token_urlsafe(24)
    )


def _require_project(service: Service, actor: Actor, number: int) -> None:
    """Say which numbers there are: at the terminal, nobody need be kept in the dark."""
    known = [str(project.id) for project in service.projects.mine(actor)]
    if not known:
        raise InputError(
            "there is no project yet", hint="memantics annotate import QUEUE makes one"
        )
    if str(number) not in known:
        raise UnknownName("project", str(number), known)


def _report(project: int, source: Path, done: Imported) -> None:
    """Say what came in, and name what did not."""
    out = console()
    brought = f"{done.items:,} new items"
    if done.answers:
        brought += f", {done.answers:,} answers"
    out.print(plain(f"project {project}: {source}: {brought}"))
    for line in done.skipped[:_LISTED]:
        out.print(plain(f"  left out: {line}"))
    if len(done.skipped) > _LISTED:
        out.print(plain(f"  and {len(done.skipped) - _LISTED:,} more"))


def _add(
    service: Service, actor: Actor, folder: Path, workflow: str | None
) -> tuple[int, Imported]:
    """A project from a queue, or from a folder of memes; its maker may do everything in it.

    The same folder given again adds what is new to the project that it made before.
    """
    from memantics.annotate.workflow import ROLES, read_workflow

    named = Path(workflow) if workflow and workflow.endswith(".toml") else workflow
    is_queue = (folder / CARD).is_file()
    if is_queue:
        card, _ = read_queue(folder)
        title, flow = card.title, card.workflow
    elif named is None:
        raise InputError(
            f"{folder} is no queue", hint="for a folder of memes, give --workflow pun-form"
        )
    else:
        title, flow = folder.resolve().name, read_workflow(named).name
    bring = service.exchange.import_queue if is_queue else service.exchange.import_memes
    for project in service.projects.mine(actor):
        if project.title == title and project.workflow.name == flow and "lead" in project.roles:
            return project.id, bring(actor, project.id, folder)
    if is_queue:
        made = service.exchange.make_project(actor, folder, named).id
    else:
        read_memes(folder)  # a folder without memes leaves no project behind
        made = service.projects.create(actor, title, named or flow).id
    done = bring(actor, made, folder)
    service.projects.set_roles(actor, made, actor.id, ROLES)
    return made, done
