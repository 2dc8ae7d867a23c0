"""Chinese captions: from text to ranked candidates."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path as FilePath

from memantics.phonetics.caption import Script, write_scripts
from memantics.phonetics.language import load_model
from memantics.phonetics.lattice import Lattice, Path
from memantics.phonetics.ranking import (
    Candidate,
    Linear,
    describe_caption,
    describe_path,
    load_weights,
)
from memantics.phonetics.reading import ModelName

_PATHS = 60
_PICTURED = 1.5


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything the search found for a caption; candidates are best first."""

    script: Script
    plain: Path
    candidates: tuple[Candidate, ...]
    literal_rank: int
    signals: dict[str, float]

    def reorder(self, order: Linear) -> Analysis:
        """The same candidates under other weights."""
        scored = (replace(c, score=order.score(c.features)) for c in self.candidates)
        ranked = _sort(scored)
        signals = describe_caption(ranked, self.plain, self.script, self.literal_rank)
        return replace(self, candidates=ranked, signals=signals)


@cache
def load_lattice(model: ModelName, file: FilePath | None) -> Lattice:
    """The search over a language model, built once per process."""
    # Hundreds of thousands of objects that all stay: collecting in between only costs time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return Lattice(load_model(model, file))
    finally:
        if collecting:
            gc.enable()


def analyze_caption(
    caption: str,
    lattice: Lattice,
    *,
    order: Linear | None = None,
    pictured: frozenset[str] = frozenset(),
) -> Analysis:
    """Search what a caption may sound like and order what was found.

    ``pictured`` are characters of things in the picture: the caption was written to name them,
    so a reading that hears them as something else is the likelier.
    """
    rank = order or load_weights(lattice.model.name)[0]
    scripts = list(write_scripts(caption))
    script = scripts[0]
    plain = lattice.read_plainly(script)
    found: dict[str, Candidate] = {}
    literal_rank = _PATHS
    for number, variant in enumerate(scripts):
        for place, path in enumerate(lattice.search(variant, _PATHS)):
            differences, features = describe_path(path, variant, plain, lattice)
            if not differences:
                literal_rank = min(literal_rank, place) if number == 0 else literal_rank
                continue
            candidate = Candidate(path, variant, differences, features)
            shown = sum(d.written in pictured for d in differences if d.written)
            candidate = replace(candidate, score=rank.score(features) + _PICTURED * shown)
            old = found.get(path.text)
            if old is None or old.score < candidate.score:
                found[path.text] = candidate
    ranked = _sort(found.values())
    signals = describe_caption(ranked, plain, script, literal_rank)
    return Analysis(script, plain, ranked, literal_rank, signals)


def _sort(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: (-c.score, c.path.text))[:_PATHS])
