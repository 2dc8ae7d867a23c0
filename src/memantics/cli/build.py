"""``memantics build``: from a folder of memes to knowledge and questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.build.extract import (
    Adopted,
    ExtractionPlan,
    ExtractSettings,
    KnowledgeReport,
    Refine,
    ReportTally,
    adopt_memes,
    extract_memes,
    find_plan,
    read_background,
    write_report,
)
from memantics.cli import flags
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.errors import InputError
from memantics.core.journal import whole_file
from memantics.core.memes import Meme, read_memes
from memantics.knowledge.lines import KNOWLEDGE, dump_knowledge
from memantics.starter import image_path, read_starter

STARTER = "starter"
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
Language = Annotated[str, typer.Option(help="Language of labels, descriptions and questions.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the steps and what each is told; ask nothing.")
]
Attempts = Annotated[int, typer.Option(min=1, max=10, help="Tries at a reply that can be read.")]


def build_knowledge(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    order: Order = "default",
    refine: Refining = None,
    background: Background = None,
    language: Language = "en",
    limit: flags.Limit = None,
    attempts: Attempts = 3,
    explain: Explain = False,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Extract what memes show, say and mean, one structured call for each dimension.

    Running the same command again asks nothing twice.
    """
    plan = find_plan(order)
    settings = ExtractSettings(
        plan,
        refine,
        language,
        read_background(background) if background else "",
        attempts,
        collection=folder.resolve().name if folder else "",
    )
    if explain:
        show_plan(settings, as_json=as_json)
        return
    if folder is None:
        raise InputError(
            "no folder of memes was named", hint="such as: memantics build knowledge starter"
        )
    wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
    place = out or Path("builds") / folder.resolve().name
    memes = find_memes(folder)[:limit]
    report = run_chain(lambda: extract_into(place, memes, wish, settings))
    show_knowledge(place, report, as_json=as_json)
    if report.statuses["failed"]:
        raise typer.Exit(1)


def find_memes(folder: Path) -> tuple[Meme, ...]:
    """The memes of a folder; ``starter`` is the pack that ships, unless a folder is so named."""
    if str(folder) == STARTER and not folder.exists():
        return tuple(
            Meme(meme.id, image_path(meme.id), meme.text, meme.language) for meme in read_starter()
        )
    return read_memes(folder)


async def extract_into(
    place: Path, memes: tuple[Meme, ...], wish: DeskWish, settings: ExtractSettings
) -> KnowledgeReport:
    """Extract knowledge into the folder of a build."""
    async with open_desk(wish, place, "knowledge") as desk:
        adopted: Adopted = adopt_memes(memes, place)
        desk.expect(len(adopted.memes) * settings.steps)
        tally = ReportTally()
        with whole_file(place / KNOWLEDGE) as file:
            window = 2 * wish.settings.concurrency
            async for extraction in extract_memes(desk, adopted.memes, settings, window):
                file.write(dump_knowledge(extraction.knowledge))
                tally.add(extraction)
        report = tally.report(desk.model, settings, adopted.skips)
    write_report(place, report)
    return report


def show_plan(settings: ExtractSettings, *, as_json: bool) -> None:
    """Show the order of steps, what each is told, and which can run at once."""
    plan: ExtractionPlan = settings.plan
    waves = plan.waves()
    if as_json:
        print_json(
            {"order": plan.name, "refine": settings.when, "waves": waves, "steps": plan.steps}
        )
        return
    shown = table(
        [("wave", "right"), ("step", "left"), ("is told", "left"), ("relations", "left")],
        f"{plan.name}: {plan.note}",
    )
    for step in plan.steps:
        wave = next(n for n, names in enumerate(waves, 1) if step.dimension in names)
        told = list(step.inputs) + (["background files"] if step.background else [])
        links = step.relations() if settings.when == "same" else ()
        shown.add_row(
            str(wave),
            step.dimension,
            ", ".join(told) or "the meme alone",
            ", ".join(term.name for term in links),
        )
    out = console()
    out.print(shown)
    when = {
        "same": "Relations are asked for together with the individuals.",
        "second": "Relations are asked for in a second pass, when all individuals are known.",
        "off": "Relations are not asked for.",
    }
    out.print(
        f"{when[settings.when]} Steps of one wave run at once; "
        f"at most {settings.steps} calls a meme."
    )


def show_knowledge(place: Path, report: KnowledgeReport, *, as_json: bool) -> None:
    """Show what an extraction amounts to."""
    if as_json:
        print_json(report)
        return
    shown = table(
        [
            ("dimension", "left"),
            ("found", "right"),
            ("memes", "right"),
            ("empty", "right"),
            ("refused", "right"),
            ("unparsed", "right"),
            ("failed", "right"),
        ],
        f"{report.memes} memes, {report.individuals} individuals",
    )
    for name, own in report.dimensions.items():
        counts = (own.individuals, own.memes, own.empty)
        bad = (own.statuses[status] for status in ("refused", "unparsed", "failed"))
        shown.add_row(name, *map(str, (*counts, *bad)))
    out = console()
    out.print(shown)
    links = sum(report.relations.values())
    out.print(
        f"{links} relations, {len(report.dangling)} of them lead nowhere, "
        f"{len(report.misplaced)} are out of place; {report.repaired} replies were repaired."
    )
    for skip in report.unusable[:5]:
        out.print(plain(f"left out {skip.row}: {skip.reason}"))
    if len(report.unusable) > 5:
        out.print(f"… and {len(report.unusable) - 5} more: see report.json")
    for failure in report.failures[:5]:
        out.print(
            plain(f"{failure.status} {failure.meme} {failure.dimension}: {failure.reason}"[:300])
        )
    if len(report.failures) > 5:
        out.print(f"… and {len(report.failures) - 5} more: see report.json")
    typer.echo(str(place / KNOWLEDGE))
