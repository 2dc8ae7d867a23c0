"""Wrong answers of chats: random memes, and memes similar in text, image and sentiment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memantics.benchmarks.chats import KINDS, DistractorKind, Options
from memantics.construction.chats import rules as records
from memantics.construction.chats.generate import (
    ChatSettings,
    find_prompts,
    make_role_request,
)
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.language import language_of
from memantics.core.memes import HOMOPHONES, Meme
from memantics.core.model import Asker, Step
from memantics.core.records import Closed
from memantics.core.reply import read_object
from memantics.metrics.rounding import VECTORS, settle
from memantics.models.drafts import Tally, record, show_material
from memantics.models.embedded.encoder import Vectors
from memantics.understanding.vision.hashes import describe_image

EASY = 3
_SAME = 0.985  # cosine of two explanations above which no model is asked whether they mean the same


class _SameMeaning(Closed):
    same: bool


class LayoutEncoder:
    """Embed layout and colours of images without a neural network; compares looks, not content."""

    version = "layout-1"

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        return np.stack([describe_image(load(meme.image)) for meme in memes])


@dataclass(frozen=True, slots=True)
class Embedders:
    """Hold the text and image embedders that find similar memes."""

    text: records.TextEmbedder
    image: records.ImageEmbedder


class ChatPool:
    """Hold all memes that can be distractors, embedded once."""

    def __init__(self, subjects: Sequence[records.ChatSubject], embedders: Embedders) -> None:
        if len(subjects) < EASY + 1:
            raise InputError(
                f"{len(subjects)} memes are too few for four options",
                hint="give at least four memes",
            )
        self.subjects = {subject.meme.id: subject for subject in subjects}
        self.ids = list(self.subjects)
        self._places = {meme_id: place for place, meme_id in enumerate(self.ids)}
        self._text = embedders.text
        # Chats are compared with literal descriptions, explanations with each other.
        self._described = embedders.text.encode(
            [_first(subject.picture, subject) for subject in subjects]
        )
        self._meant = embedders.text.encode(
            [_first(subject.meaning, subject) for subject in subjects]
        )
        self._seen = embedders.image.encode([subject.meme for subject in subjects])

    def list_candidates(
        self, draft: records.ChatDraft, settings: ChatSettings
    ) -> dict[DistractorKind, tuple[str, ...]]:
        """Return the candidate lists from which one distractor of each kind is sampled."""
        meme_id = draft.subject.meme.id
        chat = self._text.encode([draft.said.text])[0]
        others = self.list_others(meme_id)
        kind = self.subjects[meme_id].type
        alike = [other for other in others if kind and self.subjects[other].type == kind]
        draw = random.Random(f"{settings.seed}/{name_chat(draft)}/sentiment")
        return {
            "text_sim": self._nearest(self._described @ chat, others, settings.nearest),
            "image_sim": self._nearest(
                self._seen @ self._seen[self._places[meme_id]], others, settings.nearest
            ),
            "sentiment_sim": tuple(draw.sample(alike, min(settings.nearest, len(alike)))),
        }

    def list_others(self, meme: str) -> list[str]:
        """Return possible distractors: memes of the same language, unless there are too few.

        An answer in another language than the chat is easy to rule out.
        """
        others = [other for other in self.ids if other != meme]
        language = language_of(self.subjects[meme].meme)
        same = [one for one in others if language_of(self.subjects[one].meme) == language]
        return same if len(same) >= len(KINDS) + EASY else others

    def _nearest(self, similarity: Vectors, among: Sequence[str], most: int) -> tuple[str, ...]:
        order = np.argsort(-settle(similarity, VECTORS), kind="stable")
        allowed = set(among)
        return tuple(self.ids[i] for i in order if self.ids[i] in allowed)[:most]

    def surely_same(self, one: str, other: str) -> bool:
        """Return whether two memes have identical text or meaning."""
        a, b = self.subjects[one], self.subjects[other]
        if self.same_words(one, other):
            return True
        similarity = float(self._meant[self._places[one]] @ self._meant[self._places[other]])
        return bool(a.meaning and b.meaning) and similarity >= _SAME

    def same_words(self, one: str, other: str) -> bool:
        """Return whether the same words are printed on two memes."""
        first, second = (self.subjects[name].meme.text.casefold() for name in (one, other))
        return bool(first) and first == second


def _first(wanted: str, subject: records.ChatSubject) -> str:
    return wanted or subject.about or subject.meme.text


def name_chat(draft: records.ChatDraft) -> str:
    """Return the id of a chat within a build."""
    return f"{draft.subject.meme.id}/{draft.topic}/{draft.number}"


async def choose_distractors(
    asker: Asker | None,
    drafts: Sequence[records.ChatDraft],
    pool: ChatPool,
    settings: ChatSettings,
    expect: Callable[[int], None] = lambda _: None,
) -> tuple[list[Options], Tally]:
    """Choose distractors for every chat; with a model, exclude memes of the same meaning."""
    tally = Tally()
    same = SameMeaning(asker if settings.check else None, pool, tally, expect)
    found = await asyncio.gather(*(_choose(draft, pool, settings, same) for draft in drafts))
    return list(found), tally


class SameMeaning:
    """Ask a model whether two memes mean the same; each pair is asked once."""

    def __init__(
        self, asker: Asker | None, pool: ChatPool, tally: Tally, expect: Callable[[int], None]
    ) -> None:
        self._asker, self._pool, self._tally, self._expect = asker, pool, tally, expect
        self._known: dict[tuple[str, str], asyncio.Task[bool]] = {}

    async def ask(self, one: str, other: str) -> bool:
        """Return whether two memes mean the same; an unanswered call counts as yes."""
        if self._pool.surely_same(one, other):
            return True
        if self._asker is None:
            return False
        pair = (min(one, other), max(one, other))
        if pair not in self._known:
            self._expect(1)
            self._known[pair] = asyncio.ensure_future(self._take(self._asker, pair))
        return await self._known[pair]

    async def _take(self, asker: Asker, pair: tuple[str, str]) -> bool:
        taken = await asker.take(
            make_same_step(*(self._pool.subjects[meme_id] for meme_id in pair))
        )
        self._tally.add(taken)
        return True if taken.value is None else taken.value


def make_same_step(one: records.ChatSubject, other: records.ChatSubject) -> Step[bool]:
    """Return the step that compares the meanings of two memes."""
    material = {
        f"{which} meme: {name}": said
        for which, subject in (("first", one), ("second", other))
        for name, said in (
            ("printed text", subject.meme.text),
            ("heard as", subject.meme.notes.get(HOMOPHONES, "")),
            ("picture", subject.picture),
            ("meaning", subject.meaning),
        )
    }
    body = find_prompts()["same"].fill(material=show_material(material))
    schema = record(same={"type": "boolean"})
    return Step(
        f"{one.meme.id}/chats/same/{other.meme.id}",
        make_role_request(body, schema),
        lambda reply: read_object(reply, _SameMeaning).same,
    )


async def _choose(
    draft: records.ChatDraft, pool: ChatPool, settings: ChatSettings, same: SameMeaning
) -> Options:
    meme_id = draft.subject.meme.id
    draw = random.Random(f"{settings.seed}/{name_chat(draft)}")
    others = pool.list_others(meme_id)
    plain = (o for o in draw.sample(others, len(others)) if not pool.surely_same(meme_id, o))
    apart: list[str] = []
    for other in plain:
        if len(apart) == EASY:
            break
        if not any(pool.same_words(other, one) for one in apart):
            apart.append(other)
    easy = tuple(apart)
    lists = pool.list_candidates(draft, settings)
    hard: dict[DistractorKind, str] = {}
    rejected: dict[DistractorKind, tuple[str, ...]] = {}
    for kind in KINDS:
        order = draw.sample(lists[kind], len(lists[kind]))
        # If a candidate list has too few memes, random memes fill it, since four options are
        # needed.
        rest = [o for o in draw.sample(others, len(others)) if o not in lists[kind]]
        order += rest[: settings.nearest]
        refused: list[str] = []
        for other in order:
            if any(other == one or pool.same_words(other, one) for one in hard.values()):
                continue
            if await same.ask(meme_id, other):
                refused.append(other)
                continue
            hard[kind] = other
            break
        rejected[kind] = tuple(refused)
    return Options(easy, hard, lists, rejected)


def is_complete(options: Options) -> bool:
    """Return whether both difficulty levels have three different distractors."""
    return len(set(options.easy)) == EASY and len(set(options.hard.values())) == len(KINDS)


def is_distinct(meme: str, options: Options, pool: ChatPool) -> bool:
    """Return whether all wrong answers are wrong, and no two of them have the same words.

    Of two wrong answers with the same words a reader knows that neither is right.
    """
    levels = (options.easy, tuple(options.hard.values()))
    return not any(
        pool.surely_same(meme, other) for level in levels for other in level
    ) and not any(pool.same_words(*pair) for level in levels for pair in combinations(level, 2))


def count_filled(options: Sequence[Options]) -> Mapping[str, int]:
    """Count, by kind, the distractors that replace a missing candidate of their kind."""
    return {
        kind: sum(option.hard.get(kind) not in option.candidates[kind] for option in options)
        for kind in KINDS
    }
