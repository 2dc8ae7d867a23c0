"""``detector study``: variants of detectors, trained alike, tested once and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import DataError, InputError
from memantics.core.parameters import Argument, Flag
from memantics.moderation.data import Captions, DetectorData, LabelVersion, load_examples
from memantics.moderation.examples import Loaded
from memantics.moderation.neural import settings
from memantics.moderation.neural.feeding import hold_out
from memantics.moderation.study.running import STUDY, Study, StudyPlan, run_study
from memantics.moderation.study.variants import Encoding, choose_variants

__all__ = [
    "STUDY",
    "Encoding",
    "Study",
    "StudyData",
    "StudyPlan",
    "choose_variants",
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
    labels: LabelVersion = "v1"
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


Variants = Annotated[
    Sequence[str],
    Argument(
        "FAMILY[+CAPTIONS][@WAY], such as fusion+both or clip+text@sum; paper, checks, or a"
        " preset of the fast detectors. Default: the paper's that the encoders allow, and fast."
    ),
]


def study(
    variants: Variants = (),
    *,
    data: DetectorData = None,
    test: Annotated[str | None, Flag("Test data, where they are apart.")] = None,
    out: Annotated[str | Path, Flag("The folder to write.")] = "study",
    encoding: Encoding | None = None,
    captions: Captions = None,
    tasks: Annotated[
        Literal["both", "harmful", "type"], Flag("Two classes, five types, or both.")
    ] = "both",
    against: Annotated[str, Flag("Compare all variants with this one.")] = "",
    seeds: settings.Seeds = (0, 1, 2, 3, 4),
    epochs: Annotated[int | None, Flag("Default: the paper's.", min=1)] = None,
    rate: Annotated[float | None, Flag("Default: the paper's.")] = None,
    batch: Annotated[int, Flag("Memes in a step.", min=1)] = 32,
    patience: settings.Patience = 3,
    hold_out: settings.HowHeldOut = "blocks",
    share: settings.Share = 0.1,
    pooling: Annotated[
        settings.Pooling, Flag("How tokens become a vector, in every network; auto mixes two ways.")
    ] = "mean",
    precision: settings.HowPrecise = "auto",
    device: settings.Device = "auto",
    labels: Annotated[LabelVersion, Flag("Label version.")] = "v1",
    say: Callable[[str], None] | None = None,
) -> Study:
    """Train many detectors alike, test each once, and compare them, as ToxiCN MM's Table 5 does.

    ``variants`` are named as ``FAMILY[+CAPTIONS][@WAY]``; without any, the paper's that the
    encoders allow. ``encoding`` says which encoders make vectors of texts and images. Called again,
    it goes on where it stopped; ``say`` is told each step in words.
    """
    training = settings.Training(
        seeds=seeds,
        batch=batch,
        patience=patience,
        hold_out=hold_out,
        share=share,
        precision=precision,
        device=device,
    )
    targets: tuple[settings.Target, ...] = ("harmful", "type") if tasks == "both" else (tasks,)
    encoders = encoding or Encoding()
    chosen = choose_variants(variants, encoders)
    plan = StudyPlan(
        chosen,
        encoders,
        training,
        targets,
        epochs=epochs,
        rate=rate,
        pooling=pooling,
        against=against,
    )
    found = StudyData(data, test, labels, captions)
    return study_detectors(found, plan, Path(out), say or (lambda _: None))
