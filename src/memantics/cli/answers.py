"""``memantics import-answers`` and ``export-task``: other tools' answers, and tasks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.answers import (
    AnswerFormat,
    ExportSettings,
    ImportSettings,
    TaskFormat,
    export_task,
    import_answers,
)
from memantics.actions.asking import read_pairs
from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_json, tell
from memantics.report import table as tabulate

AnswerFile = Annotated[Path, typer.Argument(help="The file with the answers.")]
Task = Annotated[str, typer.Option(help="NAME/TASK, or NAME where it has one task.")]
Author = Annotated[str, typer.Option("--model", "-m", help="Who answered: the name in reports.")]
Format = Annotated[
    AnswerFormat | None, typer.Option("--format", help="Which tool wrote it. Default: found out.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="A column of a table, as id, image, question, answer, gold or gold_text.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="THERE=HERE", help="Rename a value, such as 1=harmful."),
]
TaskName = Annotated[str, typer.Argument(help="NAME/TASK, or NAME where it has one task.")]
TaskKind = Annotated[TaskFormat, typer.Option("--format", help="Which tool will ask.")]
ServedName = Annotated[
    str, typer.Option("--model", "-m", help="The model as its server names it (openai-batch).")
]


def bring_in(
    file: AnswerFile,
    task: Task,
    model: Author,
    form: Format = None,
    column: Columns = None,
    value: Values = None,
    data: flags.Data = None,
    split: flags.Split = None,
    limit: flags.Limit = None,
    option: flags.Options = None,
    invalid: flags.Invalid = None,
    out: flags.Out = Path("runs"),
    as_json: flags.AsJson = False,
) -> None:
    """Make a run of answers that another tool wrote: joined to the items, scored, marked imported.

    Rows that fit no item, or several, are listed in the run's left_out.jsonl.
    """
    settings = ImportSettings(
        data=data,
        split=split,
        limit=limit,
        options=read_pairs("--set", option),
        invalid=invalid,
        format=form,
        columns=read_pairs("--column", column),
        values=read_pairs("--value", value),
        out=out,
    )
    done = import_answers(file, task=task, model=model, settings=settings)
    if as_json:
        print_json(done.to_dict())
    else:
        console().print(tabulate([done.run, *done.repeats]))
        for run in (done.run, *done.repeats):
            console().print(plain(str(run.folder)), soft_wrap=True)
    if done.without_answer:
        tell(f"{done.without_answer} items have no answer in {file.name}: they count as failed")
    if done.left_out:
        tell(f"{len(done.left_out)} of {done.rows} rows were left out: {done.listed}")
    if done.left_out or any(run.counts["failed"] for run in (done.run, *done.repeats)):
        raise typer.Exit(1)


def send_out(
    task: TaskName,
    form: TaskKind,
    out: Annotated[Path, typer.Option(help="The folder for the files.")],
    model: ServedName = "",
    param: flags.Params = None,
    data: flags.Data = None,
    split: flags.Split = None,
    limit: flags.Limit = None,
    option: flags.Options = None,
    as_json: flags.AsJson = False,
) -> None:
    """Write a task for another tool to ask: OpenAI's batches, lmms-eval, lm-eval, VLMEvalKit."""
    chosen = read_pairs("--set", option)
    params = read_pairs("--param", param)
    settings = ExportSettings(data, split, limit, chosen, None, model, params)
    done = export_task(task, format=form, out=out, settings=settings)
    if as_json:
        print_json(done.to_dict())
        return
    console().print(plain(f"{done.items} items of {done.task}"))
    for path in done.files:
        console().print(plain(str(path)), soft_wrap=True)
