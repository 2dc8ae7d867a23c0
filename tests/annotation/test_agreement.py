"""Agreement figures against independent libraries, and live ones against hand-made counts."""

from __future__ import annotations

from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater  # type: ignore[import-untyped,unused-ignore]

from memantics.annotation.service import AnnotationService
from memantics.metrics.agreement import (
    MeasurementLevel,
    cohen_kappa,
    complete_agreement,
    fleiss_kappa,
    krippendorff_alpha,
    mean_cohen_kappa,
    pairwise_agreement,
)
from tests.annotation.team import (
    add_people,
    answer_by_number,
    open_project,
    plain_items,
    work_through,
)

FULL = st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=2, max_size=15)
HOLES = st.lists(
    st.lists(st.none() | st.integers(1, 5), min_size=4, max_size=4), min_size=2, max_size=15
)


@given(rows=FULL)
@settings(max_examples=60, deadline=None)
def test_kappas_agree_with_other_libraries(rows: list[list[int]]) -> None:
    ours = fleiss_kappa(rows)
    if len({label for row in rows for label in row}) > 1:
        table, _ = inter_rater.aggregate_raters(np.array(rows))
        assert ours == pytest.approx(inter_rater.fleiss_kappa(table))
    else:
        assert ours is None
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    kappa = cohen_kappa(first, second)
    if kappa is not None:
        assert kappa == pytest.approx(cohen_kappa_score(first, second))


@given(rows=HOLES)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_agrees_with_another_library(
    level: MeasurementLevel, rows: list[list[int | None]]
) -> None:
    ours = krippendorff_alpha(rows, level)
    if ours is not None:
        data = np.array([[np.nan if x is None else x for x in row] for row in rows]).T
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement=level)
        assert ours == pytest.approx(theirs)


def test_what_is_undefined_is_none() -> None:
    nothing: list[list[str | None]] = [["a", None], [None, "b"]]
    assert pairwise_agreement(nothing) is None
    assert complete_agreement(nothing) is None
    assert mean_cohen_kappa(nothing) is None
    assert fleiss_kappa(nothing) is None
    assert krippendorff_alpha(nothing) is None
    assert fleiss_kappa([["a", "a"], ["a", "a"]]) is None
    with pytest.raises(TypeError):
        krippendorff_alpha([["a", "b"]], "ordinal")


def test_live_agreement_on_a_project(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(4))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    votes = ["yyn", "nnn", "yyy", "ynn"]
    for place, person in enumerate(people):
        table = {
            number: {"harmful": "yes", "type": "offence", "modality": "text"}
            if word[place] == "y"
            else {"harmful": "no"}
            for number, word in enumerate(votes, 1)
        }
        work_through(service, person, project.id, answer_by_number(table))
    agreements = {
        agreement.field: agreement for agreement in service.lead.agreement(lead, project.id)
    }
    rows = [list(word) for word in votes]
    harmful = agreements["harmful"]
    assert (harmful.stage, harmful.level) == ("label", "nominal")
    assert (harmful.items, harmful.annotators) == (4, 3)
    assert harmful.complete == 0.5
    assert harmful.pairwise == pytest.approx((1 / 3 + 1 + 1 + 1 / 3) / 4)
    table, _ = inter_rater.aggregate_raters(np.array(rows))
    assert harmful.fleiss == pytest.approx(inter_rater.fleiss_kappa(table))
    pairs = [(0, 1), (0, 2), (1, 2)]
    kappas = [cohen_kappa_score([r[i] for r in rows], [r[j] for r in rows]) for i, j in pairs]
    assert harmful.cohen == pytest.approx(np.mean(kappas))
    codes = np.array([[float(x == "y") for x in row] for row in rows]).T
    theirs = krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal")
    assert harmful.alpha == pytest.approx(theirs)
    assert agreements["type"].items == 2
    assert agreements["type"].complete == 1.0
    assert "*" in agreements
    apart = service.lead.disagreements(lead, project.id)
    assert [one.key for one in apart] == ["m1", "m4"]
    assert dict(apart[0].fields["harmful"]) == {"P02": "yes", "P03": "yes", "P04": "no"}
