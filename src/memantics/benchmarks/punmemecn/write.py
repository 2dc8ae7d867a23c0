"""PunMemeCN's format: metadata by file name, with the votes on sentiment behind each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from memantics.benchmarks.punmemecn.write_chats import add_chats
from memantics.core import writing
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import DataError
from memantics.core.review import Review, Reviewed

TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
VOTERS = 3
TASKS = ("detection", "sentiment", "ocr", "pinyin")
_ALONE = ".similar_text"


def write_puns(review: Review) -> writing.Made:
    """One entry a meme; the format's file names say whether it is a pun, so memes are renamed."""
    memes = writing.gather_memes(review)
    meta: dict[str, writing.Record] = {}
    table: list[writing.Record] = []
    named: list[writing.PublishedMeme] = []
    kept = list(writing.walk_kept(review, memes))
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
        {"puns": table},
        left_out={"memes in no group of three": len(kept) - len(names)},
    )


def _has_homophone(entry: writing.Record) -> bool:
    return entry.get("caption_2") not in (None, entry["caption_1"])


class _Group(BaseModel):
    """A line of ``look-alikes.jsonl``."""

    model_config = ConfigDict(extra="ignore")

    pun: str
    similar_image: str
    similar_text: str


def _name_groups(
    folder: Path, kept: Sequence[tuple[Reviewed, writing.PublishedMeme]]
) -> dict[str, str]:
    """The name of each meme in the format: groups of three where they were made, else alone.

    Where nobody made groups, a meme that is no pun makes a group of its own.
    """
    path = folder / writing.LOOK_ALIKES
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
        raise DataError(path, "no group of three was kept whole", hint="make the groups again")
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
    if word not in caption:
        raise DataError(reviewed.item.id, f"pun word {word!r} is not in its caption {caption!r}")
    return entry | {
        "caption_2": caption.replace(word, sound, 1),
        "meme_chat": dict.fromkeys(TOPICS),
    }


def _label(values: Mapping[str, object]) -> str:
    """``target-type``, with the middle of both where nobody said."""
    target = str(values.get("sentiment_target") or "both")
    kind = str(values.get("sentiment_type") or "neutral")
    return f"{target}-{kind}"


def _votes(reviewed: Reviewed, label: str) -> dict[str, str]:
    """Three votes, as the format asks for; where fewer people voted the label fills up.

    Who decided a tie at a later stage is no fourth voter.
    """
    votes = reviewed.verdict.votes if reviewed.verdict else []
    cast = [_label(vote.values) for vote in votes if vote.stage == votes[0].stage]
    cast = (cast + [label] * VOTERS)[:VOTERS]
    return {f"annotator_{number}": vote for number, vote in enumerate(cast, 1)}


WRITER = writing.Writer(write_puns, add_chats)
