"""Is a caption a pun: the verdict, its reasons, and what a model that sees the picture adds."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.core.task import Unparsed
from memantics.understanding.analysis.asking import ask_pun
from memantics.understanding.phonetics.detector import judge_pun, load_pun_weights
from memantics.understanding.phonetics.reading import HomophoneReadings
from tests.phonetics.captions import ENGLISH_PUNS, PLAIN, PUNS
from tests.servers.fakes import Scripted, serving

SAID = {
    "picture": "a fish lies on a plate",
    "word": "鱼",
    "written": "a fish",
    "other": "余, plenty",
    "seen": "written",
    "pun": True,
    "reason": "a fish lies on a plate",
}
PICTURE = image_path("CN90001")


def reply(**changes: object) -> str:
    return orjson.dumps(SAID | changes).decode()


def test_puns_are_told_from_plain_captions() -> None:
    puns = [mm.detect_pun(caption, language_model="dictionary") for caption, _ in PUNS]
    plain = [mm.detect_pun(caption, language_model="dictionary") for caption in PLAIN]
    assert sum(pun.is_pun for pun in puns) >= 16
    assert sum(one.is_pun for one in plain) <= 2
    for each in (*puns, *plain):
        assert each.is_pun == (each.probability >= each.threshold) == (each.kind != "none")
        assert each.why
        assert each.to_dict()["caption"] == each.caption


def test_the_reasons_name_reading_and_span() -> None:
    verdict = mm.detect_pun("年年有鱼", language_model="dictionary")
    assert verdict.kind == "homophone"
    assert "年年有余" in verdict.why[0]
    assert any("鱼" in line and "余" in line for line in verdict.why[1:])
    assert "年年有鱼" in verdict._repr_html_()


def test_words_with_a_second_sense_are_named() -> None:
    verdict = mm.detect_pun("打酱油", language_model="dictionary")
    assert [sense.word for sense in verdict.senses] == ["打酱油"]
    assert "soy sauce" in verdict.senses[0].why


def test_an_image_that_nobody_looks_at_changes_nothing_and_is_noted() -> None:
    without = mm.detect_pun("年年有鱼", language_model="dictionary")
    beside = mm.detect_pun("年年有鱼", PICTURE, language_model="dictionary")
    assert (beside.probability, beside.seen_by) == (without.probability, "")
    assert "image was not used" in beside.notes[-1]
    assert (
        "image was not used"
        in mm.read_homophones("年年有鱼", PICTURE, language_model="dictionary").notes[-1]
    )


@pytest.mark.parametrize("pun", [True, False])
def test_a_model_that_sees_the_picture_moves_the_verdict(pun: bool, tmp_path: Path) -> None:
    # What the model says is seen counts as a description; its verdict comes on top of that.
    plain = mm.detect_pun("年年有鱼", language_model="dictionary", description=str(SAID["picture"]))
    server = Scripted(lambda _: reply(pun=pun, seen="written" if pun else "neither"))
    with serving(server):
        verdict = mm.detect_pun(
            "年年有鱼",
            PICTURE,
            language_model="dictionary",
            model="openai/seer",
            call_log=tmp_path,
            calls=mm.CallSettings(base_url=f"{server.url}"),
        )
        readings = mm.read_homophones(
            "年年有鱼",
            PICTURE,
            language_model="dictionary",
            model="openai/seer",
            call_log=tmp_path,
            calls=mm.CallSettings(base_url=server.url),
        )
    assert (verdict.probability > plain.probability) == pun
    assert verdict.seen_by == "openai/seer"
    assert verdict.why[0].startswith("openai/seer sees 鱼 as")
    assert readings.evidence == ("fish",)
    sent = orjson.dumps(server.bodies[0]).decode()
    assert "年年有余" in sent  # it is told what the caption sounds like
    assert "image_url" in sent


def test_a_model_without_an_answer_is_noted(tmp_path: Path) -> None:
    with serving(Scripted(lambda _: "no idea")) as server:
        verdict = mm.detect_pun(
            "年年有鱼",
            PICTURE,
            language_model="dictionary",
            model="openai/mute",
            call_log=tmp_path,
            calls=mm.CallSettings(base_url=server.url),
        )
    assert verdict.seen_by == ""
    assert "openai/mute returned no usable answer" in verdict.notes[-1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"word": " "}, "needs a word"),
        ({"other": ""}, "needs a word"),
        ({"seen": "neither"}, "which is seen"),
        ({"seen": "perhaps"}, "seen"),
    ],
)
def test_a_pun_without_two_readings_is_asked_again(changes: dict[str, object], said: str) -> None:
    step = ask_pun(Meme("x", PICTURE, "年年有鱼", "zh"), "zh", "fake/x", "")
    with pytest.raises(Unparsed, match=said):
        step.read(reply(**changes))
    assert not step.read(reply(pun=False, word="", other="", seen="neither")).is_pun


def test_without_sentence_vectors_the_rest_decides() -> None:
    readings = mm.read_homophones("年年有鱼", language_model="dictionary")
    weights = load_pun_weights("dictionary")
    assert judge_pun(readings, None) != judge_pun(readings, [1.0] * len(weights.meaning))
    assert judge_pun(readings, [1.0]) == judge_pun(readings, None)  # another encoder's vector


def test_english_puns_are_judged_by_what_was_heard() -> None:
    try:
        found = [mm.detect_pun(caption, language="en") for caption, _ in ENGLISH_PUNS[:4]]
    except mm.MissingExtra:
        pytest.skip("no English data installed")
    assert all(one.is_pun and one.kind == "homophone" for one in found)


def test_nothing_heard_is_no_pun() -> None:
    empty = HomophoneReadings("", "zh", "none", "", (), 0.0, 0.5)
    assert not judge_pun(empty).is_pun
