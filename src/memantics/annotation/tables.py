"""Tables for other tools (CSV, Hugging Face, LaTeX, Label Studio), and all imports and exports."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO

import orjson
from pydantic import JsonValue

from memantics.annotation import export, intake
from memantics.annotation.agreement import ALL, FieldAgreement, measure_agreement
from memantics.annotation.consensus import AssignedItem
from memantics.annotation.context import ServiceContext, Visit, iso, keep_settings, load_list
from memantics.annotation.errors import Forbidden, NotFound, UnsupportedFormat
from memantics.annotation.export import (
    TYPES,
    aggregate_all,
    take_snapshot,
    write_audit,
    write_export,
)
from memantics.annotation.faults import retried
from memantics.annotation.intake import Stored, check_item
from memantics.annotation.labelstudio import (
    Incoming,
    Returning,
    read_bounded,
    read_tasks,
    unpack_tasks,
    write_tasks,
)
from memantics.annotation.policy import find_queue_workflow
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.projects import Projects, read_rules
from memantics.annotation.records import Actor, Export, ImportedItems, Media, Project
from memantics.annotation.workflow import Workflow, apply_settings
from memantics.core.data import inside
from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.queue import QueueCard, QueueItem, read_queue

TABLES: Mapping[str, tuple[str, ...]] = {
    "data": ("csv", "jsonl", "parquet", "zip"),
    "individual": ("csv", "jsonl", "parquet"),
    "agreement": ("csv", "jsonl", "tex"),
    "huggingface": ("zip",),
}
INDIVIDUAL = (
    "item",
    "group",
    "stage",
    "annotator",
    "field",
    "value",
    "at",
    "seconds",
    "guideline",
    "suggested",
)
_METRICS = ("pairwise", "complete", "cohen", "fleiss", "alpha", "ac1", "icc")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def write_table(snapshot: export.Snapshot, what: str, form: str, media: Path) -> bytes:
    """Write one of the tables as a file; ``media`` is the image folder of the project."""
    if form not in TABLES[what]:
        raise UnsupportedFormat(what, form, TABLES[what])
    if what == "huggingface":
        return pack_huggingface(snapshot, media)
    if what == "individual":
        return export.write_rows(list_individual(snapshot), INDIVIDUAL, form)
    if what == "data" and form == "zip":
        return _pack_data(snapshot, media)
    if what == "data":
        return export.write_rows(*make_data(snapshot), form)
    agreements = measure_agreement(snapshot.workflow, snapshot.items)
    if form == "tex":
        labels = {field.id: field.label.en for field in snapshot.workflow.fields}
        return write_latex(agreements, labels)
    return export.write_rows(*agreement_rows(agreements), form)


def list_individual(snapshot: export.Snapshot) -> list[export.ExportRow]:
    """Return the long table: one row per annotator and field, without training answers."""
    return [
        {
            "item": item.row.item_key,
            "group": item.row.group_key,
            "stage": snapshot.workflow.stages[assignment.stage].id,
            "annotator": export.name_of(snapshot, assignment.user),
            "field": field,
            "value": value,
            "at": iso(assignment.submitted_at or 0.0),
            "seconds": assignment.seconds,
            "guideline": snapshot.rights.settings.guideline_at(assignment.submitted_at or 0.0),
            "suggested": snapshot.workflow.stages[assignment.stage].kind == "independent"
            and item.row.prelabels != "{}"
            and snapshot.rights.settings.suggested_at(assignment.submitted_at or 0.0),
        }
        for item in snapshot.items
        for assignment in item.answered(training=False)
        for field, value in (assignment.answer or {}).items()
    ]


def make_data(snapshot: export.Snapshot) -> tuple[list[export.ExportRow], list[str]]:
    """Return the wide table: shown texts, aggregated values and each annotator's values.

    Columns of individual annotations are named ``field:annotator``; empty columns are left out.
    """
    rows = [
        _wide_row(snapshot, item) | export.outcome(snapshot, found)
        for item, found in export.aggregate_all(snapshot)
    ]
    used = {name for row in rows for name, value in row.items() if value is not None}
    first = ["id", "group", "image", "text", "kept", "reason", "complete", *snapshot.field_names]
    columns = [name for name in first if name in used]
    columns += sorted(used.difference(columns))
    return [{name: row.get(name) for name in columns} for row in rows], columns


def _wide_row(snapshot: export.Snapshot, item: AssignedItem) -> dict[str, JsonValue]:
    shown = {entry.label.casefold(): entry.value for entry in item.shown}
    text = shown.pop("text", None) or shown.get("caption")
    pictures = [f"images/{export.file_name(image)}" for image in export.images_of(snapshot, item)]
    parts = [part if isinstance(part, str) else " / ".join(part) for part in shown.values()]
    row: dict[str, JsonValue] = {
        "id": item.row.item_key,
        "group": item.row.group_key,
        "image": pictures[0] if pictures else None,
        "text": text if isinstance(text, str) else "\n".join(parts),
    }
    for label, value in shown.items():
        row[f"shown:{label}"] = value if isinstance(value, str) else [*value]
    for assignment in item.answered(training=False):
        who = export.name_of(snapshot, assignment.user)
        row |= {f"{field}:{who}": value for field, value in (assignment.answer or {}).items()}
    return row


def _pack_data(snapshot: export.Snapshot, media: Path) -> bytes:
    """Pack the wide table as CSV with the images that it names."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.csv", export.write_rows(*make_data(snapshot), "csv"))
        for key, image in snapshot.images.items():
            archive.write(media / str(key), f"images/{export.file_name(image)}")
    return packed.getvalue()


def pack_huggingface(snapshot: export.Snapshot, media: Path) -> bytes:
    """Pack an ``imagefolder`` with a dataset card; without images, a JSON Lines file.

    The individual annotations of an item are a list in one column.
    """
    rows, _ = make_data(snapshot)
    pictured = bool(rows) and all(row.get("image") for row in rows)
    lines = []
    for row in rows:
        plain = {name: value for name, value in row.items() if ":" not in name or "shown:" in name}
        annotations = [
            {"annotator": who, "field": field, "value": _as_text(value)}
            for name, value in row.items()
            if not name.startswith("shown:") and value is not None
            for field, colon, who in [name.rpartition(":")]
            if colon
        ]
        image = str(plain.pop("image", None) or "")
        named: dict[str, JsonValue] = {"file_name": image} if pictured else {"image": image}
        shown = {name.replace("shown:", "shown_"): value for name, value in plain.items()}
        lines.append(orjson.dumps({**named, **shown, "annotations": annotations}))
    table = "train/metadata.jsonl" if pictured else "train.jsonl"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(table, b"\n".join([*lines, b""]))
        archive.writestr(
            "README.md", _card(snapshot, len(rows), _list_languages(rows), pictured=pictured)
        )
        for key, image in snapshot.images.items():
            folder = "train/images" if pictured else "images"
            archive.write(media / str(key), f"{folder}/{export.file_name(image)}")
    return packed.getvalue()


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _list_languages(rows: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Return the languages of the texts, most frequent first; texts of unknown language are not."""
    texts = (next((str(row[n]) for n in ("caption", "text") if row.get(n)), "") for row in rows)
    found = Counter(guess_language(text).language for text in texts)
    return [language for language, _ in found.most_common() if language != UNKNOWN]


def _card(
    snapshot: export.Snapshot, count: int, languages: Sequence[str], *, pictured: bool
) -> str:
    rights, flow = snapshot.rights, snapshot.workflow
    data = "" if pictured else "configs:\n- config_name: default\n  data_files: train.jsonl\n"
    fields = "\n".join(f"- `{field.id}`: {field.label.en}" for field in flow.fields)
    title = orjson.dumps(rights.title).decode()
    versions = Counter(
        rights.settings.guideline_at(assignment.submitted_at or 0.0)
        for item in snapshot.items
        for assignment in item.answered(training=False)
    )
    under = ", ".join(f"{n} annotations under version {v}" for v, n in sorted(versions.items()))
    spoken = f"language: [{', '.join(languages)}]\n" if languages else ""
    return (
        f"---\npretty_name: {title}\n{spoken}{data}---\n\n"
        f"# {rights.title}\n\n{count} items, annotated with the workflow `{flow.name}`."
        f" Guideline: {under or 'no annotations'}. Annotators have pseudonyms.\n\n"
        f"{fields}\n\n`kept`: whether the item is kept; `annotations`: values of each annotator.\n"
    )


def agreement_rows(
    agreements: Sequence[FieldAgreement],
) -> tuple[list[export.ExportRow], list[str]]:
    """Return agreement as a table: each metric with its 95% confidence interval."""
    rows: list[export.ExportRow] = []
    for one in agreements:
        row: dict[str, JsonValue] = {"stage": one.stage, "field": one.field, "level": one.level}
        row |= {"items": one.items, "annotators": one.annotators}
        for name in _METRICS:
            low, high = one.spans.get(name, (None, None))
            row |= {name: getattr(one, name), f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    columns = ["stage", "field", "level", "items", "annotators"]
    columns += [f"{name}{end}" for name in _METRICS for end in ("", "_low", "_high")]
    return rows, columns


def write_latex(agreements: Sequence[FieldAgreement], labels: Mapping[str, str]) -> bytes:
    r"""Write agreement as a LaTeX table (booktabs), with confidence intervals below the values."""
    shown = [one for one in agreements if one.items]
    names = {"fleiss": r"Fleiss $\kappa$", "alpha": r"$\alpha$", "ac1": "AC1", "icc": "ICC"}
    used = [name for name in names if any(getattr(one, name) is not None for one in shown)]
    head = ["Field", "Items", "People", r"\% agree", *(names[name] for name in used)]
    lines = [
        r"% \usepackage{booktabs}; non-Latin scripts need XeLaTeX and a suitable font.",
        "% 95 % confidence intervals: bootstrap over items, 1000 resamples.",
        r"{\noindent\footnotesize\setlength{\tabcolsep}{3pt}%",
        rf"\begin{{tabular}}{{@{{}}p{{.26\linewidth}}{'r' * (len(head) - 1)}@{{}}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    for one in shown:
        label = "All fields" if one.field == ALL else labels.get(one.field, one.field)
        cells = [r"\raggedright " + escape_latex(label), str(one.items), str(one.annotators)]
        cells += [f"{100 * (one.pairwise or 0):.1f}", *(_agreement_of(one, name) for name in used)]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", ""]).encode()


def _agreement_of(one: FieldAgreement, name: str) -> str:
    """Format an agreement value in LaTeX, with its confidence interval below."""
    value, span = getattr(one, name), one.spans.get(name)
    if value is None:
        return "--"
    text = f"{value:.2f}"
    if span:
        below = rf"{{\scriptsize [{span[0]:.2f}, {span[1]:.2f}]}}"
        text = rf"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{text}\\{below}\end{{tabular}}"
    return text.replace("-", "$-$")


def escape_latex(text: str) -> str:
    r"""Escape the special characters of LaTeX.

    >>> escape_latex("a_b & 50 %")
    'a\\_b \\& 50 \\%'
    """
    return "".join(f"\\{one}" if one in "&%$#_{}" else _LATEX.get(one, one) for one in text)


_CHUNK = 50
_THERE = "already exists"


class Exchange:
    """Import queues, folders and uploads; export files; serve images to members."""

    def __init__(self, context: ServiceContext, projects: Projects) -> None:
        self._context = context
        self._projects = projects

    def check_upload(self, actor: Actor, project: int) -> None:
        """Raise Forbidden if the person may not upload files to the project."""
        self._context.lead_rights(actor, project)

    def open_queue(self, actor: Actor, folder: Path, workflow: str | Path | None = None) -> Project:
        """Create a project for a queue and import its items."""
        project = self.make_project(actor, folder, workflow)
        self.import_queue(actor, project.id, folder, any_workflow=workflow is not None)
        return project

    def make_project(
        self,
        actor: Actor,
        folder: Path,
        workflow: str | Path | None = None,
        changes: Mapping[str, object] = MappingProxyType({}),
    ) -> Project:
        """Create an empty project with the workflow and content warning of a queue's card.

        ``workflow`` replaces the workflow that the queue's card names. The items are checked first,
        so that an invalid queue creates no project. ``changes`` are project settings by name.
        """
        card, items = read_queue(folder, any_id=True)
        named = workflow if workflow is not None else find_queue_workflow(card, folder)
        options = {name: tuple(given) for name, given in card.options.items()}
        flow = apply_settings(read_rules(named)[1], ProjectSettings(options=options))
        intake.check_items(items, flow, folder)
        said: dict[str, object] = {"warning": card.warning[:2000], "options": options}
        if card.annotators_per_item:
            said["annotators_per_item"] = card.annotators_per_item
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
        any_workflow: bool = False,
    ) -> ImportedItems:
        """Import the first ``limit`` items of a queue; skip and list existing and unusable ones.

        An item is unusable if its id contains control characters or spaces at the ends. New
        annotators train on the items of a ``training_set``, which have known answers. The queue
        must have the workflow of the project, unless ``any_workflow`` is set.
        """
        flow = self._context.lead_rights(actor, project).workflow
        card, items = read_queue(folder, any_id=True)
        if card.workflow != flow.name and not any_workflow:
            raise NotFound(
                f"the queue uses workflow {card.workflow}, the project uses {flow.name}",
                hint="open the queue as a new project",
            )
        flow = self._add_options(actor, project, card)
        items, unusable = intake.check_items(items, flow, folder)
        pairs = [(item, [inside(folder, name) for name in item.images]) for item in items]
        rounds = intake.spread_rounds(flow, items) if training_set else {}
        done = self._import(actor, project, pairs[:limit], rounds)
        return replace(done, skipped=(*unusable, *done.skipped))

    @retried
    def _add_options(self, actor: Actor, project: int, card: QueueCard) -> Workflow:
        """Add new options of a queue to a project; return the workflow with all options."""
        with self._context.as_lead(actor, project, write=True) as visit:
            before = visit.rights.settings
            options = dict(before.options)
            for name, given in card.options.items():
                known = options.get(name, ())
                taken = {option.value for option in known}
                options[name] = (*known, *(one for one in given if one.value not in taken))
            if options != before.options:
                after = before.model_copy(update={"options": options})
                keep_settings(visit.connection, project, after)
                visit.log("project.options", fields=", ".join(sorted(card.options)))
        return self._context.lead_rights(actor, project).workflow

    @retried
    def train_on(self, actor: Actor, project: int, numbers: Sequence[int]) -> None:
        """Copy finished items to the training set, with the aggregated values as known answers."""
        with self._context.as_lead(actor, project, write=True) as visit:
            flow, known = visit.flow, intake.known_keys(visit.connection, project)
            found = {
                item.row.number: (item, result.values)
                for item, result in aggregate_all(take_snapshot(visit))
                if result.complete
            }
            if open_ones := sorted(set(numbers) - set(found)):
                raise InputError(
                    f"item {open_ones[0]} is not finished", hint="choose finished items"
                )
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
        """Import the first ``limit`` memes of a folder, one item per meme."""
        self._context.lead_rights(actor, project)  # checks the rights before reading
        pairs = [(item, [path]) for item, path in islice(intake.read_folder(folder), limit)]
        return self._import(actor, project, pairs)

    def import_items(
        self, actor: Actor, project: int, items: Iterable[tuple[QueueItem, Sequence[Path]]]
    ) -> ImportedItems:
        """Import items with the paths of their images."""
        rights = self._context.lead_rights(actor, project)
        pairs = [(item, list(paths)) for item, paths in items]
        for row, (item, _) in enumerate(pairs, 1):
            check_item(rights.workflow, item, "items", row)
        return self._import(actor, project, pairs)

    def upload(self, actor: Actor, project: int, name: str, data: bytes) -> ImportedItems:
        """Import one image as one item; the uploader is not assigned to it."""
        self._context.lead_rights(actor, project)  # checks the rights before writing
        stored = intake.store_image(self._context.media, project, name, data)
        return self._add_upload(actor, project, name, stored)

    @retried
    def _add_upload(self, actor: Actor, project: int, name: str, stored: Stored) -> ImportedItems:
        with self._context.as_lead(actor, project, write=True) as visit:
            known = intake.known_keys(visit.connection, project)
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
        """Import tasks and annotations from Label Studio; ``images`` is the folder of images."""
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
            part = self._write_answers(actor, project, incoming[start : start + _CHUNK], left)
            answers += part.answers
            skipped += part.skipped
        return ImportedItems(done.items, done.images, answers, tuple(skipped))

    @retried
    def _write_answers(
        self, actor: Actor, project: int, incoming: Sequence[Incoming], left: Container[str]
    ) -> ImportedItems:
        """Write the annotations of some Label Studio tasks, except of items that are left out."""
        answers, skipped = 0, list[str]()
        with self._context.as_lead(actor, project, write=True) as visit:
            writer = Returning(visit)
            for one in incoming:
                skipped += [f"{one.item.id}: {problem}" for problem in one.missing]
                if one.item.id not in left and one.annotations:
                    count, problems = writer.write(one.item.id, one.annotations)
                    answers += count
                    skipped += problems
            _log(visit, "answer.import", ImportedItems(0, 0, answers))
        return ImportedItems(0, 0, answers, tuple(skipped))

    def import_tasks(
        self, actor: Actor, project: int, file: IO[bytes], images: Path | None = None
    ) -> ImportedItems:
        """Import a Label Studio file: JSON, or a ZIP file with images."""
        self._context.lead_rights(actor, project)  # checks the rights before reading
        packed = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        if not packed:
            return self.import_label_studio(actor, project, read_bounded(file), images)
        with tempfile.TemporaryDirectory(prefix="memantics-import-") as folder:
            tasks = unpack_tasks(file, Path(folder))
            return self.import_label_studio(actor, project, tasks, Path(folder))

    def export(self, actor: Actor, project: int, what: str, form: str = "jsonl") -> Export:
        """Return an export file for the lead.

        ``what`` is annotations, data, individual, aggregated, agreement, huggingface, labelstudio,
        raw or audit. Label Studio tasks come as JSON, or as ZIP with images and labelling
        interface; Hugging Face folders as ZIP; agreement also as a LaTeX table.
        """
        with self._context.as_lead(actor, project) as visit:
            if visit.flow.personal and what != "annotations":
                raise Forbidden(
                    "a personal questionnaire can only be exported as annotations",
                    hint="use --what annotations: it contains neither names nor times",
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
        """Return an image to a member of its project."""
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
        """Insert items in short transactions, so that other users can keep working."""
        items = images = 0
        skipped: list[str] = []
        with self._context.as_lead(actor, project) as visit:
            known = intake.known_keys(visit.connection, project)
        if visit.flow.shuffle:
            # Annotators see item numbers, which must not reveal the model behind an output.
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

    @retried
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
            known = intake.known_keys(visit.connection, project)
            for item, stored in ready:
                if item.id in known:  # imported by a parallel request
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


def _discard(stored: Iterable[Stored]) -> None:
    """Delete the images of an item that was not imported."""
    for one in stored:
        one.path.unlink(missing_ok=True)
