"""Write candidate chats, more than are needed; keep those that break no rule."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from pydantic import JsonValue

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
from memantics.core.memes import HOMOPHONES, NOTED, Meme
from memantics.core.model import Asker, Step
from memantics.core.parameters import Attempts, Flag
from memantics.core.prompt import prompts_beside
from memantics.core.records import Closed, Request, Sampling
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.metrics.rounding import VECTORS, settle
from memantics.models import drafts
from memantics.models.drafts import text

_TOLD = toml_beside(__file__, "topics.toml")
# Similarity that a topic loses for each time the average number of uses that it exceeds.
_CROWDED = 0.05
_SURE = re.compile(r"\s*\([^()]*\)\s*$")
_WHOM = {"self": "about the sender", "both": "about both of them", "other": "about the other"}


def find_topics(names: Sequence[str]) -> tuple[ChatTopic, ...]:
    """Return the named chat topics without repeats; all topics if none is named."""
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

    language: Annotated[str, Flag("Language of the chats. Default: the language of each meme.")] = (
        ""
    )
    topics: Annotated[
        tuple[ChatTopic, ...],
        Flag(
            f"Topic: {', '.join(TOPICS)}; repeatable. Default: all.",
            "--topic",
            kind=list[str],
            read=find_topics,
            default=None,
        ),
    ] = TOPICS
    per_meme: Annotated[int, Flag("Topics per meme.", min=1, max=6)] = 3
    candidates: Annotated[int, Flag("Candidate chats per meme and topic.", min=1, max=20)] = 2
    keep: Annotated[int, Flag("Maximum number of chats kept per meme.", min=1, max=6)] = 3
    turns: Annotated[
        int, Flag("Maximum number of messages, including the meme.", min=3, max=20)
    ] = MOST + 1
    nearest: Annotated[
        int, Flag("Number of most similar memes from which a distractor is chosen.", min=1, max=100)
    ] = 10
    check: Annotated[
        bool, Flag("Ask the model whether a distractor means the same as the correct meme.")
    ] = True
    seed: Annotated[int, Flag("Random seed of topics and distractors.", min=0)] = 0
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
    """Return a chat subject from the notes of a meme.

    ``sentiment`` is ``TARGET-TYPE``; ``reading`` is the intended reading of the caption.

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
        tuple(
            text
            for text in (meme.text.strip(), notes.get("reading", "").strip(), *_list_heard(meme))
            if text
        ),
        target if known else "",
        kind if known else "",
    )


def _list_heard(meme: Meme) -> list[str]:
    """Return the homophone readings in the prompt, which a chat must not reveal."""
    return [_SURE.sub("", heard).strip() for heard in meme.notes.get(HOMOPHONES, "").split(";")]


async def find_feelings(
    asker: Asker,
    subjects: Sequence[ChatSubject],
    tally: drafts.Tally,
    expect: Callable[[int], None] = lambda _: None,
) -> list[ChatSubject]:
    """Return subjects with the target and type of their sentiment; failed calls leave it empty."""
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
    """Return the step that asks for a meme's sentiment."""
    body = find_prompts()["sentiment"].fill(material=drafts.show_material(describe(subject)))
    schema = drafts.record(target=drafts.choice(*TARGETS), type=drafts.choice(*TYPES))
    return Step(
        f"{subject.meme.id}/chats/sentiment",
        make_role_request(body, schema, subject.language),
        lambda reply: read_object(reply, _Feeling),
    )


def describe(subject: ChatSubject) -> dict[str, str]:
    """Return the description of a meme for a text-only model."""
    return {
        "printed text": subject.meme.text,
        **{name: subject.meme.notes.get(name, "") for name in NOTED},
        "what the picture shows": subject.picture,
        "what it means": subject.meaning,
    }


def make_role_request(
    body: str,
    schema: Mapping[str, JsonValue],
    language: str = "en",
    sampling: Sampling | None = None,
) -> Request:
    """Return a request about chats with the role of the model."""
    system = find_prompts()["system"].text
    return drafts.make_request(body, schema, language=language, sampling=sampling, system=system)


async def write_chats(
    asker: Asker,
    subjects: Sequence[ChatSubject],
    encoder: TextEmbedder,
    settings: ChatSettings,
    expect: Callable[[int], None] = lambda _: None,
) -> drafts.Drafted[ChatDraft]:
    """Write candidate chats; those that keep breaking rules are counted as misses."""
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
    """Choose topics for each meme by similarity to its text, image and meaning.

    Topics that many memes of the set already have are chosen less often, so that topics vary.
    """
    if not subjects:
        return []
    told = [" ".join([subject.meme.text, subject.meaning, subject.picture]) for subject in subjects]
    topics = encoder.encode([_TOLD[topic]["words"] for topic in settings.topics])
    near = settle(encoder.encode(told) @ topics.T, VECTORS)
    # The mean per topic is subtracted, because some topics are similar to every text.
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
    """Return the step that writes one chat, without the image: the chat must not describe it."""
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
        make_role_request(body, schema, subject.language, sampling),
        lambda reply: read_chat(reply, subject, most),
        settings.attempts,
    )


def read_chat(reply: str, subject: ChatSubject, most: int = MOST) -> WrittenChat:
    """Parse a chat; raise with every broken rule, so that the next attempt can repair it.

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
