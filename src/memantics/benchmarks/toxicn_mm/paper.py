"""ToxiCN MM's paper: its tables and figures in its order, from data, votes, detectors and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm.load import HarmRelease
from memantics.benchmarks.toxicn_mm.paper_models import (
    Material,
    case_study,
    figure_c1,
    table_5,
    table_5_tests,
    table_c1,
)
from memantics.benchmarks.toxicn_mm.paper_setup import table_b8, table_b9, table_b10, table_b11
from memantics.benchmarks.toxicn_mm.rows import HarmMeme
from memantics.benchmarks.toxicn_mm.statistics import HARMS, TABLE_B7
from memantics.core.paper import Cell, Paper, PaperPart, PaperRow, PaperText
from memantics.metrics.agreement import fleiss_kappa

_QUOTED = "Quoted in the paper from the papers of those data sets."
_OTHERS = {
    "HarMeme": (3544, 34.96),
    "Harm-C": (3013, 35.31),
    "Harm-P": (3020, 49.21),
    "HMC": (10000, 38.00),
    "MMHS150K": (150000, 24.68),
    "TamilMemes": (2969, 65.71),
    "MUTE": (4158, 37.87),
    "MAMI": (11000, 50.00),
}
_TABLE_3 = {
    "train": (6538, 3062, 813, 1198, 731, 320, 1082, 1754, 276, 9600),
    "test": (1635, 765, 203, 300, 183, 79, 271, 438, 69, 2400),
    "total": (8173, 3827, 1016, 1498, 914, 399, 1353, 2192, 345, 12000),
}
_TABLE_4 = {
    "targeted": (575, 404, 47, 1016),
    "offence": (198, 1247, 93, 1498),
    "sexual": (431, 307, 186, 914),
    "dispirited": (149, 234, 19, 399),
}
_TABLE_B7 = {
    "gender": 417,
    "region": 176,
    "occupation": 71,
    "age": 66,
    "body": 55,
    "race": 33,
    "individual": 29,
    "health": 27,
    "lgbtq": 22,
    "others": 120,
}
_SHORT = {"targeted": "Tg.", "offence": "Off.", "sexual": "Sex.", "dispirited": "Disp."}
_LABELS = {"none": "harmless", "offence": "general offence", "sexual": "sexual innuendo"}
_PEOPLE = {
    "gender": {"male": 5, "female": 5},
    "age": {"under_20": 3, "20_to_30": 5, "over_30": 2},
    "region": {"asian": 7, "other": 3},
    "education": {"undergraduate": 3, "postgraduate": 4, "doctorate": 3},
}
_ERRORS = {
    "benign_part": "Type I: benign information hides the harm",
    "culture": "Type II: cultural background is missed",
    "misread": "text or image was misread",
    "over_cautious": "harmless, but looks harmful",
    "label": "the label is doubtful",
    "other": "another reason",
}
_AGREEMENT = {"harmful": 0.62, "type": 0.73, "modality": 0.86}


def _version(material: Material, *, targets: bool = False) -> str:
    """The labels of the paper's tables: the first version; targets are in the second only."""
    known = material.release.versions
    wanted = "v2" if targets else "v1"
    return wanted if wanted in known else known[0]


def _part(material: Material, name: str, *, targets: bool = False) -> tuple[HarmMeme, ...] | None:
    """The memes of a split; ``total`` is both, or the only one that one's own data have."""
    version = _version(material, targets=targets)
    parts = {split: own for (own_version, split), own in material.release.parts.items()
             if own_version == version}  # fmt: skip
    if name != "total":
        return parts.get(name)  # type: ignore[call-overload, no-any-return]
    if material.compared and len(parts) < 2:
        return None
    return tuple(meme for own in parts.values() for meme in own)


def _count(
    material: Material, paper: JsonValue, value: JsonValue, digits: int | None = None
) -> Cell:
    """A count of this copy beside the paper's; a part that is not here can be added."""
    if value is None and material.source.published:
        return Cell(paper, reason="These data have no such part: publish them with --split 8:2.")
    return Cell(
        paper,
        value,
        digits=digits,
        compared=material.compared,
        fill=f"memantics data add {material.name} DIR",
    )


def figure_1(material: Material) -> PaperPart:
    """One meme of each kind."""
    memes = _part(material, "total") or _part(material, "train") or _part(material, "test") or ()
    texts = []
    for kind in ("none", *HARMS):
        found = next((own for own in memes if own.type == kind), None)
        if found is not None:
            lines = [found.text, f"image: {found.image_caption}", f"text: {found.text_caption}"]
            texts.append(PaperText(f"{_LABELS.get(kind, kind)}: {found.id}", "\n".join(lines)))
    return PaperPart(
        "Figure 1",
        "Illustration of memes in Chinese: one of each kind, from these data.",
        texts=tuple(texts),
        notes=("Figure 2 (construction) and Figure 3 (MKE) are diagrams: docs/redo-a-paper.md.",),
    )


def table_1(material: Material) -> PaperPart:
    """Data sets of harmful memes: size, and share of the harmful ones."""
    memes = _part(material, "total")
    share = round(100 * sum(own.harmful for own in memes) / len(memes), 2) if memes else None
    rows = [
        PaperRow(name, (Cell(size, reason=_QUOTED), Cell(ratio, digits=2, reason=_QUOTED)))
        for name, (size, ratio) in _OTHERS.items()
    ]
    own = (
        _count(material, 12000, len(memes) if memes else None),
        _count(material, 31.89, share, 2),
    )
    rows.append(PaperRow("ToxiCN MM" if material.compared else material.name, own))
    caption = "Harmful meme data sets: number of memes, and per cent that are harmful."
    return PaperPart("Table 1", caption, ("Size", "Ratio"), tuple(rows), "Work")


def table_2(material: Material) -> PaperPart:
    """Who labelled the memes, from a questionnaire that is kept apart from their votes."""
    answers = [
        vote.values
        for review in material.reviews
        if review.card.workflow == "questionnaire"
        for own in review.judged
        for vote in (own.verdict.votes if own.verdict else ())
        if vote.values.get("consent") in ("yes", True)
    ]
    fill = f"memantics paper {material.name} --verdicts QUESTIONNAIRE"
    rows = []
    for name, groups in _PEOPLE.items():
        said = Counter(str(own[name]) for own in answers if own.get(name) is not None)
        for group in dict.fromkeys((*groups, *said)):
            value = said[group] if answers else None
            cell = Cell(groups.get(group), value, compared=False, fill=fill)
            rows.append(PaperRow(group.replace("_", " "), (cell,), section=name))
    return PaperPart(
        "Table 2",
        "Annotators' demographics.",
        ("people",),
        tuple(rows),
        "Characteristic",
        notes=("'memantics annotate questionnaire' asks; only those who consent are counted.",),
    )


def _list_counts(memes: Sequence[HarmMeme]) -> tuple[int, ...]:
    """Harmless, harmful, the four types, the three modalities ("both" in two of them), all."""
    kinds = Counter(own.type for own in memes)
    where = Counter(own.modality for own in memes)
    harmful = sum(own.harmful for own in memes)
    both = where["both"]
    return (
        len(memes) - harmful,
        harmful,
        *(kinds[name] for name in HARMS),
        where["fusion"],
        where["text"] + both,
        where["image"] + both,
        len(memes),
    )


def table_3(material: Material) -> PaperPart:
    """Memes by split, type and modality."""
    rows = []
    for name, printed in _TABLE_3.items():
        memes = _part(material, name)
        values: Sequence[int | None] = _list_counts(memes) if memes else (None,) * len(printed)
        pairs = zip(printed, values, strict=True)
        rows.append(PaperRow(name.capitalize(), tuple(_count(material, *own) for own in pairs)))
    heads = ("N-Harm.", "Harm.", *_SHORT.values(), "T-I", "Harm.T", "Harm.I", "Total")
    notes = (
        "The paper's split rows are 80 and 20 % of its totals, rounded: not the released split.",
    )
    caption = "Basic statistics: memes that are harmless and harmful, by type and modality."
    return PaperPart(
        "Table 3",
        caption,
        heads,
        tuple(rows),
        "Split",
        notes=(notes if material.compared else ()),
    )


def table_4(material: Material) -> PaperPart:
    """Where the harm lies, by type; also with labels 2.0, which the paper does not use."""
    rows = []
    for version in material.release.versions:
        parts = [own for (v, _), own in material.release.parts.items() if v == version]
        memes = [meme for own in parts for meme in own]
        whole = not material.compared or len(parts) == 2
        for kind, printed in _TABLE_4.items():
            found = _list_counts([own for own in memes if own.type == kind])
            values = (*found[6:9], found[-1])
            shown = printed if version == _version(material) else (None,) * 4
            cells = [
                _count(material, p, v if whole or p is None else None)
                for p, v in zip(shown, values, strict=True)
            ]
            label = _SHORT[kind] if version == _version(material) else f"{_SHORT[kind]} ({version})"
            rows.append(PaperRow(label, tuple(cells), section=f"labels {version}"))
    heads = ("T-I", "Harm.T", "Harm.I", "Total")
    caption = "Modality combination of the harmful types."
    return PaperPart("Table 4", caption, heads, tuple(rows), "Type")


def agreement(material: Material) -> PaperPart:
    """Fleiss' kappa of the votes."""
    votes = [
        own.verdict.votes
        for review in material.reviews
        if review.card.workflow == "label-by-vote"
        for own in review.judged
        if own.verdict is not None
    ]
    fill = f"memantics paper {material.name} --verdicts QUEUE"
    rows = []
    for name, printed in _AGREEMENT.items():
        table = [
            [_answer(vote.values.get(name)) for vote in own if vote.stage == "label"]
            for own in votes
        ]
        kappa = fleiss_kappa(table) if table else None
        cell = Cell(printed, None if kappa is None else round(kappa, 4), digits=2, compared=False)
        said = "All votes are alike: kappa is not defined." if votes else ""
        rows.append(
            PaperRow(name, (replace(cell, n=len(table), fill="" if votes else fill, reason=said),))
        )
    caption = "Agreement of annotators by level: Fleiss' kappa."
    return PaperPart("Appendix B.3", caption, ("kappa",), tuple(rows), "Level")


def error_types(material: Material) -> PaperPart:
    """Why models go wrong, as people coded it; the paper names two types and counts none."""
    said = Counter(
        str(own.values.get("error"))
        for review in material.reviews
        if review.card.workflow == "code-errors"
        for own in review.judged
        if own.values.get("error") is not None
    )
    fill = f"memantics annotate errors RUN… && memantics paper {material.name} --verdicts errors"
    rows = []
    for name, title in _ERRORS.items():
        value = said[name] if said else None
        rows.append(PaperRow(title, (Cell(value=value, n=said.total(), fill=fill),)))
    caption = "Errors of models by type: memes that most of them judged wrongly."
    return PaperPart("Section 5.4", caption, ("memes",), tuple(rows), "Error")


def _answer(value: JsonValue) -> str | None:
    return str(value) if value is not None else None


def table_b7(material: Material) -> PaperPart:
    """Targets of targeted memes (labels 2.0)."""
    memes = _part(material, "total", targets=True)
    counts = Counter(own.target for own in memes or ())
    total = sum(counts[name] for names in TABLE_B7.values() for name in names)
    rows = []
    for name, printed in _TABLE_B7.items():
        value = sum(counts[own] for own in TABLE_B7[name]) if memes else None
        share = None if value is None or not total else round(100 * value / total, 2)
        ratio = round(100 * printed / 1016, 2)
        cells = (_count(material, printed, value), _count(material, ratio, share, 2))
        rows.append(PaperRow(name, cells))
    ends = (_count(material, 1016, total if memes else None), _count(material, 100.0, 100.0, 2))
    rows.append(PaperRow("Total", ends))
    return PaperPart(
        "Table B7",
        "Target distribution of targeted harmful memes.",
        ("Num", "Ratio/%"),
        tuple(rows),
        "Category",
        notes=("Targets were released with labels 2.0; the paper counts those of version 1.",)
        if material.compared
        else (),
    )


def figure_b2(material: Material) -> PaperPart:
    """Memes whose image is harmful by itself."""
    memes = _part(material, "total") or _part(material, "train") or _part(material, "test") or ()
    found = [own for own in memes if own.modality in ("image", "both")][:2]
    texts = tuple(
        PaperText(f"{own.id}: {own.modality}", f"{own.text}\nimage: {own.image_caption}")
        for own in found
    )
    caption = "Harmful memes whose images independently exhibit toxicity."
    return PaperPart("Figure B2", caption, texts=texts)


_FILTERED = PaperPart(
    "Figure B1",
    "Examples of filtered memes and corresponding reasons.",
    notes=("'memantics collect FOLDER' writes a page of what it dropped, and why.",),
)
PAPER: Paper[HarmRelease] = Paper(
    "ToxiCN MM: Towards Comprehensive Detection of Chinese Harmful Memes",
    (
        figure_1,
        table_1,
        table_2,
        table_3,
        table_4,
        table_5,
        table_5_tests,
        case_study,
        error_types,
        _FILTERED,
        figure_b2,
        agreement,
        table_b7,
        table_b8,
        table_b9,
        figure_c1,
        table_b10,
        table_b11,
        table_c1,
    ),
)
