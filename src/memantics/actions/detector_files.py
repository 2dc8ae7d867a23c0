"""Predictions as a table and as a file, detectors as single files, and the one used by default."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import orjson

from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.text import cut_off
from memantics.detector import operating_points
from memantics.detector.examples import Example
from memantics.detector.fast import LabelPrediction, Prediction
from memantics.detector.in_use import DETECTOR, find_in_use, forget_in_use, set_in_use
from memantics.detector.judges import FastJudge, OpenDetector, open_fast, open_judge
from memantics.detector.neural.export import export_onnx
from memantics.detector.neural.saved import is_neural
from memantics.detector.storage import load, save
from memantics.detector.wrapped import WrappedJudge, save_wrapped

_WIDTH = 34


def use_detector(path: str | Path) -> Path:
    """Use a detector wherever none is named: in ``analyze``, ``screen`` and ``serve``.

    It is opened first, so that a file that is no detector is refused here.
    """
    place = Path(path).absolute()
    open_judge(place)
    set_in_use(DETECTOR, place)
    return place


def forget_detector() -> None:
    """Go back to the sample detector of the starter pack."""
    forget_in_use(DETECTOR)


def find_detector(path: str | Path | None = None) -> Path | None:
    """The detector that is named, else the one in use; None where there is neither."""
    return Path(path) if path is not None else find_in_use(DETECTOR)


def tabulate(examples: Sequence[Example], said: Sequence[Prediction], most: int = 40) -> Table:
    """The first predictions beside the texts they are about."""
    rows = []
    for example, found in list(zip(examples, said, strict=True))[:most]:
        named = found.label and not found.unjudged and found.type not in (None, "none")
        kind = f", {found.type}" if named else ""
        doubt = ", unlike the training texts" if found.out_of_domain and not found.unjudged else ""
        doubt = doubt or (", for a person" if found.review else "")
        chance = "" if found.unjudged else f"{found.probability:.2f}"
        short = cut_off(example.text, _WIDTH)
        rows.append((example.id, f"{found.name}{kind}{doubt}", chance, short))
    return Table(("id", "verdict", ">harm", "text"), tuple(rows))


def write_predictions(out: Path, said: Sequence[Prediction | LabelPrediction]) -> None:
    """Write predictions as JSON lines."""
    lines = b"".join(orjson.dumps(asdict(prediction)) + b"\n" for prediction in said)
    replace_file(out, lines, "predictions")


@dataclass(frozen=True, slots=True)
class ExportedDetector(Result):
    """A detector's file, how large it is and its checksum."""

    file: str
    bytes: int
    sha256: str


def export(
    model: Annotated[Path, Argument("A detector file.")],
    out: Annotated[Path, Flag("The file to write.")],
) -> ExportedDetector:
    """Write the single file that is loaded without PyTorch, and read it back once."""
    if is_neural(model) and model.is_dir():
        export_onnx(model, out)
    else:
        judge = open_fast(model)
        save(judge.detector, out, judge.card)
        load(out)
    body = out.read_bytes()
    return ExportedDetector(str(out), len(body), hashlib.sha256(body).hexdigest())


@dataclass(frozen=True, slots=True)
class PointSet(Result):
    """The operating point of a detector's file, and what it keeps on held-out memes."""

    file: str
    point: operating_points.OperatingPoint
    lines: tuple[str, ...]


def set_point(
    model: Annotated[Path, Argument("A detector file.")],
    *,
    decide: operating_points.DecideFlag = "",
    threshold: operating_points.ThresholdFlag = None,
    review: operating_points.ReviewFlag = None,
    listen: Annotated[
        bool, Flag("Judge Chinese texts as they sound, too (10 to 100 ms each).")
    ] = False,
    clear: Annotated[bool, Flag("Go back to the threshold of the training.")] = False,
) -> PointSet:
    """Store in a detector how it decides wherever nobody says otherwise."""
    given = bool(decide) or threshold is not None or review is not None or listen
    if given == clear:
        raise InputError(
            "say how it decides, or --clear",
            hint="such as --decide precision=0.9 --review 0.3..0.7",
        )
    judge = open_judge(model)
    if not isinstance(judge, WrappedJudge):
        judge = open_fast(model)  # refuses networks
    opened = OpenDetector(judge, model.name, model)
    card = {key: value for key, value in judge.card.items() if key != "point"}
    point = (
        operating_points.OperatingPoint(opened.threshold)
        if clear
        else opened.choose_point(threshold, decide, review)
    )
    if not clear:
        point = replace(point, listen=listen)
        card["point"] = asdict(point)
    if isinstance(judge, FastJudge):
        save(judge.detector, model, card)
    else:
        save_wrapped(model, judge.file.model_copy(update={"card": card}))
    return PointSet(str(model), point, tuple(opened.describe_point(point)))
