"""Whether runs were judged in the same way: judge, version, prompt, rubric, image, parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import orjson

from memantics.evaluation.rubric import JudgeSetup, read_setups

# What may differ between two ways of judging, in words.
_PARTS = ("judge", "version", "prompt", "rubric", "image", "parameters")


def describe_parts(setups: Sequence[JudgeSetup]) -> Mapping[str, Hashable]:
    """Return what the ratings of a run depend on, by part."""
    found = {
        "judge": tuple(one.name for one in setups),
        "version": tuple(one.version for one in setups),
        "prompt": tuple(one.prompt for one in setups),
        "rubric": tuple(one.rubric for one in setups),
        "image": tuple(one.image for one in setups),
        "parameters": tuple(
            orjson.dumps(one.identity, option=orjson.OPT_SORT_KEYS) for one in setups
        ),
    }
    # The identity contains the name, so another judge is not reported twice.
    return {part: found[part] for part in _PARTS}


def compare_judging(folders: Sequence[Path]) -> str:
    """Describe how the judges of runs differ; empty if they do not, or without two judged runs.

    Runs that were not judged are left out.
    """
    read = [setups for folder in folders if (setups := read_setups(folder))]
    parts = [describe_parts(setups) for setups in read]
    other = [part for part in _PARTS if len({one[part] for one in parts}) > 1]
    if "judge" in other and "parameters" in other:
        other.remove("parameters")
    if not other:
        return ""
    return (
        f"the runs were judged with another {', '.join(other)}: judge_* scores are not comparable; "
        "test it with 'memantics judge drift'"
    )
