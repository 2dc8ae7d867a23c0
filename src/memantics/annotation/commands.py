"""Functions behind ``memantics annotate``: serve, import, settings, export, accounts, backups."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from memantics.annotation import require_extra
from memantics.annotation.drafting import make_drafter
from memantics.core.errors import InputError, UnknownName
from memantics.core.files import in_turn, open_regular, replace_file
from memantics.core.memes import read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.queue import CARD, read_queue
from memantics.core.registry import home
from memantics.core.result import Result
from memantics.models.client import CallSettings

if TYPE_CHECKING:
    from memantics.annotation.project_settings import ProjectSettings
    from memantics.annotation.records import Actor
    from memantics.annotation.service import AnnotationService

_SET = "training_set"
What = Literal[
    "annotations",
    "data",
    "individual",
    "aggregated",
    "agreement",
    "huggingface",
    "labelstudio",
    "raw",
    "audit",
]
_FORMS = {"labelstudio": "json", "huggingface": "zip"}


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """Project settings to change; None keeps the current value."""

    annotators_per_item: Annotated[
        int | None,
        Flag(
            "Number of annotators per item, 1 to 50. Existing annotations are kept.", min=1, max=50
        ),
    ] = None
    overlap: Annotated[
        float | None,
        Flag("Proportion of items that the whole team annotates, 0 to 1.", min=0, max=1),
    ] = None
    adjudicator: Annotated[
        Literal["lead", "extra-annotator", "none"] | None,
        Flag("Who resolves ties: the project lead, one more annotator, or none."),
    ] = None
    order: Annotated[
        Literal["given", "uncertainty"] | None,
        Flag("Order of items: as imported, or highest expected disagreement first."),
    ] = None

    comments: Annotated[
        bool | None, Flag("Let annotators leave a comment on each item.", "--comments")
    ] = None
    prelabels: Annotated[
        Literal["shown", "hidden"] | None,
        Flag("Show or hide model suggestions next to the form.", "--suggestions"),
    ] = None
    daily_limit: Annotated[
        int | None, Flag("Maximum memes per person and day; 0 means no limit.", min=0, max=100_000)
    ] = None
    weekly_limit: Annotated[
        int | None,
        Flag("Maximum memes per person and week; 0 means no limit.", min=0, max=1_000_000),
    ] = None
    language: Annotated[
        str | None, Flag("Language code of the memes, such as zh; also used for invitation pages.")
    ] = None
    pass_mark: Annotated[
        float | None,
        Flag("Proportion of training items to answer correctly, 0 to 1.", min=0, max=1),
    ] = None
    feedback: Annotated[
        bool | None,
        Flag(
            "Show the expected answer after each training item (--feedback), or hide it (--test).",
            "--feedback/--test",
        ),
    ] = None
    training_set: Annotated[
        Path | None, Flag("Queue with known answers ('gold') that new annotators train on.")
    ] = None
    questionnaire: Annotated[
        str | None, Flag("URL of a questionnaire for annotators, shown before the first meme.")
    ] = None

    @property
    def said(self) -> dict[str, object]:
        """Return the settings that were given."""
        given = asdict(self).items()
        return {name: value for name, value in given if value is not None and name != _SET}

    def apply(self, service: AnnotationService, actor: Actor, project: int) -> ProjectSettings:
        """Change a project, import its training set and return all settings."""
        settings = service.projects.change(actor, project, self.said)
        if self.training_set is not None:
            exchange = service.exchange
            exchange.import_queue(actor, project, self.training_set, training_set=True)
        return settings


FIRST_NAME = "lead"
WorkflowFlag = Annotated[
    str | None, Flag("Workflow for a folder of memes: a built-in name or a TOML file.")
]


@dataclass(frozen=True, slots=True)
class Storage:
    """Location of the annotations: an SQLite file or PostgreSQL URL, and a folder of images.

    By default, ``annotate/annotate.db`` in the home folder, and ``media`` next to the database.
    """

    database: Annotated[
        str | None,
        Flag(
            "SQLite file or postgresql://… Default: annotate/annotate.db in the home folder.",
            "--db",
            metavar="FILE|URL",
        ),
    ] = None
    media: Annotated[
        Path | None, Flag("Folder of images. Default: 'media' next to the database.")
    ] = None

    @property
    def url(self) -> str:
        """Return the database URL or file."""
        return self.database or str(home() / "annotate" / "annotate.db")

    @property
    def folder(self) -> Path:
        """Return the folder of images."""
        file = self.url.removeprefix("sqlite:///")
        beside = Path(file).parent if "://" not in file else home() / "annotate"
        return self.media or beside / "media"


AS_IT_IS = ProjectChanges()
Most = Annotated[int | None, Flag("Import only the first N items of the queue or folder.", min=1)]


@dataclass(frozen=True, slots=True)
class WebAppSettings:
    """Network and contact settings of the web app."""

    host: Annotated[str, Flag("Network address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Flag("Port to listen on; 0 selects a free port.", min=0, max=65535)] = 8765
    public_url: Annotated[
        str, Flag("Public URL of the app, such as https://annotate.example.org.")
    ] = ""
    trusted_proxies: Annotated[
        Sequence[str],
        Flag(
            "IP address or network of a trusted proxy (X-Forwarded-For). Repeatable.",
            "--trusted-proxy",
        ),
    ] = ()
    contact: Annotated[str, Flag("Support contact, shown on every page.")] = ""
    demo: Annotated[bool, Flag("Start a demo with the sample data; no data is kept.")] = False
    model: Annotated[
        str, Flag("Model that drafts guideline rules for the project lead.", "--model -m")
    ] = ""
    base_url: Annotated[str | None, Flag("URL of an OpenAI-compatible server.")] = None


@dataclass(frozen=True, slots=True)
class ImportSummary(Result):
    """Result of an import; ``skipped`` lists what was skipped, with the reason."""

    project: int
    source: Path
    items: int
    answers: int
    skipped: tuple[str, ...]

    def lines(self, most: int = 10) -> Iterator[str]:
        """Return the result as lines of text, with the first skipped entries."""
        brought = f"{self.items:,} new items"
        if self.answers:
            brought += f", {self.answers:,} answers"
        yield f"project {self.project}: {self.source}: {brought}"
        yield from (f"  skipped: {line}" for line in self.skipped[:most])
        if len(self.skipped) > most:
            yield f"  and {len(self.skipped) - most:,} more"


@dataclass(frozen=True, slots=True)
class BackupSummary(Result):
    """Content of a backup: number of answers and images."""

    file: Path
    answers: int
    images: int


@dataclass(frozen=True, slots=True)
class AppStart(Result):
    """Start message of the app: login link and imported queues."""

    link: str
    demo: bool
    imported: tuple[ImportSummary, ...]


def serve_annotations(
    storage: Storage,
    settings: WebAppSettings,
    queues: Annotated[
        Sequence[Path], Argument("Queues to annotate, or folders of memes (with --workflow).")
    ] = (),
    *,
    workflow: WorkflowFlag = None,
    changes: ProjectChanges = AS_IT_IS,
    limit: Most = None,
    started: Callable[[AppStart], None],
) -> None:
    """Serve the web app until the process is stopped; queues become projects first.

    Args:
        storage: Database and image folder.
        settings: Network, contact and demo settings.
        queues: Queues or folders of memes to open as projects.
        workflow: Workflow for folders of memes.
        changes: Project settings to change.
        limit: Import only the first items of each queue.
        started: Function that is called once, before the first request.

    Raises:
        InputError: A queue is invalid, or options cannot be combined.
    """
    require_extra()
    from memantics.annotation.web.app import make_app
    from memantics.annotation.web.settings import WebSettings, find_secret
    from memantics.web.server import check_public_url, is_local, listen, read_proxies, serve

    host, public_url, demo = settings.host, check_public_url(settings.public_url), settings.demo
    if demo and (queues or storage.database):
        raise InputError(
            "--demo cannot be combined with a queue or --db", hint="remove --demo or the others"
        )
    proxies = read_proxies(settings.trusted_proxies)
    open_to_others = bool(public_url) or not is_local(host)
    secret = find_secret(open_to_others, home() / "annotate" / "secret")
    with ExitStack() as stack:
        taken = stack.enter_context(listen(host, settings.port))
        port = int(taken.getsockname()[1])
        model, calls = settings.model, CallSettings(base_url=settings.base_url)
        draft = make_drafter(model, calls) if model else None
        web = WebSettings(
            secret, host, port, public_url, settings.contact, demo, proxies, draft, model
        )
        imported: list[ImportSummary] = []
        if demo:
            from memantics.annotation.demo import make_demo

            folder = Path(tempfile.mkdtemp(prefix="memantics-demo-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            storage = Storage(str(folder / "demo.db"), folder / "media")
            service = stack.enter_context(open_annotations(storage))
            actor, start = make_demo(service, folder)
        else:
            service = stack.enter_context(open_annotations(storage))
            start = "/"
            with in_turn(storage.folder):
                actor = find_admin(service)
                for queue in queues:
                    imported.append(_add(service, actor, queue, workflow, changes, limit))
                    start = f"/p/{imported[-1].project}"
        link = f"{web.url}/enter/{service.accounts.login_link(actor)}?next={start}"
        started(AppStart(link, demo, tuple(imported)))
        serve(make_app(service, web), taken)


def import_annotations(
    storage: Storage,
    source: Annotated[Path, Argument("Queue, folder of memes, or Label Studio file to import.")],
    *,
    workflow: WorkflowFlag = None,
    changes: ProjectChanges = AS_IT_IS,
    limit: Most = None,
    project: Annotated[
        int | None, Flag("Number of the project that receives a Label Studio file.")
    ] = None,
    images: Annotated[
        Path | None, Flag("Folder with the images of a Label Studio JSON file.")
    ] = None,
) -> ImportSummary:
    """Import a queue or a folder of memes, or a Label Studio file into a project.

    Args:
        storage: Database and image folder.
        source: Queue, folder of memes, or Label Studio file.
        workflow: Workflow for a folder of memes.
        changes: Project settings to change.
        limit: Import only the first items.
        project: Number of the project that receives a Label Studio file.
        images: Folder with the images of a Label Studio JSON file.

    Returns:
        The project number, the number of new items and answers, and skipped entries.

    Raises:
        InputError: The source does not exist, or options do not match it.
    """
    require_extra()
    if source.is_file() and project is None:
        raise InputError(f"{source} is a file: a project is needed", hint="add --project NUMBER")
    if not source.is_file() and (project is not None or images is not None):
        raise InputError(
            "--project and --images need a Label Studio file", hint="remove the two options"
        )
    with open_annotations(storage) as service, in_turn(storage.folder):
        actor = find_admin(service)
        if project is None:
            return _add(service, actor, source, workflow, changes, limit)
        require_project(service, actor, project)
        with open_regular(source) as file:
            done = service.exchange.import_tasks(actor, project, file, images)
        return ImportSummary(project, source, done.items, done.answers, done.skipped)


def reset_password(
    storage: Storage,
    name: Annotated[str, Argument("Name of the account; the first account is 'lead'.")],
) -> str:
    """Set a new random password, end all sessions and reopen a closed account.

    Args:
        storage: Database and image folder.
        name: Name of the account.

    Returns:
        The new password.

    Raises:
        NotFound: No account has this name.
    """
    require_extra()
    new = secrets.token_urlsafe(12)
    with open_annotations(storage) as service:
        service.accounts.reset_password(find_admin(service), name, new)
    return new


def close_account(storage: Storage, name: Annotated[str, Argument("Name of the account.")]) -> None:
    """Close an account; its annotations are kept.

    Args:
        storage: Database and image folder.
        name: Name of the account.

    Raises:
        NotFound: No account has this name.
    """
    require_extra()
    with open_annotations(storage) as service:
        service.accounts.deactivate(find_admin(service), name)


def back_up(
    storage: Storage, out: Annotated[Path, Argument("Backup file to write (ZIP).")]
) -> BackupSummary:
    """Back up the database and images into one file; the app may be running.

    Args:
        storage: Database and image folder.
        out: ZIP file to write.

    Returns:
        The file, the number of answers and the number of images.

    Raises:
        StoreError: The file cannot be written.
    """
    require_extra()
    from memantics.annotation.backup import backup

    with open_annotations(storage) as service:
        made = backup(service, out)
    return BackupSummary(out, made.tables.get("revisions", 0), made.images)


def restore_backup(
    storage: Storage,
    archive: Annotated[Path, Argument("Backup file written by 'annotate backup'.")],
) -> BackupSummary:
    """Restore a backup into an empty database.

    Args:
        storage: Database and image folder.
        archive: File written by :func:`back_up`.

    Returns:
        The file, the number of answers and the number of images.

    Raises:
        DataError: The backup is damaged.
        StoreError: The database is not empty.
    """
    require_extra()
    from memantics.annotation.backup import restore

    made = restore(archive, storage.url, storage.folder)
    return BackupSummary(archive, made.tables.get("revisions", 0), made.images)


@contextmanager
def open_annotations(storage: Storage) -> Iterator[AnnotationService]:
    """Open the annotation service for the length of a ``with`` block."""
    from memantics.annotation.service import open_service

    service = open_service(storage.url, media=storage.folder)
    try:
        yield service
    finally:
        service.close()


def find_admin(service: AnnotationService) -> Actor:
    """Return the administrator account of the command line; create it at the first start."""
    # The password is never shown: the login link or 'annotate password' gives access.
    return service.accounts.local_admin() or service.accounts.create_first(
        FIRST_NAME, secrets.token_urlsafe(24)
    )


def require_project(service: AnnotationService, actor: Actor, number: int) -> None:
    """Raise an error that lists the project numbers if a project does not exist."""
    known = [str(project.id) for project in service.projects.mine(actor)]
    if not known:
        raise InputError(
            "the database has no projects", hint="create one: memantics annotate import QUEUE"
        )
    if str(number) not in known:
        raise UnknownName("project", str(number), known)


def _add(
    service: AnnotationService,
    actor: Actor,
    folder: Path,
    workflow: str | None,
    changes: ProjectChanges,
    limit: int | None,
) -> ImportSummary:
    """Create a project from a queue or folder of memes; its creator gets all roles.

    The same folder, imported again, adds new items to its project. A file lock prevents two
    processes from creating two projects.
    """
    from memantics.annotation.workflow import ROLES, read_workflow

    if not folder.is_dir():
        raise InputError(
            f"folder {folder} does not exist", hint="give a queue or a folder of memes"
        )
    named = Path(workflow) if workflow and workflow.endswith(".toml") else workflow
    is_queue = (folder / CARD).is_file()
    if is_queue:
        card, _ = read_queue(folder, any_id=True)
        title, flow = card.title, read_workflow(named).name if named else card.workflow
    elif named is None:
        raise InputError(
            f"{folder} is not a queue: queue.json is missing",
            hint="for a folder of memes, add --workflow, for example --workflow pun-form",
        )
    else:
        title, flow = folder.resolve().name, read_workflow(named).name
    queued = partial(service.exchange.import_queue, any_workflow=named is not None)
    bring = queued if is_queue else service.exchange.import_memes
    same = [
        project.id
        for project in service.projects.mine(actor)
        if project.title == title and project.workflow.name == flow and "lead" in project.roles
    ]
    if same:
        changes.apply(service, actor, same[0])
        done = bring(actor, same[0], folder, limit)
        return ImportSummary(same[0], folder, done.items, done.answers, done.skipped)
    if is_queue:
        made = service.exchange.make_project(actor, folder, named, changes.said).id
    else:
        read_memes(folder)  # raises before a project is created
        made = service.projects.create(actor, title, named or flow, changes=changes.said).id
    changes.apply(service, actor, made)
    done = bring(actor, made, folder, limit)
    service.projects.set_roles(actor, made, actor.id, ROLES)
    return ImportSummary(made, folder, done.items, done.answers, done.skipped)


def set_up_project(
    storage: Storage,
    changes: ProjectChanges,
    project: Annotated[int, Argument("Project number.")],
) -> dict[str, object]:
    """Change annotators per item, adjudication and other settings of a project.

    Args:
        storage: Database and image folder.
        changes: Settings to change; without changes, the settings are only returned.
        project: Project number.

    Returns:
        All settings of the project by name.

    Raises:
        InputError: A value is not allowed, or the project does not exist.
    """
    require_extra()
    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        settings = changes.apply(service, actor, project)
        held = service.projects.get(actor, project)
    flow = held.workflow
    mark = flow.training.threshold if flow.training else ""
    now = {
        "annotators_per_item": flow.stages[flow.main_stage].annotators,
        "pass_mark": mark,
        "language": held.language,
    }
    return settings.model_dump(exclude={"clarifications", "options"}) | now


def export_annotations(
    storage: Storage,
    project: Annotated[int, Argument("Project number.")],
    out: Annotated[Path, Flag("File to write; for 'huggingface', a folder.")],
    what: Annotated[
        What,
        Flag(
            "Content to export. annotations: input of publish and build. data: one row per item,"
            " with all annotations. individual: one row per annotator and field. aggregated: one"
            " row per item. raw: all revisions. audit: all changes."
        ),
    ] = "annotations",
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "json", "zip", "tex"] | None,
        Flag("File format. Default: from the name of --out, else as usual for --what.", "--format"),
    ] = None,
) -> None:
    """Write annotations, tables or agreement of a project to a file.

    Args:
        storage: Database and image folder.
        project: Project number.
        out: File to write, or a new folder for ``huggingface``.
        what: Content to export.
        form: File format. Default: from the extension of --out, else the usual format of --what.

    Raises:
        InputError: The project does not exist, or the folder already exists.
        UnsupportedFormat: The content is not available in this format.
    """
    require_extra()
    ending = out.suffix.removeprefix(".").lower()
    named = ending if ending in ("csv", "parquet", "tex", "zip", "json", "jsonl") else ""
    shape = (
        form or (named if what not in ("annotations", "raw") else "") or _FORMS.get(what, "jsonl")
    )
    as_folder = what == "huggingface" and not named
    if as_folder and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} already exists", hint="name a new folder")
    from memantics.annotation.export import unpack_folder, unpack_images

    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        made = service.exchange.export(actor, project, what, shape)
        if what == "data" and shape != "zip":  # the table names images beside it
            unpack_images(service.exchange.export(actor, project, what, "zip").data, out.parent)
    if as_folder:
        unpack_folder(made.data, out)
        return
    replace_file(out, made.data, "export")
