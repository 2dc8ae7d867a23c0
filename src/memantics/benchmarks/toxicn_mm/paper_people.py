"""What ToxiCN MM's paper says of its annotators, redone from questionnaires, votes and codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm.paper_models import Material
from memantics.core.paper import Cell, PaperPart, PaperRow
from memantics.metrics.agreement import fleiss_kappa

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


def _judge(material: Material, queue: str, more: str = "") -> str:
    """What lets people judge a queue, and shows what they said."""
    db = " --db people.db" if "--db" in more else ""
    return (
        f"memantics annotate open {queue}{more}"
        f" && memantics annotate export PROJECT{db} --out {queue}/verdicts.jsonl"
        f" && memantics paper {material.name} --verdicts {queue}"
    )


def table_2(material: Material) -> PaperPart:
    """Who labelled the memes, from a questionnaire that is kept apart from their votes."""
    answers = [
        vote.values
        for review in material.reviews
        if review.card.workflow == "questionnaire"
        for reviewed in review.judged
        for vote in (reviewed.verdict.votes if reviewed.verdict else ())
        if vote.values.get("consent") in ("yes", True)
    ]
    ask = "memantics annotate questionnaire --out people"
    fill = f"{ask} && {_judge(material, 'people', ' --db people.db')}"
    rows = []
    for name, groups in _PEOPLE.items():
        said = Counter(str(fields[name]) for fields in answers if fields.get(name) is not None)
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


def agreement(material: Material) -> PaperPart:
    """Fleiss' kappa of the votes."""
    votes = [
        reviewed.verdict.votes
        for review in material.reviews
        if review.card.workflow == "label-by-vote"
        for reviewed in review.judged
        if reviewed.verdict is not None
    ]
    fill = _judge(material, "MEMES", " --workflow label-by-vote")
    rows = []
    for name, printed in _AGREEMENT.items():
        table = [
            [_answer(vote.values.get(name)) for vote in group if vote.stage == "label"]
            for group in votes
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
        str(reviewed.values.get("error"))
        for review in material.reviews
        if review.card.workflow == "code-errors"
        for reviewed in review.judged
        if reviewed.values.get("error") is not None
    )
    fill = f"memantics annotate errors RUN… && {_judge(material, 'errors')}"
    rows = []
    for name, title in _ERRORS.items():
        value = said[name] if said else None
        rows.append(PaperRow(title, (Cell(value=value, n=said.total(), fill=fill),)))
    caption = "Errors of models by type: memes that most of them judged wrongly."
    return PaperPart("Section 5.4", caption, ("memes",), tuple(rows), "Error")


def _answer(value: JsonValue) -> str | None:
    return str(value) if value is not None else None
