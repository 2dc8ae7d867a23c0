"""ICM, cross-entropy and aggregation of votes against PyEvALL 0.2.11 and crowd-kit 1.4.2.

``make clients`` installs both libraries. Without them, values that both gave are compared.
"""

from __future__ import annotations

import copy
import logging
import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import special
from scipy.spatial.distance import jensenshannon

from memantics.metrics.aggregation import AnnotatedLabel, dawid_skene, digamma, mace
from memantics.metrics.distributions import (
    binary_cross_entropy,
    cross_entropy,
    jensen_shannon,
    manhattan,
)
from memantics.metrics.information_contrast import (
    Hierarchy,
    InformationContrast,
    SoftInformationContrast,
    hierarchical_f1,
)
from tests.serve.clients import FOLDER

GOLDEN = Path(__file__).parent / "disagreement.json"
TREES: tuple[dict[str, Any], ...] = (
    {},
    {"NO": [], "YES": ["A", "B", "C"]},
    {"NO": [], "YES": {"A": [], "B": ["C", "D"]}},
)
NEAR = 1e-6


def needs(name: str) -> Path:
    folder = FOLDER / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not installed (make clients)")
    return folder


def list_leaves(tree: dict[str, Any]) -> list[str]:
    found = [name for name, below in tree.items() if not below]
    for below in tree.values():
        found += below if isinstance(below, list) else list_leaves(below)
    return found or ["YES", "NO", "MAYBE"]


class Case:
    """A random case: gold labels and predictions, hard and soft."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.tree = TREES[seed % 3]
        self.several = seed % 2 == 1 and bool(self.tree)
        names, size = list_leaves(self.tree), draw.randint(5, 25)

        def hard() -> list[str]:
            return sorted(draw.sample(names, draw.randint(1, 2) if self.several else 1))

        def soft() -> dict[str, float]:
            if self.several:
                return {name: draw.randint(0, 6) / 6 for name in names}
            parts = [draw.randint(0, 3) for _ in names]
            parts[0] += not any(parts)
            return {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}

        self.gold = [hard() for _ in range(size)]
        self.said = [hard() for _ in range(size)]
        self.soft_gold = [soft() for _ in range(size)]
        self.soft_said = [soft() for _ in range(size)]
        for name in names:  # the reference cannot use a weight that never changes
            self.soft_gold[0][name] = 0.25
            self.soft_gold[1][name] = 0.5

    def ours(self) -> dict[str, float | None]:
        hard = InformationContrast(self.gold, self.tree)
        soft = SoftInformationContrast(self.soft_gold, self.tree)
        pairs = list(zip(self.soft_gold, self.soft_said, strict=True))
        return {
            "ICM": hard.score(self.said),
            "ICMNorm": hard.normalise(hard.score(self.said)),
            "ICMSoft": soft.score(self.soft_said),
            "ICMSoftNorm": soft.normalise(soft.score(self.soft_said)),
            "CrossEntropy": fmean(cross_entropy(gold, said) for gold, said in pairs),
        }

    def reference(self) -> dict[str, float]:
        sys.path.append(str(needs("pyevall")))
        import pandas as pd

        metrics: Any = pytest.importorskip("pyevall.metrics.metrics")
        comparators: Any = pytest.importorskip("pyevall.comparators.comparators")
        logging.disable(logging.INFO)

        def frame(rows: Sequence[Any]) -> Any:
            values = [{"test_case": "t", "id": str(n), "value": v} for n, v in enumerate(rows)]
            return pd.DataFrame(values)

        found = {}
        flat = [one if self.several else one[0] for one in self.gold]
        guess = [one if self.several else one[0] for one in self.said]
        for name in ("ICM", "ICMNorm", "ICMSoft", "ICMSoftNorm", "CrossEntropy"):
            gold, said = (
                (flat, guess)
                if name in ("ICM", "ICMNorm")
                else (
                    self.soft_gold,
                    self.soft_said,
                )
            )
            own = copy.deepcopy((gold, said))
            comparator = comparators.PyEvALLComparator(frame(own[1]), frame(own[0]), "t", "e")
            # The property is found from the values; a set of one label must stay a set.
            comparator.hierarchy = copy.deepcopy(self.tree) or None
            metric = getattr(metrics, name)("e")
            metric.evaluate(comparator)
            found[name] = metric.result["average"]
        return found


@pytest.mark.slow
def test_icm_equals_pyevall_on_200_random_cases() -> None:
    needs("pyevall")
    for seed in range(200):
        case = Case(seed)
        assert case.ours() == pytest.approx(case.reference(), abs=NEAR), seed


def random_votes(seed: int) -> list[AnnotatedLabel]:
    """Votes of annotators who are right at different rates; names first occur in sorted order."""
    draw = random.Random(seed)
    labels = ["a", "b", "c"][: 2 + seed % 2]
    skill = {f"w{n}": draw.uniform(0.4, 0.95) for n in range(6)}
    votes = [AnnotatedLabel("00", name, labels[0]) for name in skill]
    votes += [AnnotatedLabel("01", "w0", label) for label in labels]
    for item in range(2, 30):
        true = draw.choice(labels)
        for name, right in skill.items():
            if draw.random() < 0.8:
                said = true if draw.random() < right else draw.choice(labels)
                votes.append(AnnotatedLabel(f"{item:02}", name, said))
    return votes


def crowd(name: str, votes: Sequence[AnnotatedLabel]) -> dict[str, dict[str, float]]:
    sys.path.append(str(needs("crowdkit")))
    import pandas as pd

    module: Any = pytest.importorskip("crowdkit.aggregation.classification")
    rows = [{"task": v.item, "worker": v.annotator, "label": v.label} for v in votes]
    kind = getattr(module, name)
    table = (kind(n_iter=100) if name == "DawidSkene" else kind()).fit_predict_proba(
        pd.DataFrame(rows)
    )
    return {str(i): {str(k): float(v) for k, v in row.items()} for i, row in table.iterrows()}


def assert_same(ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]) -> None:
    assert ours.keys() == theirs.keys()
    for item, row in ours.items():
        assert row == pytest.approx(theirs[item], abs=NEAR)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of pandas, about calls in crowd-kit
@pytest.mark.parametrize("seed", range(20))  # MACE of crowd-kit takes about a minute each
def test_aggregation_equals_crowd_kit(seed: int) -> None:
    needs("crowdkit")
    votes = random_votes(seed)
    assert_same(dawid_skene(votes).probabilities, crowd("DawidSkene", votes))
    assert_same(mace(votes).probabilities, crowd("MACE", votes))


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(GOLDEN.read_bytes())
    return found


def record() -> None:
    """Write the values of both libraries, which ``make clients`` installs."""
    cases = {str(seed): Case(seed).reference() for seed in range(12)}
    crowds = {
        name: {str(seed): crowd(name, random_votes(seed)) for seed in range(2)}
        for name in ("DawidSkene", "MACE")
    }
    GOLDEN.write_bytes(orjson.dumps({"pyevall": cases, **crowds}, option=orjson.OPT_INDENT_2))


@pytest.mark.parametrize("seed", range(12))
def test_icm_equals_the_recorded_values_of_pyevall(seed: int) -> None:
    assert Case(seed).ours() == pytest.approx(recorded()["pyevall"][str(seed)], abs=NEAR)


@pytest.mark.parametrize("seed", [0, 1])
def test_aggregation_equals_the_recorded_values_of_crowd_kit(seed: int) -> None:
    votes = random_votes(seed)
    assert_same(dawid_skene(votes).probabilities, recorded()["DawidSkene"][str(seed)])
    assert_same(mace(votes).probabilities, recorded()["MACE"][str(seed)])


def test_the_result_does_not_depend_on_the_order_of_votes() -> None:
    votes = random_votes(3)
    mixed = votes[:]
    random.Random(0).shuffle(mixed)
    for method in (dawid_skene, mace):
        first, second = method(votes), method(mixed)
        for item, row in first.probabilities.items():
            assert row == pytest.approx(second.probabilities[item], abs=NEAR)


def test_better_annotators_are_more_reliable() -> None:
    votes = [
        AnnotatedLabel(str(i), name, label)
        for i in range(40)
        for name, label in (
            *((f"good{n}", "ab"[i % 2]) for n in range(3)),
            ("random", random.Random(i).choice("ab")),
        )
    ]
    for method in (dawid_skene, mace):
        found = method(votes)
        assert found.reliability["random"] < 0.8 < found.reliability["good0"]
        assert [found.choose(str(i)) for i in range(40)] == ["ab"[i % 2] for i in range(40)]
        assert method([]).probabilities == {}


def test_jensen_shannon_equals_scipy() -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        first, second = draw.dirichlet([1, 1, 1], 2)
        rows = [dict(zip("abc", map(float, row), strict=True)) for row in (first, second)]
        assert jensen_shannon(*rows) == pytest.approx(jensenshannon(first, second, 2) ** 2)
        assert manhattan(*rows) == pytest.approx(np.abs(first - second).sum())
    assert jensen_shannon({"a": 1.0}, {"a": 1.0}) == 0


def test_cross_entropy_of_several_labels_is_a_mean_of_single_ones() -> None:
    gold, said = {"a": 0.5, "b": 0.0}, {"a": 0.5, "b": 0.5}
    single = cross_entropy({"1": 0.0, "0": 1.0}, {"1": 0.5, "0": 0.5})
    assert binary_cross_entropy(gold, said) == pytest.approx((1 + single) / 2)


def test_digamma_equals_scipy() -> None:
    values = np.concatenate([np.geomspace(1e-3, 1e4, 200), [0.5, 1, 2, 9.99, 10, 10.01]])
    assert digamma(values) == pytest.approx(special.digamma(values), abs=1e-11)


def test_hierarchical_f1_counts_ancestors_of_every_branch() -> None:
    tree: Hierarchy = {
        "ethos": {"attack": ["smear"]},
        "pathos": ["fear", "flag"],
        "logos": {"why": ["flag"]},
    }
    assert hierarchical_f1([("smear",)], [("smear",)], tree) == 1
    # flag has pathos, logos and why above it; fear only pathos: 1 of 4 and 1 of 2
    assert hierarchical_f1([("flag",)], [("fear",)], tree) == pytest.approx(2 / 6)
    assert hierarchical_f1([("smear",)], [()], tree) == 0
    assert hierarchical_f1([()], [()], tree) is None


if __name__ == "__main__":
    record()
