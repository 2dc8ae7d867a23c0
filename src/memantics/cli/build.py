"""``memantics build``: knowledge, questions and their draws, captions, intents, chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from memantics.actions import build
from memantics.actions import build_tables as tables
from memantics.actions.build_settings import ExtractSettings
from memantics.cli.expose import expose
from memantics.cli.progress import stop_at_failures, tell_tokens, watch
from memantics.cli.terminal import console, plain, print_json, print_lines, say, show_table
from memantics.core.memes import CAPTIONS
from memantics.core.parameters import Flag

Explain = Annotated[bool, Flag("Show the steps and what each is told; ask nothing.")]


def _end(built: build.Built[Any]) -> None:
    stop_at_failures(built.counts)


def _report(built: build.Built[Any]) -> object:
    return built.report


def _show_plan(settings: ExtractSettings, as_json: bool, explain: Explain = False) -> bool:
    """Show the order of steps, what each is told, and which can run at once."""
    plan = settings.plan
    if explain and as_json:
        found = {"order": plan.name, "refine": settings.when, "waves": plan.waves()}
        print_json({**found, "steps": plan.steps})
    elif explain:
        show_table(tables.tabulate_plan(settings))
        console().print(tables.describe_plan(settings))
    return explain


@expose(
    build.knowledge,
    dump=_report,
    watch=watch("knowledge"),
    instead=_show_plan,
    end=_end,
    first=("model", "out"),
)
def build_knowledge(built: build.Built[build.KnowledgeReport]) -> None:
    """Extract what memes show, say and mean, one structured call for each dimension.

    Running the same command again asks nothing twice.
    """
    show_table(tables.tabulate_knowledge(built.report))
    print_lines(tables.note_knowledge(built.report))
    tell_tokens(built.tokens, built.report.memes, built.adapted)
    say(str(built.folder / build.KNOWLEDGE))


@expose(build.questions, dump=_report, watch=watch("questions"), end=_end)
def make_questions(built: build.Built[build.QuestionReport], folder: Path) -> None:
    """Write questions about what is known, try them, and level the set.

    Running the same command again asks nothing twice.
    """
    show_table(tables.tabulate_questions(built.report))
    show_table(tables.tabulate_leaks(built.report))
    print_lines(tables.note_questions(built.report))
    tell_tokens(built.tokens, built.report.memes, built.adapted)
    say(str(folder / build.QUESTIONS))
    say(f"for people to check: {folder / build.QUESTION_QUEUE}")


@expose(build.draw)
def draw_questions(drawn: build.Drawn) -> None:
    """Draw the questions that people judge: a first round, then N per dimension among kept memes.

    No model is asked. A further round draws among the memes that people kept in those before.
    """
    show_table(drawn.table())
    say(f"for people to check: {drawn.queue} ({drawn.items:,} items, {drawn.memes:,} memes)")


@expose(
    build.captions,
    dump=build.summarise_captions,
    watch=watch("captions"),
    end=_end,
    first=("model", "out", "language", "limit"),
)
def build_captions(built: build.Built[Any]) -> None:
    """Mine what words mean and pictures show, in each meme's language, for detectors and chats."""
    show_table(tables.tabulate_captions(built))
    _show_end(built, built.report.tally.misses, len(built.report.drafts))
    say(str(built.folder / CAPTIONS))


@expose(
    build.intents,
    dump=build.summarise_intents,
    watch=watch("intents"),
    end=_end,
    first=("model", "out", "language", "intents", "captions", "limit"),
)
def build_intents(built: build.Built[Any]) -> None:
    """Draft background knowledge and ranked intents; people edit and review them in a queue."""
    found = build.summarise_intents(built)
    console().print(plain(tables.describe_intents(built)))
    _show_end(built, built.report.tally.misses, len(built.report.drafts))
    say(f"{found['intents']}\n{found['queue']}")


@expose(
    build.chats,
    dump=lambda built: asdict(built.report),
    watch=watch("chats"),
    end=_end,
    first=("model", "out"),
)
def make_chats(built: build.Built[build.ChatReport]) -> None:
    """Write chats that end in a meme, keep the best, and add near and random wrong answers."""
    show_table(tables.tabulate_chats(built.report))
    print_lines(tables.note_chats(built.report))
    _show_end(built, built.report.misses, built.report.corpus.memes)
    say(str(built.folder / "chats.jsonl"))


def _show_end(built: build.Built[Any], misses: Sequence[build.Miss], memes: int) -> None:
    """Say how the steps ended, and what did not come."""
    counts = ", ".join(f"{count} {status}" for status, count in built.counts.items())
    console().print(plain(f"steps: {counts}"))
    tell_tokens(built.tokens, memes, built.adapted)
    print_lines(tables.note_misses(built.skips, misses))
