"""MemeIntent's paper: its tables and figures in its order, from data, reviews, runs and ratings."""

from __future__ import annotations

import statistics as figures
import tomllib
from collections.abc import Iterator
from pathlib import Path

from memantics.benchmarks.memeintent.asking import FOLDER
from memantics.benchmarks.memeintent.load import IntentRelease
from memantics.benchmarks.memeintent.paper_models import (
    Material,
    across_settings,
    contrasts,
    figure_6,
    table_3,
    table_4,
)
from memantics.core.paper import Cell, Paper, PaperPart, PaperRow, PaperText, list_figures
from memantics.core.prompt import read_prompts

_QUOTED = "Quoted in the paper from the papers of those data sets."
_OTHERS = {
    "MultiOFF": 743,
    "TamilMemes": 2969,
    "HatefulMemes": 10000,
    "HarMeme": 3544,
    "SemEval-2021-T6": 950,
    "Memotion": 10000,
    "WOAH-5": 10000,
    "MAMI": 15000,
    "FigMemes": 5141,
    "HVVMemes": 7000,
    "HatReD": 3228,
    "ExHVV": 4680,
    "MemeCap": 6387,
}
_GUIDELINES = (
    PaperText(
        "Intent",
        "Write one sentence about what the author ultimately wants to do with the meme, as"
        " perceived by the annotator. This must be written in good English (complete sentence,"
        " with a period at the end).",
    ),
    PaperText(
        "BK",
        "Write the additional knowledge, besides the visible image and text, you needed to use to"
        " derive the intent. Examples are information about a public figure or an explanation for"
        " a related event.",
    ),
)
_APPENDIX_B = (
    PaperText(
        "Intents",
        "Can I write new intents? Yes: if you think some intent is missing, add it.\n"
        "How to write the intent? So that the sentence, prefixed by 'The meme', is grammatical.\n"
        "Several intents? Rank them from what you believe the most to the least.",
    ),
    PaperText(
        "Background knowledge",
        "Summarize the key background information, skipping trivial knowledge. Also write down"
        " what you do not know but seems important, and what you are not sure of, with a question"
        " mark.",
    ),
)


def table_1(material: Material) -> PaperPart:
    """Data sets about memes, by size."""
    rows = [PaperRow(name, (Cell(size, reason=_QUOTED),)) for name, size in _OTHERS.items()]
    name = "MemeIntent" if material.compared else material.name
    rows.append(PaperRow(name, (material.figure("memes"),)))
    caption = "Tasks related to memes processing and associated benchmarks: number of memes."
    return PaperPart("Table 1", caption, ("Size",), tuple(rows), "Dataset")


def figure_1(material: Material) -> PaperPart:
    """Example memes with what their authors do."""
    texts = tuple(
        PaperText(
            f"meme {meme.id}",
            "\n".join(
                [f"text: {meme.text}", *meme.intents, *(f"* {fact}" for fact in meme.background)]
            ),
        )
        for meme in material.release.rows[:2]
    )
    caption = "Example memes, from these data: text, intents, background knowledge."
    return PaperPart("Figure 1", caption, texts=texts)


def section_3(material: Material) -> PaperPart:
    """The statistics of Section 3.3; ratings come from the review."""
    keys = ("intents.several_percent", "words.mean", "words.sd", "background.mean", "background.sd")
    part = list_figures(material, "Section 3.3", "Statistics of the annotations.", keys)
    rows = list(part.rows)
    ratings = {
        name: list(_read_ratings(material, name)) for name in ("correctness", "completeness")
    }
    fill = f"memantics paper {material.name} --verdicts QUEUE"
    for name, values in ratings.items():
        for key, paper in (("", _PAPER[name][0]), ("_sd", _PAPER[name][1])):
            made = None
            if values:
                made = round(figures.pstdev(values) if key else figures.fmean(values), 3)
            title = f"{name.capitalize()} of intents, {'deviation' if key else 'mean'}"
            cell = Cell(paper, made, n=len(values), digits=2, compared=False, fill=fill)
            rows.append(PaperRow(title, (cell,)))
    notes = ("Ratings were not released: they are those of your own review.",)
    return PaperPart(part.label, part.caption, part.columns, tuple(rows), "figure", notes=notes)


_PAPER = {"correctness": (4.76, 0.37), "completeness": (4.54, 0.71)}


def _read_ratings(material: Material, name: str) -> Iterator[float]:
    """What reviewers gave to each intent that was kept, one mean over reviewers for each."""
    for review in material.reviews:
        if review.card.workflow != "collect-and-edit":
            continue
        for reviewed in review.judged:
            votes = [] if reviewed.verdict is None else reviewed.verdict.votes
            given = [v.values[name] for v in votes if v.stage == "review" and name in v.values]
            rows = [value for value in given if isinstance(value, list)]
            for column in zip(*rows, strict=False):
                marks = [float(mark) for mark in column if isinstance(mark, int | float)]
                if marks:
                    yield figures.fmean(marks)


def _prompts(label: str, caption: str, *names: str) -> PaperPart:
    known = read_prompts(FOLDER / "prompts")
    texts = [PaperText(name, known[name].text) for name in names]
    shown = tomllib.loads((Path(FOLDER) / "demonstrations.toml").read_text(encoding="utf-8"))
    for number, value in enumerate(shown["demonstration"], 1):
        facts = "\n".join(f"* {fact}" for fact in value["background"])
        body = f"{value['text']}\n{value['image_caption']}\n{facts}\n→ {value['intent']}"
        texts.append(PaperText(f"demonstration {number}", body))
    note = "The paper's demonstrations were not released; --set demonstrations=FILE takes yours."
    return PaperPart(label, caption, texts=tuple(texts), notes=(note,))


def figure_4(_: Material) -> PaperPart:
    """The prompt of background knowledge."""
    caption = "Prompt template used for background knowledge generation."
    return _prompts("Figure 4", caption, "background_vlm", "background_text")


def figure_5(_: Material) -> PaperPart:
    """The prompt of intents."""
    caption = "Prompt template used for intent description generation."
    return _prompts("Figure 5", caption, "intent_vlm", "intent_text")


_TABLE_2 = PaperPart(
    "Table 2", "Annotation guidelines, as the paper prints them.", texts=_GUIDELINES
)
_FIGURE_3 = PaperPart(
    "Figure 3",
    "Annotation scheme and procedure.",
    notes=(
        "The workflow collect-and-edit: three people write and improve in turn, two others review.",
        "An intent with a correctness below 4 goes; the best one comes back where none is left.",
    ),
)
_GUIDE = PaperPart("Appendix B", "Guidelines with examples, in short.", texts=_APPENDIX_B)
PAPER: Paper[IntentRelease] = Paper(
    "MemeIntent: Benchmarking Intent Description Generation for Memes",
    (
        figure_1,
        table_1,
        _TABLE_2,
        _FIGURE_3,
        section_3,
        figure_4,
        figure_5,
        table_3,
        contrasts,
        table_4,
        across_settings,
        figure_6,
        _GUIDE,
    ),
)
