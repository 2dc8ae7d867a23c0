"""Chats as files: our own lines, PunMemeCN's two chat files, and a queue for people.

PunMemeCN's files name memes ``CN00001.png``; ``names.json`` says which meme of ours each is. Only
the chat files are written: the metadata of a release holds labels that people must give first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as Pillow
from PIL import ImageOps
from pydantic import JsonValue

from memantics.build.chats.distractors import name_chat
from memantics.build.chats.records import ChatDraft
from memantics.build.drafts import queue_images, write_draft_queue
from memantics.core.data import dump_json
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.journal import write_lines
from memantics.core.memes import Meme
from memantics.core.queue import QueueItem, Shown
from memantics.tasks.chats import CHATS, LEVELS, Options, make_entry

NAMES = "names.json"
WORKFLOW = "edit-chats"
_SIDE = 448
_MOST = 99_999


@dataclass(frozen=True, slots=True)
class ReleasedChat:
    """A finished draft: the chat and its wrong answers."""

    draft: ChatDraft
    options: Options


def write_chat_lines(folder: Path, chats: Sequence[ReleasedChat]) -> Path:
    """Write ``chats.jsonl`` with figures, sources and all candidate lists."""
    return write_lines(folder / CHATS, map(_make_line, chats))


def _make_line(chat: ReleasedChat) -> dict[str, object]:
    draft = chat.draft
    return {
        "id": name_chat(draft),
        "meme": draft.subject.meme.id,
        "language": draft.subject.language,
        "topic": draft.topic,
        "turns": draft.said.turns,
        "sender": draft.said.sender,
        "sentiment": f"{draft.subject.target}-{draft.subject.type}".strip("-"),
        "quality": draft.quality,
        "options": chat.options,
        "source": draft.source,
    }


def write_punmemecn(folder: Path, chats: Sequence[ReleasedChat], memes: Sequence[Meme]) -> Path:
    """Write both chat files with square PNG images, as PunMemeCN's reader takes them."""
    if len(memes) > _MOST:
        raise InputError(f"PunMemeCN's file names end at {_MOST:,} memes", hint="split the folder")
    names = name_files(memes)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for meme in memes:
        # Always anew: with other memes around it, a number may have become another meme's.
        make_square(load(meme.image)).save(folder / "images" / names[meme.id], "PNG")
    for level, file in LEVELS.items():
        rows: dict[str, JsonValue] = {
            f"chat_{number:05}": make_row(chat, names, level)
            for number, chat in enumerate(chats, 1)
        }
        (folder / file).write_text(dump_json(rows), encoding="utf-8")
    known = {file: name for name, file in names.items()}
    (folder / NAMES).write_text(dump_json(known), encoding="utf-8")
    return folder


def name_files(memes: Sequence[Meme]) -> dict[str, str]:
    """The file name of each meme in PunMemeCN's manner, by id."""
    return {meme.id: f"CN{number:05}.png" for number, meme in enumerate(memes, 1)}


def make_row(chat: ReleasedChat, names: Mapping[str, str], level: str) -> dict[str, JsonValue]:
    """One entry of a chat file."""
    draft = chat.draft
    return make_entry(draft.subject.meme.id, draft.topic, draft.said, chat.options, names, level)


def make_square(image: Pillow.Image) -> Pillow.Image:
    """An image on a white square of the benchmark's size."""
    return ImageOps.pad(
        image.convert("RGB"), (_SIDE, _SIDE), Pillow.Resampling.LANCZOS, color="white"
    )


def write_chat_queue(folder: Path, chats: Sequence[ReleasedChat], origin: str) -> int:
    """Write the queue in which people check chats; return how many items it has."""
    memes = {chat.draft.subject.meme.id: chat.draft.subject.meme for chat in chats}
    names = queue_images(memes.values(), folder)
    items = [_make_item(chat, names) for chat in chats]
    return write_draft_queue(folder, "Chats that end in a meme", WORKFLOW, items, origin)


def _make_item(chat: ReleasedChat, names: Mapping[str, str]) -> QueueItem:
    draft = chat.draft
    meme = draft.subject.meme
    lines = [f"{turn.speaker}: {turn.text}" for turn in draft.said.turns]
    return QueueItem(
        id=name_chat(draft),
        group=meme.id,
        images=[names[meme.id]],
        shown=[
            Shown(label="Chat", value=lines, kind="list"),
            Shown(label="Answer", value=f"{draft.said.sender} answers with this meme"),
        ],
        values={"turns": "\n".join(lines)},
        hidden={
            "topic": draft.topic,
            "language": draft.subject.language,
            "easy": list(chat.options.easy),
            "hard": {str(kind): text for kind, text in chat.options.hard.items()},
            "source": {"model": draft.source.model, "prompt": draft.source.prompt},
        },
    )
