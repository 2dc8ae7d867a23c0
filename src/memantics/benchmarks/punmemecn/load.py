"""Reader of PunMemeCN in any official layout: memes in groups of three, and chats.

Errors in the released chats are repaired and counted. Chats with an unknown option are skipped and
listed.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel, Field, JsonValue, ValidationError

from memantics.benchmarks.chats import ChatTopic
from memantics.core.data import Skip, Source, read_json
from memantics.core.errors import DataError, first_row_fault, require_known
from memantics.core.files import read_regular
from memantics.core.releases import META, ReleaseRow, ReleaseText, find_folder

GroupRole = Literal["pun", "similar_image", "similar_text"]
Difficulty = Literal["easy", "hard"]
ROLES: tuple[GroupRole, ...] = get_args(GroupRole)
TOPICS: tuple[ChatTopic, ...] = get_args(ChatTopic)
LEVELS: tuple[Difficulty, ...] = get_args(Difficulty)
TARGETS = ("self", "both", "other")
TYPES = ("positive", "neutral", "negative")
LABELS = tuple(f"{target}-{type_}" for target in TARGETS for type_ in TYPES)


@dataclass(frozen=True, slots=True)
class PunMeme:
    """One meme; ``id`` is its file name without ``.png``, ``group`` the id of its pun.

    ``caption`` is the printed text, ``reading`` the intended reading (None for non-puns; equal to
    the caption if one word has two senses). ``target`` and ``type`` are the final sentiment,
    ``votes`` the labels of three annotators.
    """

    id: str
    group: str
    role: GroupRole
    caption: str
    reading: str | None
    target: str
    type: str
    votes: tuple[str, ...]
    explanation: str
    image: Path | None

    @property
    def file(self) -> str:
        """The official file name."""
        return f"{self.id}.png"

    @property
    def is_pun(self) -> bool:
        """Whether the meme is the pun of its group."""
        return self.role == "pun"

    @property
    def sentiment(self) -> str:
        """The full label, ``target-type``.

        >>> PunMeme("CN1", "CN1", "pun", "茶", "查", "self", "neutral", (), "", None).sentiment
        'self-neutral'
        """
        return f"{self.target}-{self.type}"


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat that is answered with a meme: the correct meme and three distractors.

    ``turns`` are complete, repaired turns with speaker tags; ``speaker`` sends the meme. Memes are
    named by id. ``candidates`` contains, by type of distractor, the list from which it was sampled
    (hard level only); memes of these lists may be missing in a partial copy.
    """

    id: str
    topic: ChatTopic
    turns: tuple[str, ...]
    speaker: str
    correct: str
    distractors: tuple[tuple[str, str], ...]
    candidates: Mapping[str, tuple[str, ...]]
    level: Difficulty


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat from the metadata of its pun.

    ``lines`` are the released lines, the last one without its meme; ``turns`` are repaired.
    """

    meme: str
    topic: ChatTopic
    turns: tuple[str, ...]
    speaker: str
    lines: tuple[str, ...]


# Chat turns as released, with errors repaired. A turn is ``甲：…`` or ``乙：…``; the last one is a
# speaker tag alone, where the meme is inserted.

GLUED_TAG = "last speaker tags attached to the turn before"
STRAY_STOP = "turns that began with a stray full stop"
LOST_BREAK = "turns joined by a lost line break"
NO_TAG = "lines without a speaker joined to the turn before"

_TAG = re.compile(r"[甲乙]：")
_LAST_TAG = re.compile(r"(?P<turn>[甲乙]：.*\S)(?P<tag>[甲乙]：)", re.DOTALL)
# Where a line break was lost, a letter or a backspace may be left before the next tag.
_BREAK = re.compile(r"(?:\x08|(?<=[。！？…])\\?n)(?=[甲乙]：)")


@dataclass(frozen=True, slots=True)
class Repaired:
    """The complete turns of a chat, the next speaker, and the repairs made."""

    turns: tuple[str, ...]
    speaker: str
    repairs: Counter[str]


def repair_turns(lines: Sequence[str]) -> Repaired:
    """Repair a chat history whose last line is the speaker tag before the meme.

    Raises ``ValueError`` with the reason if the lines are not a valid chat.

    >>> repaired = repair_turns(["甲：早", "乙：早。甲："])
    >>> repaired.turns, repaired.speaker
    (('甲：早', '乙：早。'), '甲')
    """
    repairs: Counter[str] = Counter()
    turns: list[str] = []
    for line in _split(lines, repairs):
        if line.startswith("。") and _TAG.match(line, 1):
            turns.append(line[1:])
            repairs[STRAY_STOP] += 1
        elif _TAG.match(line):
            turns.append(line)
        elif turns:
            turns[-1] += f"\n{line}"
            repairs[NO_TAG] += 1
        else:
            raise ValueError("the first line does not begin with 甲： or 乙：")
    if len(turns) < 2 or turns[-1] not in ("甲：", "乙："):
        raise ValueError("the last line is not the bare speaker tag 甲： or 乙： after a turn")
    return Repaired(tuple(turns[:-1]), turns[-1][0], repairs)


def _split(lines: Sequence[str], repairs: Counter[str]) -> Iterator[str]:
    """Split turns that were joined by a lost line break, and a final tag attached to a turn."""
    for number, line in enumerate(lines, 1):
        *before, last = _BREAK.split(line)
        yield from before
        if before:
            repairs[LOST_BREAK] += len(before)
        glued = _LAST_TAG.fullmatch(last) if number == len(lines) else None
        if glued:
            repairs[GLUED_TAG] += 1
            yield from (glued["turn"], glued["tag"])
        else:
            yield last


def split_conversation(text: str, file: str) -> list[str] | None:
    r"""Return the lines of a conversation without its meme; None if it has no meme.

    >>> split_conversation("甲：早\n乙：![表情包](CN90001.png)", "CN90001.png")
    ['甲：早', '乙：']
    """
    body, mark, rest = text.rpartition(f"![表情包]({file})")
    return body.split("\n") if mark and not rest.strip() else None


# Records of the official files, validated row by row.

_FILE = re.compile(r"(?P<group>CN\d{5})(?:\.(?P<role>similar_image|similar_text))?\.png", re.A)
_CHAT_ID = re.compile(r"[A-Za-z0-9_-]+")
_ANNOTATORS = ("annotator_1", "annotator_2", "annotator_3")
_LITERAL_LIMIT = 4096
_LEFT_OUT = "topics without a chat are absent instead of null"

Row = TypeVar("Row", bound=BaseModel)
T = TypeVar("T")


class _PlainRow(ReleaseRow):
    meme_type: Literal["non-pun"]
    caption_1: ReleaseText
    meme_sentiment: ReleaseText
    meme_sentiment_annotations: ReleaseText
    meme_explanation: str


class _PunRow(ReleaseRow):
    meme_type: Literal["pun"]
    caption_1: ReleaseText
    caption_2: ReleaseText
    meme_sentiment: ReleaseText
    meme_sentiment_annotations: ReleaseText
    meme_explanation: str
    meme_chat: dict[ChatTopic, str | None]


class _EasyOptions(ReleaseRow):
    correct: ReleaseText
    random1: ReleaseText = Field(alias="wrong(random1)")
    random2: ReleaseText = Field(alias="wrong(random2)")
    random3: ReleaseText = Field(alias="wrong(random3)")


class _HardOptions(ReleaseRow):
    correct: ReleaseText
    text_sim: ReleaseText = Field(alias="wrong(text_sim)")
    image_sim: ReleaseText = Field(alias="wrong(image_sim)")
    sentiment_sim: ReleaseText = Field(alias="wrong(sentiment_sim)")
    text_candidates: ReleaseText = Field(alias="wrong_candidates(text_sim)")
    image_candidates: ReleaseText = Field(alias="wrong_candidates(image_sim)")
    sentiment_candidates: ReleaseText = Field(alias="wrong_candidates(sentiment_sim)")


class _EasyRow(ReleaseRow):
    topic: ChatTopic
    chat_history: list[str]
    meme_response: _EasyOptions


class _HardRow(ReleaseRow):
    topic: ChatTopic
    chat_history: list[str]
    meme_response: _HardOptions


@dataclass(slots=True)
class ReadingFindings:
    """The repairs and skipped chats found while reading."""

    skips: list[Skip] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)


def read_memes(
    path: Path, find_image: Callable[[str], Path | None], findings: ReadingFindings
) -> tuple[tuple[PunMeme, ...], tuple[Conversation, ...]]:
    """Read the metadata: every meme, and the conversations of the puns."""
    memes: list[PunMeme] = []
    conversations: list[Conversation] = []
    roles: defaultdict[str, set[GroupRole]] = defaultdict(set)
    for name, value in _entries(path):
        group, role = _parse_name(name, path, name)
        row: _PunRow | _PlainRow
        if role == "pun":
            row = _check(_PunRow, value, path, name)
            conversations += _read_conversations(row, name, path, findings)
            reading = row.caption_2
        else:
            row, reading = _check(_PlainRow, value, path, name), None
        if row.meme_sentiment not in LABELS:
            raise DataError(
                path.name,
                f"meme_sentiment {row.meme_sentiment!r} is not a valid target-type label",
                row=name,
            )
        target, _, type_ = row.meme_sentiment.partition("-")
        memes.append(
            PunMeme(
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
    # Data sets from 'memantics publish' may lack hard negatives: every group is then one meme.
    alone = all(len(present) == 1 for present in roles.values())
    for group, present in roles.items():
        if not alone and (missing := [role for role in ROLES if role not in present]):
            raise DataError(
                path.name,
                f"the group has no {' and no '.join(missing)} meme; a group needs three memes",
                row=group,
            )
    return tuple(memes), tuple(conversations)


def read_chats(
    path: Path, level: Difficulty, puns: frozenset[str], findings: ReadingFindings
) -> tuple[ChatRecord, ...]:
    """Read one chat file; chats with an option outside ``puns`` are skipped and listed."""
    chats: list[ChatRecord] = []
    for key, value in _entries(path):
        if not _CHAT_ID.fullmatch(key):
            raise DataError(path.name, "is not a valid chat id (letters, digits, _ and -)", row=key)
        chat, repairs = _read_chat(value, level, path, key)
        options = (chat.correct, *(meme for _, meme in chat.distractors))
        if len(set(options)) != len(options):
            raise DataError(path.name, "the four options are not four different memes", row=key)
        absent = [meme for meme in options if meme not in puns]
        if absent:
            reason = f"not in this copy: {', '.join(f'{meme}.png' for meme in absent)}"
            findings.skips.append(Skip(path.name, key, reason))
        else:
            chats.append(chat)
            findings.repairs.update(repairs)
    return tuple(chats)


def _entries(path: Path) -> Iterator[tuple[str, JsonValue]]:
    """Yield the entries of a JSON object; a repeated key is an error."""
    top = read_json(path)
    if not isinstance(top, dict):
        raise DataError(path.name, "is not a JSON object keyed by name", hint="download it again")
    if not top:
        raise DataError(path.name, "contains no records", hint="download the file again")

    names: list[str] = []

    def keep_names(pairs: list[tuple[str, JsonValue]]) -> None:
        # Inner objects are parsed first, so the last one is the whole file.
        names[:] = [name for name, _ in pairs]

    try:
        json.loads(read_regular(path), object_pairs_hook=keep_names)
    except RecursionError as error:
        raise DataError(path.name, "is nested too deeply", hint="download it again") from error
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(path.name, f"the key appears {times} times", row=name)
    yield from top.items()


def _check(model: type[Row], value: JsonValue, path: Path, key: str) -> Row:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problem, hint = first_row_fault(error), "see the official file format"
        raise DataError(path.name, problem, row=key, hint=hint) from error


def _parse_name(name: str, path: Path, key: str) -> tuple[str, GroupRole]:
    parts = _FILE.fullmatch(name)
    if parts is None:
        raise DataError(
            path.name,
            f"{name!r} is not a valid name: CN, five digits, optional .similar_image or "
            ".similar_text, .png",
            row=key,
        )
    for role in ROLES:
        if role == parts["role"]:
            return parts["group"], role
    return parts["group"], "pun"


def _parse_pun(name: str, path: Path, key: str) -> str:
    group, role = _parse_name(name, path, key)
    if role != "pun":
        raise DataError(path.name, f"option {name} is not a pun meme", row=key)
    return group


def _parse_literal(text: str, path: Path, key: str, name: str) -> object:
    """Parse a value that is stored as Python source; only plain literals are accepted."""
    try:
        # No value in the official files has an escape sequence, so these are rejected.
        if len(text) > _LITERAL_LIMIT or "\\" in text:
            raise ValueError("is too long or contains an escape")
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise DataError(path.name, f"{name} is not a plain Python literal", row=key) from error


def _parse_votes(text: str, path: Path, key: str) -> tuple[str, ...]:
    votes = _parse_literal(text, path, key, "meme_sentiment_annotations")
    if not isinstance(votes, dict) or set(votes) != set(_ANNOTATORS):
        raise DataError(
            path.name,
            f"meme_sentiment_annotations must have the keys {', '.join(_ANNOTATORS)}",
            row=key,
        )
    for vote in votes.values():
        if vote not in LABELS:
            raise DataError(path.name, f"vote {vote!r} is not a valid target-type label", row=key)
    return tuple(str(votes[name]) for name in _ANNOTATORS)


def _read_conversations(
    row: _PunRow, name: str, path: Path, findings: ReadingFindings
) -> Iterator[Conversation]:
    findings.repairs[_LEFT_OUT] += sum(topic not in row.meme_chat for topic in TOPICS)
    for topic, text in row.meme_chat.items():
        if not text:
            continue
        lines = split_conversation(text, name)
        if lines is None:
            raise DataError(path.name, f"meme_chat.{topic} does not end in its meme", row=name)
        repaired = _repair(lines, path, name, f"meme_chat.{topic}")
        findings.repairs.update(repaired.repairs)
        yield Conversation(
            name.removesuffix(".png"), topic, repaired.turns, repaired.speaker, tuple(lines)
        )


def _repair(lines: list[str], path: Path, key: str, name: str) -> Repaired:
    try:
        return repair_turns(lines)
    except ValueError as error:
        raise DataError(path.name, f"{name}: {error}", row=key) from error


def _read_chat(
    value: JsonValue, level: Difficulty, path: Path, key: str
) -> tuple[ChatRecord, Mapping[str, int]]:
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
    repaired = _repair(row.chat_history, path, key, "chat_history")
    chat = ChatRecord(
        id=key,
        topic=row.topic,
        turns=repaired.turns,
        speaker=repaired.speaker,
        correct=_parse_pun(row.meme_response.correct, path, key),
        distractors=tuple((kind, _parse_pun(name, path, key)) for kind, name in chosen.items()),
        candidates={kind: _parse_candidates(text, path, key) for kind, text in lists.items()},
        level=level,
    )
    return chat, repaired.repairs


def _parse_candidates(text: str, path: Path, key: str) -> tuple[str, ...]:
    names = _parse_literal(text, path, key, "wrong_candidates")
    if not isinstance(names, list):
        raise DataError(path.name, "wrong_candidates is not a list of file names", row=key)
    return tuple(_parse_pun(name, path, key) for name in names if _is_text(name, path, key))


def _is_text(name: object, path: Path, key: str) -> bool:
    if not isinstance(name, str):
        raise DataError(path.name, "wrong_candidates is not a list of file names", row=key)
    return True


CHATS: Mapping[Difficulty, str] = MappingProxyType(
    {"easy": "_Chat(easy).json", "hard": "_Chat(hard).json"}
)


@dataclass(frozen=True, slots=True)
class PunRelease:
    """A copy of PunMemeCN: all memes in file order, their conversations, chats by level.

    ``official`` is False for the sample and for a user's set in this format: the paper's values are
    not about them.
    """

    folder: Path
    files: tuple[Path, ...]
    memes: tuple[PunMeme, ...]
    conversations: tuple[Conversation, ...]
    easy: tuple[ChatRecord, ...]
    hard: tuple[ChatRecord, ...]
    skips: tuple[Skip, ...]
    repairs: Mapping[str, int]
    official: bool = False

    def chats(self, level: str) -> tuple[ChatRecord, ...]:
        """Return the chats of a difficulty level whose four options are in this copy."""
        require_known("level", level, LEVELS)
        return self.easy if level == "easy" else self.hard

    def by_id(self) -> dict[str, PunMeme]:
        """The memes by id."""
        return {meme.id: meme for meme in self.memes}


def open_release(source: Source) -> PunRelease:
    """Read a copy of the release; errors name the file and the row."""
    folder = find_folder(source.root)
    images = _list_images(folder, source.images)
    findings = ReadingFindings()
    memes, conversations = read_memes(folder / META, images.get, findings)
    puns = frozenset(meme.id for meme in memes if meme.is_pun)
    # The same errors occur in the metadata and in both chat files, so each file is counted
    # separately.
    repairs = Counter({f"{META}: {what}": n for what, n in (+findings.repairs).items()})
    chats: dict[Difficulty, tuple[ChatRecord, ...]] = {"easy": (), "hard": ()}
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
        official=source.official,
    )


def _list_images(folder: Path, given: Path | None) -> dict[str, Path]:
    """Return PNG files by name: from the given folder, beside the metadata, or in ``images``."""
    if given is not None and not given.is_dir():
        raise DataError(given, "image folder not found", hint="check the path")
    places = (given,) if given is not None else (folder, folder / "images")
    found: dict[str, Path] = {}
    for place in places:
        if place.is_dir():
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.endswith(".png") and entry.is_file():
                        found.setdefault(entry.name, place / entry.name)
    return found
