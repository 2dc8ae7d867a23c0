"""Several plans of a model in one reply, several versions of a meme, and what people choose."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from memantics.core.errors import DataError, InputError
from memantics.core.labels import PREFERENCES, read_choices
from memantics.core.memes import HOMOPHONES, TEMPLATE
from memantics.core.records import Image, Request
from memantics.core.task import Unparsed
from memantics.models.client import CallSettings, ModelClient
from memantics.models.engine import AskSettings, RetrySettings
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.editing import ReappraiseSettings, open_planner
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.choice import TOPICS
from memantics.understanding.reappraisal.messages import say, translate
from memantics.understanding.reappraisal.records import MEME, PAGE, SHEET, MemeFeeling
from memantics.understanding.reappraisal.stages import (
    ModelPlanner,
    ReappraisalSubject,
    ask_feeling,
    ask_plan,
    read_feeling,
    read_plans,
)
from memantics.understanding.reappraisal.workshop import RateKindness, Reappraisal
from memantics.understanding.reappraise import reappraise_async
from memantics.understanding.versions import keep_choice, show_versions, tell_versions
from tests.reappraisal.benches import (
    FEELING,
    MOOD,
    TOP,
    draw_meme_file,
    make_meme,
    make_page,
    make_shop,
)
from tests.reappraisal.benches import choose as judge

HASTY = AskSettings(retries=RetrySettings(per_call=0, first=0.0))
KIND, PLAIN, MOTTO = "I SMILE", "I DRIFT", "DREAM BIG"


def plans_of(*second: str) -> dict[str, Any]:
    offers = [
        {
            "captions": {"1": TOP, "2": text},
            "visual": "The phone smiles.",
            "scenario": ["phone", "cat"],
            "why": "it is taken lightly",
        }
        for text in second
    ]
    return {"target": "relaxed", "keep": "The phone stays.", "plans": offers}


def count_versions(request: Request) -> int:
    """The number of plans that the critic is asked about."""
    assert request.schema is not None
    properties: Any = request.schema["properties"]
    return int(properties["versions"]["maxItems"])


def run(
    tmp_path: Path,
    reply: object,
    versions: int = 1,
    choose: int = 0,
    fit: bool = True,
    critic: str = "",
    kindness: RateKindness | None = None,
) -> tuple[Reappraisal, FakeModel]:
    """A model that is asked for three plans, and looks at each picture."""
    path, lines = draw_meme_file(tmp_path)

    def script(request: Request) -> ScriptedReply:
        assert request.schema is not None
        properties = request.schema["properties"]
        assert isinstance(properties, dict)
        if "plans" in properties:
            return json.dumps(reply)
        if "topic" in properties:
            return critic or judge(*range(1, 1 + count_versions(request)))
        return json.dumps(MOOD | {"fit": fit} if "fit" in properties else FEELING)

    model = FakeModel(script)

    async def work() -> Reappraisal:
        with ModelClient(model, tmp_path / "client", None, HASTY) as client:
            planner = ModelPlanner(client, 3)
            shop = replace(
                make_shop(tmp_path, planner, lines),
                versions=versions,
                choose=choose,
                judge=planner,
                kindness=kindness,
            )
            return await reappraise(make_meme(path), shop)

    return asyncio.run(work()), model


def test_the_plan_that_the_critic_puts_first_is_drawn_and_the_others_say_why(
    tmp_path: Path,
) -> None:
    said = plans_of(PLAIN, KIND, MOTTO)
    result, model = run(tmp_path, said, critic=judge(2, 1))
    assert result.plan is not None
    assert result.plan.captions["2"] == KIND
    assert result.status == "done"
    assert model.asked == 4  # feeling, three plans at once, the critic, one look at the drawing
    lost = {offer.captions["2"]: offer.lost for offer in result.plan.others}
    assert "breaks a rule: 'DREAM BIG' is poster text" in lost[MOTTO]
    assert lost[PLAIN] == "the critic prefers the chosen plan"
    assert result.plan.choice == "The joke is heard"
    assert {path.name for path in result.folder.iterdir()} == {
        *("before-after.png", "checks.json", "feeling.json", "meme.png", "plan.json")
    }
    kept = json.loads((result.folder / "plan.json").read_text("utf-8"))["value"]
    assert {offer["captions"]["2"] for offer in kept["others"]} == {PLAIN, MOTTO}
    again, silent = run(tmp_path, said, critic=judge(2, 1))
    assert (again.resumed, silent.asked, again.plan) == (True, 0, result.plan)


def test_the_order_is_the_critics_not_that_of_the_lexicon(tmp_path: Path) -> None:
    result, _ = run(tmp_path, plans_of(KIND, PLAIN), critic=judge(2, 1))
    assert result.plan is not None
    assert result.plan.captions["2"] == PLAIN


def test_where_a_critic_chose_the_classifier_of_kindness_is_not_asked(tmp_path: Path) -> None:
    result, _ = run(tmp_path, plans_of(KIND), kindness=lambda _: 0.0)
    assert result.status == "done"
    assert result.checks is not None
    assert result.checks.kindness == []


def test_a_plan_with_a_fault_is_never_drawn(tmp_path: Path) -> None:
    said = judge(3, 1, 2, v1="nonsense", v2="not_kinder")
    result, _ = run(tmp_path, plans_of(KIND, PLAIN, "I GRIN"), versions=4, critic=said)
    assert [version.plan.captions["2"] for version in result.versions] == ["I GRIN"]
    assert result.plan is not None
    assert {offer.captions["2"]: offer.lost for offer in result.plan.others} == {
        KIND: "breaks a rule: the critic says that it makes no sense (it is)",
        PLAIN: "breaks a rule: the critic says that it is not kinder than the original (it is)",
    }


@pytest.mark.parametrize(
    ("said", "reason", "chinese"),
    [
        (judge(1, topic="death"), "the topic is death: The joke is heard", "主题涉及死亡"),
        (judge(1, topic="group"), "the target is a protected group", "针对受保护群体"),
        (judge(1, v1="no_joke"), "the model accepts none of its versions", "所有版本都不合格"),
    ],
)
def test_the_critic_declines_a_meme_with_a_reason(
    tmp_path: Path, said: str, reason: str, chinese: str
) -> None:
    result, model = run(tmp_path, plans_of(KIND), critic=said)
    assert (result.status, result.stage, model.asked) == ("declined", "plan", 3)
    assert reason in result.reason
    assert chinese in translate(result.reason, "zh")
    assert not (result.folder / MEME).exists()


@pytest.mark.parametrize("topic", TOPICS[1:])
def test_every_grave_topic_has_a_reason_in_both_languages(topic: str) -> None:
    reason = say(f"topic_{topic}", reason="x")
    assert translate(reason, "zh") != reason


def test_a_reply_of_the_critic_that_breaks_the_form_is_asked_again_then_unparsed(
    tmp_path: Path,
) -> None:
    result, model = run(tmp_path, plans_of(KIND, PLAIN), critic=judge(1, 1))
    assert (result.status, model.asked) == ("failed", 2 + 3)
    assert result.reason.startswith("unparsed: the critic: the versions must be 1 to 2, each once")
    refused, _ = run(
        tmp_path / "again", plans_of(KIND), critic="I'm sorry, I can't help with that."
    )
    assert refused.reason.startswith("refused: the critic: I'm sorry")


def test_another_model_can_be_the_critic_with_a_log_of_its_own(tmp_path: Path) -> None:
    settings = ReappraiseSettings(critic_model="fake/builder")

    async def work() -> str:
        calls = CallSettings(use_cache=False)
        async with open_planner("fake/drafter", settings, calls, tmp_path, 1) as planner:
            return planner.name

    name = asyncio.run(work())
    assert name == "fake/drafter, best of 3, chosen by fake/builder (prompts 2)"
    assert (tmp_path / "critic" / "calls.jsonl").exists()
    path, _ = draw_meme_file(tmp_path)
    with pytest.raises(InputError, match="--critic-model needs --model"):
        asyncio.run(reappraise_async(path, out=tmp_path / "out", settings=settings))


def test_where_one_misses_a_check_that_words_can_mend_the_next_is_tried(tmp_path: Path) -> None:
    result, model = run(tmp_path, plans_of(KIND, "I LAUGH", "I GRIN"), fit=False)
    assert result.status == "flawed"
    assert model.asked == 3 + 3  # every picture was looked at, and none passed
    assert result.plan is not None
    assert all("do not match captions" in offer.lost for offer in result.plan.others)


@pytest.mark.slow
def test_versions_stand_on_a_sheet_and_one_can_be_chosen_and_taken_back(tmp_path: Path) -> None:
    said = plans_of(PLAIN, KIND, MOTTO)
    result, _ = run(tmp_path, said, versions=4, critic=judge(2, 1))
    assert result.versions[0].plan.captions["2"] == KIND
    assert [version.number for version in result.versions] == [1, 2]
    with Pictures.open(result.folder / SHEET) as sheet:
        assert sheet.width > 3 * 400
    good = sum(version.status == "done" for version in result.versions)
    flawed = len(result.versions) - good
    follow = f", {flawed} flawed versions follow" if flawed else ""
    line, _ = tell_versions(result, 4)
    assert line == f"phone: {good} of 4 versions passed every check{follow}; candidates to draw: 2"
    assert tell_versions(result, good)[0].endswith("every check" + follow)
    image = tmp_path / "phone.png"
    show_versions(result, image, 4)
    page = (result.folder / PAGE).read_text("utf-8")
    assert "--choose N" in page
    assert "memantics reappraise" not in page  # without --model, it would choose nothing
    assert KIND in page

    first = (result.folder / MEME).read_bytes()
    chosen, model = run(tmp_path, said, versions=4, choose=2, critic=judge(2, 1))
    assert model.asked == 0
    assert chosen.plan is not None
    assert chosen.plan.captions["2"] == PLAIN
    assert (chosen.folder / MEME).read_bytes() == (chosen.folder / "version-2.png").read_bytes()
    kept = keep_choice(chosen, image, 2, "scripted")
    assert (kept.chosen, kept.undone) == (2, [])
    assert keep_choice(chosen, image, 2, "scripted").undone == []
    assert keep_choice(chosen, image, 0, "scripted").undone == [2]
    back, _ = run(tmp_path, said, versions=4, critic=judge(2, 1))
    assert (back.folder / MEME).read_bytes() == first
    last = keep_choice(back, image, 1, "scripted")
    assert (last.chosen, last.undone) == (1, [2])
    path = back.folder.parent / PREFERENCES
    assert len(path.read_text("utf-8").splitlines()) == 3
    assert list(read_choices(path).values()) == [last]
    assert list(last.pairs()) == [(1, 2)]
    with pytest.raises(InputError, match="has no version 3: it has 2"):
        run(tmp_path, said, versions=4, choose=3, critic=judge(2, 1))
    path.write_text(path.read_text("utf-8").replace('"chosen":1', '"chosen":3'), "utf-8")
    with pytest.raises(DataError, match="version 3 was not offered"):
        read_choices(path)


def test_replies_of_several_plans_at_their_edges(tmp_path: Path) -> None:
    page, feeling = make_page(tmp_path), MemeFeeling.model_validate(FEELING | {"word": "worn out"})
    plan = read_plans(json.dumps(plans_of(KIND, KIND)), page, feeling)
    assert (plan.others, plan.scenario, plan.word) == ([], ["phone"], "worn out")
    assert plan.why == "it is taken lightly"
    with pytest.raises(Unparsed, match=r"plan 1: .*poster text.*; plan 2: caption 2 is empty"):
        read_plans(json.dumps(plans_of(MOTTO, "")), page, feeling)
    with pytest.raises(Unparsed, match="plans"):
        read_plans(json.dumps(plans_of()), page, feeling)


@pytest.mark.parametrize(
    ("said", "word", "emotion"),
    [
        ("tired", "", "bored"),
        ("Disgusted", "", "angry"),
        ("lonely", "", "sad"),
        ("焦虑", "", "tense"),
        ("sad", "resigned", "sad"),
        ("sad", "sad", "sad"),
    ],
)
def test_words_for_feelings_go_to_the_nearest_emotion(said: str, word: str, emotion: str) -> None:
    reply = json.dumps(FEELING | {"emotion": said, "word": word})
    feeling = read_feeling(reply)
    assert feeling.emotion == emotion
    kept = word or said.casefold()
    assert feeling.word == ("" if kept == emotion else kept)


def test_a_word_that_is_no_negative_feeling_is_asked_again() -> None:
    for word in ("happy", "proud", "purple"):
        with pytest.raises(Unparsed, match="emotion"):
            read_feeling(json.dumps(FEELING | {"emotion": word}))


def test_what_is_not_known_of_a_meme_is_not_told(tmp_path: Path) -> None:
    page = make_page(tmp_path)
    plain = ReappraisalSubject("phone", tmp_path / "phone.png", page)
    feeling = MemeFeeling.model_validate(FEELING)
    for request in (ask_feeling(plain), ask_plan(plain, feeling), ask_plan(plain, feeling, 3)):
        image, text = request.messages[0].parts
        assert image == Image(tmp_path / "phone.png")
        assert TOP in str(text)
        assert request.form.context["caption"].startswith(TOP)
    noted = ReappraisalSubject(
        "phone", plain.image, page, {HOMOPHONES: "a sound", TEMPLATE: "a name", "meaning": "stress"}
    )
    _, told, text = ask_plan(noted, feeling.model_copy(update={"word": "tired"})).messages[0].parts
    assert "a sound" in str(told)
    assert "a name" in str(told)
    assert 'tense (in one word: "tired")' in str(text)
    assert "stress" not in str(told) + str(text)


def test_one_plan_and_several_have_schemas_of_their_own(tmp_path: Path) -> None:
    plain = ReappraisalSubject("phone", tmp_path / "phone.png", make_page(tmp_path))
    feeling = MemeFeeling.model_validate(FEELING)
    schema: Any = ask_plan(plain, feeling).schema
    assert schema["properties"]["target"] == {"type": "string", "enum": ["relaxed"]}
    assert schema["properties"]["scenario"] == {"type": "array", "items": {"type": "string"}}
    regions = schema["properties"]["captions"]
    assert regions["properties"] == {"1": {"type": "string"}, "2": {"type": "string"}}
    assert "plans" not in schema["properties"]
    assert ask_plan(plain, feeling).sampling.max_tokens == 1500
    several: Any = ask_plan(plain, feeling, 3).schema
    plans = several["properties"]["plans"]
    assert (plans["minItems"], plans["maxItems"]) == (3, 3)
    assert plans["items"]["properties"]["captions"] == regions
    assert "Write 3 versions" in str(ask_plan(plain, feeling, 3).messages[0].parts[-1])
