"""Replies of judge models: their schema, the rules they must follow, and the parsed judgement.

The authors' prompt sets a gate (if the target emotion is missed, two ratings must not exceed 2) and
asks for reasons about each part, but their code checks neither. Here the gate on ratings is
enforced. Word lists cannot decide whether a reason addresses its part, so such findings are
recorded and no reply is rejected for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.benchmarks.parsing import clean, find_object
from memantics.core.records import Field, Option
from memantics.core.reply import describe_object
from memantics.core.task import Unparsed
from memantics.metrics.reappraisal import METRICS

CheckLevel = Literal["all", "schema"]
_SCENARIO = re.compile(
    r"scenario|situation|\bscenes?\b|\bstory|\bjoke|premise|\bsetting\b|\bcontext\b", re.IGNORECASE
)
_TEXT = re.compile(r"\btext|caption|\bwords?\b|wording|\blines?\b", re.IGNORECASE)
_PICTURE = re.compile(
    r"visual|\bimages?\b|picture|photo|drawing|\bfaces?\b|facial|expression", re.IGNORECASE
)
_ALIGN = re.compile(
    r"\balign|misalign|\bmatch|mismatch|\bfits?\b|\bagree|disagree|consisten|conflict|contradict"
    r"|support|clash|unclear",
    re.IGNORECASE,
)


def judge(text: str, target: str, rationale: Rationale, checks: CheckLevel) -> EditJudgement:
    """Return the judgement in a judge's reply; raise ``Unparsed`` with the rule that it breaks.

    The gate limits two ratings to 2 if the target emotion is missed. With ``checks`` "schema",
    violations of the gate are recorded but accepted, as in the paper. Ratings without reasons
    cannot break the rules about reasons; only the gate is applied to them. A reply with a valid
    schema that breaks a rule keeps its judgement with the gate applied.
    """
    reading = read_shape(find_object(clean(text)), rationale)
    faults = list(_check_other(str(reading.values["label"]), reading))
    gate, bare = list(_check_gate(reading, target)), not reading.reasons
    if checks == "all" and not bare:
        faults += gate
    if faults:
        raise Unparsed(join_faults(faults), _weigh(reading, target, clip=bool(gate)).dump())
    return _weigh(reading, target, clip=bare and bool(gate), broken=bool(gate) and not bare)


def _weigh(
    reading: JudgementReading, target: str, *, clip: bool, broken: bool = False
) -> EditJudgement:
    """Return the judgement in a parsed reply; limit the emotion ratings if the gate is applied."""
    ratings = dict(reading.values)
    if clip:
        ratings |= {name: min(int(ratings[name]), GATE) for name in GATED}
    scope = breaks_scope(reading.reasons, target)
    found: dict[BrokenCheck, bool] = {"gating": broken, "scope": scope}
    return EditJudgement.model_validate(
        {
            **ratings,
            "other": reading.other,
            "bare": not reading.reasons,
            "ordered": reading.ordered,
            "broken": tuple(rule for rule, is_broken in found.items() if is_broken),
        }
    )


def _check_other(label: str, reading: JudgementReading) -> Iterator[str]:
    if not reading.reasons:
        return
    name = f"{EMOTION}.{OTHER}"
    if label == "other" and reading.other is None:
        yield f"{name} must name the feeling, since the label is other"
    if label != "other" and reading.other is not None:
        yield f"{name} must be null, since the label is {label}"


def _check_gate(reading: JudgementReading, target: str) -> Iterator[str]:
    label = reading.values["label"]
    if label == target:
        return
    for metric, name in GATED.items():
        rating = int(reading.values[metric])
        if rating > GATE:
            yield (
                f"{name} is {rating}, but may not pass {GATE}: the label is {label}, "
                f"the target {target}"
            )


def breaks_scope(reasons: Mapping[str, str], target: str) -> bool:
    """Return whether a reason names none of target, scenario and alignment, or copies another."""
    bare = {" ".join(re.findall(r"\w+", reason.casefold())) for reason in reasons.values()}
    silent = not all(any(list_points(reason, target).values()) for reason in reasons.values())
    return silent or len(bare) < len(reasons)


def list_points(reason: str, target: str) -> dict[str, bool]:
    """Return which of the three points (target, scenario, alignment) a reason names.

    >>> list_points("Target met; same scenario; caption and face align.", "happy")
    {'the target': True, 'the scenario': True, 'how text and picture align': True}
    >>> list_points("Nice colours.", "happy")
    {'the target': False, 'the scenario': False, 'how text and picture align': False}
    """
    # Word forms such as excited, excitement and exciting are the same feeling.
    stem = re.escape(target.removesuffix("ed").removesuffix("y"))
    named = re.search(rf"\btarget|\b{stem}", reason, re.IGNORECASE)
    both = _TEXT.search(reason) and _PICTURE.search(reason)
    return {
        "the target": named is not None,
        "the scenario": _SCENARIO.search(reason) is not None,
        "how text and picture align": bool(both and _ALIGN.search(reason)),
    }


Rationale = Literal["RF", "RL"]
BrokenCheck = Literal["gating", "scope"]
BROKEN: tuple[BrokenCheck, ...] = get_args(BrokenCheck)
EMOTIONS = ("angry", "sad", "tense", "bored", "calm", "happy", "excited", "relaxed")
LABELS = (*EMOTIONS, "other")
LOW, HIGH = 1, 5
REASON, OTHER = "rationale", "other_emotion"
EMOTION = "overall_emotion_classification"


@dataclass(frozen=True, slots=True)
class JudgementPart:
    """One part of a judgement with its metrics, by their key."""

    name: str
    values: Mapping[str, str]


PARTS = (
    JudgementPart(
        "visual_assessment", {"generation_quality_1_5": "vgq", "emotion_accuracy_1_5": "vea"}
    ),
    JudgementPart(
        "text_assessment", {"generation_quality_1_5": "tgq", "emotion_accuracy_1_5": "tea"}
    ),
    JudgementPart("layout_consistency", {"consistent": "lc"}),
    JudgementPart(EMOTION, {"label": "label"}),
    JudgementPart("perceived_emotion_shift", {"magnitude_1_5": "pes"}),
    JudgementPart("overall_generation_quality", {"overall_generation_quality_1_5": "hgq"}),
)
# The two ratings that must not exceed 2 if the target emotion is missed, and their parts.
GATED = {
    "vea": "visual_assessment.emotion_accuracy_1_5",
    "tea": "text_assessment.emotion_accuracy_1_5",
}
GATE = 2


class EditJudgement(BaseModel):
    """A valid judgement of an edited meme.

    ``bare`` marks ratings without any reasons. ``ordered`` states whether the reasons are in the
    requested position. ``broken`` lists rule violations that were accepted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    vgq: int
    vea: int
    tgq: int
    tea: int
    lc: bool
    hgq: int
    pes: int
    label: str
    other: str | None = None
    bare: bool = False
    ordered: bool = True
    broken: tuple[BrokenCheck, ...] = ()

    def rate(self, target: str) -> tuple[float, ...]:
        """Return the eight metrics of the judgement as rated, in order."""
        given: dict[str, float] = {
            "vgq": self.vgq,
            "vea": self.vea,
            "tgq": self.tgq,
            "tea": self.tea,
            "lc": float(self.lc),
            "hgq": self.hgq,
            "ppe": float(self.label == target),
            "pes": self.pes,
        }
        return tuple(given[name] for name in METRICS)

    def dump(self) -> dict[str, JsonValue]:
        """Return the judgement in its stored form."""
        return self.model_dump(mode="json")


def perfect(target: str) -> EditJudgement:
    """Return the judgement of a perfect edit, with the highest ratings."""
    return EditJudgement(vgq=5, vea=5, tgq=5, tea=5, lc=True, hgq=5, pes=5, label=target)


def list_fields(majority: str | None) -> tuple[Field, ...]:
    """Return the eight values as form fields; only the prompt and the schema ask for reasons.

    >>> [field.kind for field in list_fields(None)][:5]
    ['integer', 'integer', 'integer', 'integer', 'boolean']
    """
    return tuple(
        _field(f"{part.name}.{key}", key, majority) for part in PARTS for key in part.values
    )


def _field(name: str, key: str, majority: str | None) -> Field:
    if key == "label":
        options = tuple(Option(label, label) for label in LABELS)
        return Field(name, "choice", options, majority=majority)
    if key == "consistent":
        return Field(name, "boolean", positive="true")
    return Field(name, "integer", low=LOW, high=HIGH, positive=str(HIGH))


def make_schema(rationale: Rationale, *, nullable: bool = False) -> dict[str, JsonValue]:
    """Return the JSON schema of a reply; reasons come first (RF) or last (RL) in each part.

    ``nullable`` writes a feeling that may be null in OpenAPI notation, as the authors do.

    >>> list(make_schema("RL")["properties"]["layout_consistency"]["properties"])
    ['consistent', 'rationale']
    """
    schema = {part.name: _properties(part, rationale) for part in PARTS}
    if nullable:
        schema[EMOTION][OTHER] = {"type": "string", "nullable": True}
    return describe_object(
        **{name: describe_object(**properties) for name, properties in schema.items()}
    )


def _properties(part: JudgementPart, rationale: Rationale) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {key: _kind(key) for key in part.values}
    if part.name == EMOTION:
        values[OTHER] = {"type": ["string", "null"]}
    reason: dict[str, JsonValue] = {REASON: {"type": "string"}}
    return reason | values if rationale == "RF" else values | reason


def _kind(key: str) -> dict[str, JsonValue]:
    if key == "label":
        return {"type": "string", "enum": list(LABELS)}
    if key == "consistent":
        return {"type": "boolean"}
    return {"type": "integer", "minimum": LOW, "maximum": HIGH}


def show_shape(rationale: Rationale) -> str:
    """Return the reply format as text, for servers without strict schemas."""
    words = {"label": "one label", "consistent": "<true or false>", REASON: "your reasons"}
    words[OTHER] = "<a feeling in quotes, or null>"
    shape = {
        part.name: {key: words.get(key, "<1 to 5>") for key in _properties(part, rationale)}
        for part in PARTS
    }
    # Integers, booleans and null are unquoted: quoted ones would contradict the schema.
    return re.sub('"(<[^"]*>)"', r"\1", json.dumps(shape, indent=1))


@dataclass(frozen=True, slots=True)
class JudgementReading:
    """A reply with a valid schema: values by metric, reasons by part (no reasons: bare)."""

    values: Mapping[str, int | bool | str]
    reasons: Mapping[str, str]
    other: str | None
    ordered: bool


def read_shape(given: Mapping[str, JsonValue], rationale: Rationale) -> JudgementReading:
    """Validate the format of a reply; name every error. A reply without any reason is bare.

    Unknown keys are ignored, and "4" is read as the number 4.
    """
    if not given:
        raise Unparsed("no JSON object found")
    parts = {part.name: _repair(given.get(part.name)) for part in PARTS}
    bare = not any(
        isinstance(block, dict) and {REASON, OTHER} & block.keys() for block in parts.values()
    )
    faults = [fault for part in PARTS for fault in _faults(part, parts[part.name], bare)]
    if faults:
        raise Unparsed(join_faults(faults))
    # From here on, every part is an object with a valid schema.
    blocks = {name: block for name, block in parts.items() if isinstance(block, dict)}
    values = {
        metric: _plain(blocks[part.name][key])
        for part in PARTS
        for key, metric in part.values.items()
    }
    other = blocks[EMOTION].get(OTHER)
    return JudgementReading(
        values,
        {} if bare else {name: str(block[REASON]) for name, block in blocks.items()},
        other.strip() or None if isinstance(other, str) else None,
        all(_keeps_order(list(block), rationale) for block in blocks.values()),
    )


def _repair(part: JsonValue) -> JsonValue:
    """Convert the values of a part to the types that they evidently represent.

    >>> _repair({"magnitude_1_5": "4", "consistent": "True", "other_emotion": "null"})
    {'magnitude_1_5': 4, 'consistent': True, 'other_emotion': None}
    """
    if not isinstance(part, dict):
        return part
    return {key: _repair_value(key, value) for key, value in part.items()}


def _repair_value(key: str, value: JsonValue) -> JsonValue:
    if key == REASON or isinstance(value, bool):
        return value
    said = str(value).strip().casefold()
    if key == OTHER and said in ("", "null", "none", "n/a"):
        return None
    if key == "consistent" and said in ("true", "false"):
        return said == "true"
    whole = re.fullmatch(r"(\d)(?:\.0*)?", said)
    return int(whole[1]) if key.endswith("_1_5") and whole else value


def _plain(value: JsonValue) -> int | bool | str:
    if isinstance(value, int):
        return value
    return str(value).strip().casefold()


def _keeps_order(keys: list[str], rationale: Rationale) -> bool:
    return REASON not in keys or keys.index(REASON) == (0 if rationale == "RF" else len(keys) - 1)


def _faults(part: JudgementPart, block: JsonValue, bare: bool) -> Iterator[str]:
    if not isinstance(block, dict):
        yield f"{part.name} is missing" if block is None else f"{part.name} is not an object"
        return
    wanted = [*part.values, *(() if bare else (REASON,))]
    wanted += [OTHER] if part.name == EMOTION and OTHER in block else []
    for key in wanted:
        name = f"{part.name}.{key}"
        if key not in block:
            yield f"{name} is missing"
        elif (problem := _problem(key, block[key])) is not None:
            yield f"{name} {problem}"


def _problem(key: str, value: JsonValue) -> str | None:
    if key == REASON:
        return None if isinstance(value, str) and value.strip() else "is empty"
    if key == OTHER:
        return None if value is None or isinstance(value, str) else "is neither text nor null"
    if key == "consistent":
        return None if isinstance(value, bool) else "is neither true nor false"
    if key == "label":
        known = isinstance(value, str) and value.strip().casefold() in LABELS
        return None if known else f"is not one of {', '.join(LABELS)}"
    if isinstance(value, int) and not isinstance(value, bool) and LOW <= value <= HIGH:
        return None
    return "is not a whole number from 1 to 5"


def join_faults(faults: list[str]) -> str:
    """Join validation errors to one line; show only the first few.

    >>> join_faults(["a", "b", "c", "d", "e"])
    'a; b; c; d; and 1 more'
    """
    shown = "; ".join(faults[:4])
    return f"{shown}; and {len(faults) - 4} more" if len(faults) > 4 else shown
