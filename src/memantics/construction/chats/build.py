"""Build chats with answer options from memes with descriptions, and write them to files.

Files: ``chats.jsonl``, PunMemeCN's two chat files, and an annotation queue. PunMemeCN's files name
memes ``CN00001.png``; ``names.json`` maps these names to meme ids. The metadata file of a release
is not written, since its labels must come from annotators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from PIL import Image as Pillow
from PIL import ImageOps
from pydantic import JsonValue

from memantics.benchmarks.chats import CHATS, LEVELS, Options, make_entry
from memantics.benchmarks.registry import find_writer
from memantics.construction.chats import distractors, generate, selection
from memantics.construction.chats.distractors import name_chat
from memantics.construction.chats.rules import RULES, ChatDraft, ChatSubject
from memantics.core.data import dump_json
from memantics.core.errors import InputError
from memantics.core.files import write_lines
from memantics.core.images import decode, encode_png, read_bytes
from memantics.core.marks import keep_mark
from memantics.core.memes import Meme, with_captions
from memantics.core.model import Asker
from memantics.core.parameters import Flag
from memantics.core.queue import QueueItem, Shown, read_review
from memantics.models.drafts import Miss, Tally, count_statuses, queue_images, write_draft_queue
from memantics.understanding.captions.mine import mine_captions

NAMES = "names.json"
WORKFLOW = "edit-chats"
_SIDE = 448
_MOST = 99_999
PunAnnotations = Annotated[
    Path | str | None, Flag("Use only the puns of this file of annotations (workflow pun-form).")
]


@dataclass(frozen=True, slots=True)
class ReleasedChat:
    """Store a finished chat with its distractors."""

    draft: ChatDraft
    options: Options


def write_chat_lines(folder: Path, chats: Sequence[ReleasedChat]) -> Path:
    """Write ``chats.jsonl`` with metrics, sources and all candidate lists."""
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
    """Write both chat files and square PNG images in the format of PunMemeCN."""
    if len(memes) > _MOST:
        raise InputError(
            f"PunMemeCN's file names allow at most {_MOST:,} memes",
            hint="split the folder into several builds",
        )
    names = name_files(memes)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for meme in memes:
        # Always rewritten: with other memes in the build, a number may belong to another meme.
        data = read_bytes(meme.image)
        square = encode_png(make_square(decode(data, meme.image.name)), 6)
        (folder / "images" / names[meme.id]).write_bytes(keep_mark(data, square))
    for level, file in LEVELS.items():
        rows: dict[str, JsonValue] = {
            f"chat_{number:05}": make_row(chat, names, level)
            for number, chat in enumerate(chats, 1)
        }
        (folder / file).write_text(dump_json(rows), encoding="utf-8")
    known = {file: meme_id for meme_id, file in names.items()}
    (folder / NAMES).write_text(dump_json(known), encoding="utf-8")
    return folder


def name_files(memes: Sequence[Meme]) -> dict[str, str]:
    """Return PunMemeCN-style file names by meme id."""
    return {meme.id: f"CN{number:05}.png" for number, meme in enumerate(memes, 1)}


def make_row(chat: ReleasedChat, names: Mapping[str, str], level: str) -> dict[str, JsonValue]:
    """Return one entry of a chat file."""
    draft = chat.draft
    return make_entry(draft.subject.meme.id, draft.topic, draft.said, chat.options, names, level)


def make_square(image: Pillow.Image) -> Pillow.Image:
    """Return an image on a white square of the benchmark's size."""
    return ImageOps.pad(
        image.convert("RGB"), (_SIDE, _SIDE), Pillow.Resampling.LANCZOS, color="white"
    )


def write_chat_queue(folder: Path, chats: Sequence[ReleasedChat], origin: str) -> int:
    """Write the queue in which people check chats; return the item count."""
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
            "hard": {str(kind): distractor for kind, distractor in chat.options.hard.items()},
            "source": {"model": draft.source.model, "prompt": draft.source.prompt},
        },
    )


def keep_publishable(memes: Sequence[Meme], queue: Path, annotations: Path | None) -> list[Meme]:
    """Return the memes whose chats can be published with an annotated queue of the same memes.

    Without annotations, all memes are returned.
    """
    if annotations is None:
        return list(memes)
    review = read_review(queue, annotations)
    _, writer = find_writer(review.card.workflow)
    if writer.list_chat_memes is None:
        raise InputError(
            f"the workflow {review.card.workflow} publishes no chats",
            hint="give annotations of the workflow pun-form",
        )
    allowed = writer.list_chat_memes(writer.write(review))
    return [meme for meme in memes if meme.id in allowed]


class Watched(Asker, Protocol):
    """Describe a model client that can display the expected number of steps."""

    def expect(self, steps: int) -> None:
        """Announce additional steps."""
        ...


@dataclass(frozen=True, slots=True)
class ChatReport:
    """Summarise a chat build.

    ``broken`` counts, by rule, the attempts rejected for breaking it. ``unknown`` are memes without
    any description.
    """

    model: str
    unknown: tuple[str, ...]
    written: int
    corpus: selection.Corpus
    statuses: dict[str, int]
    broken: dict[str, int]
    incomplete: int
    filled: dict[str, int]
    rejected: int
    misses: tuple[Miss, ...]
    embedders: dict[str, str]


async def build_chats(
    asker: Watched,
    memes: tuple[Sequence[Meme], Sequence[Meme]],
    embedders: distractors.Embedders,
    gauges: selection.Gauges,
    settings: generate.ChatSettings,
) -> tuple[list[ReleasedChat], ChatReport]:
    """Build chats for memes: generate missing descriptions, then write and select chats.

    ``memes`` are those to write about; other memes serve only as distractors, and no model is
    called for them.
    """
    subjects, others, mined, feeling = await _describe(asker, memes, settings.language)
    # Without a description of the meme, the model would invent the content of the chat.
    known = [subject for subject in subjects if subject.about or subject.meme.text.strip()]
    written = await generate.write_chats(asker, known, embedders.text, settings, asker.expect)
    chosen = selection.select_chats(selection.measure_drafts(written.drafts, gauges), settings.keep)
    pool = distractors.ChatPool([*known, *others], embedders)
    options, checked = await distractors.choose_distractors(
        asker, chosen, pool, settings, asker.expect
    )
    chats = [
        ReleasedChat(*pair)
        for pair in zip(chosen, options, strict=True)
        if distractors.is_complete(pair[1])
        and distractors.is_distinct(pair[0].subject.meme.id, pair[1], pool)
    ]
    tallies = (mined, feeling, written.tally, checked)
    report = ChatReport(
        model=asker.model,
        unknown=tuple(subject.meme.id for subject in subjects if subject not in known),
        written=len(written.drafts),
        corpus=selection.describe_corpus([chat.draft for chat in chats], gauges),
        statuses=count_statuses(tallies),
        broken=count_broken(written.tally.misses),
        incomplete=len(chosen) - len(chats),
        filled=dict(distractors.count_filled([chat.options for chat in chats])),
        rejected=sum(len(refused) for chat in chats for refused in chat.options.rejected.values()),
        misses=tuple(miss for tally in tallies for miss in tally.misses),
        embedders={"text": embedders.text.version, "image": embedders.image.version},
    )
    return chats, report


async def _describe(
    asker: Watched, memes: tuple[Sequence[Meme], Sequence[Meme]], language: str
) -> tuple[list[ChatSubject], list[ChatSubject], Tally, Tally]:
    """Return descriptions and sentiments of all memes, with the calls by status."""
    own_memes, others = memes
    if len(own_memes) + len(others) < 4:
        raise InputError(
            f"{len(own_memes) + len(others)} memes are too few for four options",
            hint="give at least four memes",
        )
    mined = await mine_captions(asker, own_memes, language, asker.expect)
    notes = {
        one.meme.id: {
            "meaning": one.captions["text_caption"],
            "description": one.captions["image_caption"],
        }
        for one in mined.drafts
    }
    feeling = Tally()
    subjects = [generate.make_subject(meme, language) for meme in with_captions(own_memes, notes)]
    subjects = await generate.find_feelings(asker, subjects, feeling, asker.expect)
    plain = (generate.make_subject(meme, language) for meme in others)
    known = [one for one in plain if one.about or one.meme.text.strip()]
    return subjects, known, mined.tally, feeling


def count_broken(misses: Sequence[Miss]) -> dict[str, int]:
    """Count rejected chats by the rule they break.

    >>> count_broken([Miss("a/chats/work/0", "unparsed", "length: 9 messages; caption: 'x'")])
    {'length': 1, 'caption': 1}
    """
    found: Counter[str] = Counter()
    for miss in misses:
        parts = miss.reason.split("; ")
        found.update(rule for rule in RULES if any(part.startswith(f"{rule}: ") for part in parts))
    return dict(found)
