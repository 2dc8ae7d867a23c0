"""Functions behind ``memantics annotate``: serve, import, set up, export, accounts and backups.

A model can draft a clarification of the guideline, for the app and for the command.
"""

from __future__ import annotations

import io
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from memantics.annotation import require_extra
from memantics.annotation.project_settings import LocalizedText
from memantics.core.errors import InputError, ModelError, UnknownName
from memantics.core.files import in_turn, replace_file
from memantics.core.memes import read_memes
from memantics.core.model import Step
from memantics.core.parameters import Argument, Flag
from memantics.core.queue import CARD, read_queue
from memantics.core.registry import home
from memantics.core.reply import read_object
from memantics.core.result import Result
from memantics.core.waiting import run_sync
from memantics.models.client import CallSettings, open_client
from memantics.models.drafts import make_request, record, text

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
    """Settings of a project that are not its workflow's; None: as they are."""

    annotators_per_item: Annotated[
        int | None, Flag("How many people judge each item. Votes are kept.", min=1, max=50)
    ] = None
    overlap: Annotated[
        float | None, Flag("Share of items that the whole team judges.", min=0, max=1)
    ] = None
    adjudicator: Annotated[
        Literal["lead", "extra-annotator", "none"] | None,
        Flag("Who settles ties: the lead, one more vote of another person, or nobody."),
    ] = None
    order: Annotated[
        Literal["given", "uncertainty"] | None,
        Flag("Order of items: that of the queue, or by expected information."),
    ] = None

    comments: Annotated[
        bool | None, Flag("Let people leave a comment with each item.", "--comments")
    ] = None
    prelabels: Annotated[
        Literal["shown", "hidden"] | None,
        Flag("Suggestions of models: shown beside the form, or hidden.", "--suggestions"),
    ] = None
    daily_limit: Annotated[
        int | None, Flag("Memes a day and person; 0: no limit.", min=0, max=100_000)
    ] = None
    weekly_limit: Annotated[
        int | None, Flag("Memes a week and person; 0: no limit.", min=0, max=1_000_000)
    ] = None
    language: Annotated[
        str | None, Flag("Language of the memes, such as zh; invitations greet people in it.")
    ] = None
    pass_mark: Annotated[
        float | None, Flag("Share of training items to get right before real work.", min=0, max=1)
    ] = None
    feedback: Annotated[
        bool | None,
        Flag("Show the expected answers in training, or make it a test.", "--feedback/--test"),
    ] = None
    training_set: Annotated[
        Path | None, Flag("A queue with known answers ('gold') on which people train first.")
    ] = None
    questionnaire: Annotated[
        str | None, Flag("Address of a questionnaire about oneself, shown before the first meme.")
    ] = None

    @property
    def said(self) -> dict[str, object]:
        """Those settings that were given."""
        given = asdict(self).items()
        return {name: value for name, value in given if value is not None and name != _SET}

    def apply(self, service: AnnotationService, actor: Actor, project: int) -> ProjectSettings:
        """Change a project, and bring its training set in; returns all of its settings."""
        settings = service.projects.change(actor, project, self.said)
        if self.training_set is not None:
            exchange = service.exchange
            exchange.import_queue(actor, project, self.training_set, training_set=True)
        return settings


_SCHEMA = record(en=text(), zh=text())


def make_drafter(model: str, calls: CallSettings) -> Callable[[str], LocalizedText]:
    """A function that has a model draft a clarification; a reply that is none raises."""

    async def draft(prompt: str) -> LocalizedText:
        with tempfile.TemporaryDirectory() as folder:
            async with open_client(model, calls, Path(folder)) as client:
                request = make_request(prompt, _SCHEMA)
                taken = await client.take(
                    Step(
                        "guideline/clarify",
                        request,
                        lambda reply: read_object(reply, LocalizedText),
                    )
                )
        if taken.value is None:
            raise ModelError(
                f"{model} gave no draft ({taken.status}: {taken.reason})",
                hint="write the rule yourself, or try another model",
            )
        return taken.value

    return lambda prompt: run_sync(draft(prompt))


FIRST_NAME = "lead"
WorkflowFlag = Annotated[str | None, Flag("Workflow of a folder of memes: a name, or a TOML file.")]


@dataclass(frozen=True, slots=True)
class Storage:
    """Where annotations are kept: an SQLite file or a PostgreSQL address, and a folder of images.

    By default ``annotate/annotate.db`` in the home folder, and ``media`` beside the database.
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
        Path | None, Flag("Where images are kept. Default: 'media' beside the database.")
    ] = None

    @property
    def url(self) -> str:
        """The database."""
        return self.database or str(home() / "annotate" / "annotate.db")

    @property
    def folder(self) -> Path:
        """The folder of images."""
        file = self.url.removeprefix("sqlite:///")
        beside = Path(file).parent if "://" not in file else home() / "annotate"
        return self.media or beside / "media"


AS_IT_IS = ProjectChanges()
Most = Annotated[int | None, Flag("Only the first so many items of a queue or folder.", min=1)]


@dataclass(frozen=True, slots=True)
class WebAppSettings:
    """How the web app is reached, and by whom."""

    host: Annotated[str, Flag("Where to listen.")] = "127.0.0.1"
    port: Annotated[int, Flag("0 takes any free port.", min=0, max=65535)] = 8765
    public_url: Annotated[
        str, Flag("The address people use, such as https://annotate.example.org.")
    ] = ""
    trusted_proxies: Annotated[
        Sequence[str],
        Flag(
            "Address of a proxy whose X-Forwarded-For is believed; none by default.",
            "--trusted-proxy",
        ),
    ] = ()
    contact: Annotated[str, Flag("Whom people can turn to when the work weighs on them.")] = ""
    demo: Annotated[bool, Flag("Try it on the sample data; nothing is kept.")] = False
    model: Annotated[
        str, Flag("Model that drafts additions to guidelines for the lead.", "--model -m")
    ] = ""
    base_url: Annotated[str | None, Flag("Address of an OpenAI-compatible server.")] = None


@dataclass(frozen=True, slots=True)
class ImportSummary(Result):
    """What came into a project; ``skipped`` names what was left out, and why."""

    project: int
    source: Path
    items: int
    answers: int
    skipped: tuple[str, ...]

    def lines(self, most: int = 10) -> Iterator[str]:
        """What came in, and the first things that did not."""
        brought = f"{self.items:,} new items"
        if self.answers:
            brought += f", {self.answers:,} answers"
        yield f"project {self.project}: {self.source}: {brought}"
        yield from (f"  left out: {line}" for line in self.skipped[:most])
        if len(self.skipped) > most:
            yield f"  and {len(self.skipped) - most:,} more"


@dataclass(frozen=True, slots=True)
class BackupSummary(Result):
    """What a backup holds."""

    file: Path
    answers: int
    images: int


@dataclass(frozen=True, slots=True)
class AppStart(Result):
    """The app is about to serve: the link that logs its owner in, and what was imported."""

    link: str
    demo: bool
    imported: tuple[ImportSummary, ...]


def serve_annotations(
    storage: Storage,
    settings: WebAppSettings,
    queues: Annotated[
        Sequence[Path], Argument("Queues, or folders of memes (with --workflow), to annotate.")
    ] = (),
    *,
    workflow: WorkflowFlag = None,
    changes: ProjectChanges = AS_IT_IS,
    limit: Most = None,
    started: Callable[[AppStart], None],
) -> None:
    """Serve the web app until the process is told to stop; queues become projects first.

    ``started`` is called once, before the first request is answered.
    """
    require_extra()
    from memantics.annotation.web.app import make_app
    from memantics.annotation.web.settings import WebSettings, find_secret
    from memantics.models.client import CallSettings
    from memantics.web.server import check_public_url, is_local, listen, read_proxies, serve

    host, public_url, demo = settings.host, check_public_url(settings.public_url), settings.demo
    if demo and (queues or storage.database):
        raise InputError("--demo goes with neither a queue nor --db", hint="leave one out")
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
    source: Annotated[Path, Argument("A queue, a folder of memes, or a file from Label Studio.")],
    *,
    workflow: WorkflowFlag = None,
    changes: ProjectChanges = AS_IT_IS,
    limit: Most = None,
    project: Annotated[int | None, Flag("Where a Label Studio file (JSON or ZIP) goes.")] = None,
    images: Annotated[
        Path | None, Flag("The folder with the images of a Label Studio JSON file.")
    ] = None,
) -> ImportSummary:
    """Bring in a queue or a folder of memes, or a file from Label Studio into a project."""
    require_extra()
    if source.is_file() and project is None:
        raise InputError(f"{source} is a file", hint="give --project with the number of a project")
    if not source.is_file() and (project is not None or images is not None):
        raise InputError(
            "--project and --images go with a file from Label Studio", hint="leave them out"
        )
    with open_annotations(storage) as service, in_turn(storage.folder):
        actor = find_admin(service)
        if project is None:
            return _add(service, actor, source, workflow, changes, limit)
        require_project(service, actor, project)
        with source.open("rb") as file:
            done = service.exchange.import_tasks(actor, project, file, images)
        return ImportSummary(project, source, done.items, done.answers, done.skipped)


def reset_password(
    storage: Storage,
    name: Annotated[str, Argument("The name of an account; the first is 'lead'.")],
) -> str:
    """Give an account a new password; its sessions end, and a closed account is open again."""
    require_extra()
    new = secrets.token_urlsafe(12)
    with open_annotations(storage) as service:
        service.accounts.reset_password(find_admin(service), name, new)
    return new


def close_account(
    storage: Storage, name: Annotated[str, Argument("The name of an account.")]
) -> None:
    """Close an account: nobody can use it any more, what it answered stays."""
    require_extra()
    with open_annotations(storage) as service:
        service.accounts.deactivate(find_admin(service), name)


def back_up(storage: Storage, out: Annotated[Path, Argument("File to write.")]) -> BackupSummary:
    """Back up database and images into one file, while the app may run."""
    require_extra()
    from memantics.annotation.backup import backup

    with open_annotations(storage) as service:
        made = backup(service, out)
    return BackupSummary(out, made.tables.get("revisions", 0), made.images)


def restore_backup(
    storage: Storage,
    archive: Annotated[Path, Argument("A file that 'annotate backup' wrote.")],
) -> BackupSummary:
    """Restore a backup into an empty database."""
    require_extra()
    from memantics.annotation.backup import restore

    made = restore(archive, storage.url, storage.folder)
    return BackupSummary(archive, made.tables.get("revisions", 0), made.images)


@contextmanager
def open_annotations(storage: Storage) -> Iterator[AnnotationService]:
    """The service over a database, closed at the end of the block."""
    from memantics.annotation.service import open_service

    service = open_service(storage.url, media=storage.folder)
    try:
        yield service
    finally:
        service.close()


def find_admin(service: AnnotationService) -> Actor:
    """The administrator that the person at the terminal is; made at the first start."""
    # Nobody knows this password: the link logs in, and 'annotate password' makes another.
    return service.accounts.local_admin() or service.accounts.create_first(
        FIRST_NAME, secrets.token_urlsafe(24)
    )


def require_project(service: AnnotationService, actor: Actor, number: int) -> None:
    """Say which numbers there are: at the terminal, nobody need be kept in the dark."""
    known = [str(project.id) for project in service.projects.mine(actor)]
    if not known:
        raise InputError(
            "there is no project yet", hint="memantics annotate import QUEUE makes one"
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
    """A project from a queue, or from a folder of memes; its maker may do everything in it.

    The same folder given again adds what is new to the project that it made before. Processes do
    this in turn: two at once would make two projects.
    """
    from memantics.annotation.workflow import ROLES, read_workflow

    if not folder.is_dir():
        raise InputError(
            f"there is not a folder {folder}", hint="give a queue or a folder of memes"
        )
    named = Path(workflow) if workflow and workflow.endswith(".toml") else workflow
    is_queue = (folder / CARD).is_file()
    if is_queue:
        card, _ = read_queue(folder)
        title, flow = card.title, card.workflow
    elif named is None:
        raise InputError(
            f"{folder} is not a queue: it has no card",
            hint="for a folder of memes, give --workflow pun-form",
        )
    else:
        title, flow = folder.resolve().name, read_workflow(named).name
    bring = service.exchange.import_queue if is_queue else service.exchange.import_memes
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
        read_memes(folder)  # a folder without memes leaves no project behind
        made = service.projects.create(actor, title, named or flow, changes=changes.said).id
    changes.apply(service, actor, made)
    done = bring(actor, made, folder, limit)
    service.projects.set_roles(actor, made, actor.id, ROLES)
    return ImportSummary(made, folder, done.items, done.answers, done.skipped)


def set_up_project(
    storage: Storage,
    changes: ProjectChanges,
    project: Annotated[int, Argument("The number of the project.")],
) -> dict[str, object]:
    """Change how many people judge each item and who settles ties; returns all settings."""
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
    return settings.model_dump(exclude={"clarifications"}) | now


def export_annotations(
    storage: Storage,
    project: Annotated[int, Argument("The number of the project.")],
    out: Annotated[Path, Flag("File to write; a folder for huggingface.")],
    what: Annotated[
        What,
        Flag(
            "Verdicts for construction; data (a row an item, with all votes) or votes (a row each);"
            " what was agreed on; agreement; folders for others; every revision or change."
        ),
    ] = "annotations",
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "json", "zip", "tex"] | None,
        Flag("Default: as the file is called, else jsonl, json or zip.", "--format"),
    ] = None,
) -> None:
    """Write verdicts, tables or figures of a project to a file, or a folder for Hugging Face."""
    require_extra()
    ending = out.suffix.removeprefix(".").lower()
    named = ending if ending in ("csv", "parquet", "tex", "zip", "json", "jsonl") else ""
    shape = (
        form or (named if what not in ("annotations", "raw") else "") or _FORMS.get(what, "jsonl")
    )
    as_folder = what == "huggingface" and not named
    if as_folder and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already", hint="name a folder that does not exist yet")
    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        made = service.exchange.export(actor, project, what, shape)
    if as_folder:
        with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
            archive.extractall(out)
        return
    replace_file(out, made.data, "export")
