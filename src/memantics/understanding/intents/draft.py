"""Draft the background knowledge and the ranked author intents of a meme, in two model calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.core.files import write_lines
from memantics.core.language import language_of
from memantics.core.memes import Meme
from memantics.core.model import Asker, Step
from memantics.core.parameters import Attempts, Flag
from memantics.core.prompt import prompts_beside
from memantics.core.queue import QueueItem, Shown
from memantics.core.records import Closed, Request
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.models import drafts
from memantics.models.drafts import check_wording

# The annotation guideline requires that an intent completes "the meme …", and that uncertain
# background ends with ``?``.

LONGEST = 300
MOST_INTENTS, MOST_SENTENCES = 3, 8
_PREFIX = {
    "en": re.compile(r"(?:the|this) meme(?:'s author)?\s+", re.I),
    "zh": re.compile(r"(?:这张|这个|该)(?:表情包|梗图|图片?|meme)\s*"),
}
_WORDS, _SAME = re.compile(r"[\u3400-\u9fff]|[^\W_]+"), 0.8
_END = " .。．!！;；,，"
_HELPERS = frozenset(["is", "has", "does", "says", "was", "may", "might", "can", "could", "would"])
_ADVERB = re.compile(r"[a-z]+ly")
# Intents start with a verb in the third person ("tries to", "mocks"); "is about" names no act.
_VERB = re.compile(r"[a-z]{2,}s\b", re.I)
_NO_VERBS = frozenset(["this", "his", "its", "others", "people's", "was", "us", "memes", "users"])


class _SaidIntents(Closed):
    intents: list[str]


class _Sentence(Closed):
    sentence: str
    certain: bool


class _SaidBackground(Closed):
    background: list[_Sentence]


def read_intents(reply: str, language: str, most: int = MOST_INTENTS) -> tuple[str, ...]:
    """Parse the ranked intents of a reply in the guideline's form, without duplicates.

    >>> read_intents('{"intents": ["The meme mocks late trains."]}', "en")
    ('mocks late trains',)
    """
    said = read_object(reply, _SaidIntents).intents
    made = dict.fromkeys(check_intent(intent, language) for intent in said)
    if not made:
        raise Unparsed("there is no intent: give at least one")
    if len(made) > most:
        raise Unparsed(f"{len(made)} intents are too many: give the {most} most likely at most")
    for one, other in combinations(made, 2):
        if say_same(one, other):
            raise Unparsed(f"the intents {one[:60]!r} and {other[:60]!r} say the same")
    return tuple(made)


def say_same(one: str, other: str) -> bool:
    """Return whether two texts have nearly the same words, in any order.

    >>> say_same("mocks people who are late", "Mocks people who are always late")
    True
    >>> say_same("mocks people who are late", "praises people who wait"), say_same("嘲笑", "同情")
    (False, False)
    """
    first, second = (frozenset(_WORDS.findall(text.casefold())) for text in (one, other))
    return bool(first) and len(first & second) >= _SAME * len(first | second)


def check_intent(said: str, language: str) -> str:
    """Clean one intent: remove "the meme" and the full stop; reject text without a verb.

    >>> check_intent("the meme Praises a dog for waiting.", "en")
    'praises a dog for waiting'
    >>> check_intent("Funny dog", "en")
    Traceback (most recent call last):
    memantics.core.task.Unparsed: 'funny dog' does not begin with a verb that fits 'The meme …'
    """
    line = check_wording(said, "intent", language, LONGEST).strip(_END)
    prefix = _PREFIX.get(language)
    if prefix is not None and (match := prefix.match(line)):
        line = line[match.end() :].strip(_END)
    if not line:
        raise Unparsed("an intent is empty")
    if language == "en":
        line = _check_english(line)
    if re.search(r"[.!?]\s+[A-Z]|[。！？]\s*\S", line):
        raise Unparsed(f"{line[:60]!r} is more than one sentence")
    return line


def _check_english(line: str) -> str:
    words = line.split()
    # Only a word with a single capital at its start is lowered: "USA" or "iPhone" is not a verb.
    if words[0].istitle():
        line = words[0].lower() + line[len(words[0]) :]
        words = line.split()
    place = 1 if len(words) > 1 and _ADVERB.fullmatch(words[0]) else 0
    verb = words[place].strip(_END)
    fits = verb in _HELPERS or (_VERB.fullmatch(verb) and verb.casefold() not in _NO_VERBS)
    if len(words) < 2 or not fits:
        raise Unparsed(f"{line[:60]!r} does not begin with a verb that fits 'The meme …'")
    return line


def read_background(
    reply: str, language: str = "en", most: int = MOST_SENTENCES
) -> tuple[str, ...]:
    """Parse sentences of background knowledge; uncertain ones end with a question mark.

    >>> read_background('{"background": [{"sentence": "Owls hunt by night", "certain": false}]}')
    ('Owls hunt by night?',)
    """
    made: dict[str, str] = {}
    for sentence in read_object(reply, _SaidBackground).background:
        line = (
            check_wording(sentence.sentence, "sentence", language, LONGEST)
            .removeprefix("*")
            .strip()
        )
        bare = line.rstrip(".。?？ ")
        doubtful = not sentence.certain or line.endswith(("?", "？"))
        made.setdefault(bare.casefold(), f"{bare}?" if doubtful else line)
    if len(made) > most:
        raise Unparsed(f"{len(made)} sentences are too many: give the {most} that matter most")
    return tuple(made.values())


INTENTS = "intents.jsonl"
WORKFLOW = "collect-and-edit"


@dataclass(frozen=True, slots=True)
class IntentSettings:
    """How intents and background are drafted.

    Attributes:
        language: Write in this language. Default: the meme's.
        intents: Intents of a meme at most.
        sentences: Sentences of background at most.
        attempts: Tries at a reply that can be parsed.
    """

    language: Annotated[str, Flag("Write in this language.")] = ""
    intents: Annotated[
        int, Flag("Maximum number of intents per meme.", "--most", min=1, max=10)
    ] = MOST_INTENTS
    sentences: int = MOST_SENTENCES
    attempts: Attempts = 3


@dataclass(frozen=True, slots=True)
class DraftedIntents:
    """Drafted intents and background of a meme, best intent first.

    ``given`` means that the background came with the meme and not from a model.
    """

    meme: Meme
    language: str
    intents: tuple[str, ...]
    background: tuple[str, ...]
    sources: Mapping[str, drafts.DraftSource] = field(default_factory=dict)


find_prompts = prompts_beside(__file__)


async def draft_intents(
    asker: Asker,
    memes: Sequence[Meme],
    settings: IntentSettings,
    expect: Callable[[int], None] = lambda _: None,
) -> drafts.Drafted[DraftedIntents]:
    """Draft background knowledge and intents of every meme."""
    expect(sum(1 + (not _given_background(meme)) for meme in memes))
    tally = drafts.Tally()
    found = await asyncio.gather(*(_draft(asker, meme, settings, tally) for meme in memes))
    return drafts.Drafted(tuple(found), tally)


def _given_background(meme: Meme) -> tuple[str, ...]:
    lines = (
        line.strip().removeprefix("*").strip()
        for line in meme.notes.get("background", "").split("\n")
    )
    return tuple(line for line in lines if line)


async def _draft(
    asker: Asker, meme: Meme, settings: IntentSettings, tally: drafts.Tally
) -> DraftedIntents:
    language = settings.language or language_of(meme)
    sources: dict[str, drafts.DraftSource] = {}
    background = _given_background(meme)
    if not background:
        known = await asker.take(make_background_step(meme, language, settings))
        tally.add(known)
        background = known.value or ()
        if known.value is not None:
            sources["background"] = drafts.note_source(known)
    taken = await asker.take(make_intent_step(meme, language, background, settings))
    tally.add(taken)
    if taken.value is not None:
        sources["intents"] = drafts.note_source(taken)
    return DraftedIntents(meme, language, taken.value or (), background, sources)


def make_background_step(
    meme: Meme, language: str, settings: IntentSettings
) -> Step[tuple[str, ...]]:
    """Build the step that asks for the required background knowledge."""
    body = find_prompts()["background"].fill(
        material=drafts.show_material(_material(meme)),
        language=drafts.name_language(language),
        most=str(settings.sentences),
    )
    sentence = drafts.record(sentence=drafts.text(), certain={"type": "boolean"})
    schema = drafts.record(background=drafts.array(sentence, 0, settings.sentences))

    return Step(
        f"{meme.id}/intents/background",
        _request(body, schema, meme, language),
        lambda reply: read_background(reply, language, settings.sentences),
        settings.attempts,
    )


def make_intent_step(
    meme: Meme, language: str, background: Sequence[str], settings: IntentSettings
) -> Step[tuple[str, ...]]:
    """Build the step that asks for the author's intent; the prompt includes the background."""
    prompts = find_prompts()
    form = prompts.get(f"form.{language}", prompts["form.other"])
    known = {
        **_material(meme),
        "background knowledge": "\n".join(f"* {sentence}" for sentence in background),
    }
    body = prompts["intents"].fill(
        material=drafts.show_material(known),
        language=drafts.name_language(language),
        form=form.text,
        most=str(settings.intents),
    )
    schema = drafts.record(intents=drafts.array(drafts.text(), 1, settings.intents))

    return Step(
        f"{meme.id}/intents/intents",
        _request(body, schema, meme, language),
        lambda reply: read_intents(reply, language, settings.intents),
        settings.attempts,
    )


def _request(body: str, schema: Mapping[str, JsonValue], meme: Meme, language: str) -> Request:
    system = find_prompts()["system"].text
    return drafts.make_request(body, schema, meme=meme, language=language, system=system)


def _material(meme: Meme) -> dict[str, str]:
    notes = {name: note for name, note in meme.notes.items() if name != "background"}
    return {"printed text": meme.text, **{f"note: {name}": notes[name] for name in sorted(notes)}}


def write_intents(folder: Path, report: drafts.Drafted[DraftedIntents]) -> Path:
    """Write ``intents.jsonl``: the drafts with their sources."""
    lines = (
        {
            "id": draft.meme.id,
            "text": draft.meme.text,
            "language": draft.language,
            "intents": draft.intents,
            "background": draft.background,
            "sources": draft.sources,
        }
        for draft in report.drafts
    )
    return write_lines(folder / INTENTS, lines)


def write_intent_queue(folder: Path, report: drafts.Drafted[DraftedIntents], origin: str) -> int:
    """Write the annotation queue to collect, edit and review intents; return the item count."""
    names = drafts.queue_images((draft.meme for draft in report.drafts), folder)
    items = [_make_item(draft, names) for draft in report.drafts]
    return drafts.write_draft_queue(folder, "Intents of memes", WORKFLOW, items, origin)


def _make_item(draft: DraftedIntents, names: Mapping[str, str]) -> QueueItem:
    shown = [
        Shown(label=label, value=value)
        for label, value in (
            ("Printed text", draft.meme.text),
            ("Image description", draft.meme.notes.get("description", "")),
            ("Meaning of the text", draft.meme.notes.get("meaning", "")),
        )
        if value.strip()
    ]
    values: dict[str, JsonValue] = {
        "intents": list(draft.intents),
        "background": list(draft.background),
    }
    sources: dict[str, JsonValue] = {
        name: {"model": source.model, "prompt": source.prompt, "when": source.when}
        for name, source in draft.sources.items()
    }
    # ``publish`` reads memes only from the queue.
    meme: dict[str, JsonValue] = {
        "text": draft.meme.text,
        "language": draft.language,
        "template_cluster": draft.meme.template_cluster,
        "description": draft.meme.notes.get("description", ""),
    }
    return QueueItem(
        id=draft.meme.id,
        group=draft.meme.id,
        images=[names[draft.meme.id]],
        shown=shown,
        values=values,
        hidden={**meme, "sources": sources},
    )
