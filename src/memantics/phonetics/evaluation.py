"""How well it reads: figures on a PunMemeCN release, measured on groups that were held out.

``memantics pun --evaluate FOLDER`` prints them. The order of readings, the confidence and the
detector are fitted anew for each of five folds of groups, so no figure comes from a caption that
its weights have seen. The costs of the search were made with these captions in view: expect a
little less on others.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memantics.phonetics import detector as detectors
from memantics.phonetics import training
from memantics.phonetics.evidence import find_double_meanings
from memantics.phonetics.lattice import Lattice
from memantics.phonetics.ranking import CAPTION_FEATURES
from memantics.phonetics.reading import DEFAULT_THRESHOLD, ModelName
from memantics.phonetics.speech import SoundAnalysis, analyze_caption, load_lattice
from memantics.releases.punmemecn import choose_groups

_UNMEASURED = training.FOLDS


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures, all from held-out groups but the costs."""

    model: str
    captions: int
    homophones: int
    first: float
    first_five: float
    found: float
    quiet: float
    heard: float
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


def _assign_folds(samples: Sequence[training.Sample], wanted: str) -> list[int]:
    """The fold of each caption; groups of the user's choice are one, all others not measured."""
    groups = {sample.group for sample in samples}
    chosen = choose_groups(wanted, groups) if wanted else groups
    if chosen == groups:
        return [training.assign_fold(sample.group) for sample in samples]
    return [0 if sample.group in chosen else _UNMEASURED for sample in samples]


def evaluate(
    folder: Path,
    model: ModelName = "auto",
    file: Path | None = None,
    groups: str = "",
    embed: training.Embed | None = None,
) -> Figures:
    """Measure everything on a release; about a minute for 1,500 captions.

    With ``groups`` (``test``, ``1-100``) figures are of those, weights fitted on all others.
    """
    samples = training.read_samples(folder)
    folds = _assign_folds(samples, groups)
    started, spent = time.perf_counter(), time.process_time()
    lattice = load_lattice(model, file)
    analyze_caption("年年有鱼", lattice, order=training.START)
    first_call, first_cpu = time.perf_counter() - started, time.process_time() - spent
    analyses, costs = [], []
    for sample in samples:
        before = time.process_time()
        analyses.append(analyze_caption(sample.caption, lattice, order=training.START))
        costs.append(time.process_time() - before)
        if len(costs) == 100:
            memory = _peak_mb()
    memory = memory if len(costs) >= 100 else _peak_mb()
    held, chances, judged = _hold_out(samples, analyses, folds, embed)
    kept = [i for i, fold in enumerate(folds) if fold in judged.folds]
    puns = judged.take(kept)
    ranks = [_rank(samples[i], held[i]) for i in kept if samples[i].homophone]
    loud = {i: chances[i] >= DEFAULT_THRESHOLD for i in kept}
    plain = [flag for i, flag in loud.items() if samples[i].intended is None]
    heard = [flag for i, flag in loud.items() if samples[i].homophone]
    measured = [samples[i] for i in kept]
    poly, hinted, others = _count_double_meanings(measured, [analyses[i] for i in kept], lattice)
    return Figures(
        model=lattice.model.name,
        captions=len(measured),
        homophones=len(ranks),
        first=_share(r == 1 for r in ranks),
        first_five=_share(r <= 5 for r in ranks),
        found=_share(r < _NEVER for r in ranks),
        quiet=_share(plain),
        heard=_share(heard),
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


def _rank(sample: training.Sample, analysis: SoundAnalysis) -> int:
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
    """Chances that captions are puns, and verdicts, all from weights without their fold."""

    data: detectors.PunData
    chances: detectors.Matrix
    said: npt.NDArray[np.bool_]
    folds: range

    def take(self, places: Sequence[int]) -> _Judged:
        """Some of the captions."""
        chosen = np.zeros(len(self.said), dtype=bool)
        chosen[list(places)] = True
        part = self.data.take(chosen)
        return _Judged(part, self.chances[chosen], self.said[chosen], self.folds)

    def score(self, weights: detectors.Matrix) -> detectors.DetectionScores:
        """Rates of the verdicts under weights of the captions."""
        return detectors.score_detection(self.said.astype(float), self.data.pun, 0.5, weights)

    def measure_gap(self, weights: detectors.Matrix) -> float:
        """Mean distance of chance and share, in ten bins of equally many captions."""
        gap = weights * (self.chances - self.data.pun)
        bins = np.array_split(np.argsort(self.chances, kind="stable"), 10)
        return float(sum(abs(gap[values].sum()) for values in bins) / weights.sum())


def _hold_out(
    samples: Sequence[training.Sample],
    analyses: Sequence[SoundAnalysis],
    folds: Sequence[int],
    embed: training.Embed | None,
) -> tuple[list[SoundAnalysis], list[float], _Judged]:
    """Analyses, confidences and verdicts under weights that have not seen a caption's group."""
    held: list[SoundAnalysis] = list(analyses)
    chances = [0.0] * len(samples)
    data = training.gather(samples, analyses, embed)
    likely, said = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
    # Where the user chose groups, the others are there to learn from only.
    numbers = range(1 if _UNMEASURED in folds else training.FOLDS)
    for number in numbers:
        value = np.array(folds) == number
        seen = np.flatnonzero(~value).tolist()
        order = training.fit_order([samples[i] for i in seen], [analyses[i] for i in seen])
        ordered = [a.reorder(order) for a in analyses]
        sure = training.fit_confidence([samples[i] for i in seen], [ordered[i] for i in seen])
        rows = np.hstack([training.matrix_of(ordered), data.signals[:, len(CAPTION_FEATURES) :]])
        known = replace(data, signals=rows)
        fitted = detectors.fit_pun(known.take(~value), training.PUN_FEATURES)
        likely[value], said[value] = detectors.apply_pun(
            known.take(value), training.PUN_FEATURES, fitted
        )
        for i in np.flatnonzero(value).tolist():
            held[i] = ordered[i]
            chances[i] = sure.probability(ordered[i].signals) if held[i].candidates else 0.0
    return held, chances, _Judged(data, likely, said, numbers)


def _count_double_meanings(
    samples: Sequence[training.Sample], analyses: Sequence[SoundAnalysis], lattice: Lattice
) -> tuple[int, float, float]:
    """Polysemy puns, and the shares of them and of other captions with a double meaning.

    The description is the first line of the release's explanation, without what it quotes.
    """
    hints: dict[bool, list[bool]] = {True: [], False: []}
    for sample, analysis in zip(samples, analyses, strict=True):
        if not sample.homophone:
            found = find_double_meanings(
                analysis.plain, sample.description, sample.caption, lattice
            )
            hints[sample.intended is not None].append(any(d.strength >= 0.4 for d in found))
    return len(hints[True]), _share(hints[True]), _share(hints[False])


def format_figures(figures: Figures) -> str:
    """The figures as lines of at most 80 columns."""
    f, d = figures, figures.detector
    rows = (
        ("language model", f.model, ""),
        ("captions", str(f.captions), f"{f.homophones} homophone, {f.polysemy} polysemy puns"),
        ("intended first", f"{f.first:.1%}", ""),
        ("intended in first 5", f"{f.first_five:.1%}", f"found at all {f.found:.1%}"),
        ("not puns, yet heard", f"{f.quiet:.1%}", f"homophone puns heard {f.heard:.1%}"),
        (
            "detector F1",
            f"{d.f1:.3f}",
            f"TPR {d.tpr:.3f}, TNR {d.tnr:.3f}, balanced {d.balanced_accuracy:.3f}",
        ),
        (
            "  37 % by sense",
            f"{f.detector_expected_f1:.3f}",
            f"calibration error {100 * f.calibration_error:.1f} points",
        ),
        ("polysemy hinted", f"{f.polysemy_hinted:.1%}", f"not puns {f.others_hinted:.1%}"),
        ("CPU per caption", f"{f.cpu_ms:.1f} ms", f"worst {f.cpu_ms_worst:.0f} ms"),
        ("first call", f"{f.first_call_s:.2f} s", f"CPU {f.first_call_cpu_s:.2f} s"),
        ("peak memory", f"{f.memory_mb:.0f} MB", ""),
    )
    lines = [f"{name:<21}{value:<13}{more}".rstrip() for name, value, more in rows]
    lines.append("Groups were held out; the weights are fitted without them,")
    lines.append("the costs of the search were made with them in view.")
    return "\n".join(lines)
