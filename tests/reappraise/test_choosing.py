"""Best of N: plans of one model, ordered by its word and by their layout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from memantics.core.errors import Refused
from memantics.core.memes import HEARD, TEMPLATE
from memantics.core.records import Image, Request
from memantics.core.task import Unparsed
from memantics.models.fake import FakeModel, Said
from memantics.reappraise.chain import reappraise
from memantics.reappraise.choosing import (
    ChoosingPlanner,
    Order,
    ask_choice,
    choose,
    rate_layout,
    read_order,
)
from memantics.reappraise.records import MemeFeeling, ReappraisalPlan
from memantics.reappraise.stages import ReappraisalSubject, ask_feeling, ask_plan
from memantics.reappraise.workshop import Reappraisal
from memantics.run.calling import RetrySettings
from memantics.run.desk import Desk
from memantics.run.engine import AskSettings
from tests.reappraise.benches import (
    FEELING,
    PLAN,
    TOP,
    answer,
    draw_meme_file,
    make_meme,
    make_page,
    make_shop,
)

HASTY = AskSettings(retries=RetrySettings(per_call=0, first=0.0))


def plan_of(second: str) -> ReappraisalPlan:
    return ReappraisalPlan.model_validate(PLAN | {"captions": {"1": TOP, "2": second}})


def run(tmp_path: Path, second: Sequence[str], order: Said) -> tuple[Reappraisal, FakeModel]:
    """A model that plans the given second captions, one after the other by seed, and judges."""
    path, lines = draw_meme_file(tmp_path)

    def plan(request: Request) -> Said:
        seed = request.sampling.seed
        assert seed is not None
        captions = {"1": TOP, "2": second[seed // 100 - 1]}
        return json.dumps(PLAN | {"captions": captions})

    def script(request: Request) -> Said:
        assert request.schema is not None
        properties = request.schema["properties"]
        assert isinstance(properties, dict)
        return order if "order" in properties else answer(plan=plan)(request)

    model = FakeModel(script)

    async def work() -> Reappraisal:
        with Desk(model, tmp_path / "desk", None, HASTY) as desk:
            planner = ChoosingPlanner(desk, len(second))
            return await reappraise(make_meme(path), make_shop(tmp_path, planner, lines))

    return asyncio.run(work()), model


def test_the_judges_first_is_taken(tmp_path: Path) -> None:
    said = json.dumps({"order": [2, 1, 3], "reason": "It drifts."})
    result, model = run(tmp_path, ["I SMILE", "I DRIFT", "I REST"], said)
    assert result.plan is not None
    assert result.plan.captions["2"] == "I DRIFT"
    assert model.asked == 1 + 3 + 1
    again, silent = run(tmp_path, ["I SMILE", "I DRIFT", "I REST"], said)
    assert (again.resumed, silent.asked) == (True, 0)


def test_plans_that_break_a_rule_are_not_offered(tmp_path: Path) -> None:
    result, model = run(tmp_path, ["DREAM BIG", "I DRIFT", ""], "never asked")
    assert result.plan is not None
    assert result.plan.captions["2"] == "I DRIFT"
    assert model.asked == 1 + 3 + 1 + 3  # two plans are asked for three times each
    bad, _ = run(tmp_path / "bad", ["DREAM BIG", ""], "never asked")
    assert (bad.status, bad.stage) == ("failed", "plan")


@pytest.mark.parametrize("order", ["no idea", Refused("no"), '{"order": [1], "reason": ""}'])
def test_without_an_order_layout_decides(tmp_path: Path, order: Said) -> None:
    result, _ = run(tmp_path, ["I REST A LITTLE", "I DRIFT"], order)
    assert result.plan is not None
    assert result.plan.captions["2"] == "I DRIFT"


def test_layout_outweighs_a_near_call_only(tmp_path: Path) -> None:
    page = make_page(tmp_path)
    plans = [plan_of("I REST A LITTLE"), plan_of("I DRIFT")]
    assert rate_layout(plans[0], page) < rate_layout(plans[1], page) <= 1
    assert rate_layout(plan_of("I PANIC"), page) == 1
    assert choose(plans, page, None) == 1
    assert choose(plans, page, Order(order=[1, 2])) == 0
    assert choose([plans[1], plans[1]], page, None) == 0


@pytest.mark.parametrize("order", [[], [1, 1], [1, 3], [0, 1], [2, 1, 3]])
def test_an_order_names_every_plan_once(order: list[int]) -> None:
    assert read_order(json.dumps({"order": [2, 1], "reason": "x"}), 2).order == [2, 1]
    with pytest.raises(Unparsed, match="each number from 1 to 2 once"):
        read_order(json.dumps({"order": order, "reason": ""}), 2)


def test_a_judge_sees_the_meme_and_all_plans_and_its_schema_is_one(tmp_path: Path) -> None:
    page = make_page(tmp_path)
    subject = ReappraisalSubject("phone", tmp_path / "phone.png", page)
    feeling = MemeFeeling.model_validate(FEELING)
    request = ask_choice(subject, feeling, [plan_of("I DRIFT"), plan_of("I REST")])
    image, text = request.messages[0].parts
    assert image == Image(tmp_path / "phone.png")
    assert isinstance(text, str)
    assert f"1: {plan_of('I DRIFT').rewritten}\n2: {plan_of('I REST').rewritten}" in text
    for word in ("tense", "relaxed", TOP):
        assert word in text
    assert (request.sampling.temperature, request.sampling.max_tokens) == (0.0, 400)
    assert (request.form.reply, request.form.language) == ("json", page.language)
    assert request.schema is not None
    number = {"type": "integer", "minimum": 1, "maximum": 2}
    assert request.schema["properties"] == {
        "order": {"type": "array", "items": number},
        "reason": {"type": "string"},
    }


def test_what_is_not_known_of_a_meme_is_not_told(tmp_path: Path) -> None:
    page = make_page(tmp_path)
    plain = ReappraisalSubject("phone", tmp_path / "phone.png", page)
    feeling = MemeFeeling.model_validate(FEELING)
    for request in (ask_feeling(plain), ask_plan(plain, feeling)):
        image, text = request.messages[0].parts
        assert image == Image(tmp_path / "phone.png")
        assert TOP in str(text)
        assert request.form.context["caption"].startswith(TOP)
    noted = ReappraisalSubject(
        "phone", plain.image, page, {HEARD: "a sound", TEMPLATE: "a name", "meaning": "stress"}
    )
    _, told, text = ask_plan(noted, feeling).messages[0].parts
    assert "a sound" in str(told)
    assert "a name" in str(told)
    assert "stress" not in str(told) + str(text)
    schema = ask_plan(plain, feeling).schema
    assert schema is not None
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["target"] == {"type": "string", "enum": ["relaxed"]}
    assert properties["scenario"] == {"type": "array", "items": {"type": "string"}}
    regions = properties["captions"]
    assert isinstance(regions, dict)
    assert regions["properties"] == {"1": {"type": "string"}, "2": {"type": "string"}}
