"""Orders of steps: the presets are what they claim, and no step waits for what comes later."""

from __future__ import annotations

import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.core.meaning import DIMENSIONS
from memantics.understanding.extraction.plan import PLANS, ExtractionPlan, PlannedStep, find_plan
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, SPATIAL


@pytest.mark.parametrize("name", PLANS)
def test_every_order_has_each_dimension_once(name: str) -> None:
    assert sorted(step.dimension for step in find_plan(name).steps) == sorted(DIMENSIONS)


def test_the_official_order_and_its_inputs_are_those_of_the_released_code() -> None:
    steps = find_plan("official").steps
    assert [step.dimension for step in steps] == [
        "OverallIntent",
        "TextualMaterial",
        "VisualMaterial",
        "Scene",
        "BackgroundKnowledge",
        "Emotion",
        "AnalogicalMapping",
        "SemioticProjection",
        "Toxicity",
        "TargetCommunity",
    ]
    told = {step.dimension: set(step.inputs) for step in steps}
    assert all("OverallIntent" in told[step.dimension] for step in steps[1:])
    assert told["Scene"] == {"OverallIntent", "VisualMaterial"}
    assert "Emotion" not in told["SemioticProjection"]
    assert told["TargetCommunity"] == {
        "OverallIntent",
        "VisualMaterial",
        "TextualMaterial",
        "Scene",
        "BackgroundKnowledge",
        "AnalogicalMapping",
        "Toxicity",
    }
    assert find_plan("official").refine == "second"


def test_in_the_papers_order_each_step_is_told_all_that_came_before() -> None:
    steps = find_plan("paper").steps
    assert [step.dimension for step in steps[:3]] == ["TextualMaterial", "VisualMaterial", "Scene"]
    for place, step in enumerate(steps):
        assert step.inputs == tuple(other.dimension for other in steps[:place])


def test_our_order_can_state_every_relation_in_one_pass() -> None:
    """Where things are in the picture is asked with the things themselves, not after them."""
    stated = {term.name for step in find_plan("default").steps for term in step.relations()}
    assert stated == set(RELATIONS) - {"mappedOnto"} - set(SPATIAL)


def test_waves_respect_inputs() -> None:
    for plan in PLANS.values():
        wave = {name: n for n, names in enumerate(plan.waves()) for name in names}
        for step in plan.steps:
            assert all(wave[name] < wave[step.dimension] for name in step.inputs)
    assert len(find_plan("default").waves()) == 6
    assert len(find_plan("paper").waves()) == 10


def test_a_plan_that_cannot_work_is_refused() -> None:
    with pytest.raises(InputError, match="Scene needs VisualMaterial before it"):
        ExtractionPlan("bad", "", (PlannedStep("Scene", ("VisualMaterial",)),))
    with pytest.raises(InputError, match="Scene comes twice"):
        ExtractionPlan("bad", "", (PlannedStep("Scene"), PlannedStep("Scene")))
    with pytest.raises(UnknownName, match="did you mean official"):
        find_plan("oficial")
