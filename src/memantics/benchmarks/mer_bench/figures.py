"""From judgements to the tables: eight metrics, four components, who perceived what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.benchmarks.mer_bench.judgement import BROKEN, EMOTIONS, LABELS, Judgement
from memantics.benchmarks.mer_bench.views import FACTORS
from memantics.core.records import Outcome, Score
from memantics.metrics.interval import Floats
from memantics.metrics.reappraisal import (
    COMPONENTS,
    KEYS,
    METRICS,
    Combine,
    Figure,
    Summary,
    agree,
    components,
    summarise,
    unit,
)
from memantics.tasks.factories import share

_LIKERT = [METRICS.index(name) for name in ("vgq", "vea", "tgq", "tea", "hgq", "pes")]
_SPREAD = ("rfs", "rfs_run")
_SHORT = (*COMPONENTS, "rfs_run")
# Region overlap from which captions count as standing where they stood.
CAPTIONS_KEPT = 0.5


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome with its judgement; None where the answer was invalid and counts as wrong."""

    outcome: Outcome
    judgement: Judgement | None

    @property
    def target(self) -> str:
        """The feeling that the edit should express."""
        return self.tag("target")

    @property
    def meme(self) -> str:
        """The cluster."""
        return self.outcome.item.group

    def tag(self, name: str) -> str:
        """A tag of the item; empty where it has none."""
        return self.outcome.item.tags.get(name, "")

    def runs(self, table: str) -> list[int]:
        """The runs of a table in which this pair was drawn."""
        return [int(run) for run in self.tag(f"runs {table}".strip()).split()]

    def rate(self) -> tuple[float, ...]:
        """The eight metrics; an invalid answer has the lowest of each."""
        if self.judgement is None:
            return tuple(1.0 if i in _LIKERT else 0.0 for i in range(len(METRICS)))
        return self.judgement.rate(self.target)


def score(outcomes: Sequence[Outcome], combine: Combine) -> tuple[Score, ...]:
    """All tables. Figures lie in [0, 1]; a note gives them as the paper prints them."""
    judged = [_read(outcome) for outcome in outcomes]
    return (
        *_whole(judged, combine),
        *_tables(judged, combine),
        *_raw(judged),
        *_perceived(judged),
        *_discipline(judged),
        *_layout(judged),
        *_filter(judged),
    )


def mark(outcomes: Sequence[Outcome], combine: Combine) -> Mapping[str, Sequence[float | None]]:
    """Each judgement's own figures; drawn views have none, since they weigh judgements by draws."""
    judged = [_read(outcome) for outcome in outcomes]
    if not judged or any(own.tag("view") != "all" for own in judged):
        return {}
    units = to_units(judged)
    rows = np.concatenate([units, components(units, combine)], axis=1)
    return {key: rows[:, place].tolist() for place, key in enumerate((*METRICS, *COMPONENTS))}


def _read(outcome: Outcome) -> Judged:
    valid = outcome.status == "answered"
    return Judged(outcome, Judgement.model_validate(outcome.value) if valid else None)


def _summarise(judged: Sequence[Judged], runs: list[list[int]], combine: Combine) -> Summary | None:
    if not judged:
        return None
    return summarise(to_units(judged), runs, [own.meme for own in judged], combine)


def to_units(judged: Sequence[Judged]) -> Floats:
    """The eight metrics of each judgement on the scale from 0 to 1."""
    rows: Floats = np.array([own.rate() for own in judged], dtype=np.float64)
    rows[:, _LIKERT] = unit(rows[:, _LIKERT])
    return rows


def _whole(judged: Sequence[Judged], combine: Combine) -> Iterator[Score]:
    """Figures over everything: by run where the view has runs over everything, else each once."""
    runs = [[0] if own.tag("view") == "category" else own.runs("") for own in judged]
    found = _summarise(judged, runs, combine)
    if found is None:
        yield from (Score(key, None, 0) for key in ("rfs", *(k for k in KEYS if k != "rfs")))
        return
    for key in ("rfs", *(k for k in KEYS if k != "rfs")):
        yield _row(key, found.figures[key], found)
    if found.runs > 1:
        for key in KEYS:
            sd = found.figures[key].sd
            yield Score("sd", sd, found.runs, by="over runs", label=key, note="unbiased, in [0, 1]")


def _tables(judged: Sequence[Judged], combine: Combine) -> Iterator[Score]:
    """One row per editor, and one per category, as the view asks."""
    view = judged[0].tag("view") if judged else ""
    if view == "category":
        for factor in FACTORS:
            yield from _table(judged, combine, factor, factor, KEYS)
        return
    yield from _table(judged, combine, "editor", "", KEYS)
    if view == "all":
        for by in (*FACTORS, "target"):
            yield from _table(judged, combine, by, "", _SHORT)


def _table(
    judged: Sequence[Judged], combine: Combine, by: str, table: str, keys: Sequence[str]
) -> Iterator[Score]:
    for label in sorted({own.tag(by) for own in judged} - {""}):
        own = [person for person in judged if person.tag(by) == label and person.runs(table)]
        found = _summarise(own, [person.runs(table) for person in own], combine)
        if found is None:
            continue
        for key in keys:
            figure = found.figures[key]
            yield _row(key, figure, found, by, label)
            # The notes give every sd; as rows of their own they would double the page.
            if figure.sd is not None and key in _SPREAD:
                note = "unbiased sd over runs, in [0, 1]"
                yield Score(f"{key}_sd", figure.sd, found.runs, by=by, label=label, note=note)


def _row(key: str, figure: Figure, found: Summary, by: str = "", label: str = "") -> Score:
    level = "of run means" if key.endswith("_run") else ""
    note = level
    if figure.sd is not None:  # as the paper prints it: percent
        note = f"{100 * figure.value:.2f} ± {100 * figure.sd:.2f} over {found.runs} runs"
        note += f" ({level})" if level else ""
    return Score(key, figure.value, found.judged, figure.low, figure.high, by, label, note)


def _raw(judged: Sequence[Judged]) -> Iterator[Score]:
    """The ratings as they were given, from 1 to 5."""
    if judged:
        rows = np.array([own.rate() for own in judged])
        for place in _LIKERT:
            mean = float(rows[:, place].mean())
            note = "mean of judged pairs, each once"
            yield Score(
                "mean", mean, len(rows), by="rating 1 to 5", label=METRICS[place], note=note
            )


def _perceived(judged: Sequence[Judged]) -> Iterator[Score]:
    """The confusion matrix: for each target, how often each label was perceived."""
    for target in EMOTIONS:
        own = [(p.judgement.label, p.meme) for p in judged if p.judgement and p.target == target]
        if own:
            for label in LABELS:
                hits = [label == perceived for perceived, _ in own]
                by = f"perceived, target {target}"
                yield share("share", hits, [meme for _, meme in own], by, label)


def _discipline(judged: Sequence[Judged]) -> Iterator[Score]:
    """How well the judge kept to its rules."""
    own = [(p.judgement, p) for p in judged if p.judgement is not None]
    memes = [person.meme for _, person in own]
    if not own:
        return
    by = "judge's discipline"
    yield share("share", [p.outcome.attempts == 1 for _, p in own], memes, by, "valid at once")
    yield share("share", [j.ordered for j, _ in own], memes, by, "reasons where asked for")
    yield share("share", [j.bare for j, _ in own], memes, by, "no reasons given")
    for rule in BROKEN:
        hits = [rule in j.broken for j, _ in own]
        yield share("share", hits, memes, by, f"{rule} broken, let pass")


def _layout(judged: Sequence[Judged]) -> Iterator[Score]:
    """Whether the judge's word on the layout is that of the two programmatic checks."""
    for label, tag in (("panel count", "panels"), ("caption regions", "captions")):
        own = [(p, p.judgement, p.tag(tag)) for p in judged if p.judgement and p.tag(tag)]
        said = [j.lc for _, j, _ in own if j is not None]
        checked = [_holds(tag, value) for _, _, value in own]
        memes = [person.meme for person, _, _ in own]
        found = agree(said, checked)
        if found is None:
            continue
        by = "layout check"
        alike = [a == b for a, b in zip(said, checked, strict=True)]
        yield share("agreement", alike, memes, by, label)
        yield Score("kappa", found.kappa, len(own), by=by, label=label, note="Cohen's")
        yield share("kept", checked, memes, by, label)


def _holds(tag: str, value: str) -> bool:
    if tag == "panels":
        before, after = value.split()
        return before == after
    return float(value) >= CAPTIONS_KEPT


def _filter(judged: Sequence[Judged]) -> Iterator[Score]:
    """How many memes the failure filter kept, and what was wrong with the images of the others."""
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
