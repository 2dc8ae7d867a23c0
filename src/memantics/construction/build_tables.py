"""Tables and notes that summarise the results of :mod:`memantics.construction.build`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from memantics.construction.build import Built
from memantics.construction.chats.build import ChatReport
from memantics.construction.questions.chain import SOLVED
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
    """Tabulate the number of extracted facts per dimension, and calls without a fact by status."""
    rows = []
    for name, found in report.dimensions.items():
        counts = (found.individuals, found.memes, found.empty)
        rows.append((name, *map(str, (*counts, *(found.statuses[status] for status in _BAD)))))
    columns = ("dimension", ">found", ">memes", ">empty", *(f">{status}" for status in _BAD))
    title = f"{report.memes} memes, {report.individuals} individuals"
    return Table(columns, tuple(rows), title)


def note_knowledge(report: KnowledgeReport) -> Iterator[str]:
    """Yield notes on relations to missing facts, repaired replies and the first failures."""
    links = sum(report.relations.values())
    yield (
        f"{links} relations: {len(report.dangling)} have no target, "
        f"{len(report.misplaced)} connect the wrong dimensions; {report.repaired} "
        "replies were repaired."
    )
    skipped = [f"skipped {skip.row}: {skip.reason}" for skip in report.unusable]
    failed = [
        f"{failure.status} {failure.meme} {failure.dimension}: {failure.reason}"
        for failure in report.failures
    ]
    for lines in (skipped, failed):
        yield from _list_few(lines, ": see report.json")


def note_misses(skips: Sequence[Skip], misses: Sequence[Miss]) -> Iterator[str]:
    """Yield the first memes that were skipped and the first steps without a usable reply."""
    yield from (f"skipped {skip.row}: {skip.reason}"[:_CUT] for skip in skips[:_SHOWN])
    yield from _list_few([f"{miss.status} {miss.step}: {miss.reason}" for miss in misses])


def _list_few(lines: Sequence[str], where: str = "") -> Iterator[str]:
    yield from (line[:_CUT] for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"… and {len(lines) - _SHOWN} more{where}"


def tabulate_questions(report: QuestionReport) -> Table:
    """Tabulate questions per dimension: planned, kept, and the reasons for rejection."""
    title = f"{report.questions} questions of {report.slots} planned; {report.rejected} rejected"
    rows = []
    for name, fate in report.fates.items():
        (_, planned), (_, kept), *reasons = fate.items()
        why = "; ".join(f"{count} {reason}" for reason, count in reasons)
        rows.append((name, str(planned), str(kept), why))
    return Table(("dimension", ">planned", ">kept", "rejected"), tuple(rows), title)


def tabulate_leaks(report: QuestionReport) -> Table:
    """Tabulate how often each baseline finds the correct option without seeing the meme."""
    rows = []
    for leak in report.leaks:
        word = leak.judge(report.tolerance) + (f": {leak.note}" if leak.note else "")
        rate = "–" if leak.value is None else f"{leak.value:.1%}"
        rows.append((leak.name, rate, f"{leak.chance:.1%}", str(leak.n), word))
    columns = ("baseline", ">rate", ">chance", ">n", "")
    return Table(columns, tuple(rows), "Correct option found without the meme")


def note_questions(report: QuestionReport) -> Iterator[str]:
    """Yield notes on empty dimensions, repaired questions and answer cues that were removed."""
    emptied = [name for name, fate in report.fates.items() if not fate["kept"]]
    if emptied:
        yield f"No question about {', '.join(emptied)} was kept."
    if any(SOLVED in report.fates[name] for name in emptied):
        yield "--keep-per-dimension 1 keeps and marks one that a model answers without the meme."
    if report.repaired:
        ways = ", ".join(f"{count} by {way}" for way, count in report.repaired.items())
        yield f"Repaired after a test failed: {ways}; {report.rewritten} rewritten."
    if report.faults:
        found = ", ".join(f"{fault} {count}" for fault, count in report.faults.items())
        yield f"Found by the final check, before repairs: {found}."
    if report.unchecked:
        reason = next(iter(report.unchecked.values()))[:_CUT]
        yield (
            f"Kept without a readable judgement of the critic: {len(report.unchecked)} ({reason}); "
            "people must review them."
        )
    if report.calls:
        told = "; ".join(
            f"{role} " + ", ".join(f"{kind} {count}" for kind, count in counts.items())
            for role, counts in report.calls.items()
        )
        yield f"Calls: {told} ({report.calls_per_meme:.1f} a meme)."
    if report.shared:
        yield f"Roles: {report.shared}; --critic-model and --reader-model set other models."
    if report.needs:
        yield (
            "Needed: " + ", ".join(f"{need} {count}" for need, count in report.needs.items()) + "."
        )
    yield (
        f"'None of the others' is correct in {report.none_proportion:.1%} of questions; "
        f"{report.exchanged} options were exchanged; {report.pairs} toxicity questions "
        f"have a paired question, {report.unpaired} have none."
    )


def note_chats(report: ChatReport) -> Iterator[str]:
    """Yield the number of rejected chats by reason."""
    if report.broken:
        broken = ", ".join(f"{rule} {count}" for rule, count in report.broken.items())
        yield f"rejected because they break a rule: {broken}"
    if report.incomplete:
        short = "rejected because three distractors could not be found; add memes"
        yield f"{report.incomplete} chats {short}"
    if report.unknown:
        yield (
            f"{len(report.unknown)} memes have no knowledge or caption: no chats were "
            "written for them"
        )
    if report.rejected:
        yield (
            f"distractors rejected because they mean the same as the right meme: {report.rejected}"
        )


def tabulate_chats(report: ChatReport) -> Table:
    """Tabulate the diversity and coherence of the chats."""
    corpus = report.corpus
    metrics: tuple[tuple[str, float | None, Literal["perplexity", "flow", "distinct"]], ...] = (
        ("Distinct-1", corpus.distinct_1, "distinct"),
        ("Distinct-2", corpus.distinct_2, "distinct"),
        ("coherence of adjacent messages", corpus.flow, "flow"),
        ("perplexity", corpus.perplexity, "perplexity"),
    )
    rows = ((name, show_cell(v), corpus.measured_by.get(gauge, "")) for name, v, gauge in metrics)
    title = f"{corpus.chats} chats about {corpus.memes} memes, selected from {report.written}"
    return Table(("metric", ">value", "measured by"), tuple(rows), title)


def describe_plan(settings: ExtractSettings) -> str:
    """Describe when relations are requested and how many calls one meme takes."""
    when = {
        "same": "Relations are requested together with the individuals.",
        "second": "Relations are requested in a second pass, when all individuals are known.",
        "off": "Relations are not requested.",
    }
    calls = f"at most {settings.steps} calls per meme"
    return f"{when[settings.when]} Steps of one wave run in parallel; {calls}."


def tabulate_plan(settings: ExtractSettings) -> Table:
    """Tabulate the extraction steps: wave (steps run in parallel), input, returned relations."""
    plan, rows = settings.plan, []
    waves = plan.waves()
    for step in plan.steps:
        wave = next(n for n, names in enumerate(waves, 1) if step.dimension in names)
        told = [*step.inputs, *(["background files"] if step.background else [])]
        links = step.relations() if settings.when == "same" else ()
        linked = ", ".join(term.name for term in links)
        rows.append((str(wave), step.dimension, ", ".join(told) or "the meme only", linked))
    title = f"{plan.name}: {plan.note}"
    return Table((">wave", "step", "input", "relations"), tuple(rows), title)


def tabulate_captions(built: Built[Drafted[Captioned]]) -> Table:
    """Tabulate captions by source."""
    kinds = get_args(CaptionOrigin)
    counts = count_origins(built.report)
    rows = ((name, *(str(by_origin[kind]) for kind in kinds)) for name, by_origin in counts.items())
    return Table(("caption", *(f">{kind}" for kind in kinds)), tuple(rows))


def describe_intents(built: Built[Drafted[DraftedIntents]]) -> str:
    """Describe how many intents and background sentences were drafted."""
    drafts = built.report.drafts
    count, known = (
        sum(map(len, texts))
        for texts in ([d.intents for d in drafts], [d.background for d in drafts])
    )
    without = sum(not draft.intents for draft in drafts)
    return (
        f"{len(drafts)} memes: {count} intents, {known} background sentences; {without} "
        "memes have no intent"
    )
