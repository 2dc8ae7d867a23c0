"""Writer of PunMemeCN's format: metadata by file name, with votes behind each sentiment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.benchmarks import chats, writing
from memantics.benchmarks.writing import Made, Record, pack
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import DataError
from memantics.core.queue import Review, Reviewed

# Writer of chats that end in a meme: PunMemeCN's two chat files, added to published puns.

_SPOKEN = re.compile(r"([ABab甲乙])\s*[:：]\s*(.+)")
_SPEAKERS: dict[str, Literal["A", "B"]] = {"A": "A", "B": "B", "甲": "A", "乙": "B"}
_UNFIT = "chats with a meme that is not published as a pun"


class _Options(BaseModel):
    model_config = ConfigDict(extra="ignore")

    easy: list[str]
    hard: dict[str, str]
    candidates: dict[str, list[str]]


class _ChatLine(BaseModel):
    """Schema of the fields read from ``chats.jsonl``."""

    model_config = ConfigDict(extra="ignore")

    id: str
    meme: str
    topic: chats.ChatTopic
    turns: list[chats.Turn]
    sender: str
    options: _Options


def add_chats(made: Made, review: Review) -> Made:
    """Add the kept chats whose memes are all published to the published puns.

    A distractor meme that is not published cannot be an option, so its chat is skipped.
    """
    names = name_puns(made)
    kept = {reviewed.item.id: reviewed for reviewed in review.items if reviewed.kept}
    wanted = [_edit(line, kept[line.id]) for line in _read(review.folder) if line.id in kept]
    lines = [line for line in wanted if _fits(line, names)]
    if not lines:
        raise DataError(
            review.folder,
            "no kept chat has its meme and all distractors published as puns",
            hint="write the chats with 'memantics build chats --annotations FILE', with the "
            "annotations of the workflow pun-form",
        )
    files = {file: pack(_write(lines, names, level)) for level, file in chats.LEVELS.items()}
    table: list[Record] = [
        {"id": line.id, "meme": names[line.meme].removesuffix(".png"), "topic": line.topic}
        for line in lines
    ]
    return replace(
        made,
        tasks=(*made.tasks, "chat"),
        files={**made.files, **files},
        tables={**made.tables, "chats": table},
        skipped={**made.skipped, _UNFIT: len(wanted) - len(lines)},
    )


def name_puns(made: Made) -> dict[str, str]:
    """Return the file names of the published puns, by meme id.

    The format allows chats about puns only, also for distractors.
    """
    puns = [row for row in made.tables["labels"] if row["pun"] == "yes"]
    return {str(row["known_as"]): f"{row['meme']}.png" for row in puns}


def _edit(line: _ChatLine, reviewed: Reviewed) -> _ChatLine:
    """Return a chat edited by an annotator: lines with speakers, without the meme's line."""
    written = reviewed.values.get("turns")
    if not isinstance(written, str) or written == reviewed.item.values.get("turns", written):
        return line
    turns = []
    for text in filter(None, map(str.strip, written.splitlines())):
        found = _SPOKEN.fullmatch(text)
        if found is None:
            raise DataError(
                reviewed.item.id,
                f"{text[:40]!r} does not begin with a speaker",
                hint="write every message as 'A: …' or 'B: …'",
            )
        turns.append(chats.Turn(speaker=_SPEAKERS[found[1].upper()], text=found[2]))
    if not turns:
        raise DataError(
            reviewed.item.id, "no message of the chat is left", hint="drop the chat instead"
        )
    return line.model_copy(update={"turns": turns})


def _read(queue: Path) -> Iterator[_ChatLine]:
    for place in (queue, queue.parent):
        path = place / chats.CHATS
        if path.is_file():
            for row, value in read_jsonl(path):
                yield _check(value, path, row)
            return
    raise DataError(queue, f"neither it nor its parent folder contains {chats.CHATS}")


def _check(value: JsonValue, path: Path, row: int) -> _ChatLine:
    try:
        return _ChatLine.model_validate(value)
    except ValueError as error:
        raise DataError(path, str(error).splitlines()[-1].strip(), row=row) from error


def _fits(line: _ChatLine, names: Mapping[str, str]) -> bool:
    wrong = [*line.options.easy, *(line.options.hard.get(kind, "") for kind in chats.KINDS)]
    return all(meme in names for meme in (line.meme, *wrong))


def _write(
    lines: list[_ChatLine], names: Mapping[str, str], level: str
) -> dict[str, dict[str, JsonValue]]:
    rows = {}
    for number, line in enumerate(lines, 1):
        said = chats.WrittenChat(tuple(line.turns), "A" if line.sender == "A" else "B")
        written = line.options
        options = chats.Options(
            tuple(written.easy),
            {kind: written.hard[kind] for kind in chats.KINDS},
            {kind: tuple(written.candidates.get(kind, ())) for kind in chats.KINDS},
        )
        entry = chats.make_entry(line.meme, line.topic, said, options, names, level)
        rows[f"chat_{number:05}"] = entry
    return rows


TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
VOTERS = 3
TASKS = ("detection", "sentiment", "ocr", "pinyin")
_ALONE = ".similar_text"


def write_puns(review: Review) -> writing.Made:
    """Return one entry per meme; memes are renamed, since PunMemeCN's file names mark puns."""
    memes = writing.gather_memes(review)
    meta: dict[str, writing.Record] = {}
    table: list[writing.Record] = []
    named: list[writing.PublishedMeme] = []
    kept = list(writing.walk_kept(review, memes))
    writing.refuse_faults(
        review, (fault for reviewed, _ in kept for fault in _find_faults(reviewed))
    )
    names = _name_groups(review.folder, kept)
    for reviewed, meme in kept:
        if reviewed.item.id not in names:
            continue
        is_pun = reviewed.values.get("pun") == "yes"
        new = replace(meme, id=names[reviewed.item.id])
        named.append(new)
        meta[new.file] = _entry(reviewed, is_pun=is_pun)
        row = {name: str(reviewed.values.get(name) or "") for name in _COLUMNS}
        table.append({"meme": new.id, "known_as": reviewed.item.group, **row})
    return writing.Made(
        "punmemecn",
        (*TASKS, *(["punchline"] if any(map(_has_homophone, meta.values())) else [])),
        tuple(named),
        {"_Meta.json": writing.pack(meta)},
        {"labels": table},
        skipped={"memes not in a group of three": len(kept) - len(names)},
    )


def _has_homophone(entry: writing.Record) -> bool:
    return entry.get("caption_2") not in (None, entry["caption_1"])


class _Group(BaseModel):
    """Schema of a line of ``hard-negatives.jsonl``."""

    model_config = ConfigDict(extra="ignore")

    pun: str
    similar_image: str
    similar_text: str


def _name_groups(
    folder: Path, kept: Sequence[tuple[Reviewed, writing.PublishedMeme]]
) -> dict[str, str]:
    """Return PunMemeCN's file name for each meme: in groups of three if available, else alone.

    Without groups, each meme that is not a pun forms its own group.
    """
    path = folder / writing.HARD_NEGATIVES
    if not path.is_file():
        return {
            reviewed.item.id: f"CN{number:05}"
            + ("" if reviewed.values.get("pun") == "yes" else _ALONE)
            for number, (reviewed, _) in enumerate(kept, 1)
        }
    known = {reviewed.item.id for reviewed, _ in kept}
    names: dict[str, str] = {}
    for row, value in read_jsonl(path):
        group = conform(_Group, value, path, row)
        members = (group.pun, group.similar_image, group.similar_text)
        if known.issuperset(members):
            first = f"CN{len(names) // 3 + 1:05}"
            names |= zip(
                members, (first, f"{first}.similar_image", f"{first}{_ALONE}"), strict=True
            )
    if not names:
        raise DataError(
            path, "no pun was kept with both of its hard negatives", hint="create the groups again"
        )
    return names


_COLUMNS = (
    "caption",
    "pun",
    "pun_word",
    "homophone",
    "sentiment_target",
    "sentiment_type",
    "explanation",
)


def _find_faults(reviewed: Reviewed) -> Iterator[str]:
    """Yield what prevents the publication of an item, in words."""
    name = reviewed.item.id
    texts = {key: reviewed.values.get(key) for key in ("caption", "pun_word", "homophone")}
    caption, word = texts["caption"], texts["pun_word"]
    if not isinstance(caption, str) or not caption:
        yield f"{name}: no caption"
        return
    if reviewed.values.get("pun") != "yes":
        return
    yield from (f"{name}: no {key}" for key, text in texts.items() if not text)
    if isinstance(word, str) and word and word not in caption:
        yield f"{name}: pun word {word!r} is not in its caption {caption!r}"


def _entry(reviewed: Reviewed, *, is_pun: bool) -> writing.Record:
    caption = writing.take_text(reviewed, "caption")
    label = _label(reviewed.values)
    entry = {
        "meme_type": "pun" if is_pun else "non-pun",
        "caption_1": caption,
        "meme_sentiment": label,
        "meme_sentiment_annotations": repr(_votes(reviewed, label)),
        "meme_explanation": writing.take_text(reviewed, "explanation", default=""),
    }
    if not is_pun:
        return entry
    word, sound = writing.take_text(reviewed, "pun_word"), writing.take_text(reviewed, "homophone")
    return entry | {
        "caption_2": caption.replace(word, sound, 1),
        "meme_chat": dict.fromkeys(TOPICS),
    }


def _label(values: Mapping[str, object]) -> str:
    """Return the sentiment label ``target-type``, with neutral values if missing."""
    target = str(values.get("sentiment_target") or "both")
    kind = str(values.get("sentiment_type") or "neutral")
    return f"{target}-{kind}"


def _votes(reviewed: Reviewed, label: str) -> dict[str, str]:
    """Return three votes, as the format requires; missing votes repeat the final label.

    An adjudicator's decision on a tie is not a fourth vote.
    """
    votes = reviewed.aggregated.annotations if reviewed.aggregated else []
    cast = [_label(vote.values) for vote in votes if vote.stage == votes[0].stage]
    cast = (cast + [label] * VOTERS)[:VOTERS]
    return {f"annotator_{number}": vote for number, vote in enumerate(cast, 1)}


WRITER = writing.Writer(write_puns, add_chats, list_chat_memes=name_puns)
