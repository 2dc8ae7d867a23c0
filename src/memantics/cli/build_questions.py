"""``memantics build questions``: multiple-choice questions from the knowledge of a build."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from memantics.build.extract import write_report
from memantics.build.questions import (
    QUESTIONS,
    QUEUE,
    Critic,
    People,
    QuestionReport,
    QuestionSettings,
    QuestionSubject,
    build_questions,
    list_slots,
    pair_subjects,
    report_questions,
    write_questions,
    write_review,
)
from memantics.cli import flags
from memantics.cli.build import Attempts, ModelName
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.errors import InputError, UnknownName
from memantics.core.memes import read_memes
from memantics.knowledge.lines import read_knowledge
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, Dimension, find_dimension

REPORT = "report-questions.json"
Build = Annotated[Path, typer.Argument(help="A folder that 'memantics build knowledge' made.")]
PerDimension = Annotated[
    int, typer.Option(min=1, max=50, help="Questions for each dimension of each meme.")
]
Dimensions = Annotated[
    list[str] | None,
    typer.Option("--dimension", help="Ask about this dimension only; may be repeated."),
]
NoneShare = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Share of questions whose key is 'None of the others'."),
]
Words = Annotated[int, typer.Option(min=2, max=40, help="Words of an option at most.")]
CriticKind = Annotated[
    Critic, typer.Option(help="Who tries to solve questions blindly: a solver, a model, both.")
]
CriticModel = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The model that tries them. Default: the writer."),
]
Rewrites = Annotated[
    int, typer.Option(min=0, max=5, help="How often a question that a model solved is rewritten.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every draw.")]
Language = Annotated[str, typer.Option(help="Language of the questions.")]


def make_questions(
    folder: Build,
    model: ModelName = None,
    per_dimension: PerDimension = 1,
    dimension: Dimensions = None,
    none_share: NoneShare = 0.25,
    words: Words = 8,
    critic: CriticKind = "statistics",
    critic_model: CriticModel = None,
    rewrites: Rewrites = 1,
    attempts: Attempts = 3,
    seed: Seed = 0,
    language: Language = "en",
    limit: flags.Limit = None,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Write questions about what is known, try them, and level the set.

    Running the same command again asks nothing twice.
    """
    settings = QuestionSettings(
        per_dimension,
        _find_dimensions(dimension or []),
        none_share,
        words,
        attempts,
        rewrites,
        seed,
        language,
        critic,
    )
    wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
    subjects = _find_subjects(folder, limit)
    report = run_chain(lambda: _build(folder, subjects, wish, critic_model, settings))
    show_questions(folder, report, as_json=as_json)
    if report.statuses["failed"]:
        raise typer.Exit(1)


def _find_dimensions(names: list[str]) -> tuple[Dimension, ...]:
    found = []
    for name in names:
        dimension = find_dimension(name)
        if dimension is None:
            raise UnknownName("dimension", name, DIMENSIONS)
        found.append(dimension)
    return tuple(dict.fromkeys(found))


def _find_subjects(folder: Path, limit: int | None) -> dict[str, QuestionSubject]:
    """The memes of a build with their knowledge; a build without any individual is an error."""
    knowledge = list(read_knowledge(folder))
    subjects = pair_subjects(read_memes(folder)[:limit], knowledge)
    if not any(own.knowledge.individuals for own in subjects.values()):
        raise InputError(
            f"{folder}: nothing is known about these memes, so nothing can be asked",
            hint="look at report.json: did the extraction fail?",
        )
    return subjects


async def _build(
    folder: Path,
    subjects: dict[str, QuestionSubject],
    wish: DeskWish,
    critic_model: str | None,
    settings: QuestionSettings,
) -> QuestionReport:
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(open_desk(wish, folder, "questions"))
        critic = writer
        if critic_model is not None and critic_model != wish.model:
            other = DeskWish(critic_model, wish.settings, wish.prices, wish.use_cache)
            # A journal has one owner: the critic's lies in a folder of its own.
            opened = open_desk(other, folder / "critic", "critic")
            critic = await stack.enter_async_context(opened)
        slots = len(list_slots(subjects, settings))
        writer.expect(slots)
        if settings.critic in ("model", "both"):
            critic.expect(4 * slots)
        window = 2 * wish.settings.concurrency
        built = await build_questions(People(writer, critic), subjects, settings, window)
        report = report_questions(built, settings, writer.model, critic.model)
    write_questions(folder, built.questions, built.aside)
    write_review(folder, built.questions, subjects, settings.language)
    write_report(folder, report, REPORT)
    return report


def show_questions(folder: Path, report: QuestionReport, *, as_json: bool) -> None:
    """Show what a set of questions amounts to."""
    if as_json:
        print_json(report)
        return
    out = console()
    title = f"{report.questions} questions of {report.slots} planned; {report.set_aside} set aside"
    counts = table([("dimension", "left"), ("questions", "right")], title)
    for name, count in report.dimensions.items():
        counts.add_row(name, str(count))
    out.print(counts)
    leaks = table(
        [
            ("finds the key", "left"),
            ("rate", "right"),
            ("chance", "right"),
            ("n", "right"),
            ("", "left"),
        ],
        "What gives keys away",
    )
    for leak in report.leaks:
        word = leak.judge(report.tolerance) + (f": {leak.note}" if leak.note else "")
        rate = "–" if leak.value is None else f"{leak.value:.1%}"
        leaks.add_row(leak.name, rate, f"{leak.chance:.1%}", str(leak.n), word)
    out.print(leaks)
    for reason, count in list(report.reasons.items())[:8]:
        out.print(plain(f"set aside {count}: {reason}"))
    out.print(
        f"'None of the others' is the key of {report.none_share:.1%}; {report.exchanged} options "
        f"were exchanged; {report.pairs} toxicity questions have a pair, {report.unpaired} none."
    )
    typer.echo(str(folder / QUESTIONS))
    typer.echo(f"for people to check: {folder / QUEUE}")
