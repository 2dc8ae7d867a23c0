"""``memantics analyze``: one meme, everything at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from memantics.build.analysis.asking import Emotion
from memantics.build.analysis.gather import Tools, ask_all, look
from memantics.build.analysis.records import Analysis, Feeling, Harm, Sound
from memantics.build.extract.chain import ExtractSettings
from memantics.cli import flags
from memantics.cli.analyze_card import dump, show
from memantics.cli.desk import Calls, DeskWish, open_desk, run_chain
from memantics.cli.detector_data import open_embedder, read_starter_examples
from memantics.cli.terminal import console, plain, print_json
from memantics.core.errors import ImageError, InputError
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.memes import Meme, name_apart
from memantics.core.records import Field, Form, Image, Message, Option, Request
from memantics.detector.examples import Example
from memantics.detector.screening import open_screener
from memantics.models.embedded.ocr import Line
from memantics.report.pages.analysis import write_page

_CAPTION = 4  # letters: beside a line as long as that a single one is part of the drawing

Images = Annotated[list[Path], typer.Argument(help="Image files.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="KIND/NAME; without one only this machine's parts speak."),
]
Detector = Annotated[
    Path | None,
    typer.Option(help="A detector file. Default: a tiny one trained on the starter pack."),
]
Language = Annotated[
    str | None, typer.Option(help="Language of what the model writes. Default: the meme's.")
]
Page = Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")]
Journal = Annotated[
    Path, typer.Option(help="Folder of the journal: what is in there is not asked again.")
]


def analyze(
    images: Images,
    model: ModelName = None,
    detector: Detector = None,
    language: Language = None,
    out: Page = None,
    calls: Journal = Path("builds/analyze"),
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Say what memes say, show, mean, intend and pun on, and whom they may hurt.

    Without a model it reads, listens and screens on this machine, and says what it left out.
    """
    memes = _name_memes(images)
    with ExitStack() as stack:
        tools = open_tools(detector, stack)
        seen, refused = _look_all(memes, tools)
    if model is not None and seen:
        wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
        seen = run_chain(lambda: _ask(wish, calls, seen, language))
    if out is not None and seen:
        write_page(seen, out)
    if as_json:
        print_json([dump(own) for own in seen])
    else:
        for own in seen:
            show(own)
        if out is not None and seen:
            console().print(plain(f"page: {out}"))
    for error in refused:
        typer.echo(f"error: {error}", err=True)
    if refused:
        raise typer.Exit(2 if not seen else 1)
    if any(own.statuses.get("failed") for own in seen):
        raise typer.Exit(1)


def _name_memes(images: Sequence[Path]) -> list[Meme]:
    for path in images:
        if path.is_dir():
            raise InputError(f"{path} is a folder", hint="name image files, such as memes/*.png")
    return name_apart(Meme(path.stem, path) for path in images)


def _look_all(memes: Sequence[Meme], tools: Tools) -> tuple[list[Analysis], list[ImageError]]:
    """One bad image must not end the others."""
    seen, refused = [], []
    for meme in memes:
        try:
            seen.append(look(meme, tools))
        except ImageError as error:
            refused.append(error)
    return seen, refused


async def _ask(
    wish: DeskWish, folder: Path, seen: Sequence[Analysis], language: str | None
) -> list[Analysis]:
    async with open_desk(wish, folder, "analyze") as desk:

        async def ask(own: Analysis) -> Analysis:
            spoken = language or (own.language if own.language != UNKNOWN else "en")
            settings = ExtractSettings(language=spoken)
            desk.expect(settings.steps + 4)
            return await ask_all(desk, own, settings)

        return list(await asyncio.gather(*map(ask, seen)))


def open_tools(detector: Path | None, stack: ExitStack) -> Tools:
    """The parts of this machine; each is loaded when it is first used."""
    from memantics.models.embedded.ocr import open_reader

    ocr = stack.enter_context(open_reader())
    return Tools(
        read=lambda data, name: choose_captions(ocr.read(data, name).lines),
        tell_language=lambda text: guess_language(text).language,
        listen=listen,
        screen=_open_screen(detector),
        feel=_open_feeling(),
    )


def choose_captions(lines: Sequence[Line]) -> list[str]:
    """The lines that are captions: scraps of drawings (a key cap, a question mark) stay out."""
    texts = [line.text for line in lines if any(char.isalnum() for char in line.text)]
    longest = max((len(text) for text in texts), default=0)
    return [text for text in texts if len(text) > 1 or longest < _CAPTION]


def listen(text: str, language: str) -> list[Sound]:
    """What a caption may be heard as; languages without a sound model are passed over."""
    from memantics.phonetics import Settings, explain, read_aloud

    if language not in ("en", "zh"):
        return []
    found = read_aloud(text, settings=Settings(language="zh" if language == "zh" else "en"))
    if not found.meant:
        return []
    return [Sound(text, found.meant.text, found.confidence, tuple(explain(found)))]


def _open_screen(path: Path | None) -> Callable[[Meme], Harm | None]:
    screener = open_screener(path, read_starter_examples, open_embedder)

    def screen(meme: Meme) -> Harm | None:
        example = Example(meme.id, meme.text)
        if example.empty:
            return None
        (said,) = screener.screen([example])
        moved = tuple(part.text for part in said.reasons if part.contribution > 0)
        kind = said.type or ""
        return Harm(
            said.harmful,
            f"detector ({said.detector})",
            said.probability,
            "" if kind == "none" or not said.harmful else kind,
            elements=moved if said.harmful else (),
            reason=said.note,
        )

    return screen


def _open_feeling() -> Callable[[Meme], Feeling]:
    """The embedded reader's guess from words: a baseline, and said to be one."""
    from typing import get_args

    from memantics.models.embedded import EmbeddedReader

    reader = EmbeddedReader()
    options = tuple(Option(name, name) for name in get_args(Emotion))
    form = Form("Which emotion does this meme carry?", (Field("emotion", "choice", options),))

    def feel(meme: Meme) -> Feeling:
        own = replace(form, language=meme.language or "en", context={"caption": meme.text})
        request = Request((Message("user", (Image(meme.image), form.question)),), own)
        return Feeling(reader.reply(request).strip(), reader.name, "a baseline's guess from words")

    return feel
