"""Commands ``build``, ``collect`` and ``publish``: from a folder of images to a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memantics import construction
from memantics.cli.expose import AsJson, expose
from memantics.cli.progress import Watcher, stop_at_failures, tell_tokens, watch
from memantics.cli.terminal import console, plain, print_json, print_lines, say, show_table, tell
from memantics.construction import ChatMetrics, Collected, measure_chats
from memantics.core.memes import CAPTIONS, MEMES
from memantics.core.parameters import Flag
from memantics.models.drafts import Miss
from memantics.understanding import KNOWLEDGE, ExtractSettings, KnowledgeReport

Explain = Annotated[bool, Flag("Show the steps and the input of each; call no model.")]


def _end(built: construction.Built[Any]) -> None:
    stop_at_failures(built.counts)


def _report(built: construction.Built[Any]) -> object:
    return built.report


def _show_plan(settings: ExtractSettings, as_json: bool, explain: Explain = False) -> bool:
    """Show the steps of a dataset build in order, the input of each, and the parallel steps."""
    plan = settings.plan
    if explain and as_json:
        found = {"order": plan.name, "refine": settings.when, "waves": plan.waves()}
        print_json({**found, "steps": plan.steps})
    elif explain:
        show_table(construction.tabulate_plan(settings))
        console().print(construction.describe_plan(settings))
    return explain


@expose(
    construction.knowledge,
    dump=_report,
    watch=watch("knowledge"),
    instead=_show_plan,
    end=_end,
    first=("model", "out"),
)
def build_knowledge(built: construction.Built[KnowledgeReport]) -> None:
    """Extract what memes show, say and mean, with one model call per dimension of meaning.

    Calls are logged in the build folder; running the command again reuses them.
    """
    show_table(construction.tabulate_knowledge(built.report))
    print_lines(construction.note_knowledge(built.report))
    tell_tokens(built.tokens, built.report.memes, built.adapted)
    say(str(built.folder / KNOWLEDGE))


@expose(construction.questions, dump=_report, watch=watch("questions"), end=_end)
def make_questions(built: construction.Built[construction.QuestionReport], folder: Path) -> None:
    """Write multiple-choice questions from extracted knowledge, test them and remove answer cues.

    Calls are logged in the build folder; running the command again reuses them.
    """
    show_table(construction.tabulate_questions(built.report))
    show_table(construction.tabulate_leaks(built.report))
    print_lines(construction.note_questions(built.report))
    tell_tokens(built.tokens, built.report.memes, built.adapted)
    say(str(folder / construction.QUESTIONS))
    say(f"queue for annotation: {folder / construction.QUEUE}")


@expose(construction.sample_questions)
def sample_questions(drawn: construction.QuestionSample) -> None:
    """Sample questions for annotation: a first round, then N per dimension from kept memes.

    No model is called. A further round samples from the memes that annotators kept in earlier
    rounds.
    """
    show_table(drawn.table())
    say(f"queue for annotation: {drawn.queue} ({drawn.items:,} items, {drawn.memes:,} memes)")


@expose(construction.rate_questions)
def rate_questions(made: construction.RatingQueue) -> None:
    """Write a queue in which people rate a random sample of the questions of a build.

    No model is called. The raters should not have written or edited the questions.
    """
    say(f"queue for rating: {made.queue} ({made.items:,} of {made.questions:,} questions)")


@expose(construction.summarise_ratings)
def show_ratings(found: construction.Ratings) -> None:
    """Show the proportion of good questions in a rated sample, with intervals and agreement."""
    show_table(found.table())
    if found.faults:
        told = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in found.faults.items())
        say(f"failed: {told}")
    for warning in found.warnings():
        say(f"warning: {warning}")


@expose(construction.compare_questions)
def compare_questions(found: construction.Compared) -> None:
    """Compare the proportions of good questions in two builds of the same memes.

    The comparison is paired: a question that both builds planned, but one did not keep, counts as
    not good in that build.
    """
    show_table(found.table())
    print_lines(found.lines())


@expose(
    construction.captions,
    dump=construction.summarise_captions,
    watch=watch("captions"),
    end=_end,
    first=("model", "out", "language", "limit"),
)
def build_captions(built: construction.Built[Any]) -> None:
    """Describe the text and the image of each meme in its language, for detectors and chats."""
    show_table(construction.tabulate_captions(built))
    _show_end(built, built.report.tally.misses, len(built.report.drafts))
    say(str(built.folder / CAPTIONS))


@expose(
    construction.intents,
    dump=construction.summarise_intents,
    watch=watch("intents"),
    end=_end,
    first=("model", "out", "language", "intents", "captions", "limit"),
)
def build_intents(built: construction.Built[Any]) -> None:
    """Draft background knowledge and ranked intents, and write a queue for editing and review."""
    found = construction.summarise_intents(built)
    console().print(plain(construction.describe_intents(built)))
    _show_end(built, built.report.tally.misses, len(built.report.drafts))
    say(f"{found['intents']}\n{found['queue']}")


@expose(
    construction.chats,
    dump=lambda built: asdict(built.report),
    watch=watch("chats"),
    end=_end,
    first=("model", "out"),
)
def make_chats(built: construction.Built[construction.ChatReport]) -> None:
    """Write chats that end in a meme, keep the best, and add similar and random distractors."""
    show_table(construction.tabulate_chats(built.report))
    print_lines(construction.note_chats(built.report))
    _show_end(built, built.report.misses, built.report.corpus.memes)
    say(str(built.folder / "chats.jsonl"))


def _show_end(built: construction.Built[Any], misses: Sequence[Miss], memes: int) -> None:
    """Print the model calls by status, the tokens, and the first steps without a usable reply."""
    counts = ", ".join(f"{count} {status}" for status, count in built.counts.items())
    console().print(plain(f"steps: {counts}"))
    tell_tokens(built.tokens, memes, built.adapted)
    print_lines(construction.note_misses(built.skips, misses))


Out = Annotated[
    Path | None,
    Flag(
        "File for the metrics, which 'paper --statistics' reads; give the benchmark's chats first."
    ),
]


def _save(found: ChatMetrics, out: Out = None) -> None:
    if out is not None:
        found.save(out)


@expose(measure_chats, dump=lambda found: found.files, save=_save)
def show_quality(found: ChatMetrics) -> None:
    """Measure chat files: perplexity, coherence of adjacent turns, distinct n-grams."""
    show_table(found.table())
    console().print(plain(found.note))


@expose(construction.group_hard_negatives)
def group_memes(done: construction.Grouped) -> None:
    """Give each pun two hard negatives: the non-puns nearest in image and in text."""
    console().print(plain(f"{len(done.groups)} groups of three: {done.file}"), soft_wrap=True)


@expose(construction.check_hard_negatives)
def check_groups(done: construction.HardNegativeCheck) -> None:
    """Search PunMemeCN's hard negatives again; report how many are found by image and by text."""
    told = f"{done.image} of {done.groups} groups are recovered by image, {done.text} by text"
    console().print(plain(told), soft_wrap=True)


def _end_regenerating(done: construction.Regenerated) -> None:
    for name, reason in done.failed.items():
        tell(f"{name}: {reason}")
    if done.failed:
        raise typer.Exit(1)


@expose(
    construction.regenerate,
    end=_end_regenerating,
    hide=("calls", "editor_params"),
)
def build_regenerate(done: construction.Regenerated) -> None:
    """Regenerate memes that annotators sent back, or whose caption or plan they revised."""
    if done.queue is not None:
        text = f"{done.memes} memes regenerated; queue for annotation: {done.queue}"
        console().print(plain(text))


@contextmanager
def _watch(folder: Path) -> Iterator[Mapping[str, Any]]:
    with Watcher(f"collect {folder.resolve().name}", None, None) as view:
        yield {"progress": view.show}


def _show_rules(
    as_json: bool, rules: Annotated[bool, Flag("Show the filter rules and exit.")] = False
) -> bool:
    if rules and as_json:
        print_json(
            [
                {"rule": r.name, "at_least": r.threshold, "of": r.what}
                for r in construction.list_rules()
            ]
        )
    elif rules:
        show_table(construction.tabulate_rules())
    return rules


@expose(construction.collect, json=None, watch=_watch, instead=_show_rules)
def collect_memes(done: Collected, page: bool, as_json: AsJson = False) -> None:
    """Read a folder of images: text, language, duplicates, template clusters, filters."""
    if as_json:
        print_json(construction.summarise(done, page=page))
        return
    show_table(construction.tabulate(done))
    console().print(
        plain(
            f"{done.template_clusters} template clusters have several memes; keep each in one split"
        )
    )
    console().print(plain(f"list: {done.folder / MEMES}"))
    if page:
        console().print(plain(f"dropped memes: {construction.find_page(done)}"))


@expose(construction.publish)
def publish(done: construction.PublishedBenchmark, name: str) -> None:
    """Publish an annotated queue as a benchmark, with Parquet, Croissant and a data card.

    The benchmark runs at once with 'memantics run NAME'. Memes that annotators dropped are left
    out. The queue is not changed.
    """
    print_lines([*done.lines(), f"next: memantics run {name} --model MODEL"])
