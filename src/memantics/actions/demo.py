"""``demo``: a tour of what Memantics does, on the memes that ship with it, as one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.actions.analyze import analyze
from memantics.actions.detect import Detector
from memantics.actions.evaluate import Run, evaluate
from memantics.actions.knowledge import read_starter_knowledge
from memantics.actions.phonetics import read_aloud
from memantics.actions.reappraise import reappraise
from memantics.actions.report import report
from memantics.core.data import toml_beside
from memantics.core.parameters import Flag
from memantics.core.published import PublishedRow, read_published
from memantics.core.result import Result
from memantics.reappraise.folder import MEME
from memantics.registry import find_benchmark
from memantics.report.pages import tour
from memantics.report.pages.tour import read_words
from memantics.report.standings import Standings, Trivial, make_standings
from memantics.run.audit.published import is_certain, is_checkable, violations
from memantics.starter import StarterMeme, image_path, read_starter
from memantics.starter import copy as copy_starter

__all__ = ["Tour", "copy_starter", "demo"]
TAKEN_APART = ("en-016", "CN90002", "en-012", "CN90008", "en-001", "zh-004")
PUNS = ("CN90001", "CN90003", "CN90006", "CN90007", "CN90002", "CN90009")
KINDER = ("CN90009", "en-035", "en-016", "en-017")  # the last one is declined
FAMILIES = ("mquest", "memeintent", "toxicn_mm", "mer_bench", "punmemecn")
TASKS = ("mquest/qa", "punmemecn/detection", "toxicn_mm/detection")
MODELS = ("embedded/reader", "baseline/longest", "baseline/positive")
_TYPES = {
    "none": "not harmful",
    "targeted": "mildly harmful: teases a group",
    "offence": "mildly harmful: general offence",
    "dispirited": "mildly harmful: dispirited",
}
STEPS = tuple(tour.NextStep(**told) for told in toml_beside(__file__, "demo.toml")["steps"])


@dataclass(frozen=True, slots=True)
class Tour(Result):
    """Where the pages are, and the most interesting lines of them."""

    page: Path
    report: Path
    highlights: tuple[str, ...]


def demo(
    out: Annotated[str | Path, Flag("Folder of the pages.")] = "demo",
    progress: Callable[[str], None] | None = None,
) -> Tour:
    """Take the starter pack through every part of Memantics, offline; returns where the page is.

    ``progress`` is told what is done next.
    """
    tell, folder = progress or (lambda _: None), Path(out)
    memes = {meme.id: meme for meme in read_starter()}
    tell("taking memes apart")
    apart = list(_take_apart([memes[name] for name in TAKEN_APART]))
    tell("reading puns aloud")
    puns = [_read_pun(memes[name]) for name in PUNS]
    tell("making memes kinder")
    pairs = list(_make_kinder([memes[name] for name in KINDER], folder / "kinder"))
    tell("checking published tables")
    tables = list(check_published())
    standings = list(rank_published())
    tell("evaluating the embedded baseline")
    page = _evaluate(folder)
    highlights = tuple(_find_highlights(puns, pairs, tables, standings))[:5]
    content = tour.TourContent(
        apart, puns, pairs, tables, standings, STEPS, page.name, highlights=highlights
    )
    tour.write_tour(content, folder / "index.html")
    return Tour(folder / "index.html", page, highlights)


def _take_apart(memes: Sequence[StarterMeme]) -> Iterator[tour.TourMeme]:
    """What the starter pack's annotators and this machine's parts say of each meme."""
    known = {one.meme: one for one in read_starter_knowledge()}
    found = analyze([image_path(meme.id) for meme in memes])
    detector = Detector.starter()
    for meme, seen in zip(memes, found, strict=True):
        chinese = meme.language == "zh"
        caption = meme.pun.caption if meme.pun else ""
        yield tour.TourMeme(
            image_path(meme.id),
            meme.language,
            meme.text,
            seen.text,
            meme.meaning,
            meme.intents,
            _TYPES[meme.harm.type],
            known[meme.id],
            _gloss(meme),
            _explain(meme) if chinese else "",
            read_aloud(caption) if caption and chinese else None,
            detector.explain(seen.text) if seen.text else None,
            seen.printed,
            seen.size,
        )


def _gloss(meme: StarterMeme) -> str:
    """What a Chinese caption says in English: the annotations give both, the Chinese first."""
    texts = [
        individual.description
        for individual in meme.knowledge
        if individual.dimension == "TextualMaterial"
    ]
    pairs = [text.partition(", ") for text in texts if meme.language == "zh"]
    return ", ".join(english for chinese, _, english in pairs if chinese in meme.text)


def _explain(meme: StarterMeme) -> str:
    """The first thing that a reader has to know, in English."""
    known = [
        individual for individual in meme.knowledge if individual.dimension == "BackgroundKnowledge"
    ]
    return f"{known[0].label}: {known[0].description}" if known else ""


def _read_pun(meme: StarterMeme) -> tour.TourPun:
    pun = meme.pun
    if pun is None:
        raise AssertionError(f"{meme.id} is no pun")
    heard = read_aloud(pun.caption, description=meme.description)
    return tour.TourPun(
        image_path(meme.id),
        heard,
        pun.reading or pun.caption,
        pun.note,
        _gloss(meme),
        _explain(meme),
    )


def _make_kinder(memes: Sequence[StarterMeme], out: Path) -> Iterator[tour.TourPair]:
    for meme, made in zip(
        memes, reappraise([image_path(meme.id) for meme in memes], out=out), strict=True
    ):
        done = made.status == "done"
        yield tour.TourPair(
            image_path(meme.id),
            meme.text,
            made.caption if done else "",
            made.folder / MEME if done else None,
            made.plan.target if made.plan else "",
            "" if done else made.reason.partition("; --force")[0],
        )


def check_published() -> Iterator[tour.TourTable]:
    """Can the figures of each paper's tables be true together? Arithmetic only, no data."""
    for name in FAMILIES:
        card = find_benchmark(name).card
        rows = [row for row in _read_rows(name) if is_checkable(row)]
        faults = [
            tour.TableFault(row.source, row.system, found, is_certain(row))
            for row in rows
            if (found := violations(row))
        ]
        faults.sort(key=lambda fault: (not fault.certain, len(fault.reasons)))
        yield tour.TourTable(card.title, card.citation, len(rows), tuple(faults))


def _read_rows(name: str) -> tuple[PublishedRow, ...]:
    return read_published(find_benchmark(name).folder / "expected" / "published.json")


def rank_published() -> Iterator[Standings]:
    """Published tables as leaderboards, each beside what answering blindly scores."""
    puns = [row for row in _read_rows("punmemecn") if row.options.get("prompt") == "1"]
    detection = [row for row in puns if row.task == "detection" and row.source == "Table 2"]
    positives, negatives = detection[0].classes or (1, 1)
    always = Trivial("always answering “pun”", 2 * positives / (2 * positives + negatives))
    yield make_standings("PunMemeCN: is it a pun?", "f1", detection, always)
    hard = [row for row in puns if row.task == "chat" and row.options["level"] == "hard"]
    guess = Trivial("guessing one of four", 0.25)
    yield make_standings("PunMemeCN: which meme answers the chat?", "accuracy", hard, guess)
    toxic = [row for row in _read_rows("toxicn_mm") if row.task == "detection"]
    table = [row for row in toxic if row.source == "Table 5"]
    share = 765 / 2400  # harmful memes of the test part, the paper's Table 3
    never = Trivial("always answering “harmless”", (1 - share) / (2 - share))
    note = "The paper gives no confusion table, so macro-F1 has no interval here."
    yield make_standings("ToxiCN MM: is it harmful?", "macro_f1", table, never, note)
    rows = _read_rows("mquest")
    third = Trivial("guessing among the three options that are ever right", 1 / 3)
    pooled = (
        "“None of the others” is the key of 1 of the 13,141 released questions: guessing among the "
        "other three scores one in three, among all four one in four. Intervals assume that "
        "accuracy is over all 609 questions."
    )
    yield make_standings("M-QUEST: questions about meaning", "accuracy", rows, third, pooled)


def _evaluate(folder: Path) -> Path:
    """Run the embedded reader and two baselines on starter tasks, and write their report."""
    made = evaluate(TASKS, model=MODELS, data="starter", limit=12, out=folder / "runs")
    return report([made] if isinstance(made, Run) else list(made), folder / "report.html")


def _find_highlights(
    puns: Sequence[tour.TourPun],
    pairs: Sequence[tour.TourPair],
    tables: Sequence[tour.TourTable],
    standings: Sequence[Standings],
) -> Iterator[str]:
    words = read_words("en")
    heard = [one for one in puns if one.found]
    if heard:
        best = max(heard, key=lambda one: one.heard.confidence)
        sure = words.sure(best.heard.confidence)
        yield f"{best.heard.caption} is heard as {best.intended}, {sure} sure"
    done = [one for one in pairs if one.kinder]
    if done:
        first = " / ".join(done[0].after.split("\n"))
        yield f"A meme made kinder: {first}"
    for table in tables:
        if table.faults:
            yield f"{table.title}: {words.tell_faults(table.checked, table.certain, table.more)}"
    for board in standings:
        if board.count("above") < len(board.rows):
            yield f"{board.title} {words.standing(board)}"
