"""``memantics build chats``: chats that end in a meme, with near and random wrong answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from memantics.build.chats.build import BuildSettings, ChatReport, build_chats
from memantics.build.chats.distractors import DistractorSettings, Embedders, LayoutEncoder
from memantics.build.chats.generate import ChatSettings
from memantics.build.chats.records import (
    TOPICS,
    Flow,
    Fluency,
    TextEncoder,
    Topic,
    Vectors,
)
from memantics.build.chats.release import (
    ReleasedChat,
    write_chat_queue,
    write_lines,
    write_punmemecn,
)
from memantics.build.chats.rules import Limits
from memantics.build.chats.selection import BertFlow, CosineFlow, Gauges
from memantics.build.extract import Adopted, write_report
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
from memantics.cli.terminal import console, plain, print_json, show_value, table
from memantics.core.errors import InputError, MissingExtra, UnknownName
from memantics.core.memes import Meme
from memantics.models.embedded.encoder import open_encoder

QUEUE, RELEASE, REPORT = "queue-chats", "punmemecn", "chats.json"
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", help=f"{', '.join(TOPICS)}; may be repeated. Default: all."),
]
PerMeme = Annotated[int, typer.Option(min=1, max=6, help="Topics for each meme.")]
Candidates = Annotated[int, typer.Option(min=1, max=20, help="Chats written for each topic.")]
Keep = Annotated[int, typer.Option(min=1, max=6, help="Chats of a meme that stay at most.")]
Turns = Annotated[int, typer.Option(min=3, max=20, help="Messages at most, the meme included.")]
Nearest = Annotated[int, typer.Option(min=1, max=100, help="Length of the lists of near memes.")]
Perplexity = Annotated[
    str | None,
    typer.Option(help="Folder of a causal or masked language model, or llm/… for that model."),
]
BertFolder = Annotated[
    Path | None, typer.Option("--bert", help="Folder of a model for BERTScore between messages.")
]
TextFolder = Annotated[
    Path | None, typer.Option("--text-encoder", help="Folder of a text embedder (BGE-M3, …).")
]
ImageFolder = Annotated[
    Path | None, typer.Option("--image-encoder", help="Folder of an image embedder (SigLIP, …).")
]
Check = Annotated[
    bool, typer.Option(help="Ask whether a wrong answer means the same as the right one.")
]
WriteLimit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Write for the first N memes; all may be wrong answers."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of topics and draws.")]


def make_chats(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    language: Written = "",
    topic: Topics = None,
    per_meme: PerMeme = 3,
    candidates: Candidates = 2,
    keep: Keep = 3,
    turns: Turns = 6,
    nearest: Nearest = 10,
    perplexity: Perplexity = None,
    bert: BertFolder = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
    check: Check = True,
    seed: SeedOption = 0,
    captions: CaptionFile = None,
    limit: WriteLimit = None,
    attempts: Attempts = 3,
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Write chats that end in a meme, keep the best, and add near and random wrong answers."""
    folder, place = find_place(folder, out)
    wish = Calls(model, base_url, param, concurrency, timeout, price, no_cache).wish()
    settings = BuildSettings(
        ChatSettings(
            topics=_read_topics(topic),
            per_meme=per_meme,
            candidates=candidates,
            language=language,
            attempts=attempts,
            seed=seed,
            limits=Limits(most=turns - 1),
        ),
        DistractorSettings(nearest, seed, check),
        keep,
    )
    memes = find_noted_memes(folder)
    embedders = open_embedders(text_encoder, image_encoder)
    with open_fluency(perplexity) as fluency:
        gauges = Gauges(embedders.text, open_flow(bert, embedders.text), fluency)
        adopted, chats, report = run_chain(
            lambda: _build(place, (memes, limit), (wish, captions), (embedders, gauges), settings)
        )
    _write(place, chats, adopted.memes, report)
    _show(place, report, adopted, as_json)
    stop_at_failures(report.statuses)


def _read_topics(named: list[str] | None) -> tuple[Topic, ...]:
    for name in named or ():
        if name not in TOPICS:
            raise UnknownName("topic", name, TOPICS)
    return tuple(cast("Topic", name) for name in dict.fromkeys(named or TOPICS))


class FileEncoder:
    """An image embedder of files as one of memes."""

    def __init__(self, folder: Path) -> None:
        from memantics.models.embedders import LocalImageEncoder

        self._own = LocalImageEncoder(folder)
        self.version = self._own.version

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        return self._own.encode_files([meme.image for meme in memes])


def open_embedders(text: Path | None, image: Path | None) -> Embedders:
    """The embedders that were named, else the embedded sentence encoder and image layout."""
    encoder: TextEncoder = open_encoder()
    if text is not None:
        from memantics.models.embedders import LocalTextEncoder

        encoder = LocalTextEncoder(text)
    return Embedders(encoder, LayoutEncoder() if image is None else FileEncoder(image))


@contextmanager
def open_fluency(name: str | None) -> Iterator[Fluency | None]:
    """The language model that measures perplexity: a folder, or the embedded one."""
    if name is None:
        yield None
        return
    if name.startswith("llm/"):
        from memantics.models.llm import EmbeddedLlm

        own = EmbeddedLlm(name)
        own.note = f"{name}, causal"
        try:
            yield own
        finally:
            own.shut()
        return
    yield _open_scorer(Path(name))


def _open_scorer(folder: Path) -> Fluency:
    from memantics.models.perplexity import PerplexityScorer, PerplexitySettings

    try:
        return PerplexityScorer(PerplexitySettings(folder))
    except ModuleNotFoundError as error:
        raise MissingExtra("perplexity and BERTScore", "text") from error
    except ValueError as error:
        raise InputError(f"--perplexity {error}", hint="give a language model's folder") from error


def open_flow(folder: Path | None, encoder: TextEncoder) -> Flow:
    """BERTScore between messages where a model was named, else the cosine of their vectors."""
    if folder is None:
        return CosineFlow(encoder)
    from memantics.models.semantic import BertScorer, BertSettings

    try:
        return BertFlow(BertScorer(BertSettings(folder)))
    except ModuleNotFoundError as error:
        raise MissingExtra("perplexity and BERTScore", "text") from error
    except ValueError as error:
        raise InputError(f"--bert {error}", hint="give a model's folder") from error


async def _build(
    place: Path,
    memes: tuple[tuple[Meme, ...], int | None],
    ways: tuple[DeskWish, Path | None],
    means: tuple[Embedders, Gauges],
    settings: BuildSettings,
) -> tuple[Adopted, list[ReleasedChat], ChatReport]:
    wish, captions = ways
    async with open_desk(wish, place, "chats") as desk:
        adopted = adopt(memes[0], place, captions)
        limit = memes[1] or len(adopted.memes)
        parts = (adopted.memes[:limit], adopted.memes[limit:])
        chats, report = await build_chats(desk, parts, *means, settings)
        return adopted, chats, report


def _write(
    place: Path, chats: list[ReleasedChat], memes: tuple[Meme, ...], report: ChatReport
) -> None:
    write_lines(place, chats)
    write_report(place, report, REPORT)
    if chats:
        write_punmemecn(place / RELEASE, chats, memes)
        write_chat_queue(place / QUEUE, chats, f"memantics build chats, {report.model}")


def _show(place: Path, report: ChatReport, adopted: Adopted, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    corpus = report.corpus
    rows = table(
        [("figure", "left"), ("value", "right"), ("measured by", "left")],
        f"{corpus.chats} chats of {corpus.memes} memes, chosen from {report.written}",
    )
    shown: tuple[tuple[str, float | None, Literal["perplexity", "flow", "distinct"]], ...] = (
        ("Distinct-1", corpus.distinct_1, "distinct"),
        ("Distinct-2", corpus.distinct_2, "distinct"),
        ("flow between messages", corpus.flow, "flow"),
        ("perplexity", corpus.perplexity, "perplexity"),
    )
    for title, value, gauge in shown:
        rows.add_row(title, show_value(value), plain(corpus.measured_by.get(gauge, "")))
    out = console()
    out.print(rows)
    broken = ", ".join(f"{rule} {count}" for rule, count in report.broken.items())
    if broken:
        out.print(plain(f"given up for breaking rules: {broken}"))
    if report.incomplete:
        short = "left out for lack of three wrong answers; give more memes"
        out.print(plain(f"{report.incomplete} chats {short}"))
    if report.unknown:
        out.print(plain(f"nothing is known about {len(report.unknown)} memes: no chats for them"))
    if report.rejected:
        out.print(plain(f"wrong answers turned away, for they mean the same: {report.rejected}"))
    show_end(report.statuses, report.misses, adopted)
    typer.echo(str(place / "chats.jsonl"))
