"""What the verbs of :mod:`memantics.construction.build` left, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from memantics.construction.build import Built
from memantics.construction.chats.build import ChatReport
from memantics.construction.questions.report import QuestionReport
from memantics.core.data import Skip
from memantics.core.result import Table, show_cell
from memantics.models.drafts import Drafted, Miss
from memantics.understanding.captions.mine import Captioned, CaptionOrigin, count_origins
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.extraction.report import KnowledgeReport
from memantics.understanding.intents.draft import DraftedIntents

_SHOWN, _CUT = 5, 300
_BAD = ("refused", "unparsed", "failed")


def tabulate_knowledge(report: KnowledgeReport) -> Table:
    """What was found, dimension by dimension, and how the steps ended that found nothing."""
    rows = []
    for name, found in report.dimensions.items():
        counts = (found.individuals, found.memes, found.empty)
        rows.append((name, *map(str, (*counts, *(found.statuses[status] for status in _BAD)))))
    columns = ("dimension", ">found", ">memes", ">empty", *(f">{status}" for status in _BAD))
    title = f"{report.memes} memes, {report.individuals} individuals"
    return Table(columns, tuple(rows), title)


def note_knowledge(report: KnowledgeReport) -> Iterator[str]:
    """Relations that lead nowhere, replies that were repaired, and the first failures."""
    links = sum(report.relations.values())
    yield (
        f"{links} relations, {len(report.dangling)} of them lead nowhere, "
        f"{len(report.misplaced)} are out of place; {report.repaired} replies were repaired."
    )
    skipped = [f"left out {skip.row}: {skip.reason}" for skip in report.unusable]
    failed = [
        f"{failure.status} {failure.meme} {failure.dimension}: {failure.reason}"
        for failure in report.failures
    ]
    for lines in (skipped, failed):
        yield from _list_few(lines, ": see report.json")


def note_misses(skips: Sequence[Skip], misses: Sequence[Miss]) -> Iterator[str]:
    """The first memes that were left out, and the first steps without a usable reply."""
    yield from (f"left out {skip.row}: {skip.reason}"[:_CUT] for skip in skips[:_SHOWN])
    yield from _list_few([f"{miss.status} {miss.step}: {miss.reason}" for miss in misses])


def _list_few(lines: Sequence[str], where: str = "") -> Iterator[str]:
    yield from (line[:_CUT] for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"… and {len(lines) - _SHOWN} more{where}"


def tabulate_questions(report: QuestionReport) -> Table:
    """Questions of each dimension: planned, kept, and why the others were rejected."""
    title = f"{report.questions} questions of {report.slots} planned; {report.rejected} rejected"
    rows = []
    for name, fate in report.fates.items():
        (_, planned), (_, kept), *reasons = fate.items()
        why = "; ".join(f"{count} {reason}" for reason, count in reasons)
        rows.append((name, str(planned), str(kept), why))
    return Table(("dimension", ">planned", ">kept", "rejected"), tuple(rows), title)


def tabulate_leaks(report: QuestionReport) -> Table:
    """How often the key is found without the meme."""
    rows = []
    for leak in report.leaks:
        word = leak.judge(report.tolerance) + (f": {leak.note}" if leak.note else "")
        rate = "–" if leak.value is None else f"{leak.value:.1%}"
        rows.append((leak.name, rate, f"{leak.chance:.1%}", str(leak.n), word))
    columns = ("finds the key", ">rate", ">chance", ">n", "")
    return Table(columns, tuple(rows), "Shortcuts to the key")


def note_questions(report: QuestionReport) -> Iterator[str]:
    """Why questions were rejected, and how the set was levelled."""
    emptied = [name for name, fate in report.fates.items() if not fate["kept"]]
    if emptied:
        names = ", ".join(emptied)
        yield f"No question is left of {names}: --keep-per-dimension 1 keeps one of each."
    if report.repaired:
        ways = ", ".join(f"{count} by {way}" for way, count in report.repaired.items())
        yield f"Repaired after a critic guessed them: {ways}."
    if report.needs:
        yield (
            "Needed: " + ", ".join(f"{need} {count}" for need, count in report.needs.items()) + "."
        )
    yield (
        f"'None of the others' is the key of {report.none_proportion:.1%}; {report.exchanged} options "
        f"were exchanged; {report.pairs} toxicity questions have a pair, {report.unpaired} none."
    )


def note_chats(report: ChatReport) -> Iterator[str]:
    """Chats that were given up, and why."""
    if report.broken:
        broken = ", ".join(f"{rule} {count}" for rule, count in report.broken.items())
        yield f"given up for breaking rules: {broken}"
    if report.incomplete:
        short = "left out for lack of three wrong answers; give more memes"
        yield f"{report.incomplete} chats {short}"
    if report.unknown:
        yield f"nothing is known about {len(report.unknown)} memes: no chats for them"
    if report.rejected:
        yield f"wrong answers turned away, for they mean the same: {report.rejected}"


def tabulate_chats(report: ChatReport) -> Table:
    """How varied the chats are and how they flow."""
    corpus = report.corpus
    metrics: tuple[tuple[str, float | None, Literal["perplexity", "flow", "distinct"]], ...] = (
        ("Distinct-1", corpus.distinct_1, "distinct"),
        ("Distinct-2", corpus.distinct_2, "distinct"),
        ("flow between messages", corpus.flow, "flow"),
        ("perplexity", corpus.perplexity, "perplexity"),
    )
    rows = ((name, show_cell(v), corpus.measured_by.get(gauge, "")) for name, v, gauge in metrics)
    title = f"{corpus.chats} chats of {corpus.memes} memes, chosen from {report.written}"
    return Table(("metric", ">value", "measured by"), tuple(rows), title)


def describe_plan(settings: ExtractSettings) -> str:
    """When relations are asked for, and how many calls a meme takes."""
    when = {
        "same": "Relations are asked for together with the individuals.",
        "second": "Relations are asked for in a second pass, when all individuals are known.",
        "off": "Relations are not asked for.",
    }
    calls = f"at most {settings.steps} calls a meme"
    return f"{when[settings.when]} Steps of one wave run at once; {calls}."


def tabulate_plan(settings: ExtractSettings) -> Table:
    """The steps of an extraction in their order: wave, what each is told, relations it states."""
    plan, rows = settings.plan, []
    waves = plan.waves()
    for step in plan.steps:
        wave = next(n for n, names in enumerate(waves, 1) if step.dimension in names)
        told = [*step.inputs, *(["background files"] if step.background else [])]
        links = step.relations() if settings.when == "same" else ()
        linked = ", ".join(term.name for term in links)
        rows.append((str(wave), step.dimension, ", ".join(told) or "the meme alone", linked))
    title = f"{plan.name}: {plan.note}"
    return Table((">wave", "step", "is told", "relations"), tuple(rows), title)


def tabulate_captions(built: Built[Drafted[Captioned]]) -> Table:
    """Where captions come from."""
    kinds = get_args(CaptionOrigin)
    counts = count_origins(built.report)
    rows = ((name, *(str(by_origin[kind]) for kind in kinds)) for name, by_origin in counts.items())
    return Table(("caption", *(f">{kind}" for kind in kinds)), tuple(rows))


def describe_intents(built: Built[Drafted[DraftedIntents]]) -> str:
    """How many intents and sentences of background were drafted."""
    drafts = built.report.drafts
    count, known = (
        sum(map(len, texts))
        for texts in ([d.intents for d in drafts], [d.background for d in drafts])
    )
    without = sum(not draft.intents for draft in drafts)
    return (
        f"{len(drafts)} memes: {count} intents, {known} sentences of background; "
        f"{without} memes are without an intent"
    )
