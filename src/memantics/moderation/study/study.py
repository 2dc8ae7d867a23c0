"""Train variants of detectors on the same data, test each once, and compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import DataError, InputError
from memantics.core.parameters import Argument, Flag
from memantics.moderation.data import CaptionsFlag, DetectorData, LabelVersion, load_examples
from memantics.moderation.examples import Loaded
from memantics.moderation.neural import settings as neural
from memantics.moderation.neural.feeding import hold_out
from memantics.moderation.study.running import STUDY, Study, StudyPlan, run_study
from memantics.moderation.study.variants import StudyEncoders, choose_variants

__all__ = [
    "STUDY",
    "Study",
    "StudyData",
    "StudyEncoders",
    "StudyPlan",
    "StudySettings",
    "choose_variants",
    "study",
    "study_detectors",
]


@dataclass(frozen=True, slots=True)
class StudyData:
    """Training and test data of a study.

    ``test`` is a separate test set. Without one, the proportion ``share`` of the data is held out
    at random; memes with equal texts stay together.
    """

    data: str | None = None
    test: str | None = None
    labels: LabelVersion = "v1"
    captions: Path | None = None
    share: float = 0.2

    def load(self) -> tuple[Loaded, Loaded]:
        """Load the training and the test set."""
        first = load_examples(self.data, "train", self.labels, self.captions)
        if self.test is not None:
            return first, load_examples(self.test, "test", self.labels, self.captions)
        try:
            second = load_examples(self.data, "test", self.labels, self.captions)
        except DataError:  # the user's copy of the release may lack the test file
            second = first
        if first.checksum != second.checksum:
            return first, second
        if not 0 < self.share < 0.9:
            raise InputError(
                f"{self.share:g} is not a valid --share", hint="use a value from 0.1 to 0.5"
            )
        parts = hold_out(first.examples, "harmful", "random", self.share)
        names = (("training part", parts.train), ("test part", parts.valid))
        made = [
            replace(
                first,
                name=f"{first.name}, {name}",
                notes=(
                    *first.notes,
                    f"without a test set: {self.share:.0%} of the memes, held out at random",
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
        "Detectors to train: FAMILY[+CAPTIONS][@WAY], such as fusion+both or clip+text@sum; "
        "'paper', 'checks', or a preset of the fast detectors. Default: the "
        "paper's rows for the given encoders, and fast."
    ),
]


@dataclass(frozen=True, slots=True)
class StudySettings:
    """Data and training of every detector of a study.

    Attributes:
        test: Test data, where they are not part of the training data.
        captions: File of mined captions, ``captions.jsonl`` of a build.
        tasks: Two classes (``harmful``), five types (``type``), or ``both``.
        seeds: One training for each seed.
        epochs: Passes over the training data. Default: the paper's.
        rate: Learning rate. Default: the paper's.
        batch: Memes per step.
        patience: Epochs without improvement on the validation part before training ends.
        hold_out: How the validation part is drawn.
        share: Proportion of the training memes in the validation part.
        pooling: How tokens become one vector, in every network; ``auto`` depends on the network.
        precision: Number format of training.
        device: Where networks are trained.
        labels: Label version of ToxiCN MM.
    """

    test: Annotated[
        str | None, Flag("Separate test data. Default: the test split, or a random part.")
    ] = None
    captions: CaptionsFlag = None
    tasks: Annotated[
        Literal["both", "harmful", "type"],
        Flag("Tasks: harmful (two classes), type (five classes), or both."),
    ] = "both"
    seeds: neural.Seeds = (0, 1, 2, 3, 4)
    epochs: Annotated[int | None, Flag("Number of epochs. Default: the paper's.", min=1)] = None
    rate: Annotated[float | None, Flag("Learning rate. Default: the paper's.")] = None
    batch: Annotated[int, Flag("Memes per step.", min=1)] = 32
    patience: neural.Patience = 3
    hold_out: neural.HowHeldOut = "blocks"
    share: neural.Share = 0.1
    pooling: Annotated[
        neural.Pooling, Flag("How tokens become one vector; auto depends on the network.")
    ] = "mean"
    precision: neural.HowPrecise = "auto"
    device: neural.Device = "auto"
    labels: Annotated[LabelVersion, Flag("Version of the ToxiCN MM labels.")] = "v1"


def study(
    variants: Variants = (),
    *,
    data: DetectorData = None,
    out: Annotated[str | Path, Flag("Folder to write.")] = "study",
    encoders: StudyEncoders | None = None,
    against: Annotated[
        str, Flag("Variant to compare with. Default: the same encoders without captions.")
    ] = "",
    settings: StudySettings | None = None,
    progress: Callable[[str], None] | None = None,
) -> Study:
    """Train several detectors on the same data, test each once, and compare them.

    This reproduces Table 5 of ToxiCN MM. A second call resumes.

    Args:
        variants: Variants, ``FAMILY[+CAPTIONS][@WAY]``, such as ``fusion+both``, or presets of the
            fast detectors. Default: the paper's rows for the given encoders.
        data: Training data: a benchmark, a table, or ``sample``. Default: ToxiCN MM.
        out: Folder for the results.
        encoders: Encoders of texts and images; see :class:`StudyEncoders`.
        against: Variant to compare with. Default: the same encoders without captions.
        settings: Data and training; see :class:`StudySettings`.
        progress: Called with each progress message.

    Returns:
        The scores of every variant and the comparisons, also as tables.

    Raises:
        InputError: If a variant is unknown, or needs an encoder that is not given.
        DataError: If the data are missing or damaged.

    Example:
        >>> tried = mm.study(["ridge", "linear"], data="sample")
        >>> tried.trained_on, tried.tested_on
        (61, 18)
    """
    wanted = settings or StudySettings()
    training = neural.Training(
        seeds=wanted.seeds,
        batch=wanted.batch,
        patience=wanted.patience,
        hold_out=wanted.hold_out,
        share=wanted.share,
        precision=wanted.precision,
        device=wanted.device,
    )
    tasks = wanted.tasks
    targets: tuple[neural.TrainingTarget, ...] = (
        ("harmful", "type") if tasks == "both" else (tasks,)
    )
    found_encoders = encoders or StudyEncoders()
    plan = StudyPlan(
        choose_variants(variants, found_encoders),
        found_encoders,
        training,
        targets,
        epochs=wanted.epochs,
        rate=wanted.rate,
        pooling=wanted.pooling,
        against=against,
    )
    found = StudyData(data, wanted.test, wanted.labels, wanted.captions)
    return study_detectors(found, plan, Path(out), progress or (lambda _: None))
