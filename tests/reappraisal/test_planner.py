"""The embedded planner: it listens, finds the cause, turns it within the rules, or declines."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from memantics.core.labels import ClassifierPrediction, Judge
from memantics.understanding.reappraisal import candidates, ranking
from memantics.understanding.reappraisal.candidates import list_candidates, rewrite, write_things
from memantics.understanding.reappraisal.kindness import LexiconMeter
from memantics.understanding.reappraisal.lexicon import read_lexicon
from memantics.understanding.reappraisal.planner import (
    EmbeddedPlanner,
    NoPlanner,
    choose_emotion,
    choose_plan,
)
from memantics.understanding.reappraisal.ranking import (
    LEAST,
    reads_as_intended,
    weigh,
)
from memantics.understanding.reappraisal.records import (
    EMOTIONS,
    PAIRS,
    MemeFeeling,
    ReappraisalPlan,
    SourceEmotion,
    TargetEmotion,
)
from memantics.understanding.reappraisal.rules import find_faults, find_motto, only_adds
from memantics.understanding.reappraisal.sentences import rate_fluency
from memantics.understanding.reappraisal.situation import UnderstoodLine, understand
from memantics.understanding.reappraisal.stages import ReappraisalSubject
from memantics.understanding.vision.page import MemeStructure, read_page
from tests.reappraisal.benches import FEELING, LOW, draw_meme_file, make_page
from tests.vision.pictures import BLACK, Print, blank, print_on


def print_page(*texts: str) -> MemeStructure:
    image = blank(640, 400)
    lines = []
    for place, text in enumerate(texts):
        chinese = any(c > "\u3000" for c in text)
        more = (BLACK,) if chinese else ()
        lines += print_on(image, Print(text, 320, 60 + 140 * place, 44, *more))
    return read_page(image, lines)


def plan_for(*texts: str, emotion: SourceEmotion | None = None) -> ReappraisalPlan | None:
    page = print_page(*texts)
    feeling = emotion or choose_emotion(understand([own.text for own in page.captions]))
    made, reason = choose_plan(page, feeling, LexiconMeter())
    assert (made is None) == bool(reason)
    if made is not None:
        assert find_faults(made, feeling, page) == []
    return made


def test_the_cause_is_turned_and_the_situation_stays(tmp_path: Path) -> None:
    made, _ = choose_plan(make_page(tmp_path), "tense", LexiconMeter())
    assert made is not None
    assert made.captions == {"1": "MY PHONE IS AT ONE PERCENT", "2": "I BREATHE"}
    assert made.why == "pressure becomes breath"


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("少来这套", "再来一套", "blame"),
        ("你是什么东西", "你是什么宝贝", "insult"),
        ("关我什么事", "这事我来帮", "blame"),
        ("再装逼就把你关进监狱", "再装可爱就把你抱回家", "insult"),
        ("我顶不住了", "我顶得住啦", "despair"),
    ],
)
def test_chinese_captions_by_cause(old: str, new: str, cause: str) -> None:
    found = understand([old])
    assert found.cause is not None
    assert found.cause.name == cause
    made = plan_for(old)
    assert made is not None
    assert made.captions["1"] == new


def test_of_a_pun_the_thing_in_the_picture_stays() -> None:
    pun = understand(["我很椒绿"]).lines[0]
    assert pun.intended == "我很焦虑"
    made = plan_for("我很椒绿")
    assert made is not None
    assert made.captions["1"] == "我很椒傲"
    assert "intended reading is '我很骄傲'" in made.why


def test_a_pun_that_would_stay_as_it_is_shows_what_is_meant() -> None:
    reading = understand(["鸭梨大啊"]).lines[0].reading
    assert reading is not None
    line = UnderstoodLine("鸭梨大啊", reading)
    assert write_things("压力大啊", line) == ["压梨大啊", "鸭力大啊"]
    assert write_things("没有这个音", UnderstoodLine("鸭梨大啊", reading)) == ["没有这个音"]
    assert write_things("没有", UnderstoodLine("没有")) == ["没有"]


def test_a_punchline_may_give_way_but_the_first_caption_tells_of_what() -> None:
    found = understand(["My phone is at one percent", "nobody cares, i cry"])
    made = [own.texts(["a", "b"]) for own in list_candidates(found, "happy")]
    assert all(texts[0] == "a" for texts in made)
    assert len({texts[1] for texts in made}) > 3


def test_a_sentence_gets_another_end() -> None:
    line = UnderstoodLine("we walked to the lake and everything was terrible and sad")
    ways = [own for own in rewrite(line, "happy") if own.way == "clause"]
    assert ways
    assert all(own.printed.startswith("we walked to the lake") for own in ways)
    assert not [own for own in rewrite(UnderstoodLine("so sad"), "happy") if own.way == "clause"]


def go_on(text: str, target: TargetEmotion = "calm") -> list[str]:
    return [own.printed for own in rewrite(UnderstoodLine(text), target) if own.way == "clause"]


@pytest.mark.parametrize(
    ("scene", "target", "end"),
    [
        ("when you miss the bus", "happy", ", and then a friend gives you a hug"),
        ("When my boss yells", "calm", ", and then I laugh about it"),
        ("WHEN WE HAVE A DEADLINE", "relaxed", ", AND WE TAKE A DEEP BREATH AND SMILE"),
        ("when the boss yells", "calm", ", and then everybody laughs about it"),
        ("Me trying to hide my anger...", "calm", ", and then laughing about it"),
        ("when you open the fridge and there's no food", "happy", ", and then you laugh about it"),
    ],
)
def test_a_kinder_end_agrees_with_the_person(scene: str, target: TargetEmotion, end: str) -> None:
    assert go_on(scene, target)[0] == scene.rstrip(".") + end


@pytest.mark.parametrize(
    "text",
    [
        "when you make me angry",  # two persons
        "when you are angry. Well then",  # two sentences
        "when you are angry Sad but true",  # another caption begins
        "when you are angry and she is like",
        "when you are angry and somebody dies",  # what a laugh does not mend
        "the angry dog next door",  # no scene
        "when you see the garden",  # nothing bad in it
    ],
)
def test_what_gets_no_kinder_end(text: str) -> None:
    assert go_on(text) == []


@pytest.mark.parametrize(
    ("whole", "last", "offered"),
    [(-2.95, -6.5, True), (-2.96, -6.5, False), (-2.95, -6.51, False)],
)
def test_a_kinder_end_follows_a_sentence_that_reads_well(
    monkeypatch: pytest.MonkeyPatch, whole: float, last: float, offered: bool
) -> None:
    rates = {"when you are angry": whole, "angry": last}
    monkeypatch.setattr(candidates, "rate_fluency", rates.__getitem__)
    assert bool(go_on("when you are angry")) == offered


def turn(text: str) -> list[str]:
    return [own.printed for own in rewrite(UnderstoodLine(text), "happy") if own.way == "turn"]


def test_a_turn_is_whole_or_none() -> None:
    assert turn("i am so sad")[0] == "i am so happy"
    assert turn("i am so sad without you") == []
    assert turn("i am so sad, what a cruel world") == []
    assert turn("She's mad at him but still here")[0] == "She's proud of him and still here"
    assert turn("MAD BUT HERE")[0] == "CALM AND HERE"


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (("THE GARDEN GATE IS GREEN",), "found it negative"),
        (("我们今天去公园看花",), "found it negative"),
    ],
)
def test_it_declines_with_a_reason(tmp_path: Path, texts: tuple[str, ...], why: str) -> None:
    blank(80, 60).save(tmp_path / "x.png")
    subject = ReappraisalSubject("x", tmp_path / "x.png", print_page(*texts))
    taken = asyncio.run(EmbeddedPlanner().feel(subject))
    assert (taken.status, taken.value) == ("answered", None)
    assert why in taken.reason
    told = asyncio.run(EmbeddedPlanner().feel(replace(subject, emotion="sad")))
    assert told.value is not None


@pytest.mark.parametrize("emotion", EMOTIONS)
def test_what_it_cannot_turn_it_leaves(emotion: SourceEmotion) -> None:
    assert plan_for("THE GARDEN GATE IS GREEN", emotion=emotion) is None


def test_a_meme_without_captions_changes_its_colours_only(tmp_path: Path) -> None:
    image = blank(80, 60)
    image.save(tmp_path / "x.png")
    subject = ReappraisalSubject("x", tmp_path / "x.png", read_page(image, []))
    assert asyncio.run(EmbeddedPlanner().feel(subject)).value is None
    feeling = asyncio.run(EmbeddedPlanner().feel(replace(subject, emotion="sad"))).value
    assert feeling is not None
    made = asyncio.run(EmbeddedPlanner().plan(subject, feeling)).value
    assert made is not None
    assert made.captions == {}


def test_the_same_meme_gives_the_same_plan(tmp_path: Path) -> None:
    path, lines = draw_meme_file(tmp_path)
    page = read_page(Image.open(path).convert("RGB"), lines)
    subject, planner = ReappraisalSubject("phone", path, page), EmbeddedPlanner()
    feelings = [asyncio.run(planner.feel(subject)).value for _ in range(2)]
    assert feelings[0] == feelings[1]
    assert feelings[0] is not None
    assert feelings[0].emotion == "tense"
    assert feelings[0].polarity == "Negative"
    taken = asyncio.run(planner.plan(subject, feelings[0]))
    assert taken.status == "answered"
    assert taken.model == "embedded/planner"


def test_another_meter_may_judge() -> None:
    class Deaf:
        name = "deaf"

        def measure(self, text: str) -> float:
            return 0.0

    page = print_page("I PANIC")
    assert choose_plan(page, "tense", LexiconMeter())[0] is not None
    made, reason = choose_plan(page, "tense", Deaf())
    assert made is None
    assert "no rewriting is kinder than the original" in reason


def test_captions_are_ordered_by_all_that_speaks_for_them() -> None:
    lines = understand(["The bowl is half empty"]).lines

    def score(text: str) -> float:
        return weigh(lines, (text,), (text,), LexiconMeter()).score

    assert score("The bowl is half full") > score("What a lovely day")
    assert score("The bowl is half full") > score("The bowl is half empty and I cry")
    kept = weigh(lines, (lines[0].printed,), (lines[0].printed,), LexiconMeter())
    assert (kept.kindness, kept.closeness, kept.joke, kept.fluency) == (0.0, 1.0, 1.0, 0.0)
    assert kept.kindness < LEAST
    assert kept.declined == "the captions are not kinder"


def test_a_pun_that_nobody_hears_is_not_offered() -> None:
    assert reads_as_intended("心想事橙", "心想事成")
    assert not reads_as_intended("今晚又狮分好眠了", "今晚又实在好玩了")
    made = plan_for("今晚又狮眠了")
    assert made is None or made.captions["1"] != "今晚又狮分好眠了"


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        ("药丸啊", "药丸呢", True),
        ("真无语", "真无语，放心", True),
        ("真无语", "真有趣", False),
        ("so tired", "so tired, no worries", True),
        ("so tired", "so rested", False),
        ("same", "same", False),
    ],
)
def test_particles_alone_change_nothing(old: str, new: str, only: bool) -> None:
    assert only_adds(old, new) is only


def test_emotions_without_a_known_cause() -> None:
    assert choose_emotion(understand(["what a crybaby"])) == "angry"
    assert choose_emotion(understand(["a catastrophe of misery"])) == "sad"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_lexicon_is_sound(language: str) -> None:
    lexicon = read_lexicon(language)
    for cause in lexicon.causes.values():
        assert cause.emotion in PAIRS
        assert len(cause.lines) > 1
        assert all(find_motto(line) is None for line in cause.lines)
        assert any(turn.cause == cause.name for turn in lexicon.turns)
    for turn in lexicon.turns:
        for new in turn.new:
            assert find_motto(new) is None
            assert turn.open or "\\" not in new, f"{new!r} takes over what nothing matched"


def test_case_is_kept() -> None:
    lexicon = read_lexicon("en")

    def reframe(text: str) -> str:
        (found,) = lexicon.find_turns(text)
        return lexicon.say(found, 0)

    assert reframe("GARBAGE") == "A FIRST DRAFT"
    assert reframe("Awkward") == "Kind of charming"
    assert reframe("I CAN’T") == "I AM LEARNING TO"
    assert lexicon.find_turns("awkwardly") == []


def test_kind_words_sound_like_the_thing_and_keep_who_speaks() -> None:
    line = understand(["我们星碎"]).lines[0]
    ways = {own.printed: own for own in rewrite(line, "happy") if own.way == "sound"}
    # Two characters follow the opening; a longer word is a sentence of its own.
    assert ways["我们开星"].intended == "我们开心"
    assert "真开星" in ways
    assert not {"开星", "我们真开星"} & set(ways)
    assert all("星" in printed for printed in ways)


def test_one_caption_of_several_may_change_alone() -> None:
    two = understand(["我顶不住了", "少来这套"])
    assert all([*rewrite(line, "happy")] for line in two.lines)
    made = [candidate.rewritings for candidate in list_candidates(two, "happy")]
    assert any(first and second for first, second in made)
    assert any(first and not second for first, second in made)
    assert any(second and not first for first, second in made)
    # Of a lone caption that would be the same candidate twice.
    lone = understand(["我顶不住了"])
    texts = [str(candidate.texts(["x"])) for candidate in list_candidates(lone, "happy")]
    assert len(texts) == len(set(texts)) > 1


def test_who_says_what_a_meme_feels_like(tmp_path: Path) -> None:
    page = make_page(tmp_path)
    asked: list[tuple[str, str]] = []

    def feel(label: str | None, emotion: SourceEmotion | None = None) -> tuple[str, str, str]:
        def ask(text: str, language: str) -> ClassifierPrediction:
            asked.append((text, language))
            return ClassifierPrediction("emotion", str(label), "feelings")

        judge = Judge("emotion", "feelings", "7", tuple(EMOTIONS), ask) if label else None
        planner = EmbeddedPlanner(judge=judge)
        subject = ReappraisalSubject("phone", tmp_path / "phone.png", page, emotion=emotion)
        taken = asyncio.run(planner.feel(subject))
        assert taken.value is not None
        return planner.name, taken.value.emotion, taken.value.source

    baseline = "the word lexicon, a baseline"
    assert feel(None) == ("embedded/planner", "tense", baseline)
    assert feel(None, "angry")[1:] == ("angry", "given")
    assert not asked
    named = "embedded/planner with feelings@7"
    source = ClassifierPrediction("emotion", "sad", "feelings").source
    assert feel("sad") == (named, "sad", source)
    assert asked == [(" ".join(caption.text for caption in page.captions), "en")]
    # A classifier that cannot tell leaves it to the words.
    assert feel("unknown") == (named, "tense", baseline)


def test_without_a_model_every_meme_is_declined(tmp_path: Path) -> None:
    subject = ReappraisalSubject("x", tmp_path / "x.png", print_page(LOW))
    taken = asyncio.run(NoPlanner().feel(subject))
    assert (taken.status, taken.value) == ("answered", None)
    assert "--model KIND/NAME" in taken.reason
    feeling = MemeFeeling.model_validate(FEELING)
    assert asyncio.run(NoPlanner().plan(subject, feeling)).value is None


def test_usual_words_are_more_fluent_than_a_heap_of_words() -> None:
    pytest.importorskip("pocketsphinx", reason="the extra phonetics tells English sentences")
    usual, heap = rate_fluency("see you tomorrow"), rate_fluency("tomorrow you purple")
    assert usual is not None
    assert heap is not None
    assert usual > heap


def test_without_a_language_model_fluency_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "rate_fluency", lambda _: None)
    lines = understand(["The bowl is half empty"]).lines
    found = weigh(lines, ("full purple half",), ("full purple half",), LexiconMeter())
    assert found.fluency == 0.0
    assert found.declined != "the captions are not fluent"
