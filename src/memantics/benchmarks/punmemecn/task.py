"""PunMemeCN's tasks: three on puns, two on what puns presuppose, and a stress test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from memantics.benchmarks.punmemecn import chat, detection, harmful, sentiment, transcription
from memantics.benchmarks.punmemecn.brief import FOLDER, Brief
from memantics.benchmarks.punmemecn.detection import ALIASES
from memantics.core.card import read_card, resolve_options
from memantics.core.data import Source
from memantics.core.records import Item
from memantics.core.task import InvalidPolicy, Task

__all__ = ["ALIASES", "hear", "make"]

MAKERS: Mapping[str, Callable[[Brief], Task]] = {
    "detection": detection.make,
    "sentiment": sentiment.make,
    "chat": chat.make,
    "ocr": transcription.make_ocr,
    "pinyin": transcription.make_pinyin,
    "harmful": harmful.make,
}


def make(
    name: str,
    options: Mapping[str, str],
    split: str,  # noqa: ARG001 - one split only, which the card names
    source: Source | None,
    invalid: InvalidPolicy,
) -> Task:
    """The task of that name. Without a source it can parse and score, not ask."""
    card = read_card(FOLDER / "card.toml").find_task(name)
    chosen = resolve_options(card, options)
    return MAKERS[name](Brief(f"punmemecn/{name}", card.main, chosen, source, invalid))


def hear(task: Task, open_listener: Callable[[], tuple[str, Callable[[str], str]]]) -> Task:
    """With ``hint=readings`` a prompt also tells what its caption sounds like.

    The readings come from the sound alone, never from the annotated one. ``open_listener`` gives
    the name of the model behind them, which the run remembers, and a function of the caption.
    """
    if task.options.get("hint") != "readings":
        return task
    name, listen = open_listener()

    def items() -> Iterator[Item]:
        for item in task.items():
            heard = listen(item.form.context["caption"])
            context = {**item.form.context, "readings": heard} if heard else item.form.context
            yield replace(item, form=replace(item.form, context=context))

    return replace(task, items=items, prompts={**task.prompts, "readings": name})
