"""The search over a toy language of thirty words whose logarithms are whole numbers.

``toy_readings.jsonl`` holds every path, difference, feature and reading of a few captions, so that
each can be worked out from the table of words and the costs (MEMANTICS_GOLDEN=write makes it anew).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path as FilePath

import pytest
from pydantic import JsonValue

from memantics.core.result import to_plain
from memantics.understanding.phonetics.caption import write_scripts
from memantics.understanding.phonetics.evidence import (
    find_double_meanings,
    find_evidence,
    find_in_description,
)
from memantics.understanding.phonetics.homophones import (
    analyze_caption,
    build_reading,
    read_homophones,
    write_pronunciation,
)
from memantics.understanding.phonetics.language import FrequencyModel, Transitions
from memantics.understanding.phonetics.lattice import Lattice, Path
from memantics.understanding.phonetics.pinyin import (
    SyllableSound,
    list_sounds,
    parse_marked,
    read_in_context,
    write_marked,
)
from memantics.understanding.phonetics.ranking import (
    Linear,
    PathCandidate,
    describe_caption,
    describe_path,
    load_weights,
)
from memantics.understanding.phonetics.reading import Settings
from tests.tolerances import list_differences

GOLDEN = FilePath(__file__).with_name("toy_readings.jsonl")
WORDS = {
    **dict.fromkeys(("的", "了"), 1e-1),
    **dict.fromkeys(("有", "多", "是", "好", "来", "一", "你"), 1e-2),
    **dict.fromkeys(("年", "有余", "真", "真多", "于", "啊", "白", "爱", "行", "里"), 1e-3),
    **dict.fromkeys(("鱼", "年年", "年年有余", "号", "拜", "银行", "航"), 1e-4),
    **dict.fromkeys(("余", "蒸", "阿", "泥"), 1e-5),
}
PAIRS = Transitions(
    {"有": {"余": 0.5, "鱼": 0.0001}, "年": {"有": 0.1}}, {"余": 0.005, "鱼": 0.001, "有": 0.01}
)
ORDER = Linear({"gain": 1.0, "changes": -0.5})
CAPTIONS = ("年年有鱼", "蒸多鱼", "拜拜", "号，是A", "1好", "泥好", "有于啊", "银航", "好ok", "！")


@pytest.fixture(scope="module")
def toy() -> Lattice:
    pytest.importorskip("pocketsphinx", reason="the extra phonetics reads English words aloud")
    return Lattice(FrequencyModel("toy", WORDS, PAIRS))


def show_path(path: Path) -> str:
    words = " ".join(piece.word + "*" * piece.kept for piece in path.pieces)
    places = " ".join(f"{piece.start}-{piece.end}" for piece in path.pieces)
    return f"{path.text} | {words} | {places} | {path.common:.4f} | {path.total:.4f}"


def show_numbers(values: Mapping[str, float]) -> dict[str, JsonValue]:
    """Figures that are not zero."""
    return {name: round(value, 4) for name, value in values.items() if round(value, 4)}


def describe(caption: str, toy: Lattice) -> dict[str, JsonValue]:
    script = next(iter(write_scripts(caption)))
    plain = toy.read_plainly(script)
    found = analyze_caption(caption, toy, order=ORDER)
    paths: list[JsonValue] = []
    for path in toy.search(script, 6):
        differences, features = describe_path(path, script, plain, toy)
        changes = [to_plain(asdict(difference)) for difference in differences]
        paths.append({"path": show_path(path), "changes": changes, **show_numbers(features)})
    return {
        "plain": show_path(plain),
        "pronunciation": write_pronunciation(script),
        "paths": paths,
        "literal_rank": found.literal_rank,
        "signals": show_numbers(found.signals),
        "readings": [to_plain(build_reading(candidate)) for candidate in found.candidates[:3]],
    }


@pytest.mark.parametrize("caption", CAPTIONS)
def test_paths_features_and_readings_are_those_worked_out(caption: str, toy: Lattice) -> None:
    if os.environ.get("MEMANTICS_GOLDEN") == "write":
        known = {one: describe(one, toy) for one in CAPTIONS}
        lines = (f"{json.dumps({k: v}, ensure_ascii=False)}\n" for k, v in known.items())
        GOLDEN.write_text("".join(lines), encoding="utf-8")
    rows = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    (expected,) = (row[caption] for row in rows if caption in row)
    assert list_differences(json.loads(json.dumps(describe(caption, toy))), expected) == []


def test_a_change_costs_more_where_the_written_character_is_an_everyday_one(toy: Lattice) -> None:
    assert toy.rate_firmness("") == 0.5
    assert toy.rate_firmness("的") == pytest.approx(1 + 0.3 * 3)
    assert toy.rate_firmness("号") == pytest.approx(1.0)
    assert toy.rate_firmness("鱼") == pytest.approx(0.65)  # a thing one can draw
    assert toy.rate_firmness("余") == pytest.approx(0.7)
    assert toy.rate_firmness("罕") == pytest.approx(0.2)  # no word of this language


def test_the_cost_of_a_path_is_that_of_its_words_and_changes(toy: Lattice) -> None:
    (script,) = write_scripts("年年有鱼")
    best, *_ = toy.search(script, 1)
    # One word of -4; the fish is heard as something else, in the same tone: 1.4 times 0.65.
    assert (best.text, best.common) == ("年年有余", -4.0)
    assert best.total == pytest.approx(-4 - 1.4 * 0.65)
    # 真 for 蒸: sound 3 times 0.35, change 1.4 times 0.7 times 0.65; then an unseen pair.
    (script,) = write_scripts("蒸多")
    best, *_ = toy.search(script, 1)
    assert best.total == pytest.approx(-3 - 3 * 0.35 - 1.4 * 0.7 * 0.65)
    assert len(toy.search(script, 1)) == 1
    assert len(toy.search(script, 2)) == 2


def test_a_loan_is_one_word_for_several_syllables(toy: Lattice) -> None:
    (script,) = write_scripts("拜拜")
    best, *_ = toy.search(script, 1)
    assert (best.text, best.common) == ("bye bye", -5.5)
    assert best.total == pytest.approx(-5.5 - 2 * 1.4)
    (longer,) = write_scripts("好拜拜")
    assert toy.search(longer, 1)[0].pieces[-1].word == "bye bye"
    (cut,) = write_scripts("拜")
    assert all("bye" not in path.text for path in toy.search(cut, 9))


def test_what_the_picture_shows_speaks_for_readings_that_change_it(toy: Lattice) -> None:
    plain = analyze_caption("年年有鱼", toy, order=ORDER)
    shown = analyze_caption("年年有鱼", toy, order=ORDER, pictured=frozenset("鱼"))
    other = analyze_caption("年年有鱼", toy, order=ORDER, pictured=frozenset("猫"))
    for before, after in zip(plain.candidates, shown.candidates, strict=True):
        assert after.score == pytest.approx(before.score + 1.5)
    assert [candidate.score for candidate in other.candidates] == [
        one.score for one in plain.candidates
    ]


def test_other_weights_order_the_same_candidates_anew(toy: Lattice) -> None:
    found = analyze_caption("泥好", toy, order=ORDER)
    again = found.reorder(Linear({"distance": -1.0}))
    assert {one.path.text for one in again.candidates} == {
        each.path.text for each in found.candidates
    }
    scores = [candidate.score for candidate in again.candidates]
    assert scores == sorted(scores, reverse=True)
    assert again.candidates[0].features["distance"] == 0
    assert again.signals["score"] == again.candidates[0].score
    # Of equal scores the text decides, so that the order is always the same.
    level = found.reorder(Linear({}))
    assert [own.path.text for own in level.candidates] == sorted(
        own.path.text for own in level.candidates
    )


def test_a_caption_without_readings_has_no_score_and_one_reading_a_wide_margin(
    toy: Lattice,
) -> None:
    (script,) = write_scripts("年年有鱼")
    plain = toy.read_plainly(script)
    none = describe_caption((), plain, script, 60)
    assert (none["score"], none["margin"], none["doubt"]) == (0.0, 0.0, 0.0)
    assert none["plain"] == -2.5
    assert none["literal_rank"] == pytest.approx(4.110874)
    features = {"changes": 1.0, "gain": 2.0, "unknown": 9.0}
    alone = PathCandidate(plain, script, (), features, 3.0)
    one = describe_caption((alone,), plain, script, 0)
    assert (one["margin"], one["score"], one["gain"]) == (5.0, 3.0, 2.0)
    assert one["changed_share"] == 0.25
    assert "unknown" not in one
    assert one["doubt"] == pytest.approx(0.0, abs=1e-9)
    two = describe_caption((alone, alone), plain, script, 0)
    assert two["margin"] == 0.0
    assert two["doubt"] == pytest.approx(0.693147, abs=1e-5)


@pytest.mark.parametrize(
    ("marked", "sound"),
    [
        ("mā", ("ma", 1)),
        ("má", ("ma", 2)),
        ("mǎ", ("ma", 3)),
        ("mà", ("ma", 4)),
        ("ma", ("ma", 5)),
        ("lüè", ("lve", 4)),
        ("nǚ", ("nv", 3)),
        ("ê̄", ("e", 1)),
        ("guāi", ("guai", 1)),
        ("liù", ("liu", 4)),
        ("guì", ("gui", 4)),
        ("dòu", ("dou", 4)),
        ("ér", ("er", 2)),
        ("xióng", ("xiong", 2)),
    ],
)
def test_tone_marks_are_read_and_written(marked: str, sound: tuple[str, int]) -> None:
    assert parse_marked(marked) == SyllableSound(*sound)
    if marked[0] != "ê":
        assert write_marked(SyllableSound(*sound)) == marked


def test_a_character_has_four_readings_at_most_and_one_where_it_stands() -> None:
    assert max(len(list_sounds(chr(code))) for code in range(0x4E00, 0x4F00)) == 4
    assert list_sounds("") == () == list_sounds("鱼鱼")
    assert [one and one.syllable for one in read_in_context("银行A！")] == [
        "yin",
        "hang",
        None,
        None,
    ]
    assert read_in_context("") == ()


def test_only_rare_words_are_evidence(toy: Lattice) -> None:
    # 的 and 有 are in every description; 鱼 and 余 are not.
    assert find_evidence("的有鱼", "红的鱼有余", toy) == {"鱼": "鱼"}
    assert find_evidence("余！1", "1！余", toy) == {"余": "余"}
    assert find_in_description("榴", "a Pomegranate") == "pomegranate"
    assert find_in_description("笋", "a Bamboo Shoot") == "bamboo shoot"
    assert find_in_description("笋", "a bamboo, a shoot") == ""
    script = next(iter(write_scripts("1好鱼，")))
    found = find_double_meanings(toy.read_plainly(script), "1只好鱼，", "1好鱼，", toy)
    # 鱼 stands at -4: (4 - 3.4) / 3. Neither digits nor marks nor everyday words mean two things.
    assert [(one.word, one.strength) for one in found] == [("鱼", 0.2)]


def test_what_the_picture_supports_makes_a_reading_surer() -> None:
    settings = Settings(model="dictionary")
    plain = read_homophones("年年有鱼", settings=settings)
    shown = read_homophones("年年有鱼", description="一条鱼", settings=settings)
    assert (plain.signals["evidence"], shown.signals["evidence"]) == (0.0, 1.0)
    sure = load_weights("dictionary")[1]
    odds = Linear({**sure.weights, "evidence": 0.7}, sure.bias)
    for heard in (plain, shown):
        assert heard.confidence == pytest.approx(odds.probability(heard.signals), abs=1e-4)
    assert shown.confidence > plain.confidence
