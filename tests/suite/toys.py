"""Small benchmarks in folders of their own, as a user would add them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.commands import Shell

CARD = """
name = "{name}"
title = "Toy {name}"
summary = "A toy."
languages = ["en"]
citation = "none"

[sample]
licence = "CC0-1.0"
images = "own"
"""
TASK_CARD = """
[[task]]
name = "{name}"
title = "{name}"
main = "accuracy"
baselines = ["baseline/constant"]
needs_images = false
splits = ["all"]
"""
OPTION_CARD = """
[[task.option]]
name = "{name}"
help = "{help}"
default = "{default}"
choices = ["{default}", "{other}"]
"""
# Tasks with their options: name, help, default, the other choice.
TASKS = {
    "choice": (
        ("style", "how it is asked", "plain", "loud"),
        ("count", "what is counted; no request depends on it", "all", "some"),
    ),
    "note": (("length", "how long", "short", "long"),),
    "use": (("notes", "whose notes: none, or those of the task note", "auto", "none"),),
    "rare": (),
}

PLUGIN = """
import json
from dataclasses import replace
from pathlib import Path

from memantics.core.data import Found, checksum
from memantics.core.errors import DataError
from memantics.core.records import Field, Form, Item, Message, Option, Request, Score
from memantics.core.task import Need, Task, Unparsed
from memantics.benchmarks.plugin import BenchmarkPlugin

FOLDER = Path(__file__).parent
OPTIONS = tuple(Option(key, f"choice {key}") for key in "ABCD")
OFFSET = {"choice": 0, "note": 3000, "use": 6000, "rare": 9000}


def survey(release):
    files = [release.root / "facts.json"]
    return Found(1, {"memes": 1}, ("facts.json",), checksum(files, release.root))


def make(setup):
    name, chosen, source, invalid = setup.card.name, setup.options, setup.source, setup.invalid
    text = name == "note"
    field = Field("answer", "text") if text else Field("answer", "choice", OPTIONS)

    def items(fed=None):
        facts = json.loads((source.root / "facts.json").read_text())
        if name == "rare":
            raise DataError("rare.json", "is not in this copy", hint="ask its owner")
        for number in range(facts["items"]):
            item, meme = facts["first"] + OFFSET[name] + number, f"meme-{number // 2}"
            context = {"note": fed[meme]} if fed and meme in fed else {}
            form = Form(f"item-{item}?", (field,), reply="text" if text else "key", context=context)
            yield Item(f"item-{item}", meme, "B", form)

    def ask(item, complaint):
        loud = "!!" if chosen.get("style") == "loud" else ""
        words = [*item.form.context.values(), complaint or "", item.form.question + loud]
        return Request((Message("user", (" ".join(words),)),), item.form)

    def parse(reply, form):
        if text and reply.strip():
            return reply
        if reply not in "ABCD" or not reply:
            raise Unparsed("no letter")
        return reply

    def score(outcomes):
        right = sum(own.value == own.item.gold for own in outcomes)
        return (Score("accuracy", right / len(outcomes) if outcomes else None, len(outcomes)),)

    task = Task(
        f"{FOLDER.name}/{name}", items, ask, parse, score, "accuracy", invalid, chosen,
        {"ask": "1"},
    )
    if chosen.get("notes") != "auto":
        return task
    need = Need("note", f"{FOLDER.name}/note", {}, captioner=True)
    return replace(
        task,
        needs=(need,),
        feed=lambda fed: replace(task, items=lambda: items(fed["note"])),
    )


PLUGIN = BenchmarkPlugin(open_release=lambda source: source, survey=survey, make_task=make)
"""


def _write_card(name: str) -> str:
    parts = [CARD.format(name=name)]
    for task, options in TASKS.items():
        parts.append(TASK_CARD.format(name=task))
        parts += [
            OPTION_CARD.format(name=one, help=help_, default=default, other=other)
            for one, help_, default, other in options
        ]
    return "".join(parts)


def write_toy(root: Path, name: str, first: int, items: int) -> Path:
    """A benchmark whose items are called ``item-N``, each of its tasks with its own numbers."""
    folder = root / name
    (folder / "sample" / "images").mkdir(parents=True)
    (folder / "sample" / "facts.json").write_text(json.dumps({"first": first, "items": items}))
    for file, text in (("card.toml", _write_card(name)), ("plugin.py", PLUGIN)):
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def environment(shell: Shell, root: Path, url: str = "") -> dict[str, str]:
    """For a command that shall know the toys."""
    return {
        **shell.environment,
        "MEMANTICS_BENCHMARKS": str(root),
        "OPENAI_BASE_URL": url,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.environ.get("PATH", ""),
    }
