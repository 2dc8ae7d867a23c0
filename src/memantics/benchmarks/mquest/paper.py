"""M-QUEST's paper: its tables and figures in its order, redone from data, runs and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from memantics.benchmarks.mquest.knowledge import EXTRA_DIMENSIONS
from memantics.benchmarks.mquest.load import QaRecord
from memantics.benchmarks.mquest.paper_models import (
    NAMES,
    Material,
    figure_2,
    figure_3,
    figure_6,
    figure_9,
    table_2,
    traits,
)
from memantics.benchmarks.mquest.statistics import MATERIALISERS
from memantics.core.paper import (
    Cell,
    Paper,
    PaperPart,
    PaperRow,
    PaperText,
    list_figures,
    score_cell,
)
from memantics.core.review import JudgedQuestion, list_judged_questions
from memantics.tasks.choices import LETTERS
from memantics.tasks.factories import share

# Table 1, in the order of NAMES; memes and questions per meme follow.
_TOXMQUEST = (307, 10, 14, 9, 9, 9, None, None, None, None, 307, 1.16)
_EXTENSION = (None, 35, 35, 35, 26, 26, 30, 28, 20, 16, 180, 1.48)
_WHOLE = (307, 45, 49, 44, 35, 35, 30, 28, 20, 16, 307, 1.98)
# Figure 5, as the appendix says it in words.
_ACCEPTED = {
    "Scene": 76.0,
    "TextualMaterial": 76.0,
    "VisualMaterial": 74.0,
    "OverallIntent": 64.0,
    "Emotion": 60.0,
    "BackgroundKnowledge": 56.0,
    "AnalogicalMapping": 56.0,
    "TargetCommunity": 40.0,
    "SemioticProjection": 32.0,
}
_NOT_RELEASED = "The list of the 251 questions of the extension was never released."


def table_1(material: Material) -> PaperPart:
    """Questions by dimension: toxicity first, the extension, the whole."""
    judged = _judged(material)
    accepted = [question for question in judged if question.accepted]
    toxic = [
        question for question in accepted if not question.first or question.dimension == "Toxicity"
    ]
    extended = [
        question for question in accepted if question.first and question.dimension != "Toxicity"
    ]
    review = f"memantics paper {material.name} --verdicts QUEUE"
    rows = []
    if material.compared:
        keys = {name: f"toxmquest350.dimension.{name}" for name in NAMES}
        cells = [
            material.figure(keys[name]) if paper is not None else Cell()
            for name, paper in zip(NAMES, _TOXMQUEST, strict=False)
        ]
        ends = [material.figure(f"toxmquest350.{text}") for text in ("memes", "per_meme")]
        rows.append(PaperRow("ToxM-Quest", (*cells, *ends)))
        closed = [
            Cell(number, reason=_NOT_RELEASED) if number else Cell() for number in _EXTENSION[:11]
        ]
        average = Cell(_EXTENSION[-1], round(251 / 180, 2), digits=2, arithmetic=True)
        rows.append(PaperRow("Extension", (*closed, average)))
        rows.append(PaperRow("M-Quest", _sum_up()))
        rows.append(_count_row("Candidates in this copy", material))
        plain = (None,) * 12
        if judged:
            rows.append(_review_row("Accepted in your review: ToxM-Quest", toxic, plain, ""))
            rows.append(_review_row("Accepted in your review: Extension", extended, plain, ""))
    else:
        rows.append(_review_row("ToxM-Quest", toxic, _TOXMQUEST, "" if toxic else review))
        rows.append(_review_row("Extension", extended, _EXTENSION, "" if extended else review))
        rows.append(_count_row("M-Quest", material, _WHOLE))
    return PaperPart(
        "Table 1",
        "Q&As distribution across dimensions for different benchmark subsets.",
        (*NAMES.values(), "Unique Memes", "Avg. Q&As per Meme"),
        tuple(rows),
        "Subset",
        notes=(
            "ToxM-Quest comes from the 350 evaluated questions recovered from the authors' logs.",
            "M-Quest is the sum of the two rows that the paper prints above it.",
        )
        if material.compared
        else (),
    )


def _sum_up() -> tuple[Cell, ...]:
    sums = [(a or 0) + (b or 0) for a, b in zip(_TOXMQUEST[:10], _EXTENSION[:10], strict=True)]
    cells = [Cell(value, made, arithmetic=True) for value, made in zip(_WHOLE, sums, strict=False)]
    average = round(sum(sums) / 307, 2)
    return (*cells, Cell(307, 307, arithmetic=True), Cell(1.98, average, digits=2, arithmetic=True))


def _count_row(
    label: str, material: Material, paper: Sequence[float | None] = (None,) * 12
) -> PaperRow:
    """The questions of the ten dimensions that the data hold."""
    values = material.values
    counts = [values.get(f"questions.dimension.{name}") for name in NAMES]
    total = sum(groups for groups in counts if isinstance(groups, int))
    memes = values.get("memes")
    average = round(total / memes, 2) if isinstance(memes, int) and memes else None
    cells = [
        Cell(printed, value, compared=False, fill=f"memantics data add {material.name} DIR")
        for printed, value in zip(paper, (*counts, memes), strict=False)
    ]
    return PaperRow(label, (*cells, Cell(paper[-1], average, digits=2, compared=False)), "own")


def _review_row(
    label: str, accepted: Sequence[JudgedQuestion], paper: Sequence[float | None], fill: str
) -> PaperRow:
    """The questions that people accepted, by dimension."""
    counts = Counter(question.dimension for question in accepted)
    memes = len({question.meme for question in accepted})
    average = round(len(accepted) / memes, 2) if memes else None
    values = [*(counts[name] for name in NAMES), memes]
    cells = [
        Cell(printed, None if fill else value, compared=False, fill=fill)
        if printed is not None or not fill
        else Cell()
        for printed, value in zip(paper, values, strict=False)
    ]
    last = Cell(paper[-1], average, digits=2, compared=False, fill=fill)
    return PaperRow(label, (*cells, last), "own")


def _judged(material: Material) -> list[JudgedQuestion]:
    return [question for review in material.reviews for question in list_judged_questions(review)]


def figure_4(material: Material) -> PaperPart:
    """Individuals of the knowledge bases by dimension."""
    fill = f"memantics data add {material.name} DIR"
    rows = [
        PaperRow(title, (material.figure(f"individuals.raw.{name}", fill),))
        for name, title in NAMES.items()
    ]
    rows.append(PaperRow("all dimensions", (material.figure("individuals.raw.total", fill),)))
    return PaperPart(
        "Figure 4",
        "Total number of knowledge facts generated, and their number for each dimension.",
        ("individuals",),
        tuple(rows),
        "dimension",
        plotted=any(row.cells[0].value is not None for row in rows),
        notes=("The paper draws these values and prints none of them.",),
    )


def figure_5(material: Material) -> PaperPart:
    """Share of questions that people accepted, by dimension."""
    judged = _judged(material)
    fill = f"memantics paper {material.name} --verdicts QUEUE"
    rows = []
    for name in (*_ACCEPTED, "Toxicity"):
        questions = [one for one in judged if one.dimension == name]
        found = share("", [one.accepted for one in questions], [one.meme for one in questions])
        cell = score_cell(found if questions else None, 1)
        printed = _ACCEPTED.get(name, 29.4)
        rows.append(
            PaperRow(NAMES[name], (replace(cell, paper=printed, compared=False, fill=fill),))
        )
    rates = [row.cells[0].value for row in rows[: len(_ACCEPTED)]]
    shown = [float(rate) for rate in rates if isinstance(rate, int | float)]
    mean = (
        Cell(59.33, fmean(shown), digits=2, compared=False)
        if len(shown) == len(_ACCEPTED)
        else Cell(59.33, round(fmean(_ACCEPTED.values()), 2), digits=2, arithmetic=True)
    )
    rows.append(PaperRow("mean of the nine but Toxicity", (mean,)))
    return PaperPart(
        "Figure 5",
        "Human validation for each dimension: questions accepted with their answers, per cent.",
        ("accepted",),
        tuple(rows),
        "dimension",
        plotted=True,
        notes=(
            "The paper's human judgements were not released.",
            "For Toxicity it prints 29.4 %, where its own counts give 307 of 1,000, 30.7 %.",
        ),
    )


def figure_8(material: Material) -> PaperPart:
    """Two questions with their explanations."""
    release = material.release
    split = "toxmquest350" if material.compared else "ten"
    known = release.files and any(f.id in release.selection for f in release.files)
    questions = release.questions(split if known or split == "ten" else "ten")
    texts = tuple(_show_pair(record) for record, _ in zip(questions, range(2), strict=False))
    return PaperPart("Figure 8", "Question-answer pairs with their explanations.", texts=texts)


def _show_pair(record: QaRecord) -> PaperText:
    options = "\n".join(f"({LETTERS[i]}) {text}" for i, text in enumerate(record.options))
    right = LETTERS[record.answer] if record.answer is not None else "–"
    body = f"{record.question}\n\n{options}\n\nAnswer: {right}\n\n{record.explanation}"
    return PaperText(f"Meme {record.meme}, {NAMES.get(record.dimension, record.dimension)}", body)


def in_the_text(material: Material) -> PaperPart:
    """Figures that the paper's sentences state."""
    keys = [
        key
        for key, row in material.expected.items()
        if row.paper is not None and not key.startswith("toxmquest350.")
    ]
    caption = "Figures that the paper states, and what this copy or the paper's own counts give."
    return list_figures(material, "Figures in the text", caption, keys)


def places(material: Material) -> PaperPart:
    """Where keys and "None of the others" stand."""
    lines = {name: f"key.position.{name}." for name in (*NAMES, *EXTRA_DIMENSIONS)}
    lines |= {"all keys": "key.position.", "None of the others": "none.position."}
    rows = [
        PaperRow(NAMES.get(name, name), tuple(material.figure(f"{key}{n}") for n in range(4)))
        for name, key in lines.items()
    ]
    caption = "Where the right option and 'None of the others' stand; the paper says: shuffled."
    return PaperPart("Places of options", caption, tuple(LETTERS[:4]), tuple(rows), "dimension")


def relations(material: Material) -> PaperPart:
    """What the four materialisers wrote, and what of it leads nowhere."""
    rows = [
        PaperRow(
            NAMES[name],
            tuple(
                material.figure(f"materialised.{name}.{text}") for text in ("triples", "dangling")
            ),
        )
        for name in MATERIALISERS
    ]
    caption = "Relations of the refined graphs, and those to a name that is no individual."
    return PaperPart("Materialised relations", caption, ("triples", "dangling"), tuple(rows))


def beyond(material: Material) -> PaperPart:
    """What the files tell and the paper does not."""
    shown = ("key.position.", "none.position.", "materialised.", "individuals.raw.")
    keys = [
        key
        for key, row in material.expected.items()
        if row.paper is None and not key.startswith(shown)
    ]
    caption = "What the files also tell: the paper prints none of these."
    return list_figures(material, "Further statistics", caption, keys)


FIGURE_1 = PaperPart(
    "Figure 1",
    "M-QUEST creation procedure.",
    texts=(
        PaperText(
            "The procedure as commands",
            "memantics collect IMAGES --out collected\n"
            "memantics build knowledge collected --model MODEL --out build\n"
            "memantics build questions build --model MODEL\n"
            "memantics build draw build --first Toxicity\n"
            "memantics annotate build/queue\n"
            "memantics build draw build --per-dimension 50\n"
            "memantics annotate build/queue-2\n"
            "memantics publish build --name NAME --licence LICENCE\n"
            "memantics run NAME --model MODEL\n"
            "memantics paper NAME RUN --verdicts build/queue --verdicts build/queue-2",
        ),
    ),
)
TABLE_3 = PaperPart(
    "Table 3",
    "Toxicity-centered works and their dimensions.",
    notes=("It marks which dimensions 40 earlier works look at; nothing in it is computed.",),
)
FIGURE_7 = PaperPart(
    "Figure 7",
    "Human annotation task user interface: up to six judgements about a meme.",
    texts=(PaperText("The same form in the browser", "memantics annotate QUEUE"),),
)
PAPER = Paper(
    "M-QUEST: Meme Question-Understanding Evaluation on Semantics and Toxicity",
    (
        *(FIGURE_1, table_1, table_2, traits, figure_2, figure_3, TABLE_3, figure_4, figure_5),
        *(figure_6, FIGURE_7, figure_8, figure_9, in_the_text, places),
        *(relations, beyond),
    ),
)
