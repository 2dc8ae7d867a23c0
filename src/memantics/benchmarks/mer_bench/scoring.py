"""Scores from judgements: eight metrics, four components (TAS, CFS, SSS, RFS), emotions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from memantics.benchmarks.factories import proportion_score
from memantics.benchmarks.mer_bench.judgement import BROKEN, EMOTIONS, LABELS, EditJudgement
from memantics.benchmarks.mer_bench.views import FACTORS
from memantics.core.records import Outcome, Score
from memantics.metrics.reappraisal import (
    COMPONENTS,
    KEYS,
    METRICS,
    PAPER,
    Formula,
    ReappraisalSummary,
    RunMetric,
    agree,
    components,
    summarise,
    unit,
)
from memantics.metrics.rounding import Floats

_LIKERT = [METRICS.index(name) for name in ("vgq", "vea", "tgq", "tea", "hgq", "pes")]
_SPREAD = ("rfs", "rfs_run")
InvalidScore = Literal["clip", "lowest", "drop"]
_COUNTED: dict[InvalidScore, str] = {"clip": "clipped", "lowest": "lowest", "drop": "dropped"}
_LEVELS = dict.fromkeys(COMPONENTS, "mean over judgements") | {
    f"{name}_run": "computed from each run's mean ratings, as in the paper's tables"
    for name in COMPONENTS
}
_SHORT = (*COMPONENTS, "rfs_run")
# Minimum overlap of caption regions above which a caption counts as unmoved.
CAPTIONS_KEPT = 0.5


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which judgements become scores.

    ``invalid`` defines how a judge's reply counts if it stays invalid. ``clip`` applies the gate
    (limited ratings for a missed target) to a reply that only breaks a rule. If there is no
    judgement, it uses the lowest ratings.
    """

    formula: Formula = PAPER
    invalid: InvalidScore = "clip"


class JudgedOutcome(NamedTuple):
    """An outcome with its judgement; None if there is none and the lowest ratings count."""

    outcome: Outcome
    judgement: EditJudgement | None

    @property
    def valid(self) -> bool:
        """Whether the judge followed the rules, in any attempt."""
        return self.outcome.status == "answered"

    @property
    def target(self) -> str:
        """The emotion that the edit should express."""
        return self.tag("target")

    @property
    def meme(self) -> str:
        """The meme, by which outcomes are clustered."""
        return self.outcome.item.group

    def tag(self, name: str) -> str:
        """Return a tag of the item; empty if it has none."""
        return self.outcome.item.tags.get(name, "")

    def runs(self, table: str) -> list[int]:
        """Return the runs of a table in which this pair was sampled."""
        return [int(run) for run in self.tag(f"runs {table}".strip()).split()]

    def rate(self) -> tuple[float, ...]:
        """Return the eight metrics; an invalid answer has the lowest value of each."""
        if self.judgement is None:
            return tuple(1.0 if i in _LIKERT else 0.0 for i in range(len(METRICS)))
        return self.judgement.rate(self.target)


def score(outcomes: Sequence[Outcome], rules: Rules) -> tuple[Score, ...]:
    """Return all scores from 0 to 1; a note gives them in the units of the paper."""
    found = [_read(outcome) for outcome in outcomes]
    judged = _count(found, rules.invalid)
    return (
        *_whole(judged, rules.formula),
        *_tables(judged, rules.formula),
        *_raw(judged),
        *_perceived(judged),
        *_discipline(judged),
        *_layout(judged),
        *_failures(judged),
        *_filter(judged),
        *_invalid(found, rules.formula),
        *_formula(rules.formula, len(judged)),
    )


def _formula(formula: Formula, n: int) -> Iterator[Score]:
    """Return the parameters of SSS and RFS (score formulas) that differ from the authors'."""
    if formula.alpha != PAPER.alpha:
        yield Score("alpha", formula.alpha, n, by="formula", label="SSS")
    if formula.floor != PAPER.floor:
        yield Score("floor", formula.floor, n, by="formula", label="RFS")


def _failures(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield how often edits fail in the ways that the case section of the paper describes."""
    known = [(p, p.judgement) for p in judged if p.judgement is not None]
    for editor in ("", *sorted({p.tag("editor") for p, _ in known})):
        pairs = [(p, j) for p, j in known if editor in ("", p.tag("editor"))]
        by = f"failure, {editor}" if editor else "failure"
        for label, (counted, fails) in FAILURES.items():
            among = [(p, j) for p, j in pairs if counted in ("", p.tag("layout"))]
            if among:
                hits = [fails(j.lc, j.label == p.target) for p, j in among]
                yield proportion_score("proportion", hits, [p.meme for p, _ in among], by, label)


# For each failure: the layout of the counted memes ("" is any), and a test whether an edit fails,
# given that its layout was kept and its target met.
FAILURES: Mapping[str, tuple[str, Callable[[bool, bool], bool]]] = {
    "layout kept, target missed": ("", lambda kept, met: kept and not met),
    "target met, layout lost": ("", lambda kept, met: met and not kept),
    "several panels, layout lost": ("MultiPanel", lambda kept, _met: not kept),
}


def mark(outcomes: Sequence[Outcome], rules: Rules) -> Mapping[str, Sequence[float | None]]:
    """Return the scores of single judgements; sampled views repeat judgements and have none."""
    found = [_read(outcome) for outcome in outcomes]
    if not found or any(judgement.tag("view") != "all" for judgement in found):
        return {}
    if rules.invalid == "lowest":
        found = _count(found, "lowest")
    units = to_units(found)
    rows = np.concatenate([units, components(units, rules.formula)], axis=1)
    marks: dict[str, list[float | None]] = {
        key: rows[:, place].tolist() for place, key in enumerate((*METRICS, *COMPONENTS))
    }
    if rules.invalid == "drop":
        for values in marks.values():
            values[:] = [v if f.valid else None for v, f in zip(values, found, strict=True)]
    return marks


def _read(outcome: Outcome) -> JudgedOutcome:
    known = isinstance(outcome.value, dict)
    return JudgedOutcome(outcome, EditJudgement.model_validate(outcome.value) if known else None)


def _count(judged: Sequence[JudgedOutcome], invalid: InvalidScore) -> list[JudgedOutcome]:
    """Return the judgements that count under the rule for invalid replies."""
    if invalid == "drop":
        return [judgement for judgement in judged if judgement.valid]
    if invalid == "lowest":
        return [
            judgement if judgement.valid else JudgedOutcome(judgement.outcome, None)
            for judgement in judged
        ]
    return list(judged)


def _invalid(judged: Sequence[JudgedOutcome], formula: Formula) -> Iterator[Score]:
    """Yield the number of replies that stay invalid, and the scores under each way of counting.

    Only a judgement with a missed target can break the gate, so dropping such replies removes
    failures.
    """
    if not judged:
        return
    memes, by = [judgement.meme for judgement in judged], "invalid after the last attempt"
    for label, hits in (
        (
            "a rule still broken",
            [not judgement.valid and judgement.judgement is not None for judgement in judged],
        ),
        ("no judgement", [judgement.judgement is None for judgement in judged]),
    ):
        yield proportion_score(
            "proportion", hits, memes, by, label, note=f"{sum(hits)} of {len(hits)} replies"
        )
    if all(judgement.valid for judgement in judged):
        return
    for invalid, label in _COUNTED.items():
        judgements = _count(judged, invalid)
        found = _summarise(judgements, _runs(judgements), formula)
        if found is None:
            continue
        for key in ("rfs", "rfs_run", "ppe", "tas"):
            yield _row(key, found.metrics[key], found, "invalid replies counted as", label)


def _summarise(
    judged: Sequence[JudgedOutcome], runs: list[list[int]], formula: Formula
) -> ReappraisalSummary | None:
    if not judged:
        return None
    return summarise(to_units(judged), runs, [judgement.meme for judgement in judged], formula)


def _runs(judged: Sequence[JudgedOutcome]) -> list[list[int]]:
    """Group judgements by sampled run if the view has runs; otherwise each counts once."""
    return [
        [0] if judgement.tag("view") == "category" else judgement.runs("") for judgement in judged
    ]


def to_units(judged: Sequence[JudgedOutcome]) -> Floats:
    """Return the eight metrics of each judgement on the scale from 0 to 1."""
    rows: Floats = np.array([judgement.rate() for judgement in judged], dtype=np.float64)
    rows[:, _LIKERT] = unit(rows[:, _LIKERT])
    return rows


def _whole(judged: Sequence[JudgedOutcome], formula: Formula) -> Iterator[Score]:
    """Yield the scores over all judgements."""
    found = _summarise(judged, _runs(judged), formula)
    if found is None:
        yield from (Score(key, None, 0) for key in ("rfs", *(k for k in KEYS if k != "rfs")))
        return
    for key in ("rfs", *(k for k in KEYS if k != "rfs")):
        yield _row(key, found.metrics[key], found)
    if found.runs > 1:
        for key in KEYS:
            sd = found.metrics[key].sd
            yield Score("sd", sd, found.runs, by="over runs", label=key, note="unbiased, in [0, 1]")


def _tables(judged: Sequence[JudgedOutcome], formula: Formula) -> Iterator[Score]:
    """Yield one row of scores per editor or category, as the view requires."""
    view = judged[0].tag("view") if judged else ""
    if view == "category":
        for factor in FACTORS:
            yield from _table(judged, formula, factor, factor, KEYS)
        return
    yield from _table(judged, formula, "editor", "", KEYS)
    if view == "all":
        for by in (*FACTORS, "target"):
            yield from _table(judged, formula, by, "", _SHORT)
    for factor in FACTORS:
        yield from _cross(judged, formula, factor)


def _table(
    judged: Sequence[JudgedOutcome], formula: Formula, by: str, table: str, keys: Sequence[str]
) -> Iterator[Score]:
    for label in sorted({judgement.tag(by) for judgement in judged} - {""}):
        judgements = [person for person in judged if person.tag(by) == label and person.runs(table)]
        found = _summarise(judgements, [person.runs(table) for person in judgements], formula)
        if found is None:
            continue
        for key in keys:
            metric = found.metrics[key]
            yield _row(key, metric, found, by, label)
            # The notes contain every SD; separate rows would double the size of the page.
            if metric.sd is not None and key in _SPREAD:
                note = "unbiased sd over runs, in [0, 1]"
                yield Score(f"{key}_sd", metric.sd, found.runs, by=by, label=label, note=note)


def _cross(judged: Sequence[JudgedOutcome], formula: Formula, factor: str) -> Iterator[Score]:
    """Yield the RFS (overall score) of each editor in each category: Figure 5 (a) to (n)."""
    pairs = sorted(
        {
            (judgement.tag("editor"), judgement.tag(factor))
            for judgement in judged
            if judgement.tag(factor)
        }
    )
    for editor, level in pairs if len({name for name, _ in pairs}) > 1 else ():
        judgements = [p for p in judged if (p.tag("editor"), p.tag(factor)) == (editor, level)]
        found = _summarise(judgements, _runs(judgements), formula)
        if found is not None:
            metric = found.metrics["rfs_run"]
            yield _row("rfs_run", metric, found, f"editor × {factor}", f"{editor} × {level}")


def _row(
    key: str, metric: RunMetric, found: ReappraisalSummary, by: str = "", label: str = ""
) -> Score:
    note = level = _LEVELS.get(key, "")
    if metric.sd is not None:  # in per cent, as in the paper
        note = f"{100 * metric.value:.2f} ± {100 * metric.sd:.2f} over {found.runs} runs"
        note += f" ({level})" if level else ""
    return Score(key, metric.value, found.judged, metric.low, metric.high, by, label, note)


def _raw(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield the mean ratings on the scale from 1 to 5."""
    if judged:
        rows = np.array([judgement.rate() for judgement in judged])
        for place in _LIKERT:
            mean = float(rows[:, place].mean())
            note = "mean of judged pairs, each once"
            yield Score(
                "mean", mean, len(rows), by="rating 1 to 5", label=METRICS[place], note=note
            )


def _perceived(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield the confusion matrix of emotions: perceived labels for each target."""
    for target in EMOTIONS:
        perceptions = [
            (p.judgement.label, p.meme) for p in judged if p.judgement and p.target == target
        ]
        if perceptions:
            for label in LABELS:
                hits = [label == perceived for perceived, _ in perceptions]
                by = f"perceived, target {target}"
                yield proportion_score(
                    "proportion", hits, [meme for _, meme in perceptions], by, label
                )


def _discipline(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield how well the judge model complied with format and rules."""
    judged_validly = [(p.judgement, p) for p in judged if p.judgement is not None and p.valid]
    memes = [person.meme for _, person in judged_validly]
    if not judged_validly:
        return
    by = "format compliance"
    yield proportion_score(
        "proportion",
        [p.outcome.attempts == 1 for _, p in judged_validly],
        memes,
        by,
        "valid at once",
    )
    yield proportion_score(
        "proportion", [j.ordered for j, _ in judged_validly], memes, by, "reasons where asked for"
    )
    yield proportion_score(
        "proportion", [j.bare for j, _ in judged_validly], memes, by, "no reasons given"
    )
    for rule in BROKEN:
        hits = [rule in j.broken for j, _ in judged_validly]
        yield proportion_score("proportion", hits, memes, by, f"{rule} broken, accepted")


def _layout(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield the agreement of the judge's layout rating with the two programmatic checks."""
    for label, tag in (("panel count", "panels"), ("caption regions", "captions")):
        checkable = [(p, p.judgement, p.tag(tag)) for p in judged if p.judgement and p.tag(tag)]
        said = [j.lc for _, j, _ in checkable if j is not None]
        checked = [_holds(tag, value) for _, _, value in checkable]
        memes = [person.meme for person, _, _ in checkable]
        found = agree(said, checked)
        if found is None:
            continue
        by = "layout check"
        alike = [a == b for a, b in zip(said, checked, strict=True)]
        yield proportion_score("agreement", alike, memes, by, label)
        yield Score("kappa", found.kappa, len(checkable), by=by, label=label, note="Cohen's")
        yield proportion_score("kept", checked, memes, by, label)


def _holds(tag: str, value: str) -> bool:
    if tag == "panels":
        before, after = value.split()
        return before == after
    return float(value) >= CAPTIONS_KEPT


def _filter(judged: Sequence[JudgedOutcome]) -> Iterator[Score]:
    """Yield how many memes the filter for failed images kept, and the errors of the others."""
    if not judged:
        return
    kept, _, total = judged[0].tag("kept").partition("/")
    if not total:
        return
    by, whole = "failure filter", int(total)
    yield Score("memes", int(kept) / whole, whole, by=by, label="kept", note=f"{kept} memes")
    for part in judged[0].tag("left out").split("; "):
        reason, _, count = part.rpartition(" ")
        if reason:
            note = f"{count} images"
            yield Score("memes", int(count) / whole, whole, by=by, label=reason, note=note)
