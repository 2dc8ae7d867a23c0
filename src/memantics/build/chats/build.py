"""The whole way from memes with notes to chats with options, in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memantics.build.captions.mine import mine_captions
from memantics.build.chats import distractors, generate, selection
from memantics.build.chats.records import ChatSubject
from memantics.build.chats.release import ReleasedChat
from memantics.build.chats.rules import RULES
from memantics.build.drafts import Miss, Tally, count_statuses
from memantics.core.errors import InputError
from memantics.core.memes import Meme, with_captions
from memantics.core.step import Asker


class Watched(Asker, Protocol):
    """An asker that is told how many steps will come."""

    def expect(self, steps: int) -> None:
        """Say how many more steps there will be."""
        ...


@dataclass(frozen=True, slots=True)
class ChatReport:
    """What a build amounts to.

    ``broken`` counts rules among the tries that were given up; ``unknown`` are memes without a
    word to go by.
    """

    model: str
    unknown: tuple[str, ...]
    written: int
    corpus: selection.Corpus
    statuses: dict[str, int]
    broken: dict[str, int]
    incomplete: int
    filled: dict[str, int]
    rejected: int
    misses: tuple[Miss, ...]
    embedders: dict[str, str]


async def build_chats(
    asker: Watched,
    memes: tuple[Sequence[Meme], Sequence[Meme]],
    embedders: distractors.Embedders,
    gauges: selection.Gauges,
    settings: generate.ChatSettings,
) -> tuple[list[ReleasedChat], ChatReport]:
    """Chats for memes: notes that are missing are mined first, then chats written and chosen.

    ``memes`` are those to write about, and others that may only be wrong answers: of these
    nothing is asked, so they come as they are.
    """
    subjects, others, mined, feeling = await _describe(asker, memes, settings.language)
    # About a meme of which nothing is known, a chat could only be invented.
    known = [subject for subject in subjects if subject.about or subject.meme.text.strip()]
    written = await generate.write_chats(asker, known, embedders.text, settings, asker.expect)
    chosen = selection.select_chats(selection.measure_drafts(written.drafts, gauges), settings.keep)
    pool = distractors.ChatPool([*known, *others], embedders)
    options, checked = await distractors.choose_distractors(
        asker, chosen, pool, settings, asker.expect
    )
    chats = [
        ReleasedChat(*pair)
        for pair in zip(chosen, options, strict=True)
        if distractors.is_complete(pair[1])
    ]
    tallies = (mined, feeling, written.tally, checked)
    report = ChatReport(
        model=asker.model,
        unknown=tuple(subject.meme.id for subject in subjects if subject not in known),
        written=len(written.drafts),
        corpus=selection.describe_corpus([chat.draft for chat in chats], gauges),
        statuses=count_statuses(tallies),
        broken=count_broken(written.tally.misses),
        incomplete=len(chosen) - len(chats),
        filled=dict(distractors.count_filled([chat.options for chat in chats])),
        rejected=sum(len(names) for chat in chats for names in chat.options.rejected.values()),
        misses=tuple(miss for tally in tallies for miss in tally.misses),
        embedders={"text": embedders.text.version, "image": embedders.image.version},
    )
    return chats, report


async def _describe(
    asker: Watched, memes: tuple[Sequence[Meme], Sequence[Meme]], language: str
) -> tuple[list[ChatSubject], list[ChatSubject], Tally, Tally]:
    """What is known about all memes, with how the steps for it ended."""
    group, others = memes
    if len(group) + len(others) < 4:
        raise InputError(
            f"{len(group) + len(others)} memes are too few for a choice of four",
            hint="give at least four memes",
        )
    mined = await mine_captions(asker, group, language, asker.expect)
    notes = {
        one.meme.id: {
            "meaning": one.captions["text_caption"],
            "description": one.captions["image_caption"],
        }
        for one in mined.drafts
    }
    feeling = Tally()
    subjects = [generate.make_subject(meme, language) for meme in with_captions(group, notes)]
    subjects = await generate.find_feelings(asker, subjects, feeling, asker.expect)
    plain = (generate.make_subject(meme, language) for meme in others)
    known = [one for one in plain if one.about or one.meme.text.strip()]
    return subjects, known, mined.tally, feeling


def count_broken(misses: Sequence[Miss]) -> dict[str, int]:
    """How often each rule was the reason for giving up.

    >>> count_broken([Miss("a/chats/work/0", "unparsed", "length: 9 messages; caption: 'x'")])
    {'length': 1, 'caption': 1}
    """
    found: Counter[str] = Counter()
    for miss in misses:
        parts = miss.reason.split("; ")
        found.update(rule for rule in RULES if any(part.startswith(f"{rule}: ") for part in parts))
    return dict(found)
