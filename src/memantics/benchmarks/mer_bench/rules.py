"""What a judge must keep to, checked: the gate of the target, the scope of reasons, the label.

The authors ask for the first two in their prompt and check neither.
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

    With ``checks`` "schema" broken gates and scopes are let pass and written down, as the paper
    does. Ratings without reasons have no scope to break; their gate is applied, not asked for.
    """
    reading = read_shape(find_object(clean(text)), rationale)
    label = str(reading.values["label"])
    faults = list(_check_other(label, reading))
    gate, scope = list(_check_gate(reading, target)), list(_check_scope(reading.reasons, target))
    bare = not reading.reasons
    if checks == "all":
        faults += [*([] if bare else gate), *scope]
    if faults:
        raise Unparsed(join_faults(faults))
    ratings = {name: value for name, value in reading.values.items() if name != "label"}
    if bare and gate:
        ratings |= {name: min(int(ratings[name]), GATE) for name in GATED}
    found: dict[Broken, bool] = {"gating": bool(gate) and not bare, "scope": bool(scope)}
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


def _check_scope(reasons: Mapping[str, str], target: str) -> Iterator[str]:
    """Each reason names target, scenario and alignment, and no reason is a copy of another."""
    seen: dict[str, str] = {}
    for part, reason in reasons.items():
        lacking = [name for name, there in list_points(reason, target).items() if not there]
        if lacking:
            yield f"{part}.rationale says nothing about {' and '.join(lacking)}"
        bare = " ".join(re.findall(r"\w+", reason.casefold()))
        if bare in seen:
            yield f"{part}.rationale repeats {seen[bare]}.rationale"
        seen.setdefault(bare, part)


def list_points(reason: str, target: str) -> dict[str, bool]:
    """Which of the three points a reason names.

    >>> list_points("Target met; same scenario; caption and face align.", "happy")
    {'the target': True, 'the scenario': True, 'how text and picture align': True}
    >>> list_points("Nice colours.", "happy")
    {'the target': False, 'the scenario': False, 'how text and picture align': False}
    """
    named = re.search(rf"\btarget|\b{re.escape(target)}", reason, re.IGNORECASE)
    both = _TEXT.search(reason) and _PICTURE.search(reason)
    return {
        "the target": named is not None,
        "the scenario": _SCENARIO.search(reason) is not None,
        "how text and picture align": bool(both and _ALIGN.search(reason)),
    }
