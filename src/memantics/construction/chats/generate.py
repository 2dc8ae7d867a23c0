"""Writing chats: more than are needed, each by a step of its own, kept only within the rules."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from memantics.benchmarks.chats import TOPICS, ChatTopic, Turn, WrittenChat
from memantics.construction.chats.rules import (
    LEAST,
    MOST,
    TARGETS,
    TYPES,
    ChatDraft,
    ChatSubject,
    TextEmbedder,
    find_broken,
)
from memantics.core.data import toml_beside
from memantics.core.errors import require_known
from memantics.core.language import language_of
from memantics.core.memes import Meme
from memantics.core.model import Asker, Step
from memantics.core.parameters import Attempts, Flag
from memantics.core.prompt import prompts_beside
from memantics.core.records import Closed, Sampling
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.metrics.rounding import VECTORS, settle
from memantics.models import drafts
from memantics.models.drafts import text

_TOLD = toml_beside(__file__, "topics.toml")
# How much nearer a topic must be to be taken again that has come twice as often as others.
_CROWDED = 0.05
_WHOM = {"self": "about the sender", "both": "about both of them", "other": "about the other"}


def find_topics(names: Sequence[str]) -> tuple[ChatTopic, ...]:
    """Topics of chats by name, each once; all where none is named."""
    for name in names:
        require_known("topic", name, TOPICS)
    return tuple(cast("ChatTopic", name) for name in dict.fromkeys(names or TOPICS))


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How chats are written, which are kept, and what their wrong answers are.

    Attributes:
        language: Write in this language. Default: the meme's.
        topics: Topics to choose from.
        per_meme: Topics for each meme, those that fit it best.
        candidates: Chats written for each meme and topic.
        keep: Chats of a meme that are kept at most.
        turns: Messages at most, the meme included.
        nearest: Length of the lists of near memes.
        check: Ask whether a wrong answer means the same as the correct one.
        seed: Seed of topics and samples.
        attempts: Tries at a reply that can be parsed.
        temperature: Sampling temperature; it makes the candidates differ.
    """

    language: Annotated[str, Flag("Write in this language.")] = ""
    topics: Annotated[
        tuple[ChatTopic, ...],
        Flag(
            f"{', '.join(TOPICS)}; may be repeated. Default: all.",
            "--topic",
            kind=list[str],
            read=find_topics,
            default=None,
        ),
    ] = TOPICS
    per_meme: Annotated[int, Flag("Topics for each meme.", min=1, max=6)] = 3
    candidates: Annotated[int, Flag("Chats written for each topic.", min=1, max=20)] = 2
    keep: Annotated[int, Flag("Chats of a meme that stay at most.", min=1, max=6)] = 3
    turns: Annotated[int, Flag("Messages at most, the meme included.", min=3, max=20)] = MOST + 1
    nearest: Annotated[int, Flag("Length of the lists of near memes.", min=1, max=100)] = 10
    check: Annotated[bool, Flag("Ask whether a wrong answer means the same as the right one.")] = (
        True
    )
    seed: Annotated[int, Flag("Seed of topics and draws.", min=0)] = 0
    attempts: Attempts = 3
    temperature: float = 1.0


class _Message(Closed):
    speaker: Literal["A", "B"]
    text: str


class _Chat(Closed):
    turns: list[_Message]
    sender: Literal["A", "B"]


class _Feeling(Closed):
    target: Literal["self", "both", "other"]
    type: Literal["positive", "neutral", "negative"]


find_prompts = prompts_beside(__file__)


def make_subject(meme: Meme, language: str = "") -> ChatSubject:
    """What is known about a meme, from its notes.

    ``sentiment`` is ``TARGET-TYPE``, ``reading`` what the caption is meant to be heard as.

    >>> from pathlib import Path
    >>> make_subject(Meme("a", Path("a.png"), "hi", "en", {"sentiment": "self-neutral"})).target
    'self'
    """
    notes = meme.notes
    target, _, kind = notes.get("sentiment", "").partition("-")
    known = target in TARGETS and kind in TYPES
    return ChatSubject(
        meme,
        language or language_of(meme),
        notes.get("meaning", "").strip(),
        notes.get("description", "").strip(),
        tuple(text for text in (meme.text.strip(), notes.get("reading", "").strip()) if text),
        target if known else "",
        kind if known else "",
    )


async def find_feelings(
    asker: Asker,
    subjects: Sequence[ChatSubject],
    tally: drafts.Tally,
    expect: Callable[[int], None] = lambda _: None,
) -> list[ChatSubject]:
    """Subjects with whom and what they feel; those without an answer stay without."""
    expect(sum(not subject.type for subject in subjects))

    async def find(subject: ChatSubject) -> ChatSubject:
        if subject.type:
            return subject
        taken = await asker.take(make_feeling_step(subject))
        tally.add(taken)
        if taken.value is None:
            return subject
        return replace(subject, target=taken.value.target, type=taken.value.type)

    return list(await asyncio.gather(*(find(subject) for subject in subjects)))


def make_feeling_step(subject: ChatSubject) -> Step[_Feeling]:
    """The step that asks for a meme's sentiment."""
    body = find_prompts()["sentiment"].fill(material=drafts.show_material(describe(subject)))
    schema = drafts.record(target=drafts.choice(*TARGETS), type=drafts.choice(*TYPES))
    return Step(
        f"{subject.meme.id}/chats/sentiment",
        drafts.make_request(body, schema, language=subject.language),
        lambda reply: read_object(reply, _Feeling),
    )


def describe(subject: ChatSubject) -> dict[str, str]:
    """What a text-only model is told about a meme."""
    return {
        "printed text": subject.meme.text,
        "what the picture shows": subject.picture,
        "what it means": subject.meaning,
    }


async def write_chats(
    asker: Asker,
    subjects: Sequence[ChatSubject],
    encoder: TextEmbedder,
    settings: ChatSettings,
    expect: Callable[[int], None] = lambda _: None,
) -> drafts.Drafted[ChatDraft]:
    """Write more chats than are needed; those that keep breaking rules are counted misses."""
    plans = [
        (subject, topic, number)
        for subject, topics in zip(subjects, draw_topics(subjects, encoder, settings), strict=True)
        for topic in topics
        for number in range(settings.candidates)
    ]
    expect(len(plans))
    tally = drafts.Tally()

    async def write(subject: ChatSubject, topic: ChatTopic, number: int) -> ChatDraft | None:
        taken = await asker.take(make_chat_step(subject, topic, number, settings))
        tally.add(taken)
        if taken.value is None:
            return None
        return ChatDraft(subject, topic, number, taken.value, drafts.note_source(taken))

    found = await asyncio.gather(*(write(*plan) for plan in plans))
    return drafts.Drafted(tuple(draft for draft in found if draft is not None), tally)


def draw_topics(
    subjects: Sequence[ChatSubject], encoder: TextEmbedder, settings: ChatSettings
) -> list[tuple[ChatTopic, ...]]:
    """The topics of each meme: those nearest to what it says, shows and means, the nearest first.

    One that many memes of the set have is drawn less often: a set is about several things.
    """
    if not subjects:
        return []
    told = [" ".join([subject.meme.text, subject.meaning, subject.picture]) for subject in subjects]
    topics = encoder.encode([_TOLD[topic]["words"] for topic in settings.topics])
    near = settle(encoder.encode(told) @ topics.T, VECTORS)
    # Every text is nearer to some topics than to others: what counts is how a meme differs.
    near = settle(near - near.mean(axis=0), VECTORS)
    used: Counter[str] = Counter()
    drawn = []
    for number, row in enumerate(near):
        fair = 1 + number * settings.per_meme / len(settings.topics)
        ranked = sorted(
            range(len(settings.topics)),
            key=lambda place: (
                -row[place] + _CROWDED * max(0, used[settings.topics[place]] / fair - 1)
            ),
        )
        best = tuple(settings.topics[place] for place in ranked[: settings.per_meme])
        used.update(best)
        drawn.append(best)
    return drawn


def make_chat_step(
    subject: ChatSubject, topic: ChatTopic, number: int, settings: ChatSettings
) -> Step[WrittenChat]:
    """The step that writes one chat. The meme's image is not shown: it could only leak."""
    most = settings.turns - 1
    feeling = (
        f"{subject.type} and {_WHOM[subject.target]}" if subject.type else "clear from its meaning"
    )
    body = find_prompts()["chat"].fill(
        material=drafts.show_material(describe(subject)),
        language=drafts.name_language(subject.language),
        topic=_TOLD[topic]["about"],
        turns=str(most),
        sentiment=feeling,
        seed="" if number == 0 else f"- This is version {number + 1}: take another occasion.",
    )
    message = drafts.record(speaker=drafts.choice("A", "B"), text=text())
    schema = drafts.record(turns=drafts.array(message, LEAST, most), sender=drafts.choice("A", "B"))
    sampling = Sampling(settings.temperature, seed=settings.seed + 1000 * number)

    return Step(
        f"{subject.meme.id}/chats/{topic}/{number}",
        drafts.make_request(body, schema, language=subject.language, sampling=sampling),
        lambda reply: read_chat(reply, subject, most),
        settings.attempts,
    )


def read_chat(reply: str, subject: ChatSubject, most: int = MOST) -> WrittenChat:
    """A chat from a reply; every rule that it breaks is said, so that the next try can do better.

    >>> from pathlib import Path
    >>> subject = make_subject(Meme("a", Path("a.png"), "no more mondays", "en"))
    >>> a, b = '{"speaker": "A", "text": "Up?"}', '{"speaker": "B", "text": "No more Mondays!"}'
    >>> read_chat(f'{{"turns": [{a}, {b}], "sender": "B"}}', subject)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: caption: 'no more mondays' gives the printed words away
    """
    said = read_object(reply, _Chat)
    chat = WrittenChat(
        tuple(Turn(turn.speaker, clean_line(turn.text, 2000)) for turn in said.turns), said.sender
    )
    broken = find_broken(chat, subject, most)
    if broken:
        raise Unparsed("; ".join(map(str, broken)))
    return chat
