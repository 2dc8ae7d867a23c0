"""Helpers for drafting intents, chats and captions by model: requests, checks, counts, queues."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from memantics.core.data import inside
from memantics.core.files import read_regular
from memantics.core.images import probe, read_bytes
from memantics.core.language import UNKNOWN, count_scripts, guess_language
from memantics.core.memes import Meme
from memantics.core.model import Taken
from memantics.core.prompt import enclose
from memantics.core.queue import QueueCard, QueueItem, write_queue
from memantics.core.records import STATUSES, Form, Image, Message, Request, Sampling, Status
from memantics.core.reply import describe_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line

NAMES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
_LONGEST = 4000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DraftSource:
    """The origin of a drafted text: the model, the hash of the request and the time."""

    model: str
    prompt: str
    when: str


def note_source(taken: Taken[T]) -> DraftSource:
    """Return the origin (model, request hash, time) of a chain step's result."""
    return DraftSource(taken.model, taken.prompt, taken.when)


def name_language(code: str) -> str:
    """Return the name of a language as used in prompts.

    >>> name_language("zh"), name_language("eo")
    ('Chinese', 'the language with the code eo')
    """
    return NAMES.get(code, f"the language with the code {clean_line(code, 20)}")


def show_material(parts: Mapping[str, str], nothing: str = "Nothing is known about it.") -> str:
    """Format named texts for a prompt, each in its own delimiters; skip empty texts."""
    shown = [
        enclose(clean_line(name, 40), "\n".join(clean_line(x) for x in body[:_LONGEST].split("\n")))
        for name, body in parts.items()
        if body.strip()
    ]
    return "\n\n".join(shown) or nothing


def make_request(
    body: str,
    schema: Mapping[str, JsonValue],
    *,
    meme: Meme | None = None,
    language: str = "en",
    sampling: Sampling | None = None,
    system: str = "",
) -> Request:
    """Build a request: the role if there is one, then a user turn with the image first."""
    parts = (body,) if meme is None else (Image(meme.image), body)
    form = Form("", (), language, "json", {"text": meme.text if meme else ""})
    role = (Message("system", (system,)),) if system else ()
    return Request((*role, Message("user", parts)), form, sampling or Sampling(), schema)


def text(longest: int = 0) -> JsonValue:
    """Return the JSON schema of a text."""
    return {"type": "string", "maxLength": longest} if longest else {"type": "string"}


def choice(*options: str) -> JsonValue:
    """Return the JSON schema of a choice between words."""
    return {"type": "string", "enum": list(options)}


# JSON schema of an object whose fields are all required, for strict decoding
record = describe_object


def array(items: JsonValue, least: int, most: int) -> JsonValue:
    """Return the JSON schema of a list."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


@dataclass(frozen=True, slots=True)
class Miss:
    """A chain step without a result: its id, its status and the reason."""

    step: str
    status: Status
    reason: str


@dataclass(slots=True)
class Tally:
    """The chain steps of one command: the count of each status, and every step without a result."""

    statuses: Counter[Status] = field(default_factory=Counter)
    misses: list[Miss] = field(default_factory=list)
    repaired: int = 0

    def add(self, taken: Taken[Any]) -> None:
        """Count the result of one chain step."""
        self.statuses[taken.status] += 1
        if taken.status == "answered":
            self.repaired += taken.attempts > 1
        else:
            self.misses.append(Miss(taken.id, taken.status, taken.reason))


@dataclass(frozen=True, slots=True)
class Drafted(Generic[T]):
    """The drafts in the order of the memes, and the statuses of the chain steps."""

    drafts: tuple[T, ...]
    tally: Tally


def count_statuses(tallies: Iterable[Tally]) -> dict[str, int]:
    """Add up the counts of several tallies."""
    total: Counter[Status] = Counter()
    for tally in tallies:
        total.update(tally.statuses)
    return {status: total[status] for status in STATUSES}


_SURE = 0.8
_ENOUGH = 12  # minimum number of letters to detect a language
_RUN = 6  # words (or characters) that are repeated many times in one text
_TIMES = 3


def check_wording(said: str, what: str, language: str, longest: int) -> str:
    r"""Return a model's text as one safe line; raise ``Unparsed`` if it is in another language.

    >>> check_wording(" A cat\n sleeps. ", "caption", "en", 100)
    'A cat sleeps.'
    >>> check_wording("…", "caption", "en", 100)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the caption has no words
    """
    line = clean_line(said, 4 * longest)
    letters = sum(count_scripts(line).values())
    if not letters:
        raise Unparsed(f"the {what} has no words")
    if len(line) > longest:
        raise Unparsed(f"the {what} has {len(line)} characters: write at most {longest}")
    if repeats_itself(line):
        raise Unparsed(f"the {what} repeats itself")
    found = guess_language(line)
    known = found.language not in (UNKNOWN, language) and found.confidence >= _SURE
    if known and letters >= _ENOUGH:
        raise Unparsed(f"the {what} is not in {name_language(language)}: write it in that language")
    return line


def repeats_itself(text: str) -> bool:
    """Return whether a text repeats the same words many times.

    >>> repeats_itself("it is what it is"), repeats_itself("the same old story goes on " * 3)
    (False, True)
    """
    words = re.findall(r"[^\W_]+", text.casefold())
    if len(words) < _RUN * _TIMES:
        words = list("".join(words)) if any(char >= "\u2e80" for char in text) else words
    runs = Counter(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))
    return bool(runs) and max(runs.values()) >= _TIMES


IMAGES = "images"


def write_draft_queue(
    folder: Path,
    title: str,
    workflow: str,
    items: Sequence[QueueItem],
    origin: str,
    warning: str = "Memes may be offensive.",
) -> int:
    """Write an annotation queue in which annotators edit drafts; return the number of items."""
    languages = {str(item.hidden["language"]) for item in items}
    card = QueueCard(
        title=title,
        workflow=workflow,
        language=languages.pop() if len(languages) == 1 else "en",
        warning=warning,
        origin=origin,
    )
    return write_queue(folder, card, items)


def queue_images(memes: Iterable[Meme], folder: Path) -> dict[str, str]:
    """Copy the images of memes into an annotation queue; return their file names by meme id."""
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    names = {}
    for meme in memes:
        data = read_bytes(meme.image)
        probe(data, meme.image.name)
        name = f"{IMAGES}/{meme.id}{meme.image.suffix.lower()}"
        place = inside(folder, name)
        if not (place.is_file() and read_regular(place) == data):
            place.write_bytes(data)
        names[meme.id] = name
    return names
