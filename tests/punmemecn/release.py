"""Small releases of our own in the official format and with official ids, written for a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memantics.benchmarks.punmemecn.wording import FOLDER, SAMPLE_FOLDER
from memantics.core.data import Source
from memantics.core.records import Item, Outcome
from memantics.core.task import Task
from tests import setups

TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
ROLES = ("", ".similar_image", ".similar_text")
SAMPLE = Source("sample", FOLDER / "sample", SAMPLE_FOLDER / "images")


def write_release(
    folder: Path, puns: Iterable[int], sentiments: Iterable[str] = (), *, images: bool = True
) -> Source:
    """Groups with these numbers and a chat each; ``sentiments`` go round over the puns."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers, labels = list(puns), list(sentiments) or ["self-positive"]
    meta: dict[str, Any] = {}
    for place, number in enumerate(numbers):
        for role in ROLES:
            name = f"CN{number:05d}{role}.png"
            meta[name] = _row(number, role, labels[place % len(labels)])
            if images:
                Pillow.new("RGB", (4, 4), (number % 256, len(role), 9)).save(folder / name)
    levels = _chats(numbers)
    for name, data in (("_Meta", meta), *levels.items()):
        text = json.dumps(data, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return Source("release", folder)


def _row(number: int, role: str, label: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "meme_type": "non-pun" if role else "pun",
        "caption_1": f"茶{number}$x" if role else f"有茶就型{number}",
        "meme_sentiment": label,
        "meme_sentiment_annotations": repr({f"annotator_{n}": label for n in (1, 2, 3)}),
        "meme_explanation": f"第{number}只杯子。\n意思是喝茶。",
    }
    if not role:
        row["caption_2"] = f"有茶就行{number}" if number % 2 else f"有茶就型{number}"
        row["meme_chat"] = dict.fromkeys(TOPICS)
    return row


def _chats(numbers: list[int]) -> dict[str, dict[str, Any]]:
    easy: dict[str, Any] = {}
    hard: dict[str, Any] = {}
    for place, number in enumerate(numbers):
        # The official example has a number of its own; the others are counted.
        key = "chat_00100" if number == 31 else f"chat_{place + 1:05d}"
        others = [f"CN{numbers[(place + step) % len(numbers)]:05d}.png" for step in (1, 2, 3)]
        story = {
            "topic": TOPICS[place % 6],
            "chat_history": ["甲：忙吗？", f"乙：{number}。", "甲："],
        }
        right = {"correct": f"CN{number:05d}.png"}
        draws = {f"wrong(random{n})": other for n, other in enumerate(others, 1)}
        kinds = ("text_sim", "image_sim", "sentiment_sim")
        near = {f"wrong({kind})": other for kind, other in zip(kinds, others, strict=True)}
        lists = {f"wrong_candidates({kind})": repr(others) for kind in kinds}
        easy[key] = {**story, "meme_response": {**right, **draws}}
        hard[key] = {**story, "meme_response": {**lists, **right, **near}}
    return {"_Chat(easy)": easy, "_Chat(hard)": hard}


def make_task(name: str, source: Source | None = SAMPLE, **options: str) -> Task:
    return setups.make_task(setups.make_setup(f"punmemecn/{name}", options, source))


def answer_all(items: Iterable[Item], values: Iterable[Any]) -> list[Outcome]:
    """Outcomes with these values; None is an invalid answer."""
    return [
        Outcome(item, "unparsed" if value is None else "answered", value)
        for item, value in zip(items, values, strict=True)
    ]
