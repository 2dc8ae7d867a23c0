"""``memantics build reappraisal``: a data set of memes turned around, as drafts for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.build import find_memes
from memantics.cli import flags
from memantics.cli.build import BuildOut, Folder
from memantics.cli.desk import Calls, DeskWish, run_chain
from memantics.cli.evaluation import read_pairs
from memantics.cli.reappraise import (
    EditorParams,
    EditorUrl,
    Reader,
    open_painter,
    open_planner,
    take_all,
)
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.errors import InputError
from memantics.core.images import read_bytes
from memantics.core.language import guess_language
from memantics.core.memes import Meme, name_apart
from memantics.models.editors.kinds import EditorSettings
from memantics.reappraise.chain import Result, Workshop
from memantics.reappraise.dataset import (
    QUEUE,
    Draft,
    join_results,
    write_drafts,
    write_reappraisal_queue,
)
from memantics.reappraise.planner import NAME as EMBEDDED

ModelName = Annotated[
    str, typer.Option("--model", "-m", help="Who plans: KIND/NAME, or our lexicon, a baseline.")
]
Editors = Annotated[
    list[str] | None,
    typer.Option("--editor", "-e", help="Who repaints; may be repeated. Default: embedded."),
]


def build_reappraisal(
    folder: Folder = None,
    model: ModelName = EMBEDDED,
    editor: Editors = None,
    out: BuildOut = None,
    limit: flags.Limit = None,
    editor_url: EditorUrl = None,
    editor_param: EditorParams = None,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 8,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Turn every meme of a folder around with one or more editors; people check the drafts."""
    if folder is None:
        raise InputError("no folder of memes was named", hint="'starter' is one that ships")
    names = list(dict.fromkeys(editor or ["embedded"]))
    place = out or Path("builds") / f"{folder.resolve().name}-reappraisal"
    calls = Calls(model, base_url, param, concurrency, timeout, price, no_cache)
    wish = None if model == EMBEDDED else calls.wish()
    settings = EditorSettings(editor_url, timeout, read_pairs("--editor-param", editor_param))
    memes = name_apart(find_memes(folder, notes=False)[:limit])
    made = run_chain(lambda: _make_all(memes, names, wish, settings, place))
    with closing(Reader()) as reader:
        known = [_describe(meme, reader) for meme in memes if _is_done(meme, made)]
    drafts = join_results(known, made)
    write_drafts(place, drafts)
    if drafts:
        write_reappraisal_queue(place, drafts, f"memantics build reappraisal, {model}")
    _show(place, drafts, made, as_json=as_json)
    if any(result.status == "failed" for results in made.values() for result in results):
        raise typer.Exit(1)


async def _make_all(
    memes: Sequence[Meme],
    editors: Sequence[str],
    wish: DeskWish | None,
    settings: EditorSettings,
    place: Path,
) -> dict[str, list[Result]]:
    """Every editor in turn, in a folder of its own; plans are asked for once."""
    made: dict[str, list[Result]] = {}
    async with open_planner(wish, place, len(memes) * len(editors)) as planner:
        with closing(Reader()) as reader:
            for name in editors:
                short = "captions-only" if name == "none" else re.sub(r"[^\w.-]+", "-", name)
                painter = open_painter(name, settings, sticker=False)
                shop = Workshop(planner, reader.read, place / "reappraised" / short, painter)
                width = 1 if wish is None else wish.settings.concurrency
                try:
                    made[short] = await take_all(memes, shop, width, quiet=wish is not None)
                finally:
                    if painter is not None:
                        await painter.close()
    return made


def _is_done(meme: Meme, made: dict[str, list[Result]]) -> bool:
    return any(
        r.meme == meme.id and r.status == "done" for results in made.values() for r in results
    )


def _describe(meme: Meme, reader: Reader) -> Meme:
    """The meme with its printed text, read where nobody gave it."""
    text = meme.text
    if not text:
        lines = reader.read(read_bytes(meme.image), meme.image.name)
        text = " ".join(line.text for line in lines)
    return replace(meme, text=text, language=meme.language or guess_language(text).language)


def _show(
    place: Path, drafts: Sequence[Draft], made: dict[str, list[Result]], *, as_json: bool
) -> None:
    counts = {
        name: {
            status: sum(result.status == status for result in results)
            for status in ("done", "failed", "skipped")
        }
        for name, results in made.items()
    }
    if as_json:
        print_json({"folder": str(place), "drafts": len(drafts), "editors": counts})
        return
    shown = table([("editor", "left"), ("done", "right"), ("failed", "right")])
    for name, own in counts.items():
        shown.add_row(plain(name), str(own["done"]), str(own["failed"]))
    out = console()
    out.print(shown)
    for name, results in made.items():
        for result in [r for r in results if r.status == "failed"][:5]:
            out.print(plain(f"{name} {result.meme}: {result.stage}: {result.reason}"[:300]))
    out.print(plain(f"{len(drafts)} drafts; for people to check: {place / QUEUE}"))
