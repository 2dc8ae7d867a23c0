"""Run directories with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from memantics.core.records import Answer, Field, Form, Item, Option, Reply, Status
from memantics.core.rundir import RunFacts, RunWriter

TEXT = Form("?", (Field("intent", "text"),), reply="text", context={"text": "a text"})


def pick(*keys: str) -> Form:
    """A question with these keys to choose from."""
    return Form("?", (Field("answer", "choice", tuple(Option(key, key) for key in keys)),))


def make_facts(
    task: str, model: str, options: Mapping[str, str], checksum: str = "sum"
) -> RunFacts:
    """The facts of a run of nothing in particular."""
    return RunFacts(
        benchmark=task.partition("/")[0],
        task=task,
        title=task,
        main="",
        unit="questions" if task.startswith("mquest") else "memes",
        model=model,
        model_note="",
        identity={"name": model},
        options=options,
        split="all",
        limit=None,
        invalid="wrong",
        prompts={},
        data={"checksum": checksum, "kind": "sample"},
        warning="",
        version="0",
        fingerprint=f"{task}{model}{options}{checksum}",
        started="",
    )


def write_run(
    folder: Path,
    task: str,
    answers: Mapping[str, str | None],
    *,
    model: str = "fake/model",
    options: Mapping[str, str] | None = None,
    golds: Mapping[str, JsonValue] | None = None,
    groups: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    form: Form = TEXT,
    checksum: str = "sum",
) -> Path:
    """Write a run; an answer of None is a failed call."""
    facts = make_facts(task, model, options or {}, checksum)
    with RunWriter(folder, facts) as writer:
        for name, text in answers.items():
            gold = (golds or {}).get(name, ["the meme says it"])
            group = (groups or {}).get(name, name)
            writer.add_item(Item(name, group, gold, form, tags=tags or {}), ())
            status: Status = "failed" if text is None else "answered"
            writer.add_answer(Answer(name, 0, status, Reply(text or ""), text))
    return folder
