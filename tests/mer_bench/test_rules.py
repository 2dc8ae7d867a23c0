"""What a judge's reply must be: shape, gate, scope, label. What breaks a rule is named."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.benchmarks.mer_bench.judgement import (
    PARTS,
    CheckLevel,
    EditJudgement,
    Rationale,
    judge,
    list_fields,
    make_schema,
    show_shape,
)
from memantics.core.task import Unparsed
from tests.mer_bench.samples import bare, reason, reply


def read(
    body: Any, target: str = "happy", rationale: Rationale = "RF", checks: CheckLevel = "all"
) -> EditJudgement:
    text = body if isinstance(body, str) else json.dumps(body)
    return judge(text, target, rationale, checks)


def complaint(body: Any, target: str = "happy", checks: CheckLevel = "all") -> str:
    with pytest.raises(Unparsed) as error:
        read(body, target, checks=checks)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_flawless_reply() -> None:
    found = read(reply())
    assert found.rate("happy") == (4, 5, 3, 4, 1.0, 4, 1.0, 4)
    assert found.rate("calm")[6] == 0
    assert (found.label, found.other, found.bare, found.broken) == ("happy", None, False, ())
    assert EditJudgement.model_validate(found.dump()) == found


@pytest.mark.parametrize(
    "wrap",
    ["```json\n{}\n```", "Here it is: {} Done.", "<think>maybe {{}}</think>{}"],
)
def test_prose_around_the_object_does_not_matter(wrap: str) -> None:
    text = wrap.replace("{{}}", "…").replace("{}", json.dumps(reply()))
    assert read(text) == read(reply())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"visual_assessment__generation_quality_1_5": 0}, "whole number from 1 to 5"),
        ({"visual_assessment__generation_quality_1_5": 6}, "whole number from 1 to 5"),
        ({"visual_assessment__generation_quality_1_5": 4.5}, "whole number from 1 to 5"),
        ({"visual_assessment__generation_quality_1_5": True}, "whole number from 1 to 5"),
        ({"visual_assessment__generation_quality_1_5": "4-5"}, "whole number from 1 to 5"),
        ({"visual_assessment__generation_quality_1_5": "6"}, "whole number from 1 to 5"),
        ({"perceived_emotion_shift__magnitude_1_5": ...}, "magnitude_1_5 is missing"),
        ({"layout_consistency__consistent": "yes"}, "neither true nor false"),
        ({"layout_consistency__consistent": 1}, "neither true nor false"),
        ({"overall_emotion_classification__label": "joyful"}, "is not one of angry"),
        ({"overall_emotion_classification__other_emotion": 3}, "neither text nor null"),
        ({"text_assessment__rationale": "  "}, "text_assessment.rationale is empty"),
        ({"text_assessment__rationale": ...}, "text_assessment.rationale is missing"),
    ],
)
def test_a_wrong_shape_is_named(changes: dict[str, Any], words: str) -> None:
    for checks in ("all", "schema"):
        assert words in complaint(reply(**changes), checks=checks)


@pytest.mark.parametrize(
    "changes",
    [
        {"visual_assessment__generation_quality_1_5": "4"},
        {"visual_assessment__generation_quality_1_5": 4.0},
        {"layout_consistency__consistent": "true"},
        {"overall_emotion_classification__other_emotion": "null"},
        {"overall_emotion_classification__other_emotion": ...},
        {"text_assessment__score": 3},
    ],
)
def test_what_is_plainly_meant_is_taken(changes: dict[str, Any]) -> None:
    assert read(reply(**changes) | {"verdict": 3}) == read(reply())


def test_missing_parts_are_named() -> None:
    body = reply()
    del body["layout_consistency"]
    assert "layout_consistency is missing" in complaint(body)
    assert "text_assessment is not an object" in complaint(reply() | {"text_assessment": []})
    assert complaint("no idea") == complaint("") == "no JSON object found"


def test_the_gate_holds_both_accuracies_down() -> None:
    text = complaint(reply("sad"))
    assert "visual_assessment.emotion_accuracy_1_5 is 5, but may not pass 2" in text
    assert "text_assessment.emotion_accuracy_1_5 is 4, but may not pass 2" in text
    assert "the label is sad, the target happy" in text
    low = reply(
        "sad", visual_assessment__emotion_accuracy_1_5=2, text_assessment__emotion_accuracy_1_5=1
    )
    assert read(low).rate("happy")[:4] == (4, 2, 3, 1)
    # Other ratings are not gated, and a near synonym is a miss all the same.
    assert "gate" not in complaint(reply("relaxed"), target="calm")
    assert "the label is relaxed, the target calm" in complaint(reply("relaxed"), target="calm")


def test_low_accuracies_are_fine_where_the_target_is_met() -> None:
    assert read(reply(visual_assessment__emotion_accuracy_1_5=1)).vea == 1


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("The picture is clean.", True),
        ("Happy as wanted.", False),
        ("The happiness of the source is gone.", False),
        ("Same situation as before.", False),
        ("The words align with the tears on the face.", False),
        ("The words are large.", True),
    ],
)
def test_reasons_are_counted_never_refused(text: str, broken: bool) -> None:
    found = read(reply(visual_assessment__rationale=text))
    assert found.broken == (("scope",) if broken else ())


def test_copied_reasons_are_seen_through_case_and_marks() -> None:
    copied = reason("visual_assessment").upper().replace(",", " -")
    assert read(reply(text_assessment__rationale=copied)).broken == ("scope",)
    assert read(reply()).broken == ()


def test_the_shape_shows_integers_where_the_schema_wants_them() -> None:
    shape = show_shape("RF")
    assert '"generation_quality_1_5": <1 to 5>' in shape
    assert '"consistent": <true or false>' in shape
    assert '"label": "one label"' in shape
    assert '"1' not in shape


def test_other_emotion_goes_with_other_only() -> None:
    name = "overall_emotion_classification__other_emotion"
    given: dict[str, Any] = {name: "joy"}
    assert "must be null, since the label is happy" in complaint(reply(**given))
    low: dict[str, Any] = {
        "visual_assessment__emotion_accuracy_1_5": 1,
        "text_assessment__emotion_accuracy_1_5": 1,
        "overall_emotion_classification__label": "other",
    }
    for empty in (None, "", "  "):
        assert "must name the feeling" in complaint(reply(**(low | {name: empty})))
    found = read(reply(**(low | {name: " nostalgic "})))
    assert (found.label, found.other) == ("other", "nostalgic")
    assert "must name" in complaint(reply(**(low | {name: None})), checks="schema")


def test_let_pass_but_written_down() -> None:
    """As the paper does it: gate and scope are requested, not checked."""
    body = reply("sad", layout_consistency__rationale="Fine.")
    found = read(body, checks="schema")
    assert found.broken == ("gating", "scope")
    assert (found.vea, found.tea) == (5, 4)


def test_label_case_and_space_do_not_matter() -> None:
    assert read(reply(overall_emotion_classification__label=" Happy")).label == "happy"


def test_where_the_reasons_stand_is_noticed() -> None:
    assert read(reply()).ordered
    assert read(reply(last=True), rationale="RL").ordered
    assert not read(reply(last=True), rationale="RF").ordered
    assert not read(reply(), rationale="RL").ordered


def test_bare_ratings_flow_through_and_are_gated() -> None:
    found = read(bare("sad", 5))
    assert found.bare
    assert (found.vgq, found.vea, found.tea, found.broken) == (5, 2, 2, ())
    assert read(bare("happy", 5)).vea == 5
    # Half of the reasons is no bare reply: what is missing is asked for.
    half = bare() | {"visual_assessment": reply()["visual_assessment"]}
    assert "text_assessment.rationale is missing" in complaint(half)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.sampled_from(PARTS), st.sampled_from(["rationale", "label", "consistent"]), JSON)
def test_strange_values_are_unparsed_never_an_error(part: Any, key: str, value: Any) -> None:
    body = reply()
    body[part.name][key] = value
    with contextlib.suppress(Unparsed):
        assert isinstance(read(body), EditJudgement)


@given(st.text(max_size=200))
def test_any_text_is_taken(text: str) -> None:
    with pytest.raises(Unparsed):
        read(text)


@pytest.mark.parametrize("rationale", ["RF", "RL"])
def test_schema_is_strict_and_ordered(rationale: Rationale) -> None:
    schema = make_schema(rationale)
    assert schema["additionalProperties"] is False
    parts: Any = schema["properties"]
    assert schema["required"] == list(parts) == [part.name for part in PARTS]
    for part in parts.values():
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert part["required"][0 if rationale == "RF" else -1] == "rationale"
    emotion = parts["overall_emotion_classification"]["properties"]
    assert len(emotion["label"]["enum"]) == 9
    assert emotion["other_emotion"]["type"] == ["string", "null"]
    ratings = [
        own
        for part in parts.values()
        for own in part["properties"].values()
        if own["type"] == "integer"
    ]
    assert len(ratings) == 6
    assert all((own["minimum"], own["maximum"]) == (1, 5) for own in ratings)
    shape = json.loads(re.sub("<[^>]*>", "null", show_shape(rationale)))
    assert {name: list(own) for name, own in shape.items()} == {
        name: own["required"] for name, own in parts.items()
    }


def test_form_fields_are_the_eight_values() -> None:
    kinds = [field.kind for field in list_fields("happy")]
    assert sorted(kinds) == ["boolean", "choice", *["integer"] * 6]
