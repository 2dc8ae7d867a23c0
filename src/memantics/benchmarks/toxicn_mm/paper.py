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
from memantics.benchmarks.toxicn_mm.paper_people import agreement, error_types, table_2
from memantics.benchmarks.toxicn_mm.paper_setup import table_b8, table_b9, table_b10, table_b11
from memantics.benchmarks.toxicn_mm.rows import HarmMeme
from memantics.benchmarks.toxicn_mm.statistics import HARMS, TABLE_B7
from memantics.core.language import guess_language
from memantics.core.paper import Cell, Paper, PaperPart, PaperRow, PaperText, list_figures

_QUOTED = "Quoted in the paper from the papers of those data sets."
_OTHERS = {
    "HarMeme": ("English", 3544, 34.96),
    "Harm-C": ("English", 3013, 35.31),
    "Harm-P": ("English", 3020, 49.21),
    "HMC": ("English", 10000, 38.00),
    "MMHS150K": ("English", 150000, 24.68),
    "TamilMemes": ("Indian", 2969, 65.71),
    "MUTE": ("Bengali", 4158, 37.87),
    "MAMI": ("English", 11000, 50.00),
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
    "total": (1353, 2192, 345, 12000),
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
_NAMES = {"none": "harmless", **_SHORT}
_LANGUAGES = {"zh": "Chinese", "en": "English"}
_TEXTS = 200  # enough to tell the language of a data set


def _version(material: Material, *, targets: bool = False) -> str:
    """The labels of the paper's tables: the first version; targets are in the second only."""
    known = material.release.versions
    wanted = "v2" if targets else "v1"
    return wanted if wanted in known else known[0]


def _part(material: Material, name: str, *, targets: bool = False) -> tuple[HarmMeme, ...] | None:
    """The memes of a split; ``total`` is both, or the only one that these data have."""
    version = _version(material, targets=targets)
    parts = {split: memes for (own_version, split), memes in material.release.parts.items()
             if own_version == version}  # fmt: skip
    if name != "total":
        return parts.get(name)  # type: ignore[call-overload, no-any-return]
    if material.comparable and len(parts) < 2:
        return None
    return tuple(meme for memes in parts.values() for meme in memes)


def _count(
    material: Material,
    paper: JsonValue,
    value: JsonValue,
    digits: int | None = None,
    reason: str = "",
) -> Cell:
    """A count of these data beside the paper's; ``reason`` says why there is none."""
    if material.source.published:
        reason = reason or "These data have no such part: publish them with --split 8:2."
    elif material.compared and not material.complete:
        reason = reason or "This copy is a part of the release and has no such part."
    fill = "" if reason else f"memantics data add {material.name} DIR"
    return Cell(paper, value, digits=digits, compared=material.comparable, fill=fill, reason=reason)


def figure_1(material: Material) -> PaperPart:
    """One meme of each kind."""
    memes = _part(material, "total") or _part(material, "train") or _part(material, "test") or ()
    texts = []
    for kind in ("none", *HARMS):
        found = next((meme for meme in memes if meme.type == kind), None)
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
    """Data sets of harmful memes: language, size, share of harmful ones, harm without a target."""
    memes = _part(material, "total") or ()
    share = round(100 * sum(meme.harmful for meme in memes) / len(memes), 2) if memes else None
    rows = [
        PaperRow(
            name,
            tuple(
                Cell(text, digits=2 if isinstance(text, float) else None, reason=_QUOTED)
                for text in (*told, "no")
            ),
        )
        for name, told in _OTHERS.items()
    ]
    spoken = Counter(guess_language(meme.text).language for meme in memes[:_TEXTS])
    language = spoken.most_common(1)[0][0] if spoken else None
    aimless = any(meme.type not in ("none", "targeted") for meme in memes)
    found = (
        _count(material, "Chinese", _LANGUAGES.get(str(language), language)),
        _count(material, 12000, len(memes) or None),
        _count(material, 31.89, share, 2),
        _count(material, "yes", ("yes" if aimless else "no") if memes else None),
    )
    rows.append(PaperRow("ToxiCN MM" if material.compared else material.name, found))
    return PaperPart(
        "Table 1",
        "Harmful meme data sets: language, number of memes, per cent that are harmful, and whether "
        "there are harmful ones without a target.",
        ("Language", "Size", "Ratio", "Pot. Tox."),
        tuple(rows),
        "Work",
    )


def _list_counts(memes: Sequence[HarmMeme]) -> tuple[int, ...]:
    """Harmless, harmful, the four types, the three modalities ("both" in two of them), all."""
    kinds = Counter(meme.type for meme in memes)
    where = Counter(meme.modality for meme in memes)
    harmful = sum(meme.harmful for meme in memes)
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
        rows.append(
            PaperRow(name.capitalize(), tuple(_count(material, *numbers) for numbers in pairs))
        )
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
        parts = [part for (v, _), part in material.release.parts.items() if v == version]
        memes = [meme for part in parts for meme in part]
        printed = _TABLE_4 if version == _version(material) else {}
        lacks = bool(printed) and material.comparable and len(parts) < 2
        for kind in (*HARMS, "total"):
            counts = _list_counts(
                [harm_meme for harm_meme in memes if kind in (harm_meme.type, "total")]
            )
            values = (None,) * 4 if lacks else counts[6:]
            told = zip(printed.get(kind, (None,) * 4), values, strict=True)
            label = _SHORT.get(kind, "Total")
            cells = tuple(_count(material, *numbers) for numbers in told)
            rows.append(PaperRow(label, cells, section=f"labels {version}"))
    heads = ("T-I", "Harm.T", "Harm.I", "Total")
    caption = "Modality combination of the harmful types; the last total counts harmless memes too."
    return PaperPart("Table 4", caption, heads, tuple(rows), "Type")


def table_b7(material: Material) -> PaperPart:
    """Targets of targeted memes (labels 2.0)."""
    memes = _part(material, "total", targets=True) if "v2" in material.release.versions else None
    none = "No meme of these data has a target." if memes else ""
    counts = Counter(meme.target for meme in memes or ())
    total = sum(counts[name] for names in TABLE_B7.values() for name in names)
    rows = []
    for name, printed in _TABLE_B7.items():
        value = sum(counts[key] for key in TABLE_B7[name]) if memes else None
        share = None if value is None or not total else round(100 * value / total, 2)
        ratio = round(100 * printed / 1016, 2)
        cells = (_count(material, printed, value), _count(material, ratio, share, 2, none))
        rows.append(PaperRow(name, cells))
    ends = (
        _count(material, 1016, total if memes else None),
        _count(material, 100.0, 100.0 if total else None, 2, none),
    )
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
    found = [meme for meme in memes if meme.modality in ("image", "both")][:2]
    texts = tuple(
        PaperText(f"{meme.id}: {meme.modality}", f"{meme.text}\nimage: {meme.image_caption}")
        for meme in found
    )
    caption = "Harmful memes whose images independently exhibit toxicity."
    notes = () if texts else ("No meme of these data is harmful by its image.",)
    return PaperPart("Figure B2", caption, texts=texts, notes=notes)


def versions(material: Material) -> PaperPart:
    """How types changed from labels 1 to labels 2.0; the paper knows the first only."""
    reason = "" if len(material.release.versions) == 2 else "These data have one label version."
    rows = tuple(
        PaperRow(
            _NAMES[one],
            tuple(material.figure(f"versions.type.{one}.{two}", reason=reason) for two in _NAMES),
        )
        for one in _NAMES
    )
    caption = "Not in the paper: memes by type in labels 1 (rows) and labels 2.0 (columns)."
    return PaperPart("Label versions", caption, tuple(_NAMES.values()), rows, "labels 1")


def leakage(material: Material) -> PaperPart:
    """Test texts that the training part holds."""
    keys = [f"leakage.text.{text}" for text in ("exact", "near", "near.share", "repeated.train")]
    part = list_figures(material, "Leakage", "Not in the paper: texts that come twice.", keys)
    note = "Nearly: the Jaccard index of the sets of characters is at least 0.8 (docs, audit too)."
    return replace(part, notes=(note,))


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
        versions,
        leakage,
        table_b8,
        table_b9,
        figure_c1,
        table_b10,
        table_b11,
        table_c1,
    ),
)
