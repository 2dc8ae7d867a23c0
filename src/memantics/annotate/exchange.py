"""Data in and data out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO

from memantics.annotate import intake
from memantics.annotate.context import ServiceContext, Visit, load_list
from memantics.annotate.errors import Forbidden, NotFound
from memantics.annotate.export import TYPES, resolve_all, take_snapshot, write_audit, write_export
from memantics.annotate.intake import Stored, check_item
from memantics.annotate.labelstudio import read_bounded, unpack_tasks, write_tasks
from memantics.annotate.labelstudio_import import Returning, read_tasks
from memantics.annotate.projects import Projects
from memantics.annotate.records import Actor, Export, ImportedItems, Media, Project
from memantics.annotate.tables import TABLES, write_table
from memantics.annotate.workflow import Workflow, read_workflow
from memantics.core.data import inside
from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.core.queue import ITEMS, QueueCard, QueueItem, read_queue

_CHUNK = 50
_THERE = "is there already"


class Exchange:
    """Queues, folders and uploads in; images to members."""

    def __init__(self, context: ServiceContext, projects: Projects) -> None:
        self._context = context
        self._projects = projects

    def open_queue(self, actor: Actor, folder: Path, workflow: str | Path | None = None) -> Project:
        """A project for a queue, with its items in it."""
        project = self.make_project(actor, folder, workflow)
        self.import_queue(actor, project.id, folder)
        return project

    def make_project(
        self,
        actor: Actor,
        folder: Path,
        workflow: str | Path | None = None,
        changes: Mapping[str, object] = MappingProxyType({}),
    ) -> Project:
        """An empty project with the workflow and warning that the card of a queue names.

        A workflow of one's own is given as a file; it has to bear the name on the card. The
        items are checked first: a bad queue leaves no project behind. ``changes`` are settings.
        """
        card, items = read_queue(folder)
        named = workflow if workflow is not None else card.workflow
        _check_queue(card, items, read_workflow(named))
        said = {"warning": card.warning[:2000]} | ({"people": card.people} if card.people else {})
        return self._projects.create(
            actor, card.title, named, changes={**said, **changes}, language=card.language
        )

    def import_queue(
        self,
        actor: Actor,
        project: int,
        folder: Path,
        limit: int | None = None,
        *,
        training_set: bool = False,
    ) -> ImportedItems:
        """The first ``limit`` items of a queue; those that are there are passed over and named.

        Newcomers train on the items of a ``training_set``, whose answers are known.
        """
        flow = self._context.lead_rights(actor, project).workflow
        card, items = read_queue(folder)
        _check_queue(card, items, flow)
        pairs = [(item, [inside(folder, name) for name in item.images]) for item in items]
        rounds = intake.spread_rounds(flow, items) if training_set else {}
        return self._import(actor, project, pairs[:limit], rounds)

    def train_on(self, actor: Actor, project: int, numbers: Sequence[int]) -> None:
        """Have newcomers train on copies of finished items, with the agreed answers as known."""
        with self._context.as_lead(actor, project, write=True) as visit:
            flow, known = visit.flow, intake.lock_project(visit.connection, project)
            found = {
                item.row.number: (item, result.values)
                for item, result in resolve_all(take_snapshot(visit))
                if result.complete
            }
            if open_ones := sorted(set(numbers) - set(found)):
                raise InputError(f"item {open_ones[0]} is not finished", hint="name finished items")
            copies: list[tuple[QueueItem, list[str]]] = []
            for item, values in map(found.__getitem__, sorted(set(numbers))):
                asked = flow.stages[0].fields
                gold = {name: values[name] for name in asked if values.get(name) is not None}
                key, group = f"training-{item.row.item_key}", str(item.row.group_key)
                copy = QueueItem(id=key, group=group, shown=list(item.shown), gold=gold)
                check_item(flow, copy, "items", item.row.number)
                if key not in known:
                    copies.append((copy, load_list(item.row.images)))
            rounds = intake.spread_rounds(flow, [copy for copy, _ in copies])
            count = intake.add_items(visit, copies, rounds=rounds)
            _log(visit, "item.train", ImportedItems(count, 0))

    def import_memes(
        self, actor: Actor, project: int, folder: Path, limit: int | None = None
    ) -> ImportedItems:
        """Any folder of memes, one item for each; ``limit``: only the first ones."""
        self._context.lead_rights(actor, project)  # before anything is read
        pairs = [(item, [path]) for item, path in islice(intake.read_folder(folder), limit)]
        return self._import(actor, project, pairs)

    def import_items(
        self, actor: Actor, project: int, items: Iterable[tuple[QueueItem, Sequence[Path]]]
    ) -> ImportedItems:
        """Items made by a caller, each with the places of its images."""
        rights = self._context.lead_rights(actor, project)
        pairs = [(item, list(paths)) for item, paths in items]
        for row, (item, _) in enumerate(pairs, 1):
            check_item(rights.workflow, item, "items", row)
        return self._import(actor, project, pairs)

    def upload(self, actor: Actor, project: int, name: str, data: bytes) -> ImportedItems:
        """One image as one item. Who uploads a meme does not judge it."""
        self._context.lead_rights(actor, project)  # before anything is written
        stored = intake.store_image(self._context.media, project, name, data)
        with self._context.as_lead(actor, project, write=True) as visit:
            known = intake.lock_project(visit.connection, project)
            key = intake.register_image(visit.connection, project, stored)
            item = QueueItem(id=f"upload-{key[:12]}", group=f"upload-{key[:12]}")
            if item.id in known:
                return ImportedItems(0, 0, skipped=(f"{Path(name).name}: {_THERE}",))
            intake.add_items(visit, [(item, [key])], owner=actor.id)
            _log(visit, "item.upload", ImportedItems(1, 1))
        return ImportedItems(1, 1)

    def import_label_studio(
        self, actor: Actor, project: int, text: str | bytes, images: Path | None = None
    ) -> ImportedItems:
        """Tasks and answers from Label Studio; ``images`` is a folder that holds theirs."""
        rights = self._context.lead_rights(actor, project)
        incoming = read_tasks(text, images, rights.workflow)
        for row, one in enumerate(incoming, 1):
            check_item(rights.workflow, one.item, "tasks", row)
        pairs = [(one.item, one.images) for one in incoming]
        done = self._import(actor, project, pairs)
        left = {line.split(":", 1)[0] for line in done.skipped}
        skipped = [*done.skipped]
        answers = 0
        for start in range(0, len(incoming), _CHUNK):
            with self._context.as_lead(actor, project, write=True) as visit:
                writer = Returning(visit)
                before = answers
                for one in incoming[start : start + _CHUNK]:
                    skipped += [f"{one.item.id}: {problem}" for problem in one.missing]
                    if one.item.id not in left and one.annotations:
                        count, problems = writer.write(one.item.id, one.annotations)
                        answers += count
                        skipped += problems
                part = ImportedItems(0, 0, answers - before)
                _log(visit, "answer.import", part)
        return ImportedItems(done.items, done.images, answers, tuple(skipped))

    def import_tasks(
        self, actor: Actor, project: int, file: IO[bytes], images: Path | None = None
    ) -> ImportedItems:
        """A file from Label Studio: its JSON, or a ZIP that holds the images too."""
        self._context.lead_rights(actor, project)  # before anything is read
        packed = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        if not packed:
            return self.import_label_studio(actor, project, read_bounded(file), images)
        with tempfile.TemporaryDirectory(prefix="memantics-import-") as folder:
            tasks = unpack_tasks(file, Path(folder))
            return self.import_label_studio(actor, project, tasks, Path(folder))

    def export(self, actor: Actor, project: int, what: str, form: str = "jsonl") -> Export:
        """A file for the lead: data, votes, resolved, verdicts, raw, labelstudio, … or audit.

        Label Studio's tasks come as JSON, or as ZIP with their images and an interface; a folder
        for Hugging Face as ZIP; agreement also as a LaTeX table.
        """
        with self._context.as_lead(actor, project) as visit:
            if visit.flow.personal and what != "verdicts":
                raise Forbidden(
                    "what people say about themselves comes out as verdicts only",
                    hint="export verdicts: they hold neither names nor times",
                )
            snapshot = take_snapshot(visit)
            audit = write_audit(visit, form) if what == "audit" else b""
        media = self._context.media / str(project)
        match what:
            case "audit":
                data = audit
            case "labelstudio":
                data = write_tasks(snapshot, form, media)
            case _ if what in TABLES:
                data = write_table(snapshot, what, form, media)
            case _:
                data = write_export(snapshot, what, form)
        return Export(f"{visit.flow.name}-{project}-{what}.{form}", TYPES[form], data)

    def media(self, actor: Actor, key: str) -> Media:
        """An image, for members of its project."""
        with self._context.db.read() as connection:
            project, media = intake.find_image(connection, self._context.media, key)
            self._context.visit(connection, actor, project)
        return media

    def _import(
        self,
        actor: Actor,
        project: int,
        pairs: Sequence[tuple[QueueItem, Sequence[Path]]],
        rounds: Mapping[str, int] = MappingProxyType({}),
    ) -> ImportedItems:
        """Write items in short transactions, so that others go on working meanwhile."""
        items = images = 0
        skipped: list[str] = []
        with self._context.as_lead(actor, project) as visit:
            known = intake.known_keys(visit.connection, project)
        if visit.flow.shuffle:
            # Numbers are seen by annotators: they must not tell one model's outputs from another's.
            pairs = sorted(pairs, key=lambda pair: intake.shuffled(project, pair[0].id))
        for start in range(0, len(pairs), _CHUNK):
            ready: list[tuple[QueueItem, list[Stored]]] = []
            for item, paths in pairs[start : start + _CHUNK]:
                if item.id in known:
                    skipped.append(f"{item.id}: {_THERE}")
                    continue
                known.add(item.id)
                stored: list[Stored] = []
                try:
                    for path in paths:
                        stored.append(self._store(project, path))  # noqa: PERF401 - kept on failure
                except ImageError as error:
                    _discard(stored)
                    skipped.append(f"{item.id}: {error}")
                else:
                    ready.append((item, stored))
            done = self._write(actor, project, ready, rounds)
            items, images = items + done.items, images + done.images
            skipped += done.skipped
        return ImportedItems(items, images, skipped=tuple(skipped))

    def _write(
        self,
        actor: Actor,
        project: int,
        ready: Sequence[tuple[QueueItem, list[Stored]]],
        rounds: Mapping[str, int],
    ) -> ImportedItems:
        skipped: list[str] = []
        entered: list[tuple[QueueItem, list[str]]] = []
        with self._context.as_lead(actor, project, write=True) as visit:
            known = intake.lock_project(visit.connection, project)
            for item, stored in ready:
                if item.id in known:  # another import was faster
                    _discard(stored)
                    skipped.append(f"{item.id}: {_THERE}")
                    continue
                keys = [intake.register_image(visit.connection, project, one) for one in stored]
                entered.append((item, keys))
            count = intake.add_items(visit, entered, rounds=rounds)
            images = sum(len(keys) for _, keys in entered)
            done = ImportedItems(count, images, skipped=tuple(skipped))
            _log(visit, "item.import", done)
        return done

    def _store(self, project: int, path: Path) -> Stored:
        return intake.store_image(self._context.media, project, path.name, read_bytes(path))


def _log(visit: Visit, action: str, done: ImportedItems) -> None:
    visit.log(action, items=done.items, images=done.images, answers=done.answers)


def _check_queue(card: QueueCard, items: Sequence[QueueItem], workflow: Workflow) -> None:
    if card.workflow != workflow.name:
        raise NotFound(
            f"the queue asks for workflow {card.workflow}, the project has {workflow.name}",
            hint="open it as a project of its own",
        )
    for row, item in enumerate(items, 1):
        check_item(workflow, item, ITEMS, row)


def _discard(stored: Iterable[Stored]) -> None:
    """Images of an item that does not come in stay out too."""
    for one in stored:
        one.path.unlink(missing_ok=True)
