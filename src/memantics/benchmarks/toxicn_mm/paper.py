"""Parts of ToxiCN MM's paper computed from data, annotations and questionnaires.

Tables and figures about models are in ``paper_models.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.paper import Cell, PaperPart, PaperRow, PaperText
from memantics.benchmarks.paper_file import DeclaredPart, read_paper, show_declared
from memantics.benchmarks.toxicn_mm import paper_models
from memantics.benchmarks.toxicn_mm.load import HarmMeme
from memantics.benchmarks.toxicn_mm.statistics import HARMS, TABLE_B7
from memantics.core.language import guess_language
from memantics.metrics.agreement import fleiss_kappa

_LABELS = {"none": "harmless", "offence": "general offence", "sexual": "sexual innuendo"}
_LANGUAGES = {"zh": "Chinese", "en": "English"}
_TEXTS = 200  # number of texts that is enough to detect the language of a data set


def _version(material: paper_models.HarmMaterial, *, targets: bool = False) -> str:
    """Return the label version of the paper's tables: version 1; only version 2 has targets."""
    known = material.release.versions
    wanted = "v2" if targets else "v1"
    return wanted if wanted in known else known[0]


def _part(
    material: paper_models.HarmMaterial, name: str, *, targets: bool = False
) -> tuple[HarmMeme, ...] | None:
    """Return the memes of a split; ``total`` means both splits, or the only one in these data."""
    version = _version(material, targets=targets)
    parts = {split: memes for (own_version, split), memes in material.release.parts.items()
             if own_version == version}  # fmt: skip
    if name != "total":
        return parts.get(name)  # type: ignore[call-overload, no-any-return]
    if material.comparable and len(parts) < 2:
        return None
    return tuple(meme for memes in parts.values() for meme in memes)


def _any_part(material: paper_models.HarmMaterial) -> tuple[HarmMeme, ...]:
    return _part(material, "total") or _part(material, "train") or _part(material, "test") or ()


def _count(
    material: paper_models.HarmMaterial,
    paper: JsonValue,
    value: JsonValue,
    digits: int | None = None,
    reason: str = "",
) -> Cell:
    """Return a cell with a count and the paper's value; ``reason`` states why there is no count."""
    if material.source.published:
        reason = reason or "These data have no such split: publish them with --split 8:2."
    elif material.compared and not material.complete:
        reason = reason or "This copy is a part of the release and lacks this split."
    fill = "" if reason else f"memantics data add {material.name} DIR"
    return Cell(paper, value, digits=digits, compared=material.comparable, fill=fill, reason=reason)


def figure_1(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 1: one meme of each category."""
    memes = _any_part(material)
    texts = []
    for kind in ("none", *HARMS):
        found = next((meme for meme in memes if meme.type == kind), None)
        if found is not None:
            lines = [found.text, f"image: {found.image_caption}", f"text: {found.text_caption}"]
            texts.append(PaperText(f"{_LABELS.get(kind, kind)}: {found.id}", "\n".join(lines)))
    return part.show(texts=texts)


def table_1(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 1: data sets of harmful memes with language, size and proportion harmful."""
    memes = _part(material, "total") or ()
    *rows, ours = show_declared(material, part).rows
    spoken = Counter(guess_language(meme.text).language for meme in memes[:_TEXTS])
    language = spoken.most_common(1)[0][0] if spoken else None
    aimless = any(meme.type not in ("none", "targeted") for meme in memes)
    share = round(100 * sum(meme.harmful for meme in memes) / len(memes), 2) if memes else None
    found = (
        _LANGUAGES.get(str(language), language),
        len(memes) or None,
        share,
        ("yes" if aimless else "no") if memes else None,
    )
    cells = tuple(
        _count(material, cell.paper, count, cell.digits)
        for cell, count in zip(ours.cells, found, strict=True)
    )
    return part.show([*rows, PaperRow(ours.label if material.compared else material.name, cells)])


def table_2(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 2: annotators' demographics, from a questionnaire stored separately."""
    forms = [
        (reviewed.aggregated, vote.values)
        for review in material.reviews
        if review.card.workflow.partition("-")[0] == "questionnaire"
        for reviewed in review.annotated
        if reviewed.aggregated
        for vote in reviewed.aggregated.annotations
        if vote.values.get("consent") in ("yes", True)
    ]
    # Annotators who failed the proficiency test label nothing.
    answers = [values for verdict, values in forms if verdict.kept]
    rows = []
    for name in dict.fromkeys(row.section for row in part.rows):
        printed = {row.key: row.printed[0] for row in part.rows if row.section == name}
        said = Counter(str(answer[name]) for answer in answers if answer.get(name) is not None)
        for group in dict.fromkeys((*printed, *said)):
            value = said[group] if answers else None
            cell = Cell(printed.get(group), value, compared=False, fill=part.command())
            rows.append(PaperRow(group.replace("_", " "), (cell,), section=name))
    for label, count in (("passed", len(answers)), ("not passed", len(forms) - len(answers))):
        cell = Cell(None, count if forms else None, compared=False, fill=part.command())
        rows.append(PaperRow(label, (cell,), section="proficiency"))
    return part.show(rows)


def _list_counts(memes: Sequence[HarmMeme]) -> tuple[int, ...]:
    """Return counts: harmless, harmful, four types, three modalities ("both" in two), all."""
    kinds = Counter(meme.type for meme in memes)
    where = Counter(meme.modality for meme in memes)
    harmful, both = sum(meme.harmful for meme in memes), where["both"]
    types = (kinds[name] for name in HARMS)
    places = (where["fusion"], where["text"] + both, where["image"] + both)
    return (len(memes) - harmful, harmful, *types, *places, len(memes))


def table_3(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 3: memes by split, type and modality."""
    rows = []
    for row in part.rows:
        memes = _part(material, row.key)
        values: Sequence[int | None] = _list_counts(memes) if memes else (None,) * len(row.cells)
        pairs = zip(row.cells, values, strict=True)
        rows.append(PaperRow(row.label, tuple(_count(material, *pair) for pair in pairs)))
    return part.show(rows)


def table_4(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 4: modality of harm by type; also with labels 2.0, unused in the paper."""
    rows = []
    for version in material.release.versions:
        parts = [memes for (v, _), memes in material.release.parts.items() if v == version]
        memes = [meme for group in parts for meme in group]
        theirs = version == _version(material)
        lacks = theirs and material.comparable and len(parts) < 2
        for row in part.rows:
            counts = _list_counts([meme for meme in memes if row.key in (meme.type, "total")])
            values = (None,) * 4 if lacks else counts[6:]
            told = zip(row.cells if theirs else (None,) * 4, values, strict=True)
            cells = tuple(_count(material, *printed) for printed in told)
            rows.append(PaperRow(row.label, cells, section=f"labels {version}"))
    return part.show(rows)


def error_types(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return coded reasons of model errors; the paper names two types and does not count them."""
    said = Counter(
        str(reviewed.values.get("error"))
        for review in material.reviews
        if review.card.workflow == "code-errors"
        for reviewed in review.annotated
        if reviewed.values.get("error") is not None
    )
    return part.show(
        PaperRow(
            row.label,
            (Cell(value=said[row.key] if said else None, n=said.total(), fill=part.command()),),
        )
        for row in part.rows
    )


def figure_b2(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure B2: memes whose image alone is harmful."""
    found = [meme for meme in _any_part(material) if meme.modality in ("image", "both")][:2]
    texts = [
        PaperText(f"{meme.id}: {meme.modality}", f"{meme.text}\nimage: {meme.image_caption}")
        for meme in found
    ]
    return part.show(texts=texts, notes=() if texts else (part.lacking,))


def agreement(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Fleiss' kappa of the annotations."""
    votes = [
        reviewed.aggregated.annotations
        for review in material.reviews
        if review.card.workflow == "label-by-vote"
        for reviewed in review.annotated
        if reviewed.aggregated is not None
    ]
    rows = []
    for row in part.rows:
        table = [
            [_answer(vote.values.get(row.label)) for vote in item_votes if vote.stage == "label"]
            for item_votes in votes
        ]
        kappa = fleiss_kappa(table) if table else None
        value = None if kappa is None else round(kappa, 4)
        reason, fill = (part.lacking, "") if votes else ("", part.command())
        cell = Cell(row.cells[0], value, n=len(table), digits=2, compared=False)
        rows.append(PaperRow(row.label, (replace(cell, reason=reason, fill=fill),)))
    return part.show(rows)


def _answer(value: JsonValue) -> str | None:
    return str(value) if value is not None else None


def table_b7(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table B7: the targets of targeted memes (labels 2.0)."""
    memes = _part(material, "total", targets=True) if "v2" in material.release.versions else None
    none = part.lacking if memes else ""
    counts = Counter(meme.target for meme in memes or ())
    found = {
        name: sum(counts[harm_class] for harm_class in keys) for name, keys in TABLE_B7.items()
    }
    found["Total"] = total = sum(found.values())
    rows = []
    for row in part.rows:
        value = found[row.label] if memes else None
        share = None if value is None or not total else round(100 * value / total, 2)
        number, ratio = row.cells
        whole = _count(material, ratio, share, 2, none)
        # The total is 100 per cent for any data.
        whole = replace(whole, compared=whole.compared and row.label != "Total")
        rows.append(PaperRow(row.label, (_count(material, number, value), whole)))
    return part.show(rows)


def versions(material: paper_models.HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return how types changed from label version 1 to 2.0; the paper uses only version 1."""
    reason = (
        "" if len(material.release.versions) == 2 else "These data have only one label version."
    )
    return part.show(
        PaperRow(
            title,
            tuple(
                material.statistic(f"versions.type.{one}.{two}", reason=reason)
                for two in part.names
            ),
        )
        for one, title in part.names.items()
    )


PAPER = read_paper(
    Path(__file__).with_name("paper.toml"),
    {
        "Figure 1": figure_1,
        "Table 1": table_1,
        "Table 2": table_2,
        "Table 3": table_3,
        "Table 4": table_4,
        "Table 5": paper_models.table_5,
        "Table 5, tests": paper_models.table_5_tests,
        "Values in the text": paper_models.in_the_text,
        "Table 6": paper_models.case_study,
        "Section 5.4": error_types,
        "Figure B2": figure_b2,
        "Appendix B.3": agreement,
        "Table B7": table_b7,
        "Label versions": versions,
        "Table B8": paper_models.table_b8,
        "Table B9": paper_models.table_b9,
        "Figure C1": paper_models.figure_c1,
        "Table C1": paper_models.table_c1,
    },
)
