"""Few-shot examples of tasks about one meme: the authors', if this copy contains them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from memantics.benchmarks.punmemecn import wording as words
from memantics.benchmarks.punmemecn.load import (
    TARGETS,
    ChatRecord,
    PunMeme,
    PunRelease,
    open_release,
)
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt
from memantics.core.records import Image, Item, Message

# Selection, repetition and order of items: the authors' sampling, and that of Memantics. All
# samples depend on ids only, so that a resumed, limited or partial run asks each item as a full run
# does.

# The groups of memes and the chat that the authors use as examples and exclude from evaluation.
DETECTION_EXAMPLES = frozenset({"CN00601"})
SENTIMENT_EXAMPLES = frozenset({"CN00601", "CN00603", "CN00604"})
CHAT_EXAMPLE = "chat_00100"
PER_TARGET = 400
PUNS = 653
CHATS = 2008
TRANSCRIBED = 200
_SEED = 2025
_EXAMPLE_SEED = 2024

ChatOptionOrder = tuple[int, ...]
T = TypeVar("T")


def is_official(meme: str) -> bool:
    """Return whether an id belongs to the official release.

    >>> is_official("CN00653"), is_official("CN90001.similar_text")
    (True, False)
    """
    return 1 <= int(meme[2:7]) <= PUNS


def balance(memes: Iterable[PunMeme], per_target: int = PER_TARGET) -> list[tuple[PunMeme, int]]:
    """Return equally many items per target: whole repetitions, then a sample of the rest.

    Each item comes with the number of its repetition, from 1. Targets without memes stay empty. The
    order is that of the authors' ids as text (``CN00001.png@1``).
    """
    chance = random.Random(_SEED)
    pool = sorted(memes, key=lambda meme: meme.file)
    drawn: list[tuple[PunMeme, int]] = []
    for target in TARGETS:
        candidates = [meme for meme in pool if meme.target == target]
        if not candidates:
            continue
        whole, rest = divmod(per_target, len(candidates))
        drawn += [(meme, turn) for turn in range(1, whole + 1) for meme in candidates]
        if rest:
            drawn += [(meme, whole + 1) for meme in chance.sample(candidates, rest)]
    return sorted(drawn, key=lambda pair: f"{pair[0].file}@{pair[1]}")


def draw_transcribed() -> tuple[str, ...]:
    """Return the puns on which the authors tested transcription and pinyin, in their order.

    >>> len(set(draw_transcribed()))
    200
    """
    numbers = _shuffle_twice(list(range(1, PUNS + 1)), random.Random(_SEED))
    return tuple(f"CN{number:05d}" for number in numbers[:TRANSCRIBED])


@cache
def authors_orders() -> dict[str, ChatOptionOrder]:
    """Return the authors' order of options by chat, as positions in [correct, distractors].

    One random generator shuffles the chats twice and then each chat's options twice. A shuffle
    depends only on the length of a list, so no data are needed. When the authors resumed a run,
    shuffles were skipped, so these runs have other orders.
    """
    chance = random.Random(_SEED)
    names = (f"chat_{number:05d}" for number in range(1, CHATS + 1))
    chats = _shuffle_twice([name for name in names if name != CHAT_EXAMPLE], chance)
    orders = {chat: tuple(_shuffle_twice([0, 1, 2, 3], chance)) for chat in chats}
    orders[CHAT_EXAMPLE] = tuple(_shuffle_twice([0, 1, 2, 3], random.Random(_EXAMPLE_SEED)))
    return orders


def seeded_order(chat: str, seed: int) -> ChatOptionOrder:
    """Return the order of options of Memantics, which depends only on the chat's id and the seed.

    >>> seeded_order("chat_00001", 2025) == seeded_order("chat_00001", 2025)
    True
    """
    order = list(range(4))
    random.Random(f"{seed}:{chat}").shuffle(order)
    return tuple(order)


def place(order: ChatOptionOrder, things: Sequence[str]) -> list[str]:
    """Return the elements in a given order.

    >>> place((2, 0, 1), ["right", "wrong", "worse"])
    ['worse', 'right', 'wrong']
    """
    return [things[index] for index in order]


def _shuffle_twice(things: list[T], chance: random.Random) -> list[T]:
    chance.shuffle(things)
    chance.shuffle(things)
    return things


@dataclass(frozen=True, slots=True)
class MemePrompt:
    """The prompts of a task about one meme; ``hashes`` are recorded in ``run.json``.

    ``official`` is the authors' prompt, if requested.
    """

    task: str
    wording: words.PunWording
    style: words.PromptStyle
    shots: tuple[words.Shot, ...]
    layout: str
    hashes: Mapping[str, str]
    official: Prompt | None = None

    def write(self, item: Item) -> tuple[Message, ...]:
        """Return the messages for an item."""
        if self.official is not None:
            values = {**item.form.context}
            for number, shot in enumerate(self.shots, 1):
                values |= {f"{name}{number}": text for name, text in shot.context.items()}
                values[f"{self.task}{number}"] = shot.answer
            return words.ask_officially(self.official, item.images, self.shots, values)
        return words.lay_out(item.images, item.form.context, self.shots, self._text, self.layout)

    def _text(self, context: Mapping[str, str], told: bool) -> str:
        say = self.wording.say
        last = self.wording.ordinal(len(self.shots) + 1)
        return say(
            self.task,
            examples=say("examples", last=last, shown=self._show()) if told else "",
            meme=say("meme_last", place=last) if told else say("meme"),
            facts=self.wording.tell(context),
            reply=say(f"{self.task}_{self.style.rule}"),
        )

    def _show(self) -> str:
        return "\n\n".join(
            self.wording.say(
                "example",
                place=self.wording.ordinal(number),
                facts=self.wording.tell(shot.context),
                answer=shot.answer,
            )
            for number, shot in enumerate(self.shots, 1)
        )


def prepare(
    task: str, brief: words.Brief, ids: dict[Who, tuple[str, ...]], label: Callable[[PunMeme], str]
) -> MemePrompt:
    """Return the prompts of a task; ``label`` formats the correct answer of an example."""
    wording, style = words.read_wording(brief), brief.style
    hashes = wording.hashes(task, f"{task}_{style.rule}", "meme", *words.name_facts(style))
    shots: tuple[words.Shot, ...] = ()
    official = brief.read_official(task)
    if official is not None:
        hashes = {official.name: official.hash}
        if style.shots:
            picked = pick_memes(brief, ids)
            shots = tuple(_show(style, meme, label(meme)) for meme in picked.memes)
            hashes[picked.name] = words.hash_shots(shots)
    elif style.shots:
        hashes |= wording.hashes("examples", "example", "meme_last")
        if style.reasons:
            hashes |= wording.hashes(
                f"{task}_worked", "reason_homophone", "reason_senses", "reason_none"
            )
        if brief.source is not None:
            picked = pick_memes(brief, ids)
            shots = tuple(_work(task, wording, style, m, label(m)) for m in picked.memes)
            hashes[picked.name] = words.hash_shots(shots)
    return MemePrompt(task, wording, style, shots, brief.options["layout"], hashes, official)


def _work(
    task: str, wording: words.PunWording, style: words.PromptStyle, meme: PunMeme, label: str
) -> words.Shot:
    answer = label
    if style.reasons:
        answer = wording.say(f"{task}_worked", reason=wording.explain(meme), label=label)
    return _show(style, meme, answer)


def _show(style: words.PromptStyle, meme: PunMeme, answer: str) -> words.Shot:
    images = (Image(meme.image),) if meme.image is not None else ()
    return words.Shot(images, words.describe(meme, style), answer)


Who = Literal["authors", "ours"]

DETECTION: dict[Who, tuple[str, ...]] = {
    "authors": ("CN00601", "CN00601.similar_image", "CN00601.similar_text"),
    "ours": ("CN90001", "CN90001.similar_image", "CN90001.similar_text"),
}
SENTIMENT: dict[Who, tuple[str, ...]] = {
    "authors": ("CN00601", "CN00603", "CN00604"),
    "ours": ("CN90004", "CN90007", "CN90009"),
}
# The example of Memantics is the first chat to which this meme is the answer.
OUR_CHAT_MEME = "CN90004"


class PickedMemes(NamedTuple):
    """The memes that serve as few-shot examples."""

    who: Who
    memes: tuple[PunMeme, ...]

    @property
    def name(self) -> str:
        """The name of the examples in ``run.json``."""
        return f"examples by {self.who}: {', '.join(meme.id for meme in self.memes)}"


@dataclass(frozen=True, slots=True)
class PickedChat:
    """An example chat and its four memes, the correct one first."""

    who: Who
    chat: ChatRecord
    memes: tuple[PunMeme, ...]

    @property
    def name(self) -> str:
        """The name of the example chat in ``run.json``."""
        return f"example by {self.who}: {self.chat.id}, {self.chat.correct}"


def open_sample() -> PunRelease:
    """Open the sample that ships with this benchmark."""
    return open_release(Source("sample", words.FOLDER / "sample", words.SAMPLE_FOLDER / "images"))


def pick_memes(brief: words.Brief, ids: dict[Who, tuple[str, ...]]) -> PickedMemes:
    """Return the memes with these ids: the authors' examples if all of them have images here."""
    for who in _wanted(brief):
        release = brief.release if who == "authors" else open_sample()
        known = release.by_id()
        memes = tuple(known[name] for name in ids[who] if name in known)
        if len(memes) == len(ids[who]) and all(meme.image for meme in memes):
            return PickedMemes(who, memes)
    raise _absent(brief, ", ".join(ids["authors"]))


def pick_chat(brief: words.Brief, level: str) -> PickedChat:
    """Return the example chat of a difficulty level."""
    for who in _wanted(brief):
        release = brief.release if who == "authors" else open_sample()
        chat = next((c for c in release.chats(level) if is_example(c, who)), None)
        if chat is None:
            continue
        known = release.by_id()
        memes = tuple(known[name] for name in (chat.correct, *(m for _, m in chat.distractors)))
        if all(meme.image for meme in memes):
            return PickedChat(who, chat, memes)
    raise _absent(brief, CHAT_EXAMPLE)


def is_example(chat: ChatRecord, who: Who) -> bool:
    """Return whether a chat can serve as the example of its difficulty level."""
    if who == "authors":
        return chat.id == CHAT_EXAMPLE and is_official(chat.correct)
    return chat.correct == OUR_CHAT_MEME


def _wanted(brief: words.Brief) -> tuple[Who, ...]:
    if (
        brief.options.get("wording") == "official"
    ):  # the authors' prompts describe their own examples
        return ("authors",)
    if brief.published:  # equal file names are other memes
        return ("ours",)
    chosen: dict[str, tuple[Who, ...]] = {"authors": ("authors",), "ours": ("ours",)}
    return chosen.get(brief.options["shots"], ("authors", "ours"))


def _absent(brief: words.Brief, ids: str) -> DataError:
    return DataError(
        brief.name,
        f"this copy lacks the authors' examples ({ids}) or their images",
        hint="use --set shots=ours",
    )
