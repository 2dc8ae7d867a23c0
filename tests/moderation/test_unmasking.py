"""Obfuscations that are undone, ordinary writing that stays, and what a verdict says of it."""

from __future__ import annotations

import random

import pytest

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.obfuscation import unmask
from memantics.moderation.unseen_ngrams import count_words, cut_sentences

WORDS = frozenset({"kill", "them", "all", "you", "are", "so", "stupid"})


@pytest.mark.parametrize(
    ("text", "plain", "obfuscation"),
    [
        ("k\u200bill t\u200dhem", "kill them", "zero-width characters"),
        ("k\u00adill", "kill", "zero-width characters"),
        ("ｋｉｌｌ them", "kill them", "full-width or styled letters"),
        ("𝐤𝐢𝐥𝐥 ⓣⓗⓔⓜ", "kill them", "full-width or styled letters"),
        ("%6b%69%6c%6c them", "kill them", "percent-encoded letters"),
        ("%e4%bd%a0 them", "你 them", "percent-encoded letters"),
        ("kіll", "kill", "homoglyphs"),
        ("k\u0336i\u0336l\u0336l\u0336", "kill", "marks over letters"),
        ("k.i.l.l them", "kill them", "spaced letters"),
        ("k i l l t h e m a l l", "kill them all", "spaced letters"),
        ("你 真 笨", "你真笨", "spaced letters"),
        ("你.真.笨", "你真笨", "spaced letters"),
        ("ki.ll th-em", "kill them", "marks inside words"),
        ("k1ll th3m", "kill them", "digits for letters"),
    ],
)
def test_a_obfuscation_is_undone_and_named(text: str, plain: str, obfuscation: str) -> None:
    found = unmask(text, WORDS)
    assert (found.text, found.obfuscations) == (plain, (obfuscation,))


@pytest.mark.parametrize(
    "text",
    [
        "you are so stupid!",
        "e.g. the U.S.A.",
        "I'm 1/2 goat, 3 o'clock",
        "100 % sure, 50%25 off",
        "%ff%fe",
        "%0a%00",
        "w3c 4ever 2020",
        "ВСЕ люди",
        "ραδιο",
        "今天 天气 真好",
        "你 好",
        "１２３，你好！"[3:],
        "naïve café Ångström",
        "👩\u200d👩\u200d👧 ok",
        "you/them are-so",
        "",
    ],
)
def test_ordinary_writing_stays(text: str) -> None:
    assert unmask(text, WORDS) == unmask(text, WORDS).__class__(text)


def test_without_known_words_letters_stay_apart() -> None:
    assert unmask("k.i.l.l k1ll ki.ll").obfuscations == ()


def test_hostile_texts_are_read_in_time() -> None:
    long = ("你" * 20_000, "a" * 20_000, "a1" * 10_000, "ab " * 6_000, "你好。" * 6_000)
    for text in (
        *long,
        "a." * 10_000,
        "\u200b" * 20_000,
        "%41" * 6_000,
        "a\u0336" * 10_000,
        "1a" * 9_000,
    ):
        assert len(unmask(text, WORDS).text) <= len(text)


def test_sentences_are_cut_where_there_are_several() -> None:
    assert cut_sentences("one two. three four five. six seven eight") == [
        "three four five.",
        "six seven eight",
    ]
    assert cut_sentences("今天天气真好。你们全是废物垃圾！") == [
        "今天天气真好。",
        "你们全是废物垃圾！",
    ]
    assert cut_sentences("one two three") == []
    assert count_words("ok 今天") == 2


@pytest.fixture(scope="module")
def detector() -> Detector:
    draw = random.Random(3)
    kind = ("what a lovely day it is", "we eat at home with friends")
    cruel = ("you are all so stupid", "i hate every one of you")
    examples = [
        Example(str(n), f"{draw.choice(own)} {draw.choice(own)}", label=int(own is cruel))
        for n in range(40)
        for own in (kind, cruel)
    ]
    return Detector.train(examples, "words")


def test_a_verdict_says_what_was_undone(detector: Detector) -> None:
    plain = "you are all so stupid"
    hidden = "y\u200bou ar\u200be al\u200bl so stu\u200bpid"
    one, other = detector.verdicts([plain, hidden], "en")
    assert (one.label, one.obfuscation, one.note) == ("harmful", "", "")
    assert (other.label, other.obfuscation) == ("harmful", "zero-width characters")
    assert other.probability == pytest.approx(one.probability)
    assert other.text == hidden
    assert other.note == f"obfuscated with zero-width characters; scored as {plain!r}"
    assert detector.predict([hidden], "en")[0].name == "harmful"
    assert other.to_row()["obfuscation"] == "zero-width characters"


def test_kind_words_around_a_cruel_sentence_do_not_hide_it(detector: Detector) -> None:
    kind = "what a lovely day it is. we eat at home with friends."
    text = f"{kind} {kind} you are all so stupid. {kind}"
    padded, alone = detector.verdicts([text, kind], "en")
    assert padded.label == "harmless"
    assert padded.review.startswith("one sentence is harmful on its own (probability ")
    assert (padded.outcome, alone.outcome) == ("review", "harmless")
