"""Chats that fit their meme: topics, languages of wrong answers, and words that give it away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.chats import Turn, WrittenChat
from memantics.construction.chats.distractors import ChatPool, Embedders, name_chat
from memantics.construction.chats.generate import (
    ChatSettings,
    draw_topics,
    make_feeling_step,
    make_subject,
)
from memantics.construction.chats.rules import TARGETS, TYPES, ChatSubject, find_broken
from memantics.core.memes import Meme
from memantics.models.embedded.encoder import SentenceEncoder, Vectors
from tests.construction.chats.test_build import draft


def tell(text: str, name: str = "m", meaning: str = "") -> ChatSubject:
    return make_subject(Meme(name, Path("a.png"), text, notes={"meaning": meaning}))


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("When you respawn in Call of Duty and die again at once", "games"),
        ("My boss moved the deadline in the meeting", "work"),
        ("When the referee ignores the foul", "sports"),
        ("追剧到天亮", "entertainment"),
        ("王者荣耀五连跪", "games"),
        ("我妈做的红烧肉", "daily"),
    ],
)
def test_the_first_topic_goes_with_the_meme(text: str, topic: str) -> None:
    others = [tell(other) for other in ("程序员改 bug 到凌晨", "No more Mondays", "今晚又狮眠了")]
    drawn = draw_topics([tell(text), *others], SentenceEncoder(), ChatSettings())
    assert drawn[0][0] == topic
    assert all(len(set(topics)) == ChatSettings().per_meme for topics in drawn)


def test_a_set_about_one_thing_still_has_several_topics() -> None:
    gamers = [tell(f"level {number} of the video game again", str(number)) for number in range(12)]
    counts = Counter(
        t for topics in draw_topics(gamers, SentenceEncoder(), ChatSettings()) for t in topics
    )
    assert len(counts) == 6
    assert draw_topics([], SentenceEncoder(), ChatSettings()) == []


class Flat:
    """Places every meme at the same distance."""

    version = "flat"

    def encode(self, memes: object) -> Vectors:
        import numpy as np

        return np.ones((len(memes), 2), dtype=np.float32)  # type: ignore[arg-type]


@pytest.mark.parametrize(("chinese", "mixed"), [(7, False), (6, True)])
def test_wrong_answers_are_of_the_chats_language_while_there_are_enough(
    chinese: int, mixed: bool
) -> None:
    captions = [f"今晚又失眠了 {number}" for number in range(chinese)]
    captions += [f"no more mondays please {number}" for number in range(5)]
    subjects = [tell(text, f"m{number}") for number, text in enumerate(captions)]
    pool = ChatPool(subjects, Embedders(Flat(), Flat()))
    others = pool.list_others("m0")
    assert "m0" not in others
    assert any(int(name[1:]) >= chinese for name in others) is mixed
    written = draft("m0", "work", 0, "早上好", "你好")
    assert name_chat(written) == "m0/work/0"
    near = pool.list_candidates(written, ChatSettings())["text_sim"]
    assert set(near) <= set(others)


@pytest.mark.parametrize(
    ("said", "broken"),
    [("I have front row tickets!", []), ("A giraffe looked at me", ["picture"])],
)
def test_only_telling_words_give_a_picture_away(said: str, broken: list[str]) -> None:
    meme = Meme("a", Path("a.png"), "so long", "en")
    subject = ChatSubject(meme, "en", "I am leaving", "a giraffe in front of a house", ())
    chat = WrittenChat((Turn("A", "What is up?"), Turn("B", said)), "B")
    assert [one.rule for one in find_broken(chat, subject)] == broken


def test_the_prompt_names_every_kind_of_feeling() -> None:
    (message,) = make_feeling_step(tell("no more mondays")).request.messages
    sent = " ".join(part for part in message.parts if isinstance(part, str))
    assert all(f'"{word}"' in sent for word in (*TARGETS, *TYPES))
