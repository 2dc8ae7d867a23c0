"""Obfuscations that are undone, ordinary writing that stays, and what a verdict says of it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.judges import FastJudge
from memantics.moderation.obfuscation import MOST_READINGS, Undecorated, undecorate, unmask
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.subjects import see_example
from memantics.moderation.unseen_ngrams import (
    UnseenNgrams,
    count_words,
    cut_passages,
    cut_sentences,
)
from memantics.moderation.verdict import SENTENCE_IN_BAND, judge

WORDS = frozenset({"kill", "them", "all", "you", "are", "so", "stupid"})


@pytest.mark.parametrize(
    ("text", "plain", "obfuscation"),
    [
        ("k\u200bill t\u200dhem", "kill them", "zero-width characters"),
        ("k\u00adill", "kill", "zero-width characters"),
        ("ｋｉｌｌ them", "kill them", "full-width or styled letters"),
        ("ｋｉｌｌ， them！", "kill, them!", "full-width or styled letters"),
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
        ("k%69ll them", "kill them", "percent-encoded letters"),
        ("%6bill them", "kill them", "percent-encoded letters"),
        ("&#107;ill &#x74;hem", "kill them", "HTML entities"),
        ("&amp;#107;ill them", "kill them", "HTML entities"),
        ("na&iuml;ve", "naïve", "HTML entities"),
        ("k\x00i\x00ll\x00 them", "kill them", "control characters"),
        ("kill\x00them", "kill them", "control characters"),
        ("\u202emeht llik\u202c all", "kill them all", "right-to-left override"),
        ("\u202emeht llik", "kill them", "right-to-left override"),
        ("你\u0336真\u0336笨\u0336", "你真笨", "marks over letters"),
        ("k\u20d2ill", "kill", "marks over letters"),
        ("!lla meht llik", "kill them all!", "reversed text"),
        ("you are all so diputs meht", "you are all so stupid them", "reversed text"),
        ("%256b%2569ll them", "kill them", "percent-encoded letters"),
        (r"\u006b\u{69}\x6c\U0000006c them", "kill them", "escaped letters"),
        ("=6B=69=6C=6C =74hem", "kill them", "escaped letters"),
        (r"\6b \69 \6c \6c  them", "kill them", "escaped letters"),
        ("ki<b></b>ll th<!-- x -->em", "kill them", "tags in words"),
        ("k[b]i[/b]ll them", "kill them", "tags in words"),
        ("ᴋɪʟʟ ᵗʰᵉᵐ 🅰🅻🅻", "kill them all", "full-width or styled letters"),
        ("|<!|_|_ them", "kill them", "digits for letters"),
        ("stuuuupid", "stupid", "repeated letters"),
        ("sooo stupid", "so stupid", "repeated letters"),
        ("stu-\npid them", "stupid them", "broken words"),
        ("you are stu\tpid", "you are stupid", "broken words"),
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
        "Q&amp;A &lt;3 R&D; AT&T; &unknown;",
        "100%61b 50%25 off 20%40 a%0ab",
        "line\nbreak\ttab don\x92t",
        "\u202eשלום"[1:],
        "1\ufe0f\u20e3 #\ufe0f\u20e3 love\u2764\ufe0fyou",
        "a \u2260 b, x = \u20ac5",
        "all stops at lla, kill them",
        r"it\u2019s c:\users\x86, ?page=20&size=50",
        "<b>kill</b> [i]them[/i] a < b > c",
        "you so|all /them a/b \\o/ 50|50",
        "aaah, you're all so",
        "are all",
        "",
    ],
)
def test_ordinary_writing_stays(text: str) -> None:
    assert unmask(text, WORDS) == unmask(text, WORDS).__class__(text)


def test_words_reversed_one_by_one_keep_their_order() -> None:
    found = unmask("llik meht lla", {*WORDS, "kill them", "them all"})
    assert found.text == "kill them all"
    assert unmask("llik meht lla", {*WORDS, "all them"}).text == "all them kill"


def test_right_to_left_scripts_are_not_reversed() -> None:
    assert unmask("\u202eשלום\u202c").text == "שלום"


def test_obfuscations_inside_obfuscations_are_undone() -> None:
    found = unmask("%26%23%31%30%37%3b\u200bill &#8238;meht", WORDS)
    assert found.text == "kill them"
    assert found.obfuscations == (
        "percent-encoded letters",
        "HTML entities",
        "right-to-left override",
        "zero-width characters",
    )


SIGNS = "klim tehsuaIo10.%&#;x6b-_*é你真\x00\u0336\u20d2\u20e3\u200b\u202c\u202e\ufe0f\uff4bкש"


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text(SIGNS, max_size=60)))
def test_any_text_can_be_unmasked_and_then_stays(text: str) -> None:
    found = unmask(text, WORDS)
    again = unmask(found.text, WORDS)
    assert again == unmask(again.text, WORDS).__class__(found.text)
    assert len(undecorate(text, WORDS, lambda own: len(own) % 3).readings) <= MOST_READINGS


@pytest.mark.parametrize(
    ("text", "kinds", "readings"),
    [
        ("ki#ll th*em", ("symbols inside words",), ("kill them",)),
        ("kill#them", ("symbols inside words",), ("kill them", "killthem")),
        ("you are diputs", ("reversed words",), ("you are stupid",)),
        ("你😀真✨笨", ("symbols inside words",), ("你真笨",)),
        ("k#i#l#l# #t#h#e#m", ("letters pulled apart",), ("kill them",)),
        ("k i l l  t h e m", ("letters pulled apart",), ("kill them",)),
        ("k, i, l, l, t, h, e, m", ("letters pulled apart",), ("killthem", "kill them")),
        ("k~i~l~l", ("letters pulled apart",), ("kill",)),
    ],
)
def test_decoration_is_removed(
    text: str, kinds: tuple[str, ...], readings: tuple[str, ...]
) -> None:
    found = undecorate(text, WORDS)
    assert (found.kinds, found.readings) == (kinds, readings)


def test_a_reversed_text_has_fewer_unseen_ngrams_in_reverse() -> None:
    measure = UnseenNgrams({"你", "真", "笨", "你真", "真笨"}, 0.5).measure
    assert undecorate("笨真你", rate=measure) == Undecorated(("reversed order",), ("你真笨",))
    assert undecorate("你真笨", rate=measure) == Undecorated()


@pytest.mark.parametrize(
    "text",
    ["it's half-done, and/or so: fine!", "今天，天气。真好！", "👍 ok :) <3", "a b or c", ""],
)
def test_ordinary_texts_are_not_decorated(text: str) -> None:
    assert undecorate(text, WORDS) == Undecorated()


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
        "&#97;" * 4_000,
        "&" * 20_000,
        "\u202ea" * 10_000,
        "a\x00" * 10_000,
        "a, " * 6_000,
        "llik " * 4_000,
    ):
        assert len(unmask(text, WORDS).text) <= len(text)
        assert len(undecorate(text, WORDS).readings) <= MOST_READINGS


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
    assert cut_passages("今天天气真好" * 10)[0] == ("今天天气真好" * 5)[:28]


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
    assert padded.review.startswith("one sentence is harmful on its own")
    assert (padded.outcome, alone.outcome) == ("review", "harmless")


def test_kind_words_without_full_stops_do_not_hide_a_cruel_sentence(detector: Detector) -> None:
    kind = " ".join(["what a lovely day it is we eat at home with friends"] * 4)
    text = f"{kind} you are all so stupid i hate every one of you {kind}"
    padded, alone = detector.verdicts([text, f"{kind} {kind}"], "en")
    assert (padded.label, padded.outcome) == ("harmless", "review")
    assert padded.review == "one passage is harmful on its own"
    assert alone.outcome == "harmless"


def test_a_sentence_in_the_review_band_is_not_hidden_by_kind_ones(detector: Detector) -> None:
    kind = "what a lovely day it is. we eat at home with friends."
    doubtful = "what you are all so lovely"
    text = f"{kind} {kind} {doubtful}. {kind}"
    texts = (f"{doubtful}.", text, kind)
    chances = [one.probability or 0.0 for one in detector.verdicts(list(texts), "en")]
    assert chances[2] <= chances[1] < chances[0]
    high = chances[0] + 0.01
    point = OperatingPoint(high, ((chances[0] + chances[1]) / 2, high))
    subjects = [see_example(Example("", one), "en") for one in texts]
    alone, padded, harmless = judge(detector, subjects, point)
    assert (alone.outcome, harmless.outcome) == ("review", "harmless")
    assert (padded.label, padded.outcome) == ("harmless", "review")
    assert padded.review == SENTENCE_IN_BAND
    # Without a review range, the sentence is allowed on its own, too.
    assert judge(detector, subjects, OperatingPoint(high))[1].outcome == "harmless"


def test_a_decorated_sentence_among_kind_ones_goes_to_review(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detector, "unseen_ngram_rate", None)
    kind = "what a lovely day it is. we eat at home with friends."
    text = f"{kind} {kind} y#ou ar#e a#ll s#o stup#id. {kind} {kind}"
    plain = text.replace("#", "")
    found, known = detector.verdicts([text, plain], "en")
    assert (found.label, found.outcome, known.outcome) == ("harmless", "review", "review")
    assert found.review == "one sentence without decoration is not harmless (symbols inside words)"
    assert known.review == "one sentence is harmful on its own"


@pytest.fixture
def asked(detector: Detector, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the examples of each prediction of a detector that takes all texts for in-domain."""
    sizes: list[int] = []
    predict = FastJudge.predict

    def count(judge: FastJudge, examples: Sequence[Example]) -> list[Prediction]:
        sizes.append(len(examples))
        return predict(judge, examples)

    monkeypatch.setattr(detector, "unseen_ngram_rate", None)
    monkeypatch.setattr(FastJudge, "predict", count)
    return sizes


def test_a_text_that_is_harmful_without_decoration_goes_to_review(
    detector: Detector, asked: list[int]
) -> None:
    (found,) = detector.verdicts(["it is lovely, y#ou ar#e a#ll s#o stup#id"], "en")
    assert (found.label, found.outcome) == ("harmless", "review")
    assert found.review == "the text without decoration is not harmless (symbols inside words)"
    assert sum(asked) == 1 + MOST_READINGS


def test_decorated_kind_words_stay_harmless(detector: Detector, asked: list[int]) -> None:
    (found,) = detector.verdicts(["what a lov#ely d#ay, it is"], "en")
    assert (found.outcome, found.review) == ("harmless", "")
    assert sum(asked) == 1 + MOST_READINGS


def test_ordinary_texts_cost_no_further_prediction(detector: Detector, asked: list[int]) -> None:
    detector.verdicts(["what a lovely day it is", "we eat at home, it's fine"], "en")
    assert sum(asked) == 2
