"""A thousand workers on a virtual clock: the real driver and manifest lose and double nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from perf.simulate_scale import Cluster, simulate

from tests.scale.test_driver import read

pytestmark = pytest.mark.slow

TROUBLE = Cluster(node_hours=1.0, straggling=0.05, driver_kills=4, seed=11)


def test_stragglers_lost_nodes_and_killed_drivers_lose_no_row(tmp_path: Path) -> None:
    made = simulate(tmp_path / "one", TROUBLE, 1500)
    assert made.nodes_lost > 3
    assert made.drivers == 5
    assert 0 < made.wasted_share < 0.5
    rows = read(tmp_path / "one")
    assert sorted(int(row["id"]) for row in rows) == list(range(3000))
    assert made.repeated == 0  # a finished shard is never done again


def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    small = replace(TROUBLE, workers=40, node_hours=0.05, driver_kills=1)
    one, two = (simulate(tmp_path / name, small, 80) for name in ("one", "two"))
    assert (one.makespan, one.wasted_share) == (two.makespan, two.wasted_share)
    assert one.nodes_lost > 0
