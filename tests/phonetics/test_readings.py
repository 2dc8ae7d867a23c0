from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.errors import InputError
from memantics.understanding.analysis.records import HomophoneFinding, describe_homophones
from memantics.understanding.phonetics.caption import write_scripts
from memantics.understanding.phonetics.evidence import clean_description
from memantics.understanding.phonetics.homophones import analyze_caption, read_homophones, read_many
from memantics.understanding.phonetics.lattice import Lattice, Path, PathWord
from memantics.understanding.phonetics.ranking import describe_path
from memantics.understanding.phonetics.reading import (
    PROMPT_THRESHOLD,
    HomophoneReadings,
    ModelName,
    Settings,
    explain,
    hint,
)
from tests.phonetics.captions import PLAIN, PUNS

PLAINEST = Settings(model="dictionary")


def check(readings: HomophoneReadings) -> None:
    """What holds for the readings of any text."""
    assert 0.0 <= readings.confidence <= 1.0
    assert len(readings.readings) <= 5
    assert len({r.text for r in readings.readings}) == len(readings.readings)
    for reading in readings.readings:
        assert reading.changes
        assert reading.distance >= 0
        assert reading.syllables_matched <= reading.syllables
        for change in reading.changes:
            assert readings.caption[change.start : change.end] == change.written
            assert change.homophone in reading.text
    json.dumps(readings.to_dict())
    assert all("\n" not in line for line in explain(readings))


def test_known_puns_are_understood(lattice: Lattice) -> None:
    readings = list(read_many([caption for caption, _ in PUNS], settings=PLAINEST))
    first = [r.readings[0].text for r in readings]
    right = [a == b for a, (_, b) in zip(first, PUNS, strict=True)]
    assert sum(right) >= 18, first
    assert sum(r.intended is not None for r in readings) >= 15
    for each in readings:
        check(each)


def test_plain_captions_stay_quiet() -> None:
    loud = [c for c in PLAIN if read_homophones(c, settings=PLAINEST).intended]
    assert len(loud) <= 2, loud


@pytest.mark.slow
@pytest.mark.parametrize("model", ["trigram", "frequencies"])
def test_other_models_understand_them_too(model: str, request: pytest.FixtureRequest) -> None:
    lattice: Lattice = request.getfixturevalue(model)
    found = [analyze_caption(c, lattice).candidates[0].path.text == t for c, t in PUNS]
    assert sum(found) >= 18


def test_the_changed_span_is_named() -> None:
    readings = read_homophones("一路顺疯！", settings=PLAINEST)
    assert readings.readings[0].text == "一路顺风！"
    (change,) = readings.readings[0].changes
    assert (change.start, change.end, change.written, change.homophone) == (3, 4, "疯", "风")
    assert change.distance == 0
    assert change.written_pronunciation == change.homophone_pronunciation == "fēng"


def test_mergers_are_named() -> None:
    readings = read_homophones("很高星认识你", settings=PLAINEST)
    assert readings.readings[0].text == "很高兴认识你"
    assert readings.readings[0].changes[0].tones_differ == 1
    line = explain(read_homophones("恭喜花财", settings=PLAINEST))[1]
    assert "hua/fa merged" in line


def test_what_is_pictured_supports_the_literal_reading() -> None:
    without = read_homophones("年年有鱼", settings=PLAINEST)
    seen = read_homophones("年年有鱼", description="two red fish and a coin", settings=PLAINEST)
    assert seen.evidence == ("fish",)
    assert seen.confidence >= without.confidence
    assert any("'fish'" in line for line in explain(seen))


def test_quoting_the_caption_is_no_evidence() -> None:
    seen = read_homophones("年年有鱼", description="写着“年年有鱼”的红纸", settings=PLAINEST)
    assert seen.evidence == ()


def test_double_meanings_are_reported_apart() -> None:
    readings = read_homophones("你真是添油加醋", description="厨师拿着一瓶醋", settings=PLAINEST)
    assert readings.intended is None
    assert [d.word for d in readings.double_meanings] == ["醋"]
    assert readings.double_meanings[0].inside == "添油加醋"


@pytest.mark.parametrize(
    "text",
    ["", " ", "🎉🎉", "。。。", "\x00\x01", "\u202eabc\u202c", "שלום", "مرحبا", "漢字寫作", "ｱｲｳ"],
)
def test_odd_texts_are_answered(text: str) -> None:
    check(read_homophones(text, settings=PLAINEST))


def test_long_texts_are_cut_and_say_so() -> None:
    readings = read_homophones("天上下着小雨" * 2000, settings=PLAINEST)
    check(readings)
    assert len(readings.caption) == PLAINEST.max_characters
    assert any("of 12000 characters" in note for note in readings.notes)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=40) | st.text(alphabet="我你鱼真蒸了吗5AB ，!\u200b馬", max_size=25))
def test_any_text_is_answered(text: str) -> None:
    chinese = Settings(model="dictionary", language="zh")
    check(read_homophones(text, settings=chinese))


def test_the_hint_says_how_sure_the_engine_is_and_what_it_hears() -> None:
    readings = replace(read_homophones("前途无亮", settings=PLAINEST), reading_probability=0.84)
    assert 0.7 < readings.confidence < 0.9
    assert hint(readings, limit=1) == "84%: 前途无量 (qián tú wú liàng)"
    assert hint(replace(readings, threshold=0.9)) == ""
    assert hint(read_homophones("🎉", settings=PLAINEST)) == ""


@pytest.mark.parametrize(("chance", "told"), [(0.8, True), (0.7999, False)])
def test_a_reading_is_told_from_a_measured_chance_on(chance: float, told: bool) -> None:
    readings = replace(read_homophones("前途无亮", settings=PLAINEST), reading_probability=chance)
    assert bool(hint(readings)) is told
    assert bool(describe_homophones([HomophoneFinding("前途无亮", "前途无量", chance)])) is told


@pytest.mark.parametrize("model", ["trigram", "frequencies"])
def test_a_reading_that_is_merely_common_is_not_told(model: ModelName) -> None:
    """Of 我不是鸽 models were told 我不是个, "99% sure"."""
    try:
        readings = read_homophones("我不是鸽", settings=Settings("zh", model))
    except InputError as missing:  # an extra, or the system's language model
        pytest.skip(str(missing))
    assert readings.readings[0].text == "我不是个"
    assert readings.reading_probability < PROMPT_THRESHOLD
    assert hint(readings) == ""
    sure = read_homophones("蒜你狠", settings=Settings("zh", model))
    assert "算你狠" in hint(sure)


@pytest.mark.parametrize(("behind", "named"), [(3.9, 2), (4.0, 1)])
def test_a_hint_leaves_out_what_is_far_behind(behind: float, named: int) -> None:
    readings = replace(read_homophones("前途无亮", settings=PLAINEST), reading_probability=0.9)
    first = readings.readings[0]
    second = replace(first, text="钱途无量", score=first.score - behind)
    assert hint(replace(readings, readings=(first, second))).count(" (") == named


def test_bad_settings_and_captions_are_refused() -> None:
    with pytest.raises(InputError, match="limit 0 is out of range"):
        Settings(limit=0)
    with pytest.raises(InputError, match="the caption must be a string, not int"):
        read_homophones(5, settings=PLAINEST)  # type: ignore[arg-type]


def test_reading_is_deterministic() -> None:
    first = read_homophones("咳不容缓", settings=PLAINEST)
    assert first == read_homophones("咳不容缓", settings=PLAINEST)


@pytest.mark.parametrize(("threshold", "words"), [(0.0, []), (1.0, ["鱼"])])
def test_a_double_meaning_is_only_told_where_nothing_else_is_meant(
    threshold: float, words: list[str]
) -> None:
    chosen = Settings(model="dictionary", threshold=threshold)
    readings = read_homophones("年年有鱼", description="一条鱼", settings=chosen)
    assert (readings.intended is None) == bool(words)
    assert [double.word for double in readings.double_meanings] == words


def test_three_double_meanings_are_enough() -> None:
    chosen = Settings(model="dictionary", threshold=1.0)
    shown = "鹅、蟹、猪、鲸和狐"
    assert len(read_homophones("鹅蟹", description=shown, settings=chosen).double_meanings) == 2
    assert len(read_homophones("鹅蟹猪", description=shown, settings=chosen).double_meanings) == 3
    assert (
        len(read_homophones("鹅，蟹，猪，狐", description=shown, settings=chosen).double_meanings)
        == 3
    )


@pytest.mark.parametrize(
    ("caption", "left"), [("鱼", "一条鱼和鱼缸"), ("鱼缸", "一条鱼和 "), ("", "一条鱼和鱼缸")]
)
def test_a_caption_of_one_character_stays_in_the_description(caption: str, left: str) -> None:
    """Taking it out would take the thing itself out of the picture."""
    assert clean_description("一条鱼和鱼缸", caption) == left


@pytest.mark.parametrize(("place", "dangling"), [(1, 1.0), (4, 0.0), (6, 1.0)])
def test_a_word_dangles_at_the_end_of_a_clause_alone(
    place: int, dangling: float, lattice: Lattice
) -> None:
    """Before a comma and at the very end, not before another syllable."""
    script = next(write_scripts("有鱼，好鱼吃鱼"))
    plain = lattice.read_plainly(script)
    text = "".join(slot.simple or "，" for slot in script.slots)
    pieces = tuple(
        PathWord("于" if n == place else character, n, n + 1, n != place)
        for n, character in enumerate(text)
    )
    path = Path("".join(piece.word for piece in pieces), pieces, -9.0, -9.0)
    assert describe_path(path, script, plain, lattice)[1]["dangling"] == dangling
