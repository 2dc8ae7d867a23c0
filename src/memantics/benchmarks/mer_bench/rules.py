"""What a judge must keep to: the gate of the target and the label are checked, reasons recorded.

The authors ask for the gate and for localised reasons in their prompt and check neither. Numbers
can be held to a rule; whether a reason speaks of its part is a matter of meaning, which no list of
words decides: what the lists find is written down, and no reply is rejected for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from memantics.benchmarks.mer_bench.judgement import (
    EMOTION,
    GATE,
    GATED,
    OTHER,
    Broken,
    Judgement,
    Rationale,
    Reading,
    join_faults,
    read_shape,
)
from memantics.core.task import Unparsed
from memantics.tasks.parse import clean, find_object

Checks = Literal["all", "schema"]
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


def judge(text: str, target: str, rationale: Rationale, checks: Checks) -> Judgement:
    """The judgement in a reply; a reply that breaks a rule is unparsed, and says which.

    With ``checks`` "schema" broken gates are let pass and written down too, as the paper does.
    Ratings without reasons have no scope to break; their gate is applied, not asked for.
    """
    reading = read_shape(find_object(clean(text)), rationale)
    label = str(reading.values["label"])
    faults = list(_check_other(label, reading))
    gate, scope = list(_check_gate(reading, target)), breaks_scope(reading.reasons, target)
    bare = not reading.reasons
    if checks == "all" and not bare:
        faults += gate
    if faults:
        raise Unparsed(join_faults(faults))
    ratings = {name: value for name, value in reading.values.items() if name != "label"}
    if bare and gate:
        ratings |= {name: min(int(ratings[name]), GATE) for name in GATED}
    found: dict[Broken, bool] = {"gating": bool(gate) and not bare, "scope": scope}
    return Judgement.model_validate(
        {
            **ratings,
            "label": label,
            "other": reading.other,
            "bare": bare,
            "ordered": reading.ordered,
            "broken": tuple(rule for rule, broken in found.items() if broken),
        }
    )


def _check_other(label: str, reading: Reading) -> Iterator[str]:
    if not reading.reasons:
        return
    name = f"{EMOTION}.{OTHER}"
    if label == "other" and reading.other is None:
        yield f"{name} must name the feeling, since the label is other"
    if label != "other" and reading.other is not None:
        yield f"{name} must be null, since the label is {label}"


def _check_gate(reading: Reading, target: str) -> Iterator[str]:
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
    """Whether a reason names none of target, scenario and alignment, or is a copy of another."""
    bare = {" ".join(re.findall(r"\w+", reason.casefold())) for reason in reasons.values()}
    silent = not all(any(list_points(reason, target).values()) for reason in reasons.values())
    return silent or len(bare) < len(reasons)


def list_points(reason: str, target: str) -> dict[str, bool]:
    """Which of the three points a reason names.

    >>> list_points("Target met; same scenario; caption and face align.", "happy")
    {'the target': True, 'the scenario': True, 'how text and picture align': True}
    >>> list_points("Nice colours.", "happy")
    {'the target': False, 'the scenario': False, 'how text and picture align': False}
    """
    # Excited, excitement and exciting are one feeling.
    stem = re.escape(target.removesuffix("ed").removesuffix("y"))
    named = re.search(rf"\btarget|\b{stem}", reason, re.IGNORECASE)
    both = _TEXT.search(reason) and _PICTURE.search(reason)
    return {
        "the target": named is not None,
        "the scenario": _SCENARIO.search(reason) is not None,
        "how text and picture align": bool(both and _ALIGN.search(reason)),
    }
