"""``memantics build captions``, ``intents`` and ``chats``: drafts for people to check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memantics.actions import build
from memantics.actions import build_tables as tables
from memantics.actions.asking import Asking
from memantics.actions.build_settings import (
    MOST_INTENTS,
    TOPICS,
    BuildSettings,
    ChatLimits,
    ChatSettings,
    ChatTools,
    DistractorSettings,
    IntentSettings,
    find_topics,
)
from memantics.cli import flags
from memantics.cli.build import Attempts, BuildOut, Folder, ModelName
from memantics.cli.progress import stop_at_failures, tell_tokens, watching
from memantics.cli.terminal import console, plain, print_json, print_lines, say, show_table
from memantics.core.memes import CAPTIONS

_SHOWN = 5
CaptionFile = Annotated[
    Path | None,
    typer.Option(
        "--captions", help="What words mean and pictures show. Default: captions.jsonl of --out."
    ),
]
Written = Annotated[str, typer.Option("--language", help="Write in this language.")]
Again = Annotated[
    bool, typer.Option("--again", help="Ask also for captions that the memes carry already.")
]
Most = Annotated[int, typer.Option("--most", min=1, max=10, help="Intents of a meme at most.")]
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


@flags.asks_models()
def build_captions(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    language: Written = "",
    limit: flags.FewMemes = None,
    again: Again = False,
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Mine what words mean and pictures show, in each meme's language, for detectors and chats."""
    with watching("captions", asking.prices) as progress:
        built = build.captions(
            folder,
            model=model,
            language=language,
            again=again,
            out=out,
            limit=limit,
            progress=progress,
            asking=asking,
        )
    if as_json:
        print_json(build.summarise_captions(built))
    else:
        show_table(tables.tabulate_captions(built))
        _show_end(built, built.report.tally.misses, len(built.report.memes))
        say(str(built.folder / CAPTIONS))
    stop_at_failures(built.counts)


@flags.asks_models()
def build_intents(
    folder: Folder = None,
    model: ModelName = None,
    out: BuildOut = None,
    language: Written = "",
    most: Most = MOST_INTENTS,
    captions: CaptionFile = None,
    limit: flags.FewMemes = None,
    attempts: Attempts = 3,
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Draft background knowledge and ranked intents; people edit and review them in a queue."""
    with watching("intents", asking.prices) as progress:
        built = build.intents(
            folder,
            model=model,
            settings=IntentSettings(language=language, intents=most, attempts=attempts),
            captions=captions,
            out=out,
            limit=limit,
            progress=progress,
            asking=asking,
        )
    drafts, found = built.report.drafts, build.summarise_intents(built)
    if as_json:
        print_json(found)
    else:
        console().print(plain(tables.describe_intents(built)))
        _show_end(built, built.report.tally.misses, len(drafts))
        say(f"{found['intents']}\n{found['queue']}")
    stop_at_failures(built.counts)


@flags.asks_models()
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
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Write chats that end in a meme, keep the best, and add near and random wrong answers."""
    settings = BuildSettings(
        ChatSettings(
            topics=find_topics(topic or []),
            per_meme=per_meme,
            candidates=candidates,
            language=language,
            attempts=attempts,
            seed=seed,
            limits=ChatLimits(most=turns - 1),
        ),
        DistractorSettings(nearest, seed, check),
        keep,
    )
    with watching("chats", asking.prices) as progress:
        built = build.chats(
            folder,
            model=model,
            settings=settings,
            tools=ChatTools(perplexity, bert, text_encoder, image_encoder),
            captions=captions,
            out=out,
            limit=limit,
            progress=progress,
            asking=asking,
        )
    if as_json:
        print_json(asdict(built.report))
    else:
        show_table(tables.tabulate_chats(built.report))
        print_lines(tables.note_chats(built.report))
        _show_end(built, built.report.misses, built.report.corpus.memes)
        say(str(built.folder / "chats.jsonl"))
    stop_at_failures(built.counts)


def _show_end(built: build.Built[Any], misses: Sequence[build.Miss], memes: int) -> None:
    """Say how the steps ended, and what did not come."""
    counts = ", ".join(f"{count} {status}" for status, count in built.counts.items())
    console().print(plain(f"steps: {counts}"))
    tell_tokens(built.tokens, memes, built.adapted)
    print_lines(tables.note_misses(built.skips, misses))
