"""Folds that part no group, votes of companions, confident learning: against other libraries."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from memantics.core.text import split_pieces
from memantics.metrics.calibration import (
    count_confidently,
    estimate_joint,
    find_doubtful,
    find_thresholds,
    rank_margins,
)
from memantics.metrics.grouping import (
    deal_groups,
    join_pairs,
    list_near_pairs,
    rate_recalls,
    vote_beside,
    vote_in_groups,
    weigh_vote,
)


def draw(seed: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(seed)
    groups = [f"g{n}" for n in rng.geometric(0.02, 500)]
    return [str(n) for n in rng.choice(3, 500, p=[0.6, 0.3, 0.1])], groups


@pytest.mark.parametrize("seed", range(5))
def test_folds_are_as_even_as_those_of_scikit_learn(seed: int) -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    strata, groups = draw(seed)
    folds = deal_groups(strata, groups, 5)
    for group in set(groups):
        assert len({int(f) for f, g in zip(folds, groups, strict=True) if g == group}) == 1
    splitter = model_selection.StratifiedGroupKFold(5)
    theirs = np.zeros(len(strata), int)
    for fold, (_, out) in enumerate(splitter.split(strata, strata, groups)):
        theirs[out] = fold

    def spread(given: np.ndarray) -> float:
        table = [
            np.bincount([int(s) for s in np.array(strata)[given == f]], None, 3) for f in range(5)
        ]
        shares = np.array(table) / np.bincount([int(s) for s in strata], minlength=3)
        return float(((shares - 0.2) ** 2).sum())

    assert spread(folds) <= spread(theirs) + 0.01


def test_the_order_of_items_does_not_move_groups() -> None:
    strata, groups = draw(0)
    order = np.random.default_rng(1).permutation(len(strata))
    first = deal_groups(strata, groups, 5)
    again = deal_groups([strata[n] for n in order], [groups[n] for n in order], 5)
    assert (again == first[order]).all()


def test_joined_places_are_connected_components() -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(3)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 80, (50, 2))]
    ours = join_pairs(80, pairs)
    matrix = sparse.coo_matrix(([1] * len(pairs), tuple(zip(*pairs, strict=True))), (80, 80))
    _, theirs = csgraph.connected_components(matrix, directed=False)
    for one, other in combinations(range(80), 2):
        assert (ours[one] == ours[other]) == (theirs[one] == theirs[other])


def test_near_pairs_join_what_comparing_all_pairs_joins() -> None:
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(list("abcdefgh"), 5)) for _ in range(60)]
    sets = [set(split_pieces(text)) for text in texts]
    near = [
        (a, b)
        for a, b in combinations(range(60), 2)
        if len(sets[a] & sets[b]) >= 0.8 * len(sets[a] | sets[b])
    ]
    found = join_pairs(60, list_near_pairs(texts, 0.8, split_pieces))
    assert found == join_pairs(60, near)


def test_votes() -> None:
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert vote_in_groups(labels, list("aaabbc"), 2).tolist() == [0, 0, 0, 1, 1, -1]
    assert vote_beside(labels, 2, 1).tolist() == [0, 0, 0, 1, 0, 1]
    assert rate_recalls(np.array([0, 0, 1]), np.array([0, 1, 1]), 2) == 0.75


def test_a_vote_that_groups_decide_and_one_that_they_do_not() -> None:
    rng = np.random.default_rng(0)
    groups = [f"g{n}" for n in rng.integers(0, 20, 400)]
    told = np.array([int(group[1:]) % 2 for group in groups])
    found = weigh_vote(told, groups, 2)
    assert found is not None
    assert found.value == 1.0
    assert found.p < 1e-9
    blind = weigh_vote(rng.integers(0, 2, 400), groups, 2)
    assert blind is not None
    assert blind.low < 0.5 < blind.high
    assert blind.p > 0.01
    assert weigh_vote(np.array([0, 1]), ["a", "b"], 2) is None


def test_confident_learning_is_that_of_cleanlab() -> None:
    # Reference: cleanlab 2.9.0, compute_confident_joint(calibrate=False) and find_label_issues.
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 300)
    labels = np.where(rng.random(300) < 0.15, rng.integers(0, 3, 300), true)
    chances = np.exp(rng.normal(size=(300, 3)) + 2 * np.eye(3)[true])
    chances /= chances.sum(axis=1, keepdims=True)
    assert count_confidently(labels, chances).tolist() == [[55, 3, 4], [2, 56, 4], [3, 3, 67]]
    doubtful = find_doubtful(labels, chances)
    assert len(doubtful) == 19
    assert (np.diff(rank_margins(labels, chances)[doubtful]) >= 0).all()
    cleanlab = pytest.importorskip("cleanlab.count", reason="cleanlab is not installed")
    ours = estimate_joint(labels, chances)
    assert np.abs(cleanlab.estimate_joint(labels, chances) - ours).max() < 0.005
    assert np.allclose(
        cleanlab.get_confident_thresholds(labels, chances), find_thresholds(labels, chances)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("classes", "noise"), [(2, 0.1), (3, 0.15), (7, 0.2)])
def test_likely_label_errors_are_ranked_as_by_cleanlab(
    classes: int, noise: float, seed: int
) -> None:
    """Live, on three sets with planted noise: the same items are flagged, in the same order."""
    cleanlab = pytest.importorskip("cleanlab.filter", reason="cleanlab is not installed")
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, 400)
    flipped = rng.random(400) < noise
    labels = np.where(flipped, (true + rng.integers(1, classes, 400)) % classes, true)
    chances = np.exp(rng.normal(size=(400, classes)) + 2 * np.eye(classes)[true])
    chances /= chances.sum(axis=1, keepdims=True)
    theirs = cleanlab.find_label_issues(
        labels,
        chances,
        filter_by="confident_learning",
        return_indices_ranked_by="normalized_margin",
    )
    ours = find_doubtful(labels, chances)
    assert ours.tolist() == np.asarray(theirs).tolist()
    assert flipped[ours].mean() > 2 * noise
