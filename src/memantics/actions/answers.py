"""``import_answers`` and ``export_task``: answers from other tools, tasks for other tools."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.actions.desk import Params
from memantics.actions.options import RunsFolder, TaskOptions
from memantics.core.card import resolve_options
from memantics.core.errors import DataError, InputError
from memantics.core.journal import replace_file
from memantics.core.parameters import Argument, Data, Flag, Invalid, Limit, Sample, Seed, Split
from memantics.core.records import NO_REPLY, Answer, Item, Reply
from memantics.core.result import Result
from memantics.core.rundir import RunFacts, RunWriter, dump_line
from memantics.core.task import Task
from memantics.core.waiting import run_sync
from memantics.exchange.joining import (
    AnswerFormat,
    GivenAnswer,
    Joined,
    LeftOut,
    ReadSettings,
    join_epochs,
)
from memantics.exchange.reading import read_given
from memantics.exchange.writing import TaskFormat, write_task
from memantics.models.kinds import read_wire_settings
from memantics.registry import find_tasks, open_baselines, pose_task
from memantics.report.runs import Run, load_run
from memantics.run.engine import make_sound, read_reply
from memantics.run.evaluate import PosedTask
from memantics.run.facts import Scope, Variation, describe, folder_name, now, repeat_facts
from memantics.run.score import note_repeats, score_run

LEFT_OUT = "left_out.jsonl"


@dataclass(frozen=True, slots=True)
class TaskChoiceSettings:
    """Which items of a task: its data, the part of them, and the task's options.

    ``limit``, or ``sample`` and ``seed``, choose the items that ``memantics run`` would ask.
    """

    data: Data = None
    split: Split = None
    limit: Limit = None
    options: TaskOptions = field(default_factory=dict)
    invalid: Invalid = None
    sample: Sample = None
    seed: Seed = None


@dataclass(frozen=True, slots=True)
class ExportSettings(TaskChoiceSettings):
    """How a task is written for another tool.

    ``model`` and ``params`` go into the requests of ``openai-batch``: the name by which the server
    knows the model, and fields of the request such as ``max_tokens``.
    """

    model: Annotated[
        str, Flag("The model as its server names it (openai-batch).", "--model -m")
    ] = ""
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exported(Result):
    """The files of a task for another tool, and how many items they hold."""

    task: str
    format: TaskFormat
    items: int
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ImportSettings(TaskChoiceSettings):
    """How answers are imported.

    ``format`` is ``inspect``, ``lmms-eval``, ``vlmevalkit``, ``openai-batch`` or ``table``; by
    default it is found out. ``columns`` names the columns of a table by role (``id``, ``image``,
    ``question``, ``answer``, ``gold``, ``gold_text``; an empty name means none), ``values`` renames
    values, such as ``{"1": "harmful"}``.
    """

    format: Annotated[AnswerFormat | None, Flag("Which tool wrote it. Default: found out.")] = None
    columns: Annotated[
        Mapping[str, str],
        Flag(
            "A column of a table, as id, image, question, answer, gold or gold_text.",
            "--column",
            metavar="ROLE=NAME",
        ),
    ] = field(default_factory=dict)
    values: Annotated[
        Mapping[str, str],
        Flag("Rename a value, such as 1=harmful.", "--value", metavar="THERE=HERE"),
    ] = field(default_factory=dict)
    out: RunsFolder = Path("runs")


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """A run made of a file's answers. ``listed`` is the file with the rows that were left out.

    ``without_answer`` items of the task are not in the file: the run is on those that are.
    Where the tool asked everything several times, ``repeats`` are the runs of the later times;
    counts are of all of them.
    """

    run: Run
    format: str
    rows: int
    answers: int
    repeated: int
    left_out: tuple[LeftOut, ...]
    without_answer: int
    listed: Path | None
    repeats: tuple[Run, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        """The counts and the run's figures as plain data."""
        names = ("format", "rows", "answers", "repeated", "without_answer")
        counts: dict[str, JsonValue] = {name: getattr(self, name) for name in names}
        listed = None if self.listed is None else str(self.listed)
        more: dict[str, JsonValue] = {"left_out": len(self.left_out), "listed": listed}
        more["repeats"] = [str(run.folder) for run in self.repeats]
        return counts | more | self.run.to_dict()


@dataclass(frozen=True, slots=True)
class _Author:
    """Whoever gave the answers of a file."""

    name: str
    note: str
    identity: Mapping[str, JsonValue]


def import_answers(
    file: Annotated[str | Path, Argument("The file with the answers.")],
    *,
    task: Annotated[str, Flag("NAME/TASK, or NAME where it has one task.")],
    model: Annotated[str, Flag("Who answered: the name in reports.", "--model -m")],
    settings: ImportSettings | None = None,
) -> Imported:
    """Make a run of the answers that another tool wrote, and score it.

    Rows are joined to the items of ``task`` by id, else by image and question. A row that fits no
    item, or several, is left out and listed in the run's ``left_out.jsonl``. The run holds the
    items that the file has; ``run.json`` and every report say that the answers were imported, and
    of how many items. Epochs of Inspect become repeats of the first. ``settings`` say which data,
    how answers are parsed, and where the run is written.
    """
    wanted, path = settings or ImportSettings(), Path(file)
    if not model.strip():
        raise InputError("the model has no name", hint="say who answered: --model NAME")
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
        counts = {"rows": joined.rows, "left_out": len(joined.left_out)}
        counts |= {"items": len(joined.answers), "of": len(items)}
        facts = replace(facts, imported={**facts.imported, **counts})
        folders.append(Path(wanted.out) / folder_name(facts))
        _write(folders[-1], facts, posed.task, items, joined.answers)
        run_sync(score_run(folders[-1], posed.task, open_baselines(posed.cards[1])))
    if len(folders) > 1:
        note_repeats(folders, posed.task)
    left_out = tuple(omission for joined in epochs for omission in joined.left_out)
    first, *others = map(load_run, folders)
    return Imported(
        first,
        kind,
        sum(joined.rows for joined in epochs),
        answers,
        sum(joined.repeated for joined in epochs),
        left_out,
        len(items) * len(epochs) - answers,
        _list(folders[0], left_out),
        tuple(others),
    )


def pose_one(task: str, wanted: TaskChoiceSettings, *, unseen: bool = False) -> PosedTask:
    """One task on its data, with its options; images are needed unless they stay ``unseen``."""
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
    """Join the rows to the items of a limit: those that we choose, or the first ones.

    Other tools, and tasks that earlier versions exported, take the first: then more rows fit those.
    Places count from the first item.
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
    if not joined.left_out:
        return DataError(path.name, "holds no answers", hint="give the file with the answers")
    first = joined.left_out[0]
    about = first.id or first.image or "no id"
    return DataError(
        path.name,
        f"none of {joined.rows} rows fits an item; the first ({about}): {first.reason}",
        hint="check --task, --data and --split, or name the columns: --column id=NAME",
    )


def _describe(
    path: Path, kind: AnswerFormat, model: str, posed: PosedTask, reading: ReadSettings
) -> RunFacts:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    source: dict[str, JsonValue] = {"format": kind, "file": path.name, "sha256": digest}
    source |= {"columns": dict(reading.columns), "values": dict(reading.values)}
    author = _Author(model, f"imported from {kind}", {"name": model, "imported": source})
    # Whatever was sent, it was not our prompts.
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
    """Write the items that the file has, with their answers; what an earlier import wrote stays."""
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


def _list(folder: Path, left_out: Sequence[LeftOut]) -> Path | None:
    if not left_out:
        return None
    path = folder / LEFT_OUT
    replace_file(path, b"".join(dump_line(asdict(omission)) for omission in left_out))
    return path


def export_task(
    task: Annotated[str, Argument("NAME/TASK, or NAME where it has one task.")],
    *,
    format: Annotated[TaskFormat, Flag("Which tool will ask.")],  # noqa: A002 - what users call it
    out: Annotated[str | Path, Flag("The folder for the files.")],
    settings: ExportSettings | None = None,
) -> Exported:
    """Write a task so that another tool can ask it; ``import_answers`` reads what comes back.

    ``format`` is ``openai-batch`` (requests as OpenAI's batch interface takes them), ``lmms-eval``,
    ``lm-eval`` (task folders of these) or ``vlmevalkit`` (a table). Prompts are ours; ``settings``
    say which data, options and wording.
    """
    wanted = settings or ExportSettings()
    posed = pose_one(task, wanted)
    if posed.task.needs:
        raise InputError(
            f"the requests of {task} hold answers of {posed.task.needs[0].task}",
            hint="leave out the options that ask for these",
        )
    complete = posed.task.complete
    items = posed.task.items() if complete is None else map(complete, posed.task.items())
    asked = ((item, posed.task.ask(item, None)) for item in items)
    wire = read_wire_settings(wanted.params)
    files = write_task(posed.task.name, format, Path(out), asked, (wanted.model, wire))
    return Exported(posed.task.name, format, posed.total, files)
