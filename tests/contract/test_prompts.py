"""Golden prompts: a change of wording changes published scores, so it must be seen.

Run ``MEMANTICS_GOLDEN=write`` with pytest to take the present wording as right.
"""

from __future__ import annotations

import os

import pytest

from memantics.core.records import Field, Form, Image, Item, Option
from memantics.wiring import find_tasks
from tests.places import ROOT

GOLDEN = ROOT / "tests" / "golden"
FIELDS = (Field("answer", "choice", (Option("A", "a cat"), Option("B", "None of the others"))),)
CASES = [
    (ref.name, option.name, value)
    for ref in find_tasks(["suite"])
    for option in ref.card.option
    if option.name in ("order", "prompt", "language")
    for value in option.choices
]


@pytest.mark.parametrize(("task", "option", "value"), CASES, ids=str)
def test_prompt_is_the_golden_one(task: str, option: str, value: str) -> None:
    ref = find_tasks([task])[0]
    made = ref.make({option: value}, ref.card.splits[0], None, None)
    context = {"caption": "$一二三"} if made.options.get("prompt") == "2" else {}
    form = Form("What does it show?", FIELDS, context=context)
    item = Item("x", "x", "A", form, (Image(ROOT / "x.png"),))
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
