"""Open a copy of PunMemeCN, in any of its official layouts."""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from memantics.benchmarks.punmemecn import records
from memantics.benchmarks.punmemecn.records import Mended, mend_turns, split_conversation
from memantics.core.data import Skip, Source, read_json
from memantics.core.errors import DataError, first_row_fault, require_known
from memantics.releases.punmemecn import META, find_folder

# The official files of PunMemeCN, row by row, checked as they enter.

_FILE = re.compile(r"(?P<group>CN\d{5})(?:\.(?P<role>similar_image|similar_text))?\.png", re.A)
_CHAT_ID = re.compile(r"[A-Za-z0-9_-]+")
_ANNOTATORS = ("annotator_1", "annotator_2", "annotator_3")
_LITERAL_LIMIT = 4096
_LEFT_OUT = "topics without a chat left out instead of null"

Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Row = TypeVar("Row", bound=BaseModel)
T = TypeVar("T")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _PlainRow(_Closed):
    meme_type: Literal["non-pun"]
    caption_1: Text
    meme_sentiment: Text
    meme_sentiment_annotations: Text
    meme_explanation: str


class _PunRow(_Closed):
    meme_type: Literal["pun"]
    caption_1: Text
    caption_2: Text
    meme_sentiment: Text
    meme_sentiment_annotations: Text
    meme_explanation: str
    meme_chat: dict[records.Topic, str | None]


class _EasyOptions(_Closed):
    correct: Text
    random1: Text = Field(alias="wrong(random1)")
    random2: Text = Field(alias="wrong(random2)")
    random3: Text = Field(alias="wrong(random3)")


class _HardOptions(_Closed):
    correct: Text
    text_sim: Text = Field(alias="wrong(text_sim)")
    image_sim: Text = Field(alias="wrong(image_sim)")
    sentiment_sim: Text = Field(alias="wrong(sentiment_sim)")
    text_candidates: Text = Field(alias="wrong_candidates(text_sim)")
    image_candidates: Text = Field(alias="wrong_candidates(image_sim)")
    sentiment_candidates: Text = Field(alias="wrong_candidates(sentiment_sim)")


class _EasyRow(_Closed):
    topic: records.Topic
    chat_history: list[str]
    meme_response: _EasyOptions


class _HardRow(_Closed):
    topic: records.Topic
    chat_history: list[str]
    meme_response: _HardOptions


@dataclass(slots=True)
class ReadingFindings:
    """What reading brought to light besides the records."""

    skips: list[Skip] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)


def read_memes(
    path: Path, find_image: Callable[[str], Path | None], findings: ReadingFindings
) -> tuple[tuple[records.PunMeme, ...], tuple[records.Conversation, ...]]:
    """Read the metadata: every meme, and the conversations that stand with the puns."""
    memes: list[records.PunMeme] = []
    conversations: list[records.Conversation] = []
    roles: defaultdict[str, set[records.Role]] = defaultdict(set)
    for name, value in _entries(path):
        group, role = _parse_name(name, path, name)
        row: _PunRow | _PlainRow
        if role == "pun":
            row = _check(_PunRow, value, path, name)
            conversations += _read_conversations(row, name, path, findings)
            reading = row.caption_2
        else:
            row, reading = _check(_PlainRow, value, path, name), None
        if row.meme_sentiment not in records.LABELS:
            raise DataError(
                path.name, f"meme_sentiment {row.meme_sentiment!r} is no target-type", row=name
            )
        target, _, type_ = row.meme_sentiment.partition("-")
        memes.append(
            records.PunMeme(
                id=name.removesuffix(".png"),
                group=group,
                role=role,
                caption=row.caption_1,
                reading=reading,
                target=target,
                type=type_,
                votes=_parse_votes(row.meme_sentiment_annotations, path, name),
                explanation=row.meme_explanation,
                image=find_image(name),
            )
        )
        roles[group].add(role)
    # Sets built with 'memantics publish' have no look-alikes: there every group is one meme.
    alone = all(len(present) == 1 for present in roles.values())
    for group, present in roles.items():
        if not alone and (missing := [role for role in records.ROLES if role not in present]):
            raise DataError(
                path.name,
                f"the group has no {' and no '.join(missing)} meme; a group is three memes",
                row=group,
            )
    return tuple(memes), tuple(conversations)


def read_chats(
    path: Path, level: records.Level, puns: frozenset[str], findings: ReadingFindings
) -> tuple[records.ChatRecord, ...]:
    """Read one file of chats; a chat with an option outside ``puns`` is left out and listed."""
    chats: list[records.ChatRecord] = []
    for key, value in _entries(path):
        if not _CHAT_ID.fullmatch(key):
            raise DataError(path.name, "not a chat id (letters, digits, _ and -)", row=key)
        chat, repairs = _read_chat(value, level, path, key)
        options = (chat.correct, *(meme for _, meme in chat.distractors))
        if len(set(options)) != len(options):
            raise DataError(path.name, "the four options are not four memes", row=key)
        absent = [meme for meme in options if meme not in puns]
        if absent:
            reason = f"not in this copy: {', '.join(f'{meme}.png' for meme in absent)}"
            findings.skips.append(Skip(path.name, key, reason))
        else:
            chats.append(chat)
            findings.repairs.update(repairs)
    return tuple(chats)


def _entries(path: Path) -> Iterator[tuple[str, JsonValue]]:
    """The entries of a JSON object; a key that comes twice is an error, not a replacement."""
    top = read_json(path)
    if not isinstance(top, dict):
        raise DataError(path.name, "not a JSON object keyed by name", hint="download it again")
    if not top:
        raise DataError(path.name, "no records", hint="download the file again")

    names: list[str] = []

    def keep_names(pairs: list[tuple[str, JsonValue]]) -> None:
        # Objects close from the inside out: the last one seen is the whole file.
        names[:] = [name for name, _ in pairs]

    try:
        json.loads(path.read_bytes(), object_pairs_hook=keep_names)
    except RecursionError as error:
        raise DataError(path.name, "nested too deeply", hint="download it again") from error
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(path.name, f"the key comes {times} times", row=name)
    yield from top.items()


def _check(model: type[Row], value: JsonValue, path: Path, key: str) -> Row:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problem, hint = first_row_fault(error), "see the official file format"
        raise DataError(path.name, problem, row=key, hint=hint) from error


def _parse_name(name: str, path: Path, key: str) -> tuple[str, records.Role]:
    parts = _FILE.fullmatch(name)
    if parts is None:
        raise DataError(
            path.name,
            f"{name!r} is not CN, five digits, .similar_image or .similar_text or nothing, .png",
            row=key,
        )
    for role in records.ROLES:
        if role == parts["role"]:
            return parts["group"], role
    return parts["group"], "pun"


def _parse_pun(name: str, path: Path, key: str) -> str:
    group, role = _parse_name(name, path, key)
    if role != "pun":
        raise DataError(path.name, f"option {name} is no pun meme", row=key)
    return group


def _parse_literal(text: str, path: Path, key: str, name: str) -> object:
    """Parse a value that was stored as Python source; only plain literals pass."""
    try:
        # No official value has an escape; without them nothing can hide in a string either.
        if len(text) > _LITERAL_LIMIT or "\\" in text:
            raise ValueError("too long or escaped")
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise DataError(path.name, f"{name}: not a plain Python literal", row=key) from error


def _parse_votes(text: str, path: Path, key: str) -> tuple[str, ...]:
    votes = _parse_literal(text, path, key, "meme_sentiment_annotations")
    if not isinstance(votes, dict) or set(votes) != set(_ANNOTATORS):
        raise DataError(
            path.name, f"meme_sentiment_annotations: not {', '.join(_ANNOTATORS)}", row=key
        )
    for vote in votes.values():
        if vote not in records.LABELS:
            raise DataError(path.name, f"vote {vote!r} is no target-type", row=key)
    return tuple(str(votes[name]) for name in _ANNOTATORS)


def _read_conversations(
    row: _PunRow, name: str, path: Path, findings: ReadingFindings
) -> Iterator[records.Conversation]:
    findings.repairs[_LEFT_OUT] += sum(topic not in row.meme_chat for topic in records.TOPICS)
    for topic, text in row.meme_chat.items():
        if not text:
            continue
        lines = split_conversation(text, name)
        if lines is None:
            raise DataError(path.name, f"meme_chat.{topic}: does not end in its meme", row=name)
        mended = _mend(lines, path, name, f"meme_chat.{topic}")
        findings.repairs.update(mended.repairs)
        yield records.Conversation(
            name.removesuffix(".png"), topic, mended.turns, mended.speaker, tuple(lines)
        )


def _mend(lines: list[str], path: Path, key: str, name: str) -> Mended:
    try:
        return mend_turns(lines)
    except ValueError as error:
        raise DataError(path.name, f"{name}: {error}", row=key) from error


def _read_chat(
    value: JsonValue, level: records.Level, path: Path, key: str
) -> tuple[records.ChatRecord, Mapping[str, int]]:
    row: _EasyRow | _HardRow
    if level == "easy":
        row = _check(_EasyRow, value, path, key)
        easy = row.meme_response
        chosen = {"random1": easy.random1, "random2": easy.random2, "random3": easy.random3}
        lists = {}
    else:
        row = _check(_HardRow, value, path, key)
        hard = row.meme_response
        chosen = {
            "text_sim": hard.text_sim,
            "image_sim": hard.image_sim,
            "sentiment_sim": hard.sentiment_sim,
        }
        lists = {
            "text_sim": hard.text_candidates,
            "image_sim": hard.image_candidates,
            "sentiment_sim": hard.sentiment_candidates,
        }
    mended = _mend(row.chat_history, path, key, "chat_history")
    chat = records.ChatRecord(
        id=key,
        topic=row.topic,
        turns=mended.turns,
        speaker=mended.speaker,
        correct=_parse_pun(row.meme_response.correct, path, key),
        distractors=tuple((kind, _parse_pun(name, path, key)) for kind, name in chosen.items()),
        candidates={kind: _parse_candidates(text, path, key) for kind, text in lists.items()},
        level=level,
    )
    return chat, mended.repairs


def _parse_candidates(text: str, path: Path, key: str) -> tuple[str, ...]:
    names = _parse_literal(text, path, key, "wrong_candidates")
    if not isinstance(names, list):
        raise DataError(path.name, "wrong_candidates: not a list of file names", row=key)
    return tuple(_parse_pun(name, path, key) for name in names if _is_text(name, path, key))


def _is_text(name: object, path: Path, key: str) -> bool:
    if not isinstance(name, str):
        raise DataError(path.name, "wrong_candidates: not a list of file names", row=key)
    return True


CHATS: Mapping[records.Level, str] = MappingProxyType(
    {"easy": "_Chat(easy).json", "hard": "_Chat(hard).json"}
)


@dataclass(frozen=True, slots=True)
class PunRelease:
    """A copy of PunMemeCN: all memes in file order, their conversations, the chats by level."""

    folder: Path
    files: tuple[Path, ...]
    memes: tuple[records.PunMeme, ...]
    conversations: tuple[records.Conversation, ...]
    easy: tuple[records.ChatRecord, ...]
    hard: tuple[records.ChatRecord, ...]
    skips: tuple[Skip, ...]
    repairs: Mapping[str, int]

    def chats(self, level: str) -> tuple[records.ChatRecord, ...]:
        """The chats of a level whose four options lie in this copy."""
        require_known("level", level, records.LEVELS)
        return self.easy if level == "easy" else self.hard

    def by_id(self) -> dict[str, records.PunMeme]:
        """The memes by id."""
        return {meme.id: meme for meme in self.memes}


def open_release(source: Source) -> PunRelease:
    """Read a copy of the release; what is not as it should be is named with file and row."""
    folder = find_folder(source.root)
    images = _list_images(folder, source.images)
    findings = ReadingFindings()
    memes, conversations = read_memes(folder / META, images.get, findings)
    puns = frozenset(meme.id for meme in memes if meme.is_pun)
    # The same slips stand in the metadata and in both chat files: count each file by itself.
    repairs = Counter({f"{META}: {what}": n for what, n in (+findings.repairs).items()})
    chats: dict[records.Level, tuple[records.ChatRecord, ...]] = {"easy": (), "hard": ()}
    files = [folder / META]
    for level, name in CHATS.items():
        if (folder / name).is_file():
            files.append(folder / name)
            findings.repairs = Counter()
            chats[level] = read_chats(folder / name, level, puns, findings)
            repairs.update({f"{name}: {what}": n for what, n in findings.repairs.items()})
    return PunRelease(
        folder=folder,
        files=tuple(files),
        memes=memes,
        conversations=conversations,
        easy=chats["easy"],
        hard=chats["hard"],
        skips=tuple(findings.skips),
        repairs=MappingProxyType(dict(repairs)),
    )


def _list_images(folder: Path, given: Path | None) -> dict[str, Path]:
    """The PNG files by name: in the folder given, else beside the metadata or in ``images``."""
    if given is not None and not given.is_dir():
        raise DataError(given, "no such folder of images", hint="check the path")
    places = (given,) if given is not None else (folder, folder / "images")
    found: dict[str, Path] = {}
    for place in places:
        if place.is_dir():
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.endswith(".png") and entry.is_file():
                        found.setdefault(entry.name, place / entry.name)
    return found
