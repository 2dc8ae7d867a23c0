"""Rate free-text answers with judge models: rubric, strict schema, several judges, human checks.

A judge model sees the question, the reference answers, the answer and the image, but not which
model answered. The judgements form a run inside the judged run, so that judging can be resumed and
repeats no call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.benchmarks.factories import mean_within
from memantics.core.errors import InputError
from memantics.core.files import read_regular, replace_file
from memantics.core.prompt import enclose
from memantics.core.records import Field as FormField
from memantics.core.records import Form, Item, Message, Outcome, Request, Sampling, Score
from memantics.core.task import InvalidPolicy, Task
from memantics.evaluation.judging.rubrics import Dimension, Rubric, built_in_rubric
from memantics.metrics.agreement import krippendorff_alpha

JUDGED = "judged.json"
QUALITIES = ("correctness", "coverage")
# Minimum number of human ratings for a linear fit.
ENOUGH = 10
Ratings = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """What a mark depends on besides the answer: judge, version, prompt, image and parameters.

    ``version`` is what the user or the server says about the model's version.
    """

    name: str
    identity: Mapping[str, JsonValue]
    prompt: str
    rubric: str
    image: bool
    version: str = ""


class _JudgedFile(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    scores: tuple[Score, ...] = ()
    judges: tuple[JudgeSetup, ...] = ()


def make_judging(
    name: str, outcomes: Sequence[Outcome], *, image: bool, rubric: Rubric | None = None
) -> Task:
    """Make the task of rating a run's answers; items without an answer are skipped."""
    used = rubric or built_in_rubric()

    def items() -> Iterator[Item]:
        for outcome in outcomes:
            if outcome.status == "answered" and isinstance(outcome.value, str):
                item = _make_item(outcome, outcome.value, image, used)
                if item is not None:
                    yield item

    return Task(
        name=name,
        items=items,
        ask=lambda item, complaint: _ask(used, item, complaint),
        parse=lambda text, _: used.parse(text),
        score=lambda judged: tuple(_average(one, judged) for one in used.dimensions),
        main=used.qualities[0],
        invalid=InvalidPolicy(3, "drop"),
        prompts=used.prompts,
    )


def _make_item(outcome: Outcome, answer: str, image: bool, rubric: Rubric) -> Item | None:
    item = outcome.item
    gold = item.gold if isinstance(item.gold, list) else [item.gold]
    references = [text for text in gold if isinstance(text, str) and text.strip()]
    if not references:
        return None
    fields = (
        FormField("reason", "text"),
        *(FormField(one.id, "integer", low=one.low, high=one.high) for one in rubric.dimensions),
    )
    told = "\n".join(f"{key}: {text}" for key, text in item.form.context.items() if text)
    context = {
        "question": item.form.question,
        "context": told,
        "references": "\n".join(f"- {text}" for text in references),
        "answer": answer,
    }
    form = Form(item.form.question, fields, item.form.language, "json", context)
    return Item(item.id, item.group, None, form, item.images if image else ())


def _ask(rubric: Rubric, item: Item, complaint: str | None) -> Request:
    told = item.form.context
    text = rubric.fill(
        question=told["question"],
        context=f"\n{enclose('told about it', told['context'])}\n" if told["context"] else "",
        references=told["references"],
        answer=enclose("answer", told["answer"]),
    )
    if complaint:
        text += f"\n\nYour last reply could not be read ({complaint}). Reply with that JSON alone."
    message = Message("user", (*item.images, text))
    return Request((message,), item.form, Sampling(temperature=0.0), rubric.schema)


def read_marks(
    outcomes: Sequence[Outcome], qualities: Sequence[str] = QUALITIES
) -> dict[str, dict[str, float]]:
    """Read the ratings of a judge model, by quality (such as correctness) and item."""
    return {
        key: {
            o.item.id: float(str(o.value[key]))
            for o in outcomes
            if o.status == "answered" and isinstance(o.value, dict)
        }
        for key in qualities
    }


def _average(one: Dimension, judged: Sequence[Outcome]) -> Score:
    marks = read_marks(judged, [one.id])[one.id]
    kept = [o for o in judged if o.item.id in marks]
    values, groups = [marks[o.item.id] for o in kept], [o.item.group for o in kept]
    return mean_within(Score(one.id, None, 0), values, groups, one.scale)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of judges with each other (Krippendorff's alpha) and with human ratings.

    ``rated`` counts the items with human ratings. ``alpha_people`` is the alpha between the judges'
    mean and the human mean, ``apart`` their mean absolute difference. ``calibrated`` is the judges'
    mean rating, mapped to the human scale by a linear fit on the rated items.
    """

    quality: str
    alpha_judges: float | None
    rated: int
    alpha_people: float | None
    apart: float | None
    calibrated: float | None


def measure_agreement(
    quality: str,
    judges: Sequence[Mapping[str, float]],
    people: Mapping[str, Sequence[float]],
    scale: tuple[float, float] = (1.0, 5.0),
) -> Agreement:
    """Measure the agreement of judges with each other and with human ratings."""
    names = sorted(set().union(*judges))
    rows = [[marks.get(name) for marks in judges] for name in names]
    means = mean_marks(judges)
    rated = [name for name in names if people.get(name)]
    said = [fsum(people[name]) / len(people[name]) for name in rated]
    found = [means[name] for name in rated]
    pairs = [[one, other] for one, other in zip(found, said, strict=True)]
    return Agreement(
        quality,
        krippendorff_alpha(rows, "interval") if len(judges) > 1 else None,
        len(rated),
        krippendorff_alpha(pairs, "interval") if rated else None,
        fsum(abs(a - b) for a, b in zip(found, said, strict=True)) / len(rated) if rated else None,
        _calibrate(found, said, list(means.values()), scale),
    )


def mean_marks(judges: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the ratings of all judges, by item.

    >>> mean_marks([{"a": 4.0, "b": 2.0}, {"a": 5.0}])
    {'a': 4.5, 'b': 2.0}
    """
    names = sorted(set().union(*judges))
    held = {name: [marks[name] for marks in judges if name in marks] for name in names}
    return {name: fsum(item_marks) / len(item_marks) for name, item_marks in held.items()}


def _calibrate(
    found: Sequence[float],
    said: Sequence[float],
    everything: Sequence[float],
    scale: tuple[float, float],
) -> float | None:
    """Map the mean of all judge ratings to the human scale; None with too few human ratings."""
    if len(found) < ENOUGH or len(set(found)) < 2:
        return None
    slope, start = np.polyfit(found, said, 1)
    return float(np.clip(slope * np.array(everything) + start, *scale).mean())


def make_scores(
    outcomes: Sequence[Outcome],
    judges: Mapping[str, Sequence[Outcome]],
    people: Ratings,
    rubric: Rubric | None = None,
) -> tuple[tuple[Score, ...], tuple[Agreement, ...]]:
    """Make the judges' scores that are shown beside a run's metrics, with their agreement."""
    groups = {outcome.item.id: outcome.item.group for outcome in outcomes}
    scores: list[Score] = []
    agreements: list[Agreement] = []
    for one in (rubric or built_in_rubric()).dimensions:
        quality = one.id
        marks = [read_marks(judge, [quality])[quality] for judge in judges.values()]
        means = mean_marks(marks)
        agreed = measure_agreement(quality, marks, people.get(quality, {}), one.scale)
        agreements.append(agreed)
        key = f"judge_{quality}"
        names = [groups[name] for name in means]
        note = f"{one.low} to {one.high}, mean of {', '.join(judges)}; {describe_agreement(agreed)}"
        row = Score(key, None, 0, note=note)
        scores.append(mean_within(row, list(means.values()), names, one.scale))
        for name, marks_by_item in zip(judges, marks, strict=True):
            where = [groups[item] for item in marks_by_item]
            row = Score(key, None, 0, by="judge", label=name)
            scores.append(mean_within(row, list(marks_by_item.values()), where, one.scale))
        if agreed.calibrated is not None:
            note = f"calibrated on {agreed.rated} answers with human ratings"
            scores.append(Score(f"{key}_calibrated", agreed.calibrated, len(means), note=note))
    return tuple(scores), tuple(agreements)


def describe_agreement(agreed: Agreement) -> str:
    """Describe the agreement of judges with each other and with people in words.

    >>> describe_agreement(Agreement("coverage", None, 0, None, None, None))
    'one judge, no human ratings to compare'
    """
    first = "one judge"
    if agreed.alpha_judges is not None:
        first = f"alpha between judges {agreed.alpha_judges:.2f}"
    if not agreed.rated:
        return f"{first}, no human ratings to compare"
    alpha = "–" if agreed.alpha_people is None else f"{agreed.alpha_people:.2f}"
    return f"{first}, alpha with human ratings {alpha} on {agreed.rated} answers"


def write_judged(
    folder: Path, scores: tuple[Score, ...], judges: Sequence[JudgeSetup] = ()
) -> None:
    """Store the judges' scores beside the run, so that scoring again shows them too."""
    found = {"scores": scores, "judges": tuple(judges)}
    replace_file(folder / JUDGED, orjson.dumps(found, option=orjson.OPT_INDENT_2))


def read_judged(folder: Path) -> tuple[Score, ...]:
    """Read the judges' scores of a run; empty if it was not judged."""
    return _read_judged(folder).scores


def read_setups(folder: Path) -> tuple[JudgeSetup, ...]:
    """Read how a run was judged; empty if it was not judged, or by version 0.3 or earlier."""
    return _read_judged(folder).judges


def _read_judged(folder: Path) -> _JudgedFile:
    path = folder / JUDGED
    if not path.is_file():
        return _JudgedFile()
    found = orjson.loads(read_regular(path))
    # Version 0.3 wrote the scores alone, as a list.
    return _JudgedFile.model_validate({"scores": found} if isinstance(found, list) else found)


def need_text(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Raise an error if a run's answers are not free text."""
    if not any(isinstance(o.value, str) and _is_free(o.item) for o in outcomes):
        raise InputError(
            f"run {folder} has no free-text answers to judge",
            hint="give a run of a free-text task, such as memeintent/intent",
        )


def _is_free(item: Item) -> bool:
    """Whether an item asks for free text: it has a list of references, or one and no options."""
    if isinstance(item.gold, list):
        return True
    asked = item.form.fields
    return isinstance(item.gold, str) and any(f.kind == "text" and not f.options for f in asked)
