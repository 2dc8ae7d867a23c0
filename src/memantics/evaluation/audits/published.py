"""Check published tables for impossible values, and for models evaluated on data they wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from memantics.benchmarks.published import PublishedRow
from memantics.core.finding import Finding, FindingWords, Gap, Maker, rank
from memantics.core.records import Score
from memantics.evaluation.audits.subject import Exam
from memantics.metrics.feasibility import Claims, find_violations, is_impossible
from memantics.metrics.interval import wilson

_WORDS = FindingWords(__file__)


def check_tables(
    rows: Sequence[PublishedRow], title: str = "Published tables"
) -> tuple[list[Finding], list[Gap]]:
    """Check all published rows by arithmetic, and report one audit finding."""
    checkable = [row for row in rows if is_checkable(row)]
    if not checkable:
        reason = "no published row has metrics that constrain each other"
        return [], [Gap("", title.lower(), reason if rows else "no published results are known")]
    faults = [(row, why) for row in checkable if (why := violations(row))]
    # Papers rarely state the number of items behind a proportion.
    anyway = sum(is_certain(row) for row, _ in faults)
    n = len(checkable)
    low, high = wilson(len(faults), n) or (None, None)
    unless = (
        f" with the number of items that the paper states; {anyway} of {n} for any number of items"
    ) * (anyway != len(faults))
    details = (f"{row.source}, {row.task}, {row.system}: {'; '.join(why)}" for row, why in faults)
    found = _WORDS.find(
        "tables.feasible",
        Score("proportion", len(faults) / n, n, low, high),
        "broken" if faults else "sound",
        {"title": title, "faults": len(faults), "rows": n, "unless": unless},
        details=tuple(details),
    )
    return [found], []


def violations(row: PublishedRow) -> tuple[str, ...]:
    """List every arithmetic check that a published row fails, in words."""
    return find_violations(row.metrics, _claims(row))


def is_certain(row: PublishedRow) -> bool:
    """Whether a published row is impossible for any number of items."""
    return is_impossible(row.metrics, _claims(row))


def _claims(row: PublishedRow) -> Claims:
    return Claims(row.digits, row.sizes, row.parts, row.classes)


def is_checkable(row: PublishedRow) -> bool:
    """Whether a published row has metrics that constrain each other."""
    metrics = row.metrics.keys()
    return (
        {"macro_f1", "macro_precision", "macro_recall"} <= metrics
        or any(whole in metrics and set(parts) <= metrics for whole, parts in row.parts.items())
        or bool(metrics & row.sizes.keys())
        or (row.classes is not None and {"f1", "tpr", "tnr"} <= metrics)
    )


Kinship = Literal["same", "family"]


def find_kinship(model: str, maker: str) -> Kinship | None:
    """Return how a model is related to a model that wrote the data: same, family or None.

    >>> find_kinship("openai/Qwen/Qwen3-VL-8B-Instruct", "Qwen3-VL-8B-Instruct")
    'same'
    >>> find_kinship("Qwen2.5-VL-7B", "Qwen3-VL-8B-Instruct"), find_kinship("Pixtral-12B", "GPT-4o")
    ('family', None)
    """
    model_words, other = _words(model), _words(maker)
    if not model_words or not other:
        return None
    if (
        model_words == other
        or model_words[: len(other)] == other
        or other[: len(model_words)] == model_words
    ):
        return "same"
    return "family" if _family(model_words) == _family(other) else None


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+[0-9.]*|[0-9.]+[a-z]*", name.rsplit("/", 1)[-1].casefold())


def _family(words: Sequence[str]) -> str:
    return re.sub(r"[0-9.]+$", "", words[0])


def judge_published(
    exam: Exam, rows: Sequence[PublishedRow], makers: Sequence[Maker]
) -> Iterator[Finding]:
    """Find published systems that are evaluated on data written by their own model family."""
    main = exam.task.main
    task_rows = [row for row in rows if row.task == exam.card.name and main in row.metrics]
    for maker in _of_task(exam, makers):
        kin = [row for row in task_rows if find_kinship(row.system, maker.model)]
        others = [row for row in task_rows if row not in kin]
        if not task_rows or not kin or not others:
            continue
        best, rival = (max(row.metrics[main] for row in part) for part in (kin, others))
        yield _WORDS.find(
            "makers.published.ahead" if best > rival else "makers.published.behind",
            Score(main, best, len(kin)),
            "worth knowing",
            {"main": exam.main_words, "maker": maker, "kin": len(kin), "rows": len(task_rows)},
            key="makers.published",
            expected=rival,
            task=exam.name,
            details=tuple(
                f"{row.system} ({row.source}): {row.metrics[main]:.{row.digits}f}" for row in kin
            ),
        )


def judge_models(
    exam: Exam, makers: Sequence[Maker], metrics: Sequence[tuple[str, Score]]
) -> Iterator[Finding]:
    """Compare the models of this audit with models of other families."""
    makers = _of_task(exam, makers)
    for model, score in metrics if makers else ():
        related = [(m, kin) for m in makers if (kin := find_kinship(model, m.model)) is not None]
        strangers = [
            score.value
            for name, score in metrics
            if score.value is not None and not any(find_kinship(name, m.model) for m in makers)
        ]
        rival = max(strangers, default=None)
        words = ", ".join(f"{m.what} by {m.model}" for m, _ in related)
        found = _WORDS.find(
            "makers.model",
            score,
            rank(bool(related)),
            {"main": exam.main_words, "words": words},
            expected=rival if related else None,
            task=exam.name,
            model=model,
        )
        yield found if rival is not None else replace(found, reference="")


def _of_task(exam: Exam, makers: Sequence[Maker]) -> list[Maker]:
    return [maker for maker in makers if exam.card.name in maker.tasks]
