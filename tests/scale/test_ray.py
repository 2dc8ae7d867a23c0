"""Ray runs the same shards to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.moderation.scale.driver import ScaleSettings, run_shards
from memantics.moderation.scale.engines import RayEngine
from tests.scale.test_driver import digests, read, run, texts
from tests.scale.work import Measure

pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_parts_are_byte_equal_to_the_pools_and_dead_workers_cost_one_row(tmp_path: Path) -> None:
    refs = texts("a", "bb", "die", "dddd", "raise", "f", "ggg", "hh")
    run(refs, tmp_path / "pool")
    settings = ScaleSettings(tmp_path / "ray", {"work": "measure"}, shard_size=3)
    done = run_shards(refs, Measure(), settings, RayEngine(2))
    assert digests(tmp_path / "ray") == digests(tmp_path / "pool")
    assert done.statuses == {"scored": 6, "failed": 2}
    assert [row["id"] for row in read(tmp_path / "ray")] == [ref.id for ref in refs]
