"""``detector study``: variants of detectors, trained alike, tested once and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.actions.detector_data import load_examples
from memantics.core.errors import DataError, InputError
from memantics.detector.examples import Loaded
from memantics.detector.neural.feeding import hold_out
from memantics.detector.neural.settings import Pooling, Target, Training
from memantics.detector.study.running import STUDY, Study, StudyPlan, read_study, run_study
from memantics.detector.study.variants import CHECKS, PAPER, Encoding, choose_variants

__all__ = [
    "CHECKS",
    "PAPER",
    "STUDY",
    "Encoding",
    "Pooling",
    "Study",
    "StudyData",
    "StudyPlan",
    "Target",
    "Training",
    "choose_variants",
    "read_study",
    "study_detectors",
]


@dataclass(frozen=True, slots=True)
class StudyData:
    """Which memes are trained and tested on.

    ``test`` names the test data where they are no part of ``data``; data without a test part are
    split at random, equal texts together: ``share`` of them is the test part.
    """

    data: str | None = None
    test: str | None = None
    labels: str = "v1"
    captions: Path | None = None
    share: float = 0.2

    def load(self) -> tuple[Loaded, Loaded]:
        """The training and the test part."""
        first = load_examples(self.data, "train", self.labels, self.captions)
        if self.test is not None:
            return first, load_examples(self.test, "test", self.labels, self.captions)
        try:
            second = load_examples(self.data, "test", self.labels, self.captions)
        except DataError:  # a copy of the release without the test file
            second = first
        if first.checksum != second.checksum:
            return first, second
        if not 0 < self.share < 0.9:
            raise InputError(f"share {self.share:g} is not possible", hint="give 0.1 to 0.5")
        parts = hold_out(first.examples, "harmful", "random", self.share)
        names = (("training part", parts.train), ("test part", parts.valid))
        made = [
            replace(
                first,
                name=f"{first.name}, {name}",
                notes=(
                    *first.notes,
                    f"no test part: {self.share:.0%} of the memes, drawn at random",
                ),
                examples=tuple(first.examples[row] for row in rows),
                checksum=f"{first.checksum}/{name}",
            )
            for name, rows in names
        ]
        return made[0], made[1]


def study_detectors(
    data: StudyData, plan: StudyPlan, out: Path, say: Callable[[str], None] = print
) -> Study:
    """Train and test every variant of a plan on the same memes, and compare them."""
    train_part, test_part = data.load()
    return run_study(train_part, test_part, plan, out, say)
