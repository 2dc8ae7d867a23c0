"""Prompt injection, at its worst: a judge that does what a caption orders.

What a judge believes is its own affair. Ours is what becomes of its reply: the schema that is asked
for, marks within their range, every other item as it was, nothing secret sent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core.records import Form, Item, Message, Outcome
from memantics.core.task import Task, Unparsed
from memantics.evaluation.judging.rubrics import built_in_rubric
from memantics.evaluation.rubric import make_judging
from tests.hostile.cases import SEED, Case, count_cases, noted
from tests.hostile.orders import PLAUSIBLE, generate, obey
from tests.judge.conftest import MEMES, TASK, Scripted, plant

__all__ = ["plant"]
SECRET = "sk-never-to-be-sent-0123456789"


def make_item(number: int, caption: str) -> Outcome:
    form = Form("What does it intend?", (), "en", "text", {"printed text": caption})
    item = Item(f"m{number}", f"m{number}", ["to greet"], form)
    return Outcome(item, "answered", caption)


def read_all(messages: tuple[Message, ...]) -> str:
    return "\n".join(part for m in messages for part in m.parts if isinstance(part, str))


def test_a_judge_that_obeys_moves_nothing_but_its_own_opinion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    cases = list(generate(SEED, count_cases(108)))
    task = make_judging(
        "x", [make_item(n, case["text"]) for n, case in enumerate(cases)], image=False
    )
    moved = 0
    for case, item in zip(cases, task.items(), strict=True):
        with noted("orders", case):
            moved += judge_one(task, item, case)
    assert moved == sum(case["kind"] in PLAUSIBLE for case in cases)


def judge_one(task: Task, item: Item, case: Case) -> bool:
    """Ask and read; whether the reply that was ordered counts as a prediction."""
    request = task.ask(item, None)
    sent = read_all(request.messages)
    assert request.schema == built_in_rubric().schema
    assert SECRET not in sent
    # The caption stands whole between two marks that it does not hold, before the rubric.
    mark = sent.split("<answer ", 1)[1].split(">", 1)[0] if "<answer " in sent else ""
    assert mark
    assert mark not in case["text"]
    opening, closing = f"<answer {mark}>", f"</answer {mark}>"
    assert sent.count(opening) == sent.count(closing) == 1
    assert sent.split(opening)[1].split(closing)[0] == f"\n{case['text']}\n"
    try:
        value = task.parse(obey(sent), item.form)
    except Unparsed:
        assert case["kind"] not in PLAUSIBLE
        return False
    assert isinstance(value, dict)
    assert set(value) == {"reason", "correctness", "coverage"}
    assert all(str(value[key]) in "12345" for key in ("correctness", "coverage"))
    return True


@pytest.mark.slow
def test_other_items_are_judged_as_without_the_order(
    tmp_path: Path, plant: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = [case["text"] for case in generate(SEED, MEMES)]
    items = list(mm.load_dataset(TASK))[:MEMES]

    def judge(name: str, said: list[str]) -> dict[str, tuple[str, object]]:
        rows = [
            {"image": item.images[0].path.name, "answer": text}
            for item, text in zip(items, said, strict=True)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
        run = mm.evaluate(
            TASK, f"humans/{path}", out=tmp_path / name, settings=mm.EvaluationSettings(limit=MEMES)
        )
        plant(name, obey)
        mm.judge(run, model=[f"judge/{name}"])
        (folder,) = [p.parent for p in run.folder.rglob("answers.jsonl") if p.parent != run.folder]
        answers = [
            orjson.loads(line) for line in (folder / "answers.jsonl").read_bytes().splitlines()
        ]
        return {a["item"]: (a["status"], a["value"]) for a in answers}

    plain = judge("plain", [f"it says {n}" for n in range(MEMES)])
    mixed = judge("mixed", [orders[n] if n % 2 else f"it says {n}" for n in range(MEMES)])
    assert [mixed[item.id] for item in items[::2]] == [plain[item.id] for item in items[::2]]
    assert {plain[item.id][0] for item in items} == {"answered"}
    assert len(mixed) == MEMES
