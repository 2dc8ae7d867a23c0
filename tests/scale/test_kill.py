"""kill -9 of driver, worker or Ray node, twenty times: no row is lost or double."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memantics.moderation.scale.driver import ScaleProgress, read_manifest, run_shards
from memantics.moderation.scale.engines import RayEngine
from tests.places import ROOT
from tests.scale.test_driver import read
from tests.scale.work import ROWS, SIZE, Slow, list_refs, settle

pytestmark = pytest.mark.slow

SHARDS = ROWS // SIZE
IN_FLIGHT = 4  # shards that two workers and their queue hold
SCRIPT = """
import sys
from pathlib import Path
from memantics.moderation.scale.driver import run_shards
from memantics.moderation.scale.engines import PoolEngine
from tests.scale.work import Slow, list_refs, settle
def tell(now):
    print(now.rows, flush=True)
    sys.stdin.readline()  # goes on when the test says so
if __name__ == "__main__":
    out = Path(sys.argv[1])
    work = Slow(str(out.with_suffix(".log")))
    run_shards(list_refs(), work, settle(out), PoolEngine(2), tell)
"""


@contextmanager
def start(folder: Path, *, watched: bool = False) -> Iterator[subprocess.Popen[str]]:
    script = folder / "driver.py"
    script.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script), str(folder / "out")],
        stdin=subprocess.PIPE if watched else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=dict(os.environ) | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    ) as process:
        yield process


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "spawn_main"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(line) for line in found.stdout.split()]


def check(out: Path, kills: int) -> None:
    """All rows are there once, and no more was done again than was in flight."""
    rows = read(out)
    assert [row["id"] for row in rows] == [f"m{n}" for n in range(ROWS)]
    assert {row["status"] for row in rows} == {"scored"}
    assert len(read_manifest(out)[1]) == SHARDS
    assert not list((out / "parts").glob(".*"))
    times = Counter(line.split()[-1] for line in out.with_suffix(".log").read_text().splitlines())
    assert len(times) == ROWS
    assert times.total() - ROWS <= kills * IN_FLIGHT * SIZE


def test_killing_the_driver_eight_times(tmp_path: Path) -> None:
    chance, kills = random.Random(7), 8
    for _ in range(kills):
        with start(tmp_path) as process:
            assert process.stdout is not None
            known = len(read_manifest(tmp_path / "out")[1])
            for _ in range(min(known + chance.randrange(1, 4), SHARDS - 1)):
                process.stdout.readline()
            time.sleep(chance.random() / 20)
            process.kill()
    with start(tmp_path) as process:
        process.communicate(timeout=120)
    assert process.returncode == 0
    check(tmp_path / "out", kills)


def test_killing_a_worker_eight_times(tmp_path: Path) -> None:
    chance, kills = random.Random(3), 0
    with start(tmp_path, watched=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while process.stdout.readline():
            workers = workers_of(process)
            if kills < 8 and workers:
                time.sleep(chance.random() / 50)
                os.kill(chance.choice(workers), signal.SIGKILL)
                kills += 1
            process.stdin.write("\n")
            process.stdin.flush()
    assert (process.returncode, kills) == (0, 8)
    check(tmp_path / "out", kills)


@pytest.mark.filterwarnings("ignore")
def test_killing_a_ray_node_four_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    from ray.cluster_utils import Cluster  # type: ignore[import-untyped,unused-ignore]

    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes, chance, kills = [cluster.add_node(num_cpus=1)], random.Random(5), 0

    def kill(now: ScaleProgress) -> None:
        nonlocal kills
        if kills < 4 and now.shards >= 8 * (kills + 1):
            time.sleep(chance.random() / 20)
            for started in nodes.pop().all_processes["raylet"]:
                os.kill(started.process.pid, signal.SIGKILL)
            nodes.append(cluster.add_node(num_cpus=1))
            kills += 1

    out = tmp_path / "out"
    try:
        engine = RayEngine(2, cluster.address)
        run_shards(list_refs(), Slow(str(out.with_suffix(".log"))), settle(out), engine, kill)
    finally:
        cluster.shutdown()
    assert kills == 4
    check(out, kills)
