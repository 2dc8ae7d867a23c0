"""Import answers that other tools wrote, and export tasks for other tools.

An exported task contains the prompts of Memantics, so that another tool can make the calls.

================  ==================================================================
``openai-batch``  requests as OpenAI's batch interface takes them, in files of its size
``lmms-eval``     a folder for ``--include_path``: ``TASK.yaml``, ``utils.py``, data, images
``lm-eval``       the same for lm-eval's multimodal models
``vlmevalkit``    ``TASK.tsv`` for ``$LMUData``: images inside, the prompt as its question
================  ==================================================================
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Annotated, Literal, get_args

import orjson
import pybase64
from pydantic import JsonValue

from memantics.benchmarks.card import resolve_options
from memantics.benchmarks.registry import find_tasks
from memantics.core.errors import DataError, InputError, require_known
from memantics.core.files import open_regular, refuse_unwritable, replace_file, whole_file
from memantics.core.images import probe, read_bytes
from memantics.core.parameters import (
    Argument,
    DataFlag,
    Flag,
    InvalidFlag,
    Limit,
    SampleFlag,
    Seed,
    SplitFlag,
)
from memantics.core.records import NO_REPLY, Answer, Image, Item, Message, Reply, Request
from memantics.core.result import Result
from memantics.core.rundir import RunFacts, RunWriter, dump_line
from memantics.core.tables import make_csv_writer
from memantics.core.task import Task
from memantics.core.waiting import run_sync
from memantics.evaluation.exchange import (
    AnswerFormat,
    GivenAnswer,
    Joined,
    ReadSettings,
    SkippedRow,
    join_epochs,
    read_given,
)
from memantics.evaluation.facts import Scope, Variation, describe, folder_name, now, repeat_facts
from memantics.evaluation.options import RunsFolder, TaskOptions
from memantics.evaluation.reports.runs import Run, load_run
from memantics.evaluation.run import PosedTask
from memantics.evaluation.scoring import note_repeats, score_run
from memantics.evaluation.tasks import open_baselines, pose_task
from memantics.models.client import Params
from memantics.models.engine import make_sound, read_reply
from memantics.models.kinds import read_wire_settings
from memantics.models.wire import WireSettings, encode_request

TaskFormat = Literal["openai-batch", "lmms-eval", "lm-eval", "vlmevalkit"]
TASK_FORMATS: tuple[TaskFormat, ...] = get_args(TaskFormat)
AskedItems = Iterable[tuple[Item, Request]]
# OpenAI's limits per batch file.
_BATCH_LINES, _BATCH_BYTES = 50_000, 190_000_000
# File templates of lmms-eval and lm-eval.
_HARNESS = Path(__file__).with_name("harness")


def write_task(
    name: str, kind: TaskFormat, out: Path, asked: AskedItems, server: tuple[str, WireSettings]
) -> tuple[Path, ...]:
    """Write an exported task's files into a folder; ``server`` is the model's name and settings."""
    require_known("format", kind, TASK_FORMATS)
    stem = "memantics_" + name.replace("/", "_")
    with refuse_unwritable(out):
        out.mkdir(parents=True, exist_ok=True)
        if kind == "openai-batch":
            return tuple(_write_batch(out, asked, *server))
        if kind == "vlmevalkit":
            return (_write_table(out / f"{stem}.tsv", asked),)
        return _write_folder(out, stem, kind, asked)


def _write_batch(out: Path, asked: AskedItems, model: str, wire: WireSettings) -> Iterator[Path]:
    if not model:
        raise InputError(
            "openai-batch requests need a model name",
            hint="add --model NAME, the name that the server uses",
        )
    lines: list[bytes] = []
    size = number = 0

    def write() -> Path:
        path = out / f"batch-{number:03}.jsonl"
        replace_file(path, b"".join(lines))
        return path

    for item, request in asked:
        body = encode_request(model, request, wire)
        head = orjson.dumps({"custom_id": item.id, "method": "POST", "url": "/v1/chat/completions"})
        line = head[:-1] + b',"body":' + body + b"}\n"
        if lines and (len(lines) >= _BATCH_LINES or size + len(line) > _BATCH_BYTES):
            number += 1
            yield write()
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    number += 1
    yield write()


def _read_turn(item: Item, request: Request) -> tuple[list[Image], str]:
    """Return the images and the text of a request with a single turn."""
    turns: tuple[Message, ...] = request.messages
    if len(turns) != 1:
        raise InputError(
            f"the requests have {len(turns)} turns (item {item.id}), but this format supports one",
            hint="export with --format openai-batch, or without examples and system prompt",
        )
    parts = turns[0].parts
    texts = [part for part in parts if isinstance(part, str)]
    return [part for part in parts if isinstance(part, Image)], "\n\n".join(texts)


def _show_gold(item: Item) -> str:
    return item.gold if isinstance(item.gold, str) else orjson.dumps(item.gold).decode()


def _write_table(path: Path, asked: AskedItems) -> Path:
    """Write VLMEvalKit's table with an id column, which VLMEvalKit returns with the predictions."""

    def write(file: IO[str]) -> None:
        rows = make_csv_writer(file, "\t")
        rows.writerow(["index", "id", "meme", "image", "question", "answer"])
        for number, (item, request) in enumerate(asked, 1):
            images, text = _read_turn(item, request)
            data = [pybase64.b64encode(read_bytes(image.path)).decode() for image in images]
            shown = data[0] if len(data) == 1 else repr(data)
            rows.writerow([number, item.id, item.group, shown, text, _show_gold(item)])

    return _write_text(path, write)


def _write_folder(out: Path, stem: str, kind: TaskFormat, asked: AskedItems) -> tuple[Path, ...]:
    (out / "images").mkdir(exist_ok=True)
    limits: set[int] = set()

    def write(file: IO[str]) -> None:
        for number, (item, request) in enumerate(asked):
            images, text = _read_turn(item, request)
            names = [_copy_image(out, number, place, image) for place, image in enumerate(images)]
            limits.add(request.sampling.max_tokens or 1024)
            record = {
                "id": item.id,
                "meme": item.group,
                "images": names,
                "prompt": text,
                "question": item.form.question,
                "gold": _show_gold(item),
            }
            file.write(orjson.dumps(record).decode() + "\n")

    data = _write_text(out / "data.jsonl", write)
    multimodal = kind == "lm-eval"
    tool = "lm_eval --model hf-multimodal" if multimodal else "lmms_eval --model MODEL"
    body = (
        (_HARNESS / "task.yaml")
        .read_text(encoding="utf-8")
        .format(
            command=f"{tool} --tasks {stem} --include_path . --log_samples --output_path results",
            name=stem,
            image="doc_to_image" if multimodal else "doc_to_visual",
            text="doc_to_text_with_marks" if multimodal else "doc_to_text",
            tokens="gen_toks" if multimodal else "new_tokens",
            limit=max(limits, default=1024),
        )
    )
    replace_file(out / f"{stem}.yaml", body.encode())
    replace_file(out / "utils.py", (_HARNESS / "utils.txt").read_bytes())
    return (out / f"{stem}.yaml", out / "utils.py", data)


def _copy_image(out: Path, number: int, place: int, image: Image) -> str:
    """Copy an image under a number, since ids may contain characters not allowed in file names."""
    data = read_bytes(image.path)
    ending = probe(data, image.path.name).mime.rpartition("/")[2]
    name = f"images/{number:06}-{place}.{ending}"
    replace_file(out / name, data)
    return name


def _write_text(path: Path, write: Callable[[IO[str]], None]) -> Path:
    """Write a text file under a temporary name and rename it when complete."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        write(text)
        text.detach()
    return path


SKIPPED = "skipped.jsonl"


@dataclass(frozen=True, slots=True)
class TaskChoiceSettings:
    """Settings that select the data, split, items and options of a task.

    ``limit``, or ``sample`` and ``seed``, select the same items as ``memantics run``.
    """

    data: DataFlag = None
    split: SplitFlag = None
    limit: Limit = None
    options: TaskOptions = field(default_factory=dict)
    invalid: InvalidFlag = None
    sample: SampleFlag = None
    seed: Seed = None


@dataclass(frozen=True, slots=True)
class ExportSettings(TaskChoiceSettings):
    """Settings for exporting a task to another tool.

    ``model`` and ``params`` go into the requests of ``openai-batch``: the server's name of the
    model, and request fields such as ``max_tokens``.
    """

    model: Annotated[str, Flag("Model name on the server (openai-batch).", "--model -m")] = ""
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exported(Result):
    """The files of an exported task, and the number of items in them."""

    task: str
    format: TaskFormat
    items: int
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ImportSettings(TaskChoiceSettings):
    """Settings for importing answers of another tool.

    ``format`` is ``inspect``, ``lmms-eval``, ``vlmevalkit``, ``openai-batch`` or ``table``; it is
    detected by default. ``columns`` names the columns of a table by role (``id``, ``image``,
    ``question``, ``answer``, ``gold``, ``gold_text``; an empty name means none). ``values`` renames
    values, such as ``{"1": "harmful"}``.
    """

    format: Annotated[
        AnswerFormat | None, Flag("Format of the file. Default: detected automatically.")
    ] = None
    columns: Annotated[
        Mapping[str, str],
        Flag(
            "Column by role: id, image, question, answer, gold or gold_text, such as id=NAME.",
            "--column",
            metavar="ROLE=NAME",
        ),
    ] = field(default_factory=dict)
    values: Annotated[
        Mapping[str, str],
        Flag("Rename a value, such as 1=harmful; repeatable.", "--value", metavar="THERE=HERE"),
    ] = field(default_factory=dict)
    out: RunsFolder = Path("runs")


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """A run made from the answers in a file. ``listed`` is the file with the excluded rows.

    ``without_answer`` counts items of the task that are not in the file; the run contains the other
    items. If the other tool asked every item several times, ``repeats`` are the runs of the later
    repetitions; the counts cover all of them.
    """

    run: Run
    format: str
    rows: int
    answers: int
    repeated: int
    skipped: tuple[SkippedRow, ...]
    without_answer: int
    listed: Path | None
    repeats: tuple[Run, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the counts and metrics of an imported run as plain data."""
        names = ("format", "rows", "answers", "repeated", "without_answer")
        counts: dict[str, JsonValue] = {name: getattr(self, name) for name in names}
        listed = None if self.listed is None else str(self.listed)
        more: dict[str, JsonValue] = {"skipped": len(self.skipped), "listed": listed}
        more["repeats"] = [str(run.folder) for run in self.repeats]
        return counts | more | self.run.to_dict()


@dataclass(frozen=True, slots=True)
class _Author:
    """The model that gave the answers in a file."""

    name: str
    note: str
    identity: Mapping[str, JsonValue]


def import_answers(
    file: Annotated[str | Path, Argument("File with the answers.")],
    *,
    task: Annotated[str, Flag("NAME/TASK, or NAME if the benchmark has one task.")],
    model: Annotated[str, Flag("Name of the model that answered, shown in reports.", "--model -m")],
    settings: ImportSettings | None = None,
) -> Imported:
    """Make a run of the answers that another tool wrote, and score it.

    Rows of the file are matched to the items of the task by id, else by image and question. A row
    that matches no item, or several, is listed in ``skipped.jsonl`` of the run. The run contains
    only the items that are in the file. ``run.json`` and every report state that the answers were
    imported, and for how many items. Epochs of Inspect (repetitions of the task) become repeats.

    Args:
        file: The file with the answers.
        task: ``NAME/TASK``, or ``NAME`` if the benchmark has one task.
        model: The name of the model that answered, as shown in reports.
        settings: Format, columns, data and output folder; see :class:`ImportSettings`.

    Returns:
        The run, the number of answers, and the rows that were excluded.

    Raises:
        UnknownName: The task does not exist.
        DataError: The file is damaged, or no row matches an item.

    Example:
        >>> mm.import_answers("answers.csv", task="mquest/qa", model="pilot").run
        <Run mquest/qa pilot: accuracy 0.625, n = 8>
    """
    wanted, path = settings or ImportSettings(), Path(file)
    if not model.strip():
        raise InputError(
            "the model name is empty", hint="name the model that answered: --model NAME"
        )
    reading = ReadSettings(wanted.format, wanted.columns, wanted.values)
    kind, rows = read_given(path, reading)
    posed, items, epochs = _join(pose_one(task, wanted, unseen=True), list(rows))
    answers = _count_answers(epochs)
    if not answers:
        raise _explain_nothing(path, epochs[0])
    described = _describe(path, kind, model, posed, reading)
    folders: list[Path] = []
    for number, joined in enumerate(epochs):
        facts = repeat_facts(described, number)
        counts = {"rows": joined.rows, "skipped": len(joined.skipped)}
        counts |= {"items": len(joined.answers), "of": len(items)}
        facts = replace(facts, imported={**facts.imported, **counts})
        folders.append(Path(wanted.out) / folder_name(facts))
        _write(folders[-1], facts, posed.task, items, joined.answers)
        run_sync(score_run(folders[-1], posed.task, open_baselines(posed.cards[1])))
    if len(folders) > 1:
        note_repeats(folders, posed.task)
    skipped = tuple(omission for joined in epochs for omission in joined.skipped)
    first, *others = map(load_run, folders)
    return Imported(
        first,
        kind,
        sum(joined.rows for joined in epochs),
        answers,
        sum(joined.repeated for joined in epochs),
        skipped,
        len(items) * len(epochs) - answers,
        _list(folders[0], skipped),
        tuple(others),
    )


def pose_one(task: str, wanted: TaskChoiceSettings, *, unseen: bool = False) -> PosedTask:
    """Open one task on its data with its options; images are required unless ``unseen`` is set."""
    found = find_tasks([task])
    if len(found) > 1:
        names = ", ".join(ref.name for ref in found)
        raise InputError(f"{task} has several tasks: {names}", hint="name one of them")
    options = resolve_options(found[0].card, wanted.options)
    scope = Scope(wanted.data, wanted.split, wanted.limit, wanted.sample, wanted.seed)
    return pose_task(found[0], options, scope, Variation(wanted.invalid), unseen=unseen)


def _join(
    posed: PosedTask, rows: Sequence[GivenAnswer]
) -> tuple[PosedTask, list[Item], list[Joined]]:
    """Join the rows of a file to a limited set of items: Memantics' selection, or the first items.

    Other tools use the first items of a task, so the selection that matches more rows is used.
    ``place`` counts from the first item.
    """
    items = list(posed.task.items())
    epochs = join_epochs(items, rows)
    if posed.unspread is None:
        return posed, items, epochs
    first = list(posed.unspread.task.items())
    others = join_epochs(first, rows)
    by_place = any(not (row.id or row.image) for row in rows)
    if by_place or _count_answers(others) > _count_answers(epochs):
        return posed.unspread, first, others
    return posed, items, epochs


def _count_answers(epochs: Sequence[Joined]) -> int:
    return sum(len(joined.answers) for joined in epochs)


def _explain_nothing(path: Path, joined: Joined) -> InputError:
    if not joined.skipped:
        return DataError(path.name, "has no answers", hint="give the file with the answers")
    first = joined.skipped[0]
    about = first.id or first.image or "no id"
    return DataError(
        path.name,
        f"none of {joined.rows} rows matches an item; first row ({about}): {first.reason}",
        hint="check --task, --data and --split, or name the columns: --column id=NAME",
    )


def _describe(
    path: Path, kind: AnswerFormat, model: str, posed: PosedTask, reading: ReadSettings
) -> RunFacts:
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    source: dict[str, JsonValue] = {"format": kind, "file": path.name, "sha256": digest}
    source |= {"columns": dict(reading.columns), "values": dict(reading.values)}
    author = _Author(model, f"imported from {kind}", {"name": model, "imported": source})
    # The other tool did not use the prompts of Memantics.
    task = replace(posed.task, prompts={})
    facts = describe(posed.cards, task, author, posed.data, posed.scope)
    return replace(facts, imported=source, finished=now())


def _write(
    folder: Path,
    facts: RunFacts,
    task: Task,
    items: Sequence[Item],
    answers: Mapping[str, GivenAnswer],
) -> None:
    """Write the items of the file with their answers; results of an earlier import are kept."""
    with RunWriter(folder, facts) as writer:
        for item in items:
            given = answers.get(item.id)
            if given is None:
                continue
            if item.id not in writer.known:
                writer.add_item(item, ())
            if writer.known.get(item.id) is None:
                writer.add_answer(_judge(task, item, make_sound(given.reply), given.failure))


def _judge(task: Task, item: Item, reply: Reply, failed: str) -> Answer:
    if failed:
        return Answer(item.id, 0, "failed", NO_REPLY, reason=failed, calls=0)
    status, value, reason = read_reply(reply, lambda text: task.parse(text, item.form))
    return Answer(item.id, 0, status, reply, value, reason, calls=0)


def _list(folder: Path, skipped: Sequence[SkippedRow]) -> Path | None:
    if not skipped:
        return None
    path = folder / SKIPPED
    replace_file(path, b"".join(dump_line(asdict(omission)) for omission in skipped))
    return path


def export_task(
    task: Annotated[str, Argument("NAME/TASK, or NAME if the benchmark has one task.")],
    *,
    format: Annotated[TaskFormat, Flag("Format of the target tool.")],  # noqa: A002 - what users call it
    out: Annotated[str | Path, Flag("Output folder.")],
    settings: ExportSettings | None = None,
) -> Exported:
    """Write a task in the format of another tool; :func:`import_answers` reads the answers back.

    Args:
        task: ``NAME/TASK``, or ``NAME`` if the benchmark has one task.
        format: ``openai-batch`` (requests for OpenAI's batch API), ``lmms-eval``, ``lm-eval`` (task
            folders) or ``vlmevalkit`` (a table).
        out: Folder for the exported files.
        settings: Data, items, options and request fields; see :class:`ExportSettings`.

    Returns:
        The exported files and the number of items in them.

    Raises:
        UnknownName: The task or the format does not exist.
        InputError: The format cannot express the task.

    Example:
        >>> mm.export_task("mquest/qa", format="lm-eval", out="exported").items
        72
    """
    wanted = settings or ExportSettings()
    posed = pose_one(task, wanted)
    if posed.task.needs:
        raise InputError(
            f"the requests of {task} contain answers to the task {posed.task.needs[0].task}",
            hint="remove the options that use these answers",
        )
    complete = posed.task.complete
    items = posed.task.items() if complete is None else map(complete, posed.task.items())
    asked = ((item, posed.task.ask(item, None)) for item in items)
    wire = read_wire_settings(wanted.params)
    files = write_task(posed.task.name, format, Path(out), asked, (wanted.model, wire))
    return Exported(posed.task.name, format, posed.total, files)
