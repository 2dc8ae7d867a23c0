"""A description of the picture tells puns from captions that only sound like one."""

from __future__ import annotations

import numpy as np
import pytest

import memantics as mm
from memantics.understanding.phonetics.detector import (
    ALARMS,
    PunData,
    apply_pun,
    fit_pun,
    judge_pun,
    load_pun_weights,
)
from memantics.understanding.phonetics.evaluation import PUN_FEATURES
from memantics.understanding.phonetics.evidence import PICTURE_FEATURES, describe_picture
from memantics.understanding.phonetics.lattice import Lattice
from research.pun_weights import DESCRIBED_FEATURES


def test_what_is_shown_is_counted_by_rarity(lattice: Lattice) -> None:
    seen = describe_picture("别太抽象", "一只大象和一个拿着鞭子的人", ["象"], lattice)
    assert {*seen, "similar"} == set(PICTURE_FEATURES)
    assert seen["evidence"] == 1
    assert seen["shown_rarest"] == seen["shown_thing"] > 0
    assert seen["shown_share"] == pytest.approx(seen["shown_rarest"] / 4)
    assert seen["shown_word"] == 0
    assert describe_picture("别太抽象", "一只大象", [], lattice)["evidence"] == 0
    whole = describe_picture("说毛线", "一团粉色的毛线球", [], lattice)
    assert whole["shown_word"] == 2


@pytest.mark.parametrize("description", ["", "一只猫", "写着“别太抽象”", "别太抽象"])
def test_nothing_shown_counts_nothing(description: str, lattice: Lattice) -> None:
    """Neither does the caption where a description quotes or repeats it."""
    assert set(describe_picture("别太抽象", description, ["象"], lattice).values()) == {0.0}


def test_an_english_description_names_things_too(lattice: Lattice) -> None:
    assert describe_picture("年年有鱼", "a fish on a plate", ["鱼"], lattice)["evidence"] == 1


def test_everyday_characters_say_nothing(lattice: Lattice) -> None:
    assert describe_picture("我的", "这是我的", [], lattice)["shown_rarest"] == 0


def test_one_caption_is_a_pun_beside_one_picture_and_none_beside_another() -> None:
    shown = mm.detect_pun(
        "真菜",
        description="一片绿色的蔬菜叶子，一个放大镜",
        described_by="person",
        language_model="dictionary",
    )
    other = mm.detect_pun(
        "真菜",
        description="一只卡通猫，表情轻蔑",
        described_by="person",
        language_model="dictionary",
    )
    assert shown.probability > other.probability
    assert not other.is_pun
    assert shown.threshold == load_pun_weights("dictionary", described=True).threshold
    alone = mm.detect_pun("真菜", language_model="dictionary")
    assert alone.threshold == load_pun_weights("dictionary").threshold


def test_the_vectors_of_caption_and_description_are_compared() -> None:
    readings = mm.read_homophones("真菜", description="一片蔬菜叶子", language_model="dictionary")
    weights = load_pun_weights("dictionary", described=True)
    assert set(weights.linear.weights) == set(DESCRIBED_FEATURES)
    vector = [1.0] + [0.0] * (len(weights.meaning) - 1)
    away = [0.0, 1.0] + [0.0] * (len(weights.meaning) - 2)
    same = judge_pun(readings, vector, picture=vector, trusted=True).probability
    assert same != judge_pun(readings, vector, picture=away, trusted=True).probability
    assert judge_pun(readings, vector, picture=away, trusted=True) == judge_pun(
        readings, vector, trusted=True
    )


def toy(count: int, seed: int) -> PunData:
    rng = np.random.default_rng(seed)
    pun = np.arange(count) % 3 == 0
    vectors = rng.normal(size=(count, 4)) + 2.0 * pun[:, None] * np.array([1, 0, 0, 0])
    signals = rng.normal(size=(count, len(PUN_FEATURES))) + 0.4 * pun[:, None]
    return PunData(signals, vectors, pun, pun & (np.arange(count) % 2 == 0), np.arange(count) % 5)


def test_the_threshold_keeps_false_alarms_where_they_were_set() -> None:
    fitted = fit_pun(toy(900, 0), PUN_FEATURES)
    data = toy(900, 1)
    chances, said = apply_pun(data, PUN_FEATURES, fitted)
    assert said.tolist() == (chances >= fitted[2]).tolist()
    assert said[~data.pun].mean() == pytest.approx(ALARMS, abs=0.03)
    assert said[data.pun].mean() > 0.6


def test_without_vectors_signals_decide() -> None:
    data = toy(300, 0)
    bare = PunData(data.signals, np.zeros((300, 0)), data.pun, data.homophone, data.folds)
    _, meaning, _ = fit_pun(bare, PUN_FEATURES)
    assert meaning == ()


PUNS = ("年年有鱼", "真是太锈了", "鸭梨山大", "我太南了", "蕉个朋友", "莓事儿吧", "无盐以对")


@pytest.mark.parametrize(
    "description",
    [
        pytest.param("一只猫坐在沙发上，旁边有一个杯子和一本书", id="another picture's"),
        pytest.param("person, cup, tie, chair", id="tags"),
        pytest.param("图片", id="short"),
        pytest.param("ein Mann steht vor einem Haus", id="another language"),
        pytest.param("", id="silent"),
    ],
)
def test_a_description_that_shows_nothing_changes_nothing(description: str) -> None:
    for caption in PUNS:
        alone = mm.detect_pun(caption, language_model="dictionary")
        beside = mm.detect_pun(caption, description=description, language_model="dictionary")
        assert (beside.is_pun, beside.probability) == (alone.is_pun, alone.probability)


def test_a_description_may_support_a_pun_and_never_speaks_against_it() -> None:
    for caption, description in (("真菜", "一片绿色的蔬菜叶子"), ("无盐以对", "一袋盐")):
        alone = mm.detect_pun(caption, language_model="dictionary")
        shown = mm.detect_pun(caption, description=description, language_model="dictionary")
        assert shown.is_pun >= alone.is_pun
        assert shown.probability - shown.threshold >= alone.probability - alone.threshold - 0.05
