"""``memantics build captions``: what the words of memes mean and what their pictures show."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

import typer

from memantics.build.captions import (
    CaptionReport,
    Origin,
    mine_captions,
    write_captions,
)
from memantics.build.drafts import count_statuses
from memantics.build.extract import Adopted, adopt_memes
from memantics.cli import flags
from memantics.cli.build import BuildOut, Folder, ModelName
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.drafting import (
    Written,
    find_noted_memes,
    find_place,
    show_end,
    stop_at_failures,
)
from memantics.cli.terminal import Justify, console, print_json, table
from memantics.core.memes import Meme

Again = Annotated[
    bool, typer.Option("--again", help="Ask also for captions that the memes carry already.")
]


def build_captions(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    language: Written = "",
    limit: flags.Limit = None,
    again: Again = False,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Mine what words mean and pictures show, in each meme's language, for detectors and chats."""
    folder, place = find_place(folder, out)
    wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
    memes = find_noted_memes(folder)
    if again:
        memes = tuple(replace(meme, notes={}) for meme in memes)
    path, adopted, report = run_chain(lambda: _mine(place, (memes, limit), wish, language))
    statuses = count_statuses([report.tally])
    origins = {
        name: Counter(own.origins[name] for own in report.memes)
        for name in ("text_caption", "image_caption")
    }
    if as_json:
        print_json(
            {
                "memes": len(report.memes),
                "origins": origins,
                "statuses": statuses,
                "repaired": report.tally.repaired,
                "misses": report.tally.misses,
                "captions": str(path),
            }
        )
    else:
        kinds: tuple[Origin, ...] = get_args(Origin)
        columns: list[tuple[str, Justify]] = [(str(kind), "right") for kind in kinds]
        rows = table([("caption", "left"), *columns])
        for name, counts in origins.items():
            rows.add_row(name, *(str(counts[kind]) for kind in kinds))
        console().print(rows)
        show_end(statuses, report.tally.misses, adopted)
        typer.echo(str(path))
    stop_at_failures(statuses)


async def _mine(
    place: Path, memes: tuple[tuple[Meme, ...], int | None], wish: DeskWish, language: str
) -> tuple[Path, Adopted, CaptionReport]:
    async with open_desk(wish, place, "captions") as desk:
        # Captions that were mined before come from the journal, so their sources stay with them.
        adopted = adopt_memes(memes[0], place)
        report = await mine_captions(desk, adopted.memes[: memes[1]], language, desk.expect)
        return write_captions(place, report), adopted, report
