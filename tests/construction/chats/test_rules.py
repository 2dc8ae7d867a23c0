"""Every rule of a chat is checked in code; chats that people kept pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.chats import Speaker, Turn, WrittenChat
from memantics.construction.chats.rules import RULES, ChatSubject, find_broken, find_leak
from memantics.core.memes import Meme
from memantics.core.samples import read_samples
from tests.places import SHARED_DATA, needs_shared_data

CAT = ChatSubject(
    Meme("cat", Path("cat.png"), "no more mondays please", "en"),
    "en",
    "somebody is fed up with the start of the week",
    "a grumpy orange kitten lies on a keyboard",
    ("no more mondays please",),
)
FINE = ("Did you sleep at all?", "Three hours, and the bus leaves at six.", "Every single week!")


def chat(*texts: str, order: str = "ABABABABAB", sender: Speaker = "B") -> WrittenChat:
    names: dict[str, Speaker] = {"A": "A", "B": "B"}
    turns = (Turn(names[who], text) for who, text in zip(order, texts, strict=False))
    return WrittenChat(tuple(turns), sender)


def broken(said: WrittenChat, subject: ChatSubject = CAT) -> list[str]:
    return [own.rule for own in find_broken(said, subject)]


def test_a_good_chat_breaks_nothing() -> None:
    assert broken(chat(*FINE)) == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("length", chat("Hello there!", "Oh hi, how was it?", "a", "b", "c", "d")),
        ("length", chat("What a day that was.")),
        ("length", chat("Did you sleep?", "...")),
        ("length", chat("Did you sleep?", "no, " + "really " * 60)),
        ("speakers", chat(*FINE, order="AAA")),
        ("speakers", chat(*FINE, "Say something!", order="ABBB")),
        ("speakers", chat(*FINE, order="ABB", sender="B")),
        ("markup", chat(*FINE, "![here](cat.png)")),
        ("markup", chat(*FINE, "[sticker of the week]")),
        ("markup", chat(*FINE, "see https://example.org/x")),
        ("mention", chat(*FINE, "I have the right meme for that")),
        ("caption", chat(*FINE, "Please, NO MORE Mondays, please!")),
        ("caption", chat(*FINE, "well no more mondays for me")),
        ("picture", chat(*FINE, "You look like a grumpy old man")),
        ("picture", chat(*FINE, "All my kittens are asleep")),
        ("language", chat("你昨晚睡了吗？今天还要上班呢", "只睡了三个小时，六点就要赶车")),
        ("repeats", chat("Did you sleep?", "Not much.", "did you SLEEP")),
    ],
)
def test_each_rule_sees_what_it_is_for(rule: str, said: WrittenChat) -> None:
    assert rule in RULES
    assert rule in broken(said)


def test_the_meme_may_follow_a_message_of_the_same_person() -> None:
    assert broken(chat(*FINE, order="ABA", sender="A")) == []


def test_what_the_meme_means_may_be_spoken_of() -> None:
    assert broken(chat("Fed up already?", "It is only the start of the week.")) == []


def test_limits_are_settings() -> None:
    assert [own.rule for own in find_broken(chat(*FINE), CAT, most=2)] == ["length"]


@pytest.mark.parametrize(
    ("secret", "text", "told"),
    [
        ("最近有点键忘", "我最近有点忙，没顾上回你", False),
        ("最近有点键忘", "哈哈，最近有点键忘嘛", True),
        ("one does not simply walk", "one does NOT simply, you know", True),
        ("one does not simply walk", "does it simply not work", False),
        (
            "this one\nis a rather long\ncaption of two parts",
            "it is a rather long caption of",
            True,
        ),
        ("oh", "oh no", False),
        ("", "anything", False),
        ("…", "anything", False),
    ],
)
def test_leaks_are_told_from_common_words(secret: str, text: str, told: bool) -> None:
    assert bool(find_leak(secret, text)) == told


def test_a_sound_alike_reading_is_hidden_too() -> None:
    pun = ChatSubject(
        Meme("p", Path("p.png"), "今晚又狮眠了", "zh"),
        "zh",
        "",
        "",
        ("今晚又狮眠了", "今晚又失眠了"),
    )
    said = chat("你怎么还没睡？", "唉，今晚又失眠了。")
    assert broken(said, pun) == ["caption"]


def test_the_chats_of_the_sample_pack_pass() -> None:
    count = 0
    for meme in read_samples():
        for own in meme.chats:
            count += 1
            reading = (meme.pun.reading or "") if meme.pun else ""
            hidden = tuple(text for text in (meme.text, reading) if text)
            subject = ChatSubject(
                Meme(meme.id, Path("x.png"), meme.text), "zh", meme.meaning, "", hidden
            )
            turns = tuple(Turn("A" if t[0] == "甲" else "B", t[2:]) for t in own.turns)
            assert broken(WrittenChat(turns, "A" if own.speaker == "甲" else "B"), subject) == []
    assert count > 5


@needs_shared_data
def test_nearly_all_chats_that_people_kept_pass() -> None:
    from memantics.benchmarks.punmemecn.load import open_release
    from memantics.core.data import Source

    release = open_release(Source("release", SHARED_DATA / "punmemecn"))
    memes = release.by_id()
    kept = 0
    chats = release.conversations[::4]
    for own in chats:
        meme = memes[own.meme]
        picture, _, meaning = meme.explanation.partition("\n")
        subject = ChatSubject(
            Meme(meme.id, Path("x.png"), meme.caption),
            "zh",
            meaning,
            picture,
            (meme.caption, meme.reading or meme.caption),
        )
        turns = tuple(Turn("A" if t[0] == "甲" else "B", t[2:]) for t in own.turns)
        kept += not find_broken(WrittenChat(turns, "A" if own.speaker == "甲" else "B"), subject)
    assert len(chats) > 300
    assert kept / len(chats) > 0.95
