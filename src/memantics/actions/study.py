"""``detector study``: variants of detectors, trained alike, tested once and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memantics.actions.detector_data import load_examples
from memantics.core.errors import DataError, InputError
from memantics.detector.examples import Loaded
from memantics.detector.neural.feeding import hold_out
from memantics.detector.neural.settings import HoldOut, Pooling, Precision, Target, Training
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
    "StudySettings",
    "Target",
    "Training",
    "choose_variants",
    "read_study",
    "study",
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


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How the detectors of a study are trained; ``epochs`` and ``rate`` are the paper's where None.

    Backbones are folders of encoders as transformers saves them. ``test`` names the test data
    where they are no part of the training data, ``captions`` a file that replaces theirs;
    ``against`` the variant with which all others are compared.
    """

    test: str | None = None
    labels: str = "v1"
    captions: Path | None = None
    text_backbone: str | None = None
    image_backbone: Path | None = None
    resnet_backbone: Path | None = None
    clip_backbone: Path | None = None
    from_scratch: bool = False
    tasks: Literal["both", "harmful", "type"] = "both"
    against: str = ""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    epochs: int | None = None
    rate: float | None = None
    batch: int = 32
    patience: int = 3
    hold_out: HoldOut = "blocks"
    share: float = 0.1
    pooling: Pooling = "mean"
    precision: Precision = "auto"
    device: str = "auto"

    def plan(self, variants: Sequence[str]) -> StudyPlan:
        """What is trained, and how."""
        encoding = Encoding(
            self.text_backbone,
            self.image_backbone,
            self.resnet_backbone,
            self.clip_backbone,
            self.from_scratch,
        )
        training = Training(
            seeds=self.seeds,
            batch=self.batch,
            patience=self.patience,
            hold_out=self.hold_out,
            share=self.share,
            precision=self.precision,
            device=self.device,
        )
        both: tuple[Target, ...] = ("harmful", "type")
        return StudyPlan(
            choose_variants(variants, encoding),
            encoding,
            training,
            both if self.tasks == "both" else (self.tasks,),
            epochs=self.epochs,
            rate=self.rate,
            pooling=self.pooling,
            against=self.against,
        )


def study(
    variants: Sequence[str] = (),
    *,
    data: str | None = None,
    out: str | Path = "study",
    settings: StudySettings | None = None,
    say: Callable[[str], None] | None = None,
) -> Study:
    """Train many detectors alike, test each once, and compare them, as ToxiCN MM's Table 5 does.

    ``variants`` are named as ``FAMILY[+CAPTIONS][@WAY]``; without any, the paper's that the
    encoders allow. Called again, it goes on where it stopped.
    """
    study_settings = settings or StudySettings()
    chosen = StudyData(data, study_settings.test, study_settings.labels, study_settings.captions)
    return study_detectors(
        chosen, study_settings.plan(variants), Path(out), say or (lambda _: None)
    )
