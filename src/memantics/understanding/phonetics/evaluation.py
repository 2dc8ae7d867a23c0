"""Evaluation of homophone readings on a PunMemeCN release, by cross-validation over groups.

``memantics pun --evaluate FOLDER`` prints the scores. The ranking, the confidence and the detector
are fitted again for each of five group-disjoint folds, so no caption is scored by weights that were
fitted on it. The search costs were chosen on these captions, so scores on other captions may be
slightly lower.
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from memantics.core.data import read_json
from memantics.core.errors import DataError, InputError
from memantics.core.records import Lenient
from memantics.core.releases import META, choose_groups, find_folder
from memantics.metrics.rounding import Floats
from memantics.understanding.phonetics import detector as detectors
from memantics.understanding.phonetics.caption import simplify
from memantics.understanding.phonetics.detector import PunData, fit_choice, fit_logistic
from memantics.understanding.phonetics.evidence import (
    SENSE_FEATURES,
    cut_words,
    describe_senses,
    find_double_meanings,
)
from memantics.understanding.phonetics.homophones import (
    HomophoneSearch,
    analyze_caption,
    load_lattice,
)
from memantics.understanding.phonetics.lattice import Lattice
from memantics.understanding.phonetics.ranking import CAPTION_FEATURES, RANK_FEATURES, Linear
from memantics.understanding.phonetics.reading import DEFAULT_THRESHOLD, ModelName

# These functions read captions and fit the models of ``pun --evaluate`` without the captions that
# are scored. ``research/pun_weights.py`` fits the weights in the package.

FOLDS = 5
_RIDGE = 3.0


class _CaptionRow(Lenient):
    meme_type: str
    caption_1: str
    caption_2: str | None = None
    meme_explanation: str = ""


_META_FILE = TypeAdapter(dict[str, _CaptionRow])
PUN_FEATURES = (*CAPTION_FEATURES, *SENSE_FEATURES)
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Function that returns a sentence vector per text. Without it, only sound and dictionary count."""


@dataclass(frozen=True, slots=True)
class CaptionSample:
    """One caption of the release; ``intended`` is None for captions that are not puns."""

    name: str
    group: str
    caption: str
    intended: str | None
    description: str

    @property
    def homophone(self) -> bool:
        """Whether the caption is a homophone pun: its intended reading differs from the text."""
        return self.intended is not None and self.intended != self.caption


def read_samples(folder: Path) -> list[CaptionSample]:
    """Read the captions of a PunMemeCN release in any layout; only ``_Meta.json`` is required."""
    try:
        rows = _META_FILE.validate_python(read_json(find_folder(folder) / META))
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(META, first["msg"], row=str(first["loc"][0])) from error
    return [
        CaptionSample(
            name,
            name.partition(".")[0],
            row.caption_1,
            row.caption_2 if row.meme_type == "pun" else None,
            row.meme_explanation.partition("\n")[0],
        )
        for name, row in rows.items()
    ]


def assign_fold(group: str) -> int:
    """Assign a group to a fold by its name; the three memes of a group stay together.

    >>> assign_fold("CN00001") == assign_fold("CN00001")
    True
    """
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


START = Linear({"total": 1.0})


def fit_order(samples: Sequence[CaptionSample], analyses: Sequence[HomophoneSearch]) -> Linear:
    """Fit weights that rank the intended homophone reading of a caption first."""
    groups: list[tuple[Floats, int]] = []
    for sample, analysis in zip(samples, analyses, strict=True):
        texts = [c.path.text for c in analysis.candidates]
        if sample.homophone and sample.intended in texts:
            rows = [[c.features[n] for n in RANK_FEATURES] for c in analysis.candidates]
            groups.append((np.array(rows), texts.index(sample.intended)))
    if not groups:
        raise InputError(
            "the training groups contain no homophone pun, so readings cannot be ranked",
            hint="choose more groups with --groups",
        )
    return fit_choice(groups, RANK_FEATURES, _RIDGE)


def fit_confidence(samples: Sequence[CaptionSample], analyses: Sequence[HomophoneSearch]) -> Linear:
    """Fit weights that separate homophone puns from captions that are not puns."""
    kept = [
        (a, s.homophone)
        for s, a in zip(samples, analyses, strict=True)
        if s.homophone or s.intended is None
    ]
    labels = np.array([label for _, label in kept], dtype=bool)
    return fit_logistic(matrix_of([a for a, _ in kept]), labels, CAPTION_FEATURES, _RIDGE)


def fit_first_right(
    samples: Sequence[CaptionSample], analyses: Sequence[HomophoneSearch]
) -> Linear:
    """Fit the model of the probability that the first reading is the intended one."""
    right = [is_first_right(s, a) for s, a in zip(samples, analyses, strict=True)]
    return fit_logistic(matrix_of(analyses), np.array(right, bool), CAPTION_FEATURES, _RIDGE)


def is_first_right(sample: CaptionSample, analysis: HomophoneSearch) -> bool:
    """Tell whether the first reading of a homophone pun is the intended one."""
    first = analysis.candidates[0].path.text if analysis.candidates else None
    return sample.homophone and first == sample.intended


def matrix_of(analyses: Iterable[HomophoneSearch]) -> Floats:
    """Build the feature matrix of captions, one row per caption."""
    return np.array([[a.signals[name] for name in CAPTION_FEATURES] for a in analyses])


def gather(
    samples: Sequence[CaptionSample], analyses: Sequence[HomophoneSearch], embed: Embed | None
) -> PunData:
    """Collect features, sentence embeddings and labels of captions to train a detector."""
    senses = [describe_senses(cut_words("".join(map(simplify, s.caption)))) for s in samples]
    rows = [[features[name] for name in SENSE_FEATURES] for features in senses]
    vectors = embed([s.caption for s in samples]) if embed else np.zeros((len(samples), 0))
    return PunData(
        np.hstack([matrix_of(analyses), np.array(rows)]),
        np.asarray(vectors, np.float64),
        np.array([s.intended is not None for s in samples]),
        np.array([s.homophone for s in samples]),
        np.array([assign_fold(s.group) for s in samples]),
    )


_UNMEASURED = FOLDS


@dataclass(frozen=True, slots=True)
class ReadingScores:
    """Scores of homophone readings and pun detection on held-out groups.

    Only the costs of the search were chosen on the same captions.
    """

    model: str
    captions: int
    homophones: int
    first: float
    first_five: float
    found: float
    quiet: float
    detected: float
    detector: detectors.DetectionScores
    detector_expected_f1: float
    calibration_error: float
    polysemy: int
    polysemy_hinted: float
    others_hinted: float
    cpu_ms: float
    cpu_ms_worst: float
    first_call_s: float
    first_call_cpu_s: float
    memory_mb: float


def _assign_folds(samples: Sequence[CaptionSample], wanted: str) -> list[int]:
    """Assign a fold to each caption; chosen groups form one fold, all others are training data."""
    groups = {sample.group for sample in samples}
    chosen = choose_groups(wanted, groups) if wanted else groups
    if chosen == groups:
        return [assign_fold(sample.group) for sample in samples]
    return [0 if sample.group in chosen else _UNMEASURED for sample in samples]


def evaluate(
    folder: Path,
    model: ModelName = "auto",
    file: Path | None = None,
    groups: str = "",
    embed: Embed | None = None,
) -> ReadingScores:
    """Evaluate readings and the pun detector on a release; 1,500 captions take about a minute.

    With ``groups`` (``test`` or ``1-100``) only those groups are scored, by weights fitted on all
    others.
    """
    samples = read_samples(folder)
    folds = _assign_folds(samples, groups)
    started, spent = time.perf_counter(), time.process_time()
    lattice = load_lattice(model, file)
    analyze_caption("年年有鱼", lattice, order=START)
    first_call, first_cpu = time.perf_counter() - started, time.process_time() - spent
    analyses, costs = [], []
    for sample in samples:
        before = time.process_time()
        analyses.append(analyze_caption(sample.caption, lattice, order=START))
        costs.append(time.process_time() - before)
        if len(costs) == 100:
            memory = _peak_mb()
    memory = memory if len(costs) >= 100 else _peak_mb()
    held, chances, judged = _hold_out(samples, analyses, folds, embed)
    kept = [i for i, fold in enumerate(folds) if fold in judged.folds]
    puns = judged.take(kept)
    ranks = [_rank(samples[i], held[i]) for i in kept if samples[i].homophone]
    loud = {i: chances[i] >= DEFAULT_THRESHOLD for i in kept}
    plain = [said_pun for i, said_pun in loud.items() if samples[i].intended is None]
    detected = [said_pun for i, said_pun in loud.items() if samples[i].homophone]
    measured = [samples[i] for i in kept]
    poly, hinted, others = _count_double_meanings(measured, [analyses[i] for i in kept], lattice)
    return ReadingScores(
        model=lattice.model.name,
        captions=len(measured),
        homophones=len(ranks),
        first=_share(r == 1 for r in ranks),
        first_five=_share(r <= 5 for r in ranks),
        found=_share(r < _NEVER for r in ranks),
        quiet=_share(plain),
        detected=_share(detected),
        detector=puns.score(np.ones(len(measured))),
        detector_expected_f1=puns.score(puns.data.weigh(detectors.EXPECTED)).f1,
        calibration_error=puns.measure_gap(puns.data.weigh(detectors.EXPECTED)),
        polysemy=poly,
        polysemy_hinted=hinted,
        others_hinted=others,
        cpu_ms=1000 * sum(costs) / max(len(costs), 1),
        cpu_ms_worst=1000 * max(costs, default=0.0),
        first_call_s=first_call,
        first_call_cpu_s=first_cpu,
        memory_mb=memory,
    )


_NEVER = 1_000_000


def _rank(sample: CaptionSample, analysis: HomophoneSearch) -> int:
    texts = [c.path.text for c in analysis.candidates]
    return texts.index(sample.intended) + 1 if sample.intended in texts else _NEVER


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Pun probabilities and decisions for captions, from weights fitted without their fold."""

    data: detectors.PunData
    chances: Floats
    said: npt.NDArray[np.bool_]
    folds: range

    def take(self, places: Sequence[int]) -> _Judged:
        """Select some of the captions."""
        chosen = np.zeros(len(self.said), dtype=bool)
        chosen[list(places)] = True
        part = self.data.take(chosen)
        return _Judged(part, self.chances[chosen], self.said[chosen], self.folds)

    def score(self, weights: Floats) -> detectors.DetectionScores:
        """Compute detection scores, with a weight per caption."""
        return detectors.score_detection(self.said.astype(float), self.data.pun, 0.5, weights)

    def measure_gap(self, weights: Floats) -> float:
        """Compute the calibration error in ten bins with equal numbers of captions."""
        gap = weights * (self.chances - self.data.pun)
        bins = np.array_split(np.argsort(self.chances, kind="stable"), 10)
        return float(sum(abs(gap[in_bin].sum()) for in_bin in bins) / weights.sum())


def _hold_out(
    samples: Sequence[CaptionSample],
    analyses: Sequence[HomophoneSearch],
    folds: Sequence[int],
    embed: Embed | None,
) -> tuple[list[HomophoneSearch], list[float], _Judged]:
    """Score captions with weights that were fitted without the caption's group."""
    held: list[HomophoneSearch] = list(analyses)
    chances = [0.0] * len(samples)
    data = gather(samples, analyses, embed)
    likely, said = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
    # If the user chose groups, the other groups are training data only.
    numbers = range(1 if _UNMEASURED in folds else FOLDS)
    for number in numbers:
        held_out = np.array(folds) == number
        seen = np.flatnonzero(~held_out).tolist()
        order = fit_order([samples[i] for i in seen], [analyses[i] for i in seen])
        ordered = [a.reorder(order) for a in analyses]
        sure = fit_confidence([samples[i] for i in seen], [ordered[i] for i in seen])
        rows = np.hstack([matrix_of(ordered), data.signals[:, len(CAPTION_FEATURES) :]])
        known = replace(data, signals=rows)
        fitted = detectors.fit_pun(known.take(~held_out), PUN_FEATURES)
        likely[held_out], said[held_out] = detectors.apply_pun(
            known.take(held_out), PUN_FEATURES, fitted
        )
        for i in np.flatnonzero(held_out).tolist():
            held[i] = ordered[i]
            chances[i] = sure.probability(ordered[i].signals) if held[i].candidates else 0.0
    return held, chances, _Judged(data, likely, said, numbers)


def _count_double_meanings(
    samples: Sequence[CaptionSample], analyses: Sequence[HomophoneSearch], lattice: Lattice
) -> tuple[int, float, float]:
    """Count polysemy puns (one word, two senses), and double meanings in puns and non-puns.

    The description is the first line of the release's explanation, without quoted text.
    """
    hints: dict[bool, list[bool]] = {True: [], False: []}
    for sample, analysis in zip(samples, analyses, strict=True):
        if not sample.homophone:
            found = find_double_meanings(
                analysis.plain, sample.description, sample.caption, lattice
            )
            hints[sample.intended is not None].append(any(d.strength >= 0.4 for d in found))
    return len(hints[True]), _share(hints[True]), _share(hints[False])


def format_metrics(metrics: ReadingScores) -> str:
    """Format the scores as lines of at most 80 columns."""
    f, d = metrics, metrics.detector
    rows = (
        ("language model", f.model, ""),
        ("captions", str(f.captions), f"{f.homophones} homophone, {f.polysemy} polysemy puns"),
        ("intended ranked 1st", f"{f.first:.1%}", ""),
        ("intended in top 5", f"{f.first_five:.1%}", f"found at all {f.found:.1%}"),
        ("false positives", f"{f.quiet:.1%}", f"homophone puns detected {f.detected:.1%}"),
        (
            "detector F1",
            f"{d.f1:.3f}",
            f"TPR {d.tpr:.3f}, TNR {d.tnr:.3f}, balanced {d.balanced_accuracy:.3f}",
        ),
        (
            "  37 % polysemy",
            f"{f.detector_expected_f1:.3f}",
            f"calibration error {100 * f.calibration_error:.1f} points",
        ),
        (
            "double meanings",
            f"{f.polysemy_hinted:.1%}",
            f"of polysemy puns; non-puns {f.others_hinted:.1%}",
        ),
        ("CPU per caption", f"{f.cpu_ms:.1f} ms", f"worst {f.cpu_ms_worst:.0f} ms"),
        ("first call", f"{f.first_call_s:.2f} s", f"CPU {f.first_call_cpu_s:.2f} s"),
        ("peak memory", f"{f.memory_mb:.0f} MB", ""),
    )
    lines = [f"{name:<21}{value:<13}{more}".rstrip() for name, value, more in rows]
    lines.append("Scores are on held-out groups: the weights were fitted without them.")
    lines.append("The search costs were chosen on all captions of the release.")
    return "\n".join(lines)
