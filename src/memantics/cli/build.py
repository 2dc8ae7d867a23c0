"""``memantics build knowledge`` and ``build questions``: from memes to a set of questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import build
from memantics.actions import build_tables as tables
from memantics.actions.asking import Asking
from memantics.actions.build_settings import (
    Critic,
    ExtractSettings,
    QuestionSettings,
    Refine,
    find_dimensions,
    make_extract_settings,
    with_dimensions,
    with_retrieval,
)
from memantics.cli import flags
from memantics.cli.progress import stop_at_failures, tell_tokens, watching
from memantics.cli.terminal import console, print_json, print_lines, say, show_table
from memantics.core.errors import InputError

Folder = Annotated[
    Path | None, typer.Argument(help="A folder of memes, or 'starter' for the starter pack.")
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="KIND/NAME of the model that is asked."),
]
BuildOut = Annotated[
    Path | None, typer.Option(help="Folder of the build. Default: builds/NAME-OF-FOLDER.")
]
Order = Annotated[str, typer.Option(help="Order of the dimensions: default, paper or official.")]
Refining = Annotated[
    Refine | None,
    typer.Option(help="Relations with the individuals, in a second pass, or off."),
]
Background = Annotated[
    Path | None, typer.Option(help="Background knowledge: a text file, or a folder of them.")
]
DimensionFolder = Annotated[
    Path | None,
    typer.Option(help="Dimensions of your own, changed or dropped: a folder of NAME.toml files."),
]
Retrieve = Annotated[
    list[Path] | None,
    typer.Option(
        help="Retrieve background for each meme from a store, a build or a folder of texts; may be "
        "repeated."
    ),
]
Retrieved = Annotated[int, typer.Option(min=1, max=50, help="How many statements to retrieve.")]
Language = Annotated[str, typer.Option(help="Language of labels, descriptions and questions.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the steps and what each is told; ask nothing.")
]
Attempts = Annotated[int, typer.Option(min=1, max=10, help="Tries at a reply that can be read.")]
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
FromImage = Annotated[
    bool,
    typer.Option(
        "--from-image",
        help="Where nothing is known of toxicity, write its question from the image; marked.",
    ),
]
QuestionLanguage = Annotated[str, typer.Option(help="Language of the questions.")]


@flags.asks_models()
def build_knowledge(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    order: Order = "default",
    refine: Refining = None,
    background: Background = None,
    dimensions: DimensionFolder = None,
    retrieve: Retrieve = None,
    retrieved: Retrieved = 5,
    language: Language = "en",
    limit: flags.FewMemes = None,
    attempts: Attempts = 3,
    explain: Explain = False,
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Extract what memes show, say and mean, one structured call for each dimension.

    Running the same command again asks nothing twice.
    """
    settings = make_extract_settings(order, refine, language, background, attempts)
    settings = with_retrieval(settings, retrieve or [], retrieved)
    settings = with_dimensions(settings, dimensions)
    if explain:
        _show_plan(settings, as_json=as_json)
        return
    if folder is None:
        raise InputError(
            "no folder of memes was named", hint="such as: memantics build knowledge starter"
        )
    with watching("knowledge", asking.prices) as progress:
        built = build.knowledge(
            folder,
            model=model,
            settings=settings,
            out=out,
            limit=limit,
            progress=progress,
            asking=asking,
        )
    if as_json:
        print_json(built.report)
    else:
        show_table(tables.tabulate_knowledge(built.report))
        print_lines(tables.note_knowledge(built.report))
        tell_tokens(built.tokens, built.report.memes, built.adapted)
        say(str(built.folder / build.KNOWLEDGE))
    stop_at_failures(built.counts)


def _show_plan(settings: ExtractSettings, *, as_json: bool) -> None:
    """Show the order of steps, what each is told, and which can run at once."""
    plan = settings.plan
    if as_json:
        found = {"order": plan.name, "refine": settings.when, "waves": plan.waves()}
        print_json({**found, "steps": plan.steps})
        return
    show_table(tables.tabulate_plan(settings))
    console().print(tables.describe_plan(settings))


@flags.asks_models()
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
    language: QuestionLanguage = "en",
    from_image: FromImage = False,
    limit: flags.FewMemes = None,
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Write questions about what is known, try them, and level the set.

    Running the same command again asks nothing twice.
    """
    settings = QuestionSettings(
        per_dimension,
        find_dimensions(dimension or []),
        none_share,
        words,
        attempts,
        rewrites,
        seed,
        language,
        critic,
        from_image=from_image,
    )
    with watching("questions", asking.prices) as progress:
        built = build.questions(
            folder,
            model=model,
            settings=settings,
            critic_model=critic_model,
            limit=limit,
            progress=progress,
            asking=asking,
        )
    if as_json:
        print_json(built.report)
    else:
        show_table(tables.tabulate_questions(built.report))
        show_table(tables.tabulate_leaks(built.report))
        print_lines(tables.note_questions(built.report))
        tell_tokens(built.tokens, built.report.memes, built.adapted)
        say(str(folder / build.QUESTIONS))
        say(f"for people to check: {folder / build.QUESTION_QUEUE}")
    stop_at_failures(built.counts)


def draw_questions(
    folder: Build,
    first: Annotated[
        str | None,
        typer.Option(help="Make the first round: this dimension with the questions linked to it."),
    ] = None,
    per_dimension: Annotated[
        int, typer.Option(min=1, help="Questions for each other dimension in a further round.")
    ] = 50,
    seed: Seed = 0,
    as_json: flags.AsJson = False,
) -> None:
    """Draw the questions that people judge: a first round, then N per dimension among kept memes.

    No model is asked. A further round draws among the memes that people kept in those before.
    """
    drawn = build.draw(folder, first=first, per_dimension=per_dimension, seed=seed)
    if as_json:
        print_json(drawn)
        return
    show_table(drawn.table())
    say(f"for people to check: {drawn.queue} ({drawn.items:,} items, {drawn.memes:,} memes)")
