"""Chats that fit their meme: topics, languages of wrong answers, and words that give it away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.chats import DistractorKind, Options, Turn, WrittenChat
from memantics.construction.chats.distractors import (
    ChatPool,
    Embedders,
    LayoutEncoder,
    is_distinct,
    name_chat,
)
from memantics.construction.chats.generate import (
    ChatSettings,
    draw_topics,
    make_feeling_step,
    make_subject,
)
from memantics.construction.chats.rules import TARGETS, TYPES, ChatSubject, find_broken
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.models.embedded.encoder import SentenceEncoder, Vectors
from tests.construction.chats.test_build import draft
from tests.encoders import GramEncoder


def tell(text: str, name: str = "m", meaning: str = "") -> ChatSubject:
    return make_subject(Meme(name, Path("a.png"), text, notes={"meaning": meaning}))


@pytest.mark.slow
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
    role, message = make_feeling_step(tell("no more mondays")).request.messages
    assert role.role == "system"
    sent = " ".join(part for part in message.parts if isinstance(part, str))
    assert all(f'"{word}"' in sent for word in (*TARGETS, *TYPES))


def test_chats_are_told_the_homophones_and_must_not_give_them_away() -> None:
    notes = {"heard as": "左右为难 (86% sure); 为男 (81% sure)"}
    subject = make_subject(Meme("a", Path("a.png"), "男\n男\n左右为男", "zh", notes))
    sent = " ".join(str(part) for part in make_feeling_step(subject).request.messages[-1].parts)
    assert "<heard as " in sent
    assert {"左右为难", "为男"} <= set(subject.hidden)
    chat = WrittenChat((Turn("A", "选哪个呢"), Turn("B", "真是左右为难啊")), "B")
    assert "caption" in [one.rule for one in find_broken(chat, subject)]


def test_of_two_equal_wrong_answers_none_is_offered() -> None:
    texts = ("no more mondays", "Fridays win", "fridays WIN", "coffee first", "late again")
    subjects = [
        make_subject(
            Meme(f"m{n}", image_path(f"en-00{n + 1}"), text, notes={"meaning": f"no. {n}"})
        )
        for n, text in enumerate(texts)
    ]
    pool = ChatPool(subjects, Embedders(GramEncoder(), LayoutEncoder()))
    hard: dict[DistractorKind, str] = {"text_sim": "m2", "image_sim": "m3", "sentiment_sim": "m4"}
    fine = Options(("m1", "m3", "m4"), hard, {}, {})
    twins = Options(("m1", "m2", "m4"), fine.hard, {}, {})
    assert is_distinct("m0", fine, pool)
    assert not is_distinct("m0", twins, pool)
