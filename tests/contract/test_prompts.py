"""Golden prompts: a change of wording changes published scores, so it must be seen.

Each is what the first item of the sample is asked with, examples and all.
Run ``MEMANTICS_GOLDEN=write`` with pytest to take the present wording as right.
"""

from __future__ import annotations

import os

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.records import Image
from tests.places import ROOT

GOLDEN = ROOT / "tests" / "golden"
PROMPTING = ("order", "prompt", "language", "input", "rationale", "placement", "references")
CASES = [
    (ref.name, option.name, value)
    for ref in find_tasks(["suite"])
    for option in ref.card.option
    if option.name in PROMPTING or (option.name == "wording" and "official" not in option.choices)
    for value in option.choices
]


@pytest.mark.parametrize(("task", "option", "value"), CASES, ids=str)
def test_prompt_is_the_golden_one(task: str, option: str, value: str) -> None:
    ref = find_tasks([task])[0]
    made = ref.make({option: value}, ref.card.splits[0], ref.benchmark.sample(), None)
    item = next(made.items())
    if made.feed is not None:
        made = made.feed({need.name: {item.group: f"({need.name})"} for need in made.needs})
    texts = []
    for complaint in (None, "no option letter found"):
        for message in made.ask(item, complaint).messages:
            parts = ("[image]" if isinstance(part, Image) else part for part in message.parts)
            texts.append(f"--- {message.role} ---\n" + "\n".join(parts))
    path = GOLDEN / f"{task.replace('/', '-')}.{option}-{value}.txt"
    found = "\n".join(texts) + "\n"
    if os.environ.get("MEMANTICS_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found
