"""The chain: what each step is told, what runs at once, what is repaired, what resumes."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.errors import Transient, Unavailable
from memantics.core.records import Reply, Request
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.extraction.chain import ExtractSettings, extract_memes, in_order
from memantics.understanding.extraction.plan import find_plan
from memantics.understanding.extraction.report import KnowledgeReport
from memantics.understanding.knowledge.records import Knowledge, dump_knowledge, read_knowledge
from tests.construction.extract.scripts import (
    EMPTY,
    by_dimension,
    extract,
    extract_with,
    meme_of,
    memes,
    one,
    stage_of,
    text_of,
)

OFFICIAL = ExtractSettings(find_plan("official"))
CAT_SCENE = json.dumps(
    {
        "individuals": [
            {
                "name": "nap",
                "label": "a nap",
                "description": "",
                "relations": [
                    {"relation": "hasParticipant", "target": "VisualMaterial/person"},
                    {"relation": "hasParticipant", "target": "VisualMaterial/ghost"},
                ],
            }
        ]
    }
)


def test_a_step_is_told_its_inputs_as_typed_lists_and_nothing_else(tmp_path: Path) -> None:
    prompts: dict[str, str] = {}

    def script(request: Request) -> str:
        _, name = stage_of(request)
        prompts[name] = text_of(request)
        return one(f"the_{name}")

    extract(tmp_path, script, settings=ExtractSettings(find_plan("official"), refine="off"))
    told = {
        name: set(re.findall(r"^(\w+)/\nthe_\w+(?:: Harmful)?$", text, flags=re.MULTILINE))
        for name, text in prompts.items()
    }
    for step in find_plan("official").steps:
        assert told[step.dimension] == set(step.inputs)


def test_one_name_in_two_classes_is_two_individuals(tmp_path: Path) -> None:
    script = by_dimension({"VisualMaterial": one("person"), "TargetCommunity": one("person")})
    (found,) = extract(tmp_path, script)
    assert [own.key for own in found.knowledge.individuals] == [
        "VisualMaterial/person",
        "TargetCommunity/person",
    ]


def test_references_that_lead_nowhere_are_reported(tmp_path: Path) -> None:
    script = by_dimension({"VisualMaterial": one("person"), "Scene": CAT_SCENE})
    (found,) = extract(tmp_path, script)
    report = KnowledgeReport.begin("fake/scripted", ExtractSettings())
    report.add(found)
    assert [(d.source, d.target) for d in report.dangling] == [
        ("Scene/nap", "VisualMaterial/ghost")
    ]
    assert report.relations == {"hasParticipant": 2}
    assert report.dimensions["Emotion"].empty == 1
    assert report.statuses == {"answered": 10, "refused": 0, "unparsed": 0, "failed": 0}


def test_a_relation_between_the_wrong_dimensions_is_kept_and_reported(tmp_path: Path) -> None:
    link = {"relation": "targets", "target": "VisualMaterial/person"}
    said = {"VisualMaterial": one("person"), "OverallIntent": one("mock", relations=[link])}
    (found,) = extract(tmp_path, by_dimension(said))
    report = KnowledgeReport.begin("", ExtractSettings())
    report.add(found)
    (misplaced,) = report.misplaced
    assert misplaced.relation == "targets"


def test_every_individual_carries_its_provenance(tmp_path: Path) -> None:
    (found,) = extract(tmp_path, by_dimension({"Scene": one("nap")}))
    (own,) = found.knowledge.individuals
    assert own.provenance is not None
    assert own.provenance.model == "fake/scripted"
    assert re.fullmatch("[0-9a-f]{16}", own.provenance.prompt)
    assert own.provenance.when.startswith("20")


def test_scenes_are_passed_over_when_the_official_order_found_nothing_to_see(
    tmp_path: Path,
) -> None:
    model = FakeModel(by_dimension({"Scene": one("never")}))
    (found,) = extract_with(model, tmp_path, settings=OFFICIAL)
    scene = next(s for s in found.steps if s.dimension == "Scene" and s.stage == "individuals")
    assert scene.status == "skipped"
    assert scene.reason == "nothing was found of VisualMaterial"
    assert model.asked == 9
    assert not found.knowledge.individuals


@pytest.mark.parametrize("said", ["no JSON", Reply("", refusal="no"), Transient("down")])
def test_scenes_are_asked_for_when_nobody_knows_what_there_is_to_see(
    tmp_path: Path, said: ScriptedReply
) -> None:
    model = FakeModel(by_dimension({"VisualMaterial": said, "Scene": one("nap")}))
    (found,) = extract_with(model, tmp_path, settings=OFFICIAL)
    scene = next(s for s in found.steps if s.dimension == "Scene" and s.stage == "individuals")
    assert scene.status == "answered"
    assert [individual.name for individual in found.knowledge.individuals] == ["nap"]


def test_the_second_pass_links_what_the_first_found(tmp_path: Path) -> None:
    links = {
        "relations": [
            {"source": "Scene/nap", "relation": "hasParticipant", "target": "VisualMaterial/cat"}
        ]
    }
    mapped = {
        "relations": [
            {"source": "sign", "relation": "mappedOnto", "target": "VisualMaterial/cat"},
            {"source": "me", "relation": "hasMappedEntity", "target": "TextualMaterial/sign"},
        ]
    }
    said: dict[str, ScriptedReply] = {
        "VisualMaterial": one("cat"),
        "TextualMaterial": one("sign"),
        "Scene": one("nap"),
        "AnalogicalMapping": one("me"),
        "relations:scene": json.dumps(links),
        "relations:analogy": json.dumps(mapped),
    }
    (found,) = extract(tmp_path, by_dimension(said), settings=OFFICIAL)
    stated = {
        (own.key, link.relation, link.target)
        for own in found.knowledge.individuals
        for link in own.relations
    }
    assert stated == {
        ("Scene/nap", "hasParticipant", "VisualMaterial/cat"),
        ("TextualMaterial/sign", "mappedOnto", "VisualMaterial/cat"),
        ("AnalogicalMapping/me", "hasMappedEntity", "TextualMaterial/sign"),
    }
    statuses = Counter(s.status for s in found.steps if s.stage == "relations")
    assert statuses["skipped"] == 5


def test_a_bad_reply_is_repaired_with_the_reason(tmp_path: Path) -> None:
    asked: list[str] = []

    def script(request: Request) -> str:
        if stage_of(request)[1] != "Scene":
            return EMPTY
        asked.append(text_of(request))
        return '[{"name": "nap"}]' if len(asked) == 1 else one("nap")

    (found,) = extract(tmp_path, script)
    assert [own.key for own in found.knowledge.individuals] == ["Scene/nap"]
    assert "'label' is missing" not in asked[0]
    assert '[{"name": "nap"}]' in asked[1]
    assert "Your last reply could not be used: the field 'label' is missing." in asked[1]
    report = KnowledgeReport.begin("", ExtractSettings())
    report.add(found)
    assert report.repaired == 1


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("no idea", "unparsed"),
        (Reply("", refusal="not this one"), "refused"),
        (Transient("server is down"), "failed"),
    ],
)
def test_a_step_without_an_answer_is_counted_and_the_others_go_on(
    tmp_path: Path, said: ScriptedReply, status: str
) -> None:
    prompts: dict[str, str] = {}
    usual = by_dimension({"VisualMaterial": said}, otherwise=one("thing"))

    def script(request: Request) -> ScriptedReply:
        prompts[stage_of(request)[1]] = text_of(request)
        return usual(request)

    (found,) = extract(tmp_path, script)
    report = KnowledgeReport.begin("", ExtractSettings())
    report.add(found)
    assert report.statuses[status] == 1
    assert report.statuses["answered"] == 9
    (failure,) = report.failures
    assert (failure.meme, failure.dimension) == ("en-001", "VisualMaterial")
    assert failure.reason
    assert "VisualMaterial: not known" in prompts["Scene"]


class Meeting(FakeModel):
    """Answers the first calls only when enough of them are there at the same time."""

    def __init__(self, people: int) -> None:
        super().__init__(lambda _: EMPTY)
        self._people = people
        self._here = 0
        self._full = asyncio.Event()

    async def answer(self, request: Request) -> Reply:
        self._here += 1
        if self._here >= self._people:
            self._full.set()
        await asyncio.wait_for(self._full.wait(), 20)
        return await super().answer(request)


def test_steps_and_memes_that_do_not_wait_for_each_other_run_at_once(tmp_path: Path) -> None:
    three = memes("en-001", "en-002", "en-003")
    # Two first steps of three memes each: with one meme or one step at a time this would hang.
    assert len(extract_with(Meeting(6), tmp_path, three)) == 3


def test_results_come_in_the_order_of_the_memes(tmp_path: Path) -> None:
    names = [f"en-{n:03}" for n in range(1, 13)]
    found = extract(tmp_path, lambda request: one(meme_of(request)), memes(*names))
    assert [own.knowledge.meme for own in found] == names


class Slow(FakeModel):
    """Reads last what the plan asks first."""

    async def answer(self, request: Request) -> Reply:
        if stage_of(request)[1] == "TextualMaterial":
            await asyncio.sleep(0.05)
        return await super().answer(request)


def test_steps_are_reported_in_the_order_of_the_plan(tmp_path: Path) -> None:
    settings = ExtractSettings(refine="second")
    (found,) = extract_with(Slow(lambda _: EMPTY), tmp_path, settings=settings)
    stages = [step.stage for step in found.steps]
    assert stages == sorted(stages)
    first = [step.dimension for step in found.steps if step.stage == "individuals"]
    assert first == [step.dimension for step in settings.plan.steps]


def test_what_was_answered_is_never_asked_again(tmp_path: Path) -> None:
    own = memes("en-001", "en-002", "en-003")
    asked: Counter[tuple[str, str]] = Counter()
    budget = 12

    def script(request: Request) -> ScriptedReply:
        if sum(asked.values()) >= budget:
            return Unavailable("the plug was pulled")
        asked[meme_of(request), stage_of(request)[1]] += 1
        return one(f"from_{meme_of(request)}")

    with pytest.raises(Unavailable):
        extract(tmp_path, script, own)
    budget = 1000
    found = extract(tmp_path, script, own)
    assert len(asked) == 30
    assert set(asked.values()) == {1}
    again = FakeModel(script)
    assert [e.knowledge for e in extract_with(again, tmp_path, own)] == [e.knowledge for e in found]
    assert again.asked == 0


def test_an_error_that_ends_all_leaves_no_task_behind(tmp_path: Path) -> None:
    async def run() -> set[asyncio.Task[object]]:
        model = FakeModel(lambda _: Unavailable("gone"))
        with ModelClient(model, tmp_path) as client:
            with pytest.raises(Unavailable):
                _ = [e async for e in extract_memes(client, memes("en-001"), ExtractSettings())]
            return asyncio.all_tasks() - {asyncio.current_task()}

    assert not asyncio.run(run())


def test_no_more_jobs_than_the_window_are_begun() -> None:
    begun: list[int] = []

    async def job(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0)
        return number

    async def run() -> int:
        most = 0
        async for number in in_order((job(n) for n in range(50)), 4):
            most = max(most, len(begun) - number)
        return most

    assert asyncio.run(run()) <= 5
    assert begun == list(range(50))


def test_knowledge_lines_round_trip(tmp_path: Path) -> None:
    script = by_dimension({"VisualMaterial": one("person"), "Scene": CAT_SCENE})
    (found,) = extract(tmp_path / "client", script)
    both = [found.knowledge, Knowledge("空", ())]
    (tmp_path / "knowledge.jsonl").write_bytes(b"".join(map(dump_knowledge, both)))
    assert list(read_knowledge(tmp_path)) == both
