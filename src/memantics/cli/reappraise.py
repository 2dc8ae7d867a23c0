"""``memantics reappraise``: the same meme, with a kinder feeling about it."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from statistics import mean
from typing import Annotated, Literal

import typer

from memantics.cli import flags
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.evaluation import read_pairs
from memantics.cli.progress import Watcher
from memantics.cli.reviewing import review_in_terminal
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.editor import Editor
from memantics.core.errors import ImageError, InputError
from memantics.core.memes import Meme, name_apart, read_memes
from memantics.models.editors.kinds import EditorSettings, open_editor
from memantics.reappraise.chain import Result, Workshop, reappraise_all
from memantics.reappraise.grading import EmbeddedEditor
from memantics.reappraise.planner import NAME as EMBEDDED
from memantics.reappraise.planner import EmbeddedPlanner
from memantics.reappraise.stages import ModelPlanner, Planner
from memantics.run.progress import Progress
from memantics.vision.captions import TextLine

Images = Annotated[list[Path], typer.Argument(help="Image files, or folders of memes.")]
Wanted = Annotated[
    Literal["happy", "calm", "relaxed", "excited"] | None,
    typer.Option("--target", help="The new emotion. Default: the counterpart of the meme's own."),
]
ModelName = Annotated[
    str,
    typer.Option("--model", "-m", help="Who plans: KIND/NAME, or our lexicon, a baseline."),
]
EditorName = Annotated[
    str,
    typer.Option(
        "--editor",
        "-e",
        help="Who repaints: embedded (light and colours), none (captions only), "
        "openai-images/NAME or diffusers/PATH.",
    ),
]
EditorUrl = Annotated[
    str | None, typer.Option(help="Address of an image-edit server. Default: OPENAI_BASE_URL.")
]
EditorParams = Annotated[
    list[str] | None,
    typer.Option("--editor-param", metavar="NAME=VALUE", help="A setting of the editor."),
]
Sticker = Annotated[bool, typer.Option("--sticker", help="Embedded editor: add a small sticker.")]
Interactive = Annotated[
    bool, typer.Option("--interactive", "-i", help="Accept, edit or skip each stage yourself.")
]
Place = Annotated[Path, typer.Option(help="Where the folders of the memes go.")]


def reappraise(
    images: Images,
    target: Wanted = None,
    model: ModelName = EMBEDDED,
    editor: EditorName = "embedded",
    out: Place = Path("reappraised"),
    interactive: Interactive = False,
    sticker: Sticker = False,
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
    """Turn negative memes around: captions rewritten in place, panels and layout kept."""
    if interactive and not sys.stdin.isatty():
        raise InputError("--interactive needs a terminal", hint="edit plan.json in --out instead")
    memes = find_memes(images)
    settings = EditorSettings(editor_url, timeout, read_pairs("--editor-param", editor_param))
    painter = open_painter(editor, settings, sticker=sticker)
    calls = Calls(model, base_url, param, concurrency, timeout, price, no_cache)
    wish = None if model == EMBEDDED else calls.wish()

    async def work() -> list[Result]:
        async with open_planner(wish, out, len(memes)) as planner:
            with closing(Reader()) as reader:
                shop = Workshop(
                    planner,
                    reader.read,
                    out,
                    painter,
                    target,
                    review_in_terminal if interactive else None,
                )
                try:
                    width = 1 if interactive or wish is None else concurrency
                    return await take_all(memes, shop, width, quiet=wish is not None or interactive)
                finally:
                    if painter is not None:
                        await painter.close()

    results = run_chain(work)
    _show(results, model, as_json=as_json)
    _end(results)


def find_memes(paths: Sequence[Path]) -> list[Meme]:
    """The memes that a user named."""
    found: list[Meme] = []
    for path in paths:
        if path.is_dir():
            found.extend(read_memes(path))
        elif path.exists():
            found.append(Meme(path.stem, path))
        else:
            raise ImageError(path, "missing", "no such file", hint="check the path")
    return name_apart(found)


def open_painter(name: str, settings: EditorSettings, *, sticker: bool) -> Editor | None:
    """The editor of that name; None where only captions change."""
    if sticker and name != "embedded":
        raise InputError("--sticker goes with the embedded editor", hint="leave one of them out")
    if name == "none":
        return None
    return EmbeddedEditor(sticker=sticker) if name == "embedded" else open_editor(name, settings)


@asynccontextmanager
async def open_planner(wish: DeskWish | None, out: Path, memes: int) -> AsyncIterator[Planner]:
    """A model's planner with its journal in the folder, or the embedded one."""
    if wish is None:
        yield EmbeddedPlanner()
        return
    async with open_desk(wish, out, "reappraise") as desk:
        desk.expect(2 * memes)
        yield ModelPlanner(desk)


class Reader:
    """The embedded OCR with its table of readings; one thread at a time reads."""

    def __init__(self) -> None:
        from memantics.models.embedded.ocr import open_reader

        self._ocr = open_reader()

    def read(self, data: bytes, name: str) -> list[TextLine]:
        """The lines of text on an image."""
        found = self._ocr.read(data, name)
        return [TextLine(line.text, line.box, line.score) for line in found.lines]

    def close(self) -> None:
        """Close the table."""
        self._ocr.close()


async def take_all(
    memes: Sequence[Meme], shop: Workshop, width: int, *, quiet: bool
) -> list[Result]:
    """Reappraise memes; ``quiet`` where something else shows the progress already."""
    results: list[Result] = []
    start = time.monotonic()
    with nullcontext() if quiet else Watcher("reappraise", len(memes), None) as view:
        async for result in reappraise_all(memes, shop, width):
            results.append(result)
            if view is not None:
                done = sum(each.status == "done" for each in results)
                view.show(
                    Progress(
                        done=len(results),
                        total=len(memes),
                        answered=done,
                        failed=len(results) - done,
                        resumed=sum(each.resumed for each in results),
                        seconds=time.monotonic() - start,
                    )
                )
    order = {meme.id: place for place, meme in enumerate(memes)}
    return sorted(results, key=lambda result: order[result.meme])


def _show(results: Sequence[Result], model: str, *, as_json: bool) -> None:
    if as_json:
        print_json([_dump(result) for result in results])
        return
    columns: list[tuple[str, Literal["left", "right"]]] = [
        ("meme", "left"),
        ("emotion", "left"),
        ("panels", "right"),
        ("region IoU", "right"),
        ("text read", "right"),
        ("changed outside", "right"),
    ]
    made = table(columns)
    for result in results:
        if result.status == "done":
            made.add_row(*map(plain, _row(result)))
    out = console()
    if made.row_count:
        out.print(made)
    for result in results:
        if result.status != "done" and not _none_read(results):
            out.print(plain(f"{result.meme}: {result.stage} {result.status}: {result.reason}"))
    done = [result for result in results if result.status == "done"]
    if done:
        note = " Planned by our lexicon, a baseline." if model == EMBEDDED else ""
        out.print(plain(f"{len(done)} of {len(results)} done: {done[0].folder.parent}.{note}"))


def _row(result: Result) -> tuple[str, ...]:
    checks, plan, feeling = result.checks, result.plan, result.feeling
    if checks is None or plan is None or feeling is None:
        return (result.meme,)
    captions = checks.captions
    return (
        result.meme,
        f"{feeling.emotion} -> {plan.target}",
        f"{checks.panels_before} -> {checks.panels_after}",
        f"{mean(c.overlap for c in captions):.2f}" if captions else "–",
        f"{mean(c.read for c in captions):.2f}" if captions else "–",
        f"{checks.changed_outside:.1%}",
    )


def _dump(result: Result) -> dict[str, object]:
    parts = {"feeling": result.feeling, "plan": result.plan, "checks": result.checks}
    return {
        "meme": result.meme,
        "folder": str(result.folder),
        "status": result.status,
        "stage": result.stage,
        "reason": result.reason,
        **{name: part and part.model_dump(mode="json") for name, part in parts.items()},
    }


def _end(results: Sequence[Result]) -> None:
    failed = [result for result in results if result.status == "failed"]
    if failed and _none_read(results):
        for result in failed:
            typer.echo(f"error: {result.reason}", err=True)
        raise typer.Exit(2)
    if failed:
        raise typer.Exit(1)


def _none_read(results: Sequence[Result]) -> bool:
    """Whether no meme could even be read: what was named is wrong, and the user can fix it."""
    return all(result.status == "failed" and result.stage == "reading" for result in results)
