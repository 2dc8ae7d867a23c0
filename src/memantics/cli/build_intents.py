"""``memantics build intents``: drafts of why memes were made, for people to edit and review."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.build.drafts import count_statuses
from memantics.build.extract import Adopted
from memantics.build.intents import (
    IntentReport,
    IntentSettings,
    draft_intents,
    write_intent_queue,
    write_intents,
)
from memantics.build.intents.form import MOST_INTENTS
from memantics.cli import flags
from memantics.cli.build import Attempts, BuildOut, Folder, ModelName
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.drafting import (
    CaptionFile,
    Written,
    adopt,
    find_noted_memes,
    find_place,
    show_end,
    stop_at_failures,
)
from memantics.cli.terminal import console, plain, print_json
from memantics.core.memes import Meme

QUEUE = "queue-intents"
Most = Annotated[int, typer.Option("--most", min=1, max=10, help="Intents of a meme at most.")]


def build_intents(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    language: Written = "",
    most: Most = MOST_INTENTS,
    captions: CaptionFile = None,
    limit: flags.Limit = None,
    attempts: Attempts = 3,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Draft background knowledge and ranked intents; people edit and review them in a queue."""
    folder, place = find_place(folder, out)
    wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
    settings = IntentSettings(language=language, intents=most, attempts=attempts)
    memes = find_noted_memes(folder)
    adopted, report = run_chain(lambda: _draft(place, (memes, limit), (wish, captions), settings))
    path = write_intents(place, report)
    queue = place / QUEUE
    write_intent_queue(queue, report, f"memantics build intents, {wish.model}")
    statuses = count_statuses([report.tally])
    without = sum(not own.intents for own in report.drafts)
    if as_json:
        print_json(
            {
                "memes": len(report.drafts),
                "without_intent": without,
                "statuses": statuses,
                "repaired": report.tally.repaired,
                "misses": report.tally.misses,
                "intents": str(path),
                "queue": str(queue),
            }
        )
    else:
        count = sum(len(own.intents) for own in report.drafts)
        known = sum(len(own.background) for own in report.drafts)
        console().print(
            plain(
                f"{len(report.drafts)} memes: {count} intents, {known} sentences of background; "
                f"{without} memes are without an intent"
            )
        )
        show_end(statuses, report.tally.misses, adopted)
        typer.echo(f"{path}\n{queue}")
    stop_at_failures(statuses)


async def _draft(
    place: Path,
    memes: tuple[tuple[Meme, ...], int | None],
    ways: tuple[DeskWish, Path | None],
    settings: IntentSettings,
) -> tuple[Adopted, IntentReport]:
    wish, captions = ways
    async with open_desk(wish, place, "intents") as desk:
        adopted = adopt(memes[0], place, captions)
        return adopted, await draft_intents(desk, adopted.memes[: memes[1]], settings, desk.expect)
