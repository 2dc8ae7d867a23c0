"""Agreement with intervals, by label, by pair and over time, against independent computations."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.formula.api import ols  # type: ignore[import-untyped]
from statsmodels.stats.anova import anova_lm  # type: ignore[import-untyped]

from memantics.annotation.consensus import DisagreementFilter
from memantics.annotation.errors import Forbidden, Locked
from memantics.annotation.service import AnnotationService
from memantics.metrics.agreement import (
    MeasurementLevel,
    RatingRow,
    agreement_spans,
    gwet_ac1,
    intraclass,
    krippendorff_alpha,
)
from tests.annotation.team import (
    Clock,
    add_people,
    lines_of,
    open_project,
    plain_items,
    work_through,
)

# Gwet's worked example: four raters, five labels, missing ratings; AC1 is printed as 0.77544.
GWET: list[RatingRow] = [
    [1, 1, None, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [None, 5, 5, 5],
    [None, None, 1, 1],
    [None, None, 3, None],
]


def test_gwet_gives_the_printed_metric() -> None:
    assert gwet_ac1(GWET) == pytest.approx(0.77544, abs=5e-6)


def test_an_unused_label_counts_and_one_label_alone_is_undefined() -> None:
    same: list[RatingRow] = [["a", "a"], ["a", "a"]]
    assert gwet_ac1(same) is None
    assert gwet_ac1(same, 1) is None
    assert gwet_ac1(same, 2) == 1.0


def rate(seed: int, count: int = 60) -> list[list[int | None]]:
    """Five people of whom three rate each item, near the item's value."""
    draw, rows = random.Random(seed), []
    for _ in range(count):
        middle, row = draw.randint(1, 5), [None] * 5
        for place in draw.sample(range(5), 3):
            row[place] = min(5, max(1, middle + draw.choice([-1, 0, 0, 0, 1])))  # type: ignore[call-overload]
        rows.append(row)
    return rows  # type: ignore[return-value]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intraclass_is_that_of_an_analysis_of_variance(seed: int) -> None:
    rows = rate(seed)
    table = pd.DataFrame(
        [(item, value) for item, row in enumerate(rows) for value in row if value is not None],
        columns=["item", "value"],
    )
    squares = anova_lm(ols("value ~ C(item)", table).fit())["mean_sq"]
    between, within = squares["C(item)"], squares["Residual"]
    assert intraclass(rows) == pytest.approx((between - within) / (between + 2 * within))
    assert intraclass([[1, 1]]) is None
    assert intraclass([[1, 1], [1, 1]]) is None


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_intervals_are_those_of_drawing_items_again(level: MeasurementLevel) -> None:
    """A thousand draws of our own, each measured by another library."""
    rows = rate(5)
    draw, theirs = np.random.default_rng(7), []
    data = np.array([[np.nan if one is None else one for one in row] for row in rows])
    for _ in range(1000):
        drawn = data[draw.integers(0, len(data), len(data))]
        theirs.append(krippendorff.alpha(reliability_data=drawn.T, level_of_measurement=level))
    ours = agreement_spans(rows, level)["alpha"]
    assert ours == pytest.approx(np.percentile(theirs, [2.5, 97.5]), abs=0.03)
    inside = krippendorff_alpha(rows, level)
    assert inside is not None
    assert ours[0] < inside < ours[1]
    assert ("icc" in agreement_spans(rows, level)) is (level != "nominal")


def test_rows_of_one_item_are_drawn_together() -> None:
    rows, wide = rate(3, 40), agreement_spans
    items = [place // 4 for place in range(40)]
    copies = [row for row in rows[:10] for _ in range(4)]
    apart = wide(copies, clusters=list(range(40)))["alpha"]
    together = wide(copies, clusters=items)["alpha"]
    assert together[1] - together[0] > 1.5 * (apart[1] - apart[0])
    assert agreement_spans(rows[:1]) == {}


def vote_of(person: str, number: int) -> str:
    return random.Random(f"{person}{number}").choice(["yes", "yes", "yes", "no", "maybe"])


def test_a_project_by_label_by_pair_and_over_time(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(30))
    service.projects.change(lead, project.id, {"annotators_per_item": 3})
    names = ["ann", "bob", "cy", "dee"]
    said: dict[int, dict[str, str]] = {}
    for name, actor in zip(
        names, add_people(service, lead, project.id, names, ["annotator"]), strict=True
    ):
        clock.forward(86_400)
        numbers = work_through(
            service,
            actor,
            project.id,
            lambda task, name=name: {"question": vote_of(name, task.number), "answer": "yes"},  # type: ignore[misc]
        )
        for number in numbers:
            said.setdefault(number, {})[name] = vote_of(name, number)
    rows = [[votes.get(name) for name in names] for votes in said.values()]
    agreements = {one.field: one for one in service.lead.agreement(lead, project.id)}
    question = agreements["question"]
    codes = {"yes": 0.0, "no": 1.0, "maybe": 2.0}
    data = np.array([[np.nan if v is None else codes[v] for v in row] for row in rows])
    theirs = krippendorff.alpha(reliability_data=data.T, level_of_measurement="nominal")
    assert question.alpha == pytest.approx(theirs)
    assert question.spans["alpha"][0] < theirs < question.spans["alpha"][1]
    # Label by label: of all ordered pairs whose first says "no", how often the second does too.
    pairs = [(a, b) for row in rows for a, b in combinations([v for v in row if v], 2)]
    ordered = Counter(pairs + [(b, a) for a, b in pairs])
    for label, share in question.labels.items():
        first = sum(count for (one, _), count in ordered.items() if one == label)
        assert share == pytest.approx(ordered[label, label] / first)
    assert len(question.windows) == 3
    last = krippendorff.alpha(reliability_data=data[-10:].T, level_of_measurement="nominal")
    assert question.windows[-1] == pytest.approx(last)
    assert question.change == pytest.approx(
        (question.spans["alpha"][1] - question.spans["alpha"][0]) / 2 * (50 / 80) ** 0.5
    )
    assert question.model_copy(update={"items": 20}).change is not None
    assert question.model_copy(update={"items": 19}).change is None
    # Pairs of people: those who agree least come first.
    found = service.lead.pairs(lead, project.id)
    assert [pair.same for pair in found] == sorted(pair.same for pair in found)
    mine = next(pair for pair in found if pair.annotators == ("P02", "P03"))
    both = [(votes["ann"], votes["bob"]) for votes in said.values() if {"ann", "bob"} <= set(votes)]
    assert mine.items == len(both)
    # Of the other fields everybody said the same: chance alone explains them.
    assert mine.answers == 3 * len(both)
    answers, others = zip(*both, strict=True)
    assert mine.kappa == pytest.approx(cohen_kappa_score(answers, others))

    # What differs: by pair, by label, by time.
    def numbers_of(**wanted: object) -> list[int]:
        chosen = DisagreementFilter(**wanted)  # type: ignore[arg-type]
        listed = service.lead.disagreements(lead, project.id, limit=99, wanted=chosen)
        return [one.number for one in listed]

    differ = [number for number, votes in sorted(said.items()) if len(set(votes.values())) > 1]
    assert numbers_of() == differ
    assert numbers_of(people=("P02", "P03")) == [
        number
        for number in differ
        if len({said[number].get("ann"), said[number].get("bob"), None}) == 3
    ]
    assert numbers_of(label="maybe", field="question") == [
        number for number in differ if "maybe" in said[number].values()
    ]
    assert numbers_of(field="answer") == []
    assert numbers_of(since=clock.now + 1) == []


def test_a_lead_decides_what_a_majority_said_and_explains(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(2))
    service.projects.change(lead, project.id, {"annotators_per_item": 3})
    people = add_people(service, lead, project.id, ["ann", "bob", "cy"], ["annotator"])
    service.projects.consent(lead, project.id)
    for actor in people[:2]:
        work_through(service, actor, project.id, lambda _: {"question": "yes", "answer": "yes"})
    with pytest.raises(Locked):
        service.work.decide(lead, project.id, 1)
    work_through(service, people[2], project.id, lambda _: {"question": "no", "answer": "yes"})
    assert [one.decidable for one in service.lead.disagreements(lead, project.id)] == [True, True]
    with pytest.raises(Forbidden):
        service.work.decide(people[0], project.id, 1)
    with pytest.raises(Forbidden):
        service.work.decide(lead, project.id, 99)
    assignment = service.work.decide(lead, project.id, 1)
    assert service.work.decide(lead, project.id, 1) == assignment
    task = service.work.open(lead, assignment)
    said = {"question": "no", "answer": "yes", "decision_note": "no mouse is seen"}
    service.work.submit(lead, assignment, said, task.version)
    one, two = service.lead.disagreements(lead, project.id)
    assert (one.decidable, (one.decision or {})["decision_note"]) == (False, "no mouse is seen")
    assert (two.decidable, two.decision) == (True, None)
    rows = lines_of(service.exchange.export(lead, project.id, "aggregated").data)
    assert [row["kept"] for row in rows] == [False, True]
    # Given back undecided, the item is as it was: the majority counts.
    assignment = service.work.decide(lead, project.id, 2)
    service.work.release(lead, assignment)
    rows = lines_of(service.exchange.export(lead, project.id, "aggregated").data)
    assert [(row["kept"], row["complete"]) for row in rows] == [(False, True), (True, True)]
