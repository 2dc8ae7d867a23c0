"""kill -9 of the driver or of a worker: a second run completes, no row is lost or double."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memantics.scale.manifest import read_manifest
from tests.places import ROOT
from tests.scale.test_driver import read

SCRIPT = """
import sys, time
from pathlib import Path
from memantics.scale.driver import ScaleSettings, run_shards
from memantics.scale.engines import PoolEngine
from memantics.scale.records import Ref
from tests.scale.work import Slow
if __name__ == "__main__":
    refs = (Ref(f"m{n}", text="x" * (n % 7)) for n in range(400))
    settings = ScaleSettings(Path(sys.argv[1]), {"work": "slow"}, shard_size=20)
    run_shards(refs, Slow(), settings, PoolEngine(2), lambda now: print(now.rows, flush=True))
"""


def start(script: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=dict(os.environ) | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "spawn_main"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(line) for line in found.stdout.split()]


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_killing_repeats_only_what_was_in_flight(tmp_path: Path, victim: str) -> None:
    script, out = tmp_path / "driver.py", tmp_path / "out"
    script.write_text(SCRIPT, encoding="utf-8")
    chance = random.Random(7)
    for _ in range(3):
        with start(script, out) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 5)):
                process.stdout.readline()
            time.sleep(chance.random() / 5)
            before = {path: path.stat().st_mtime_ns for path in (out / "parts").glob("part-*")}
            if victim == "driver":
                process.kill()
                continue
            for worker in workers_of(process)[:1]:
                os.kill(worker, signal.SIGKILL)
            process.stdout.read()
            assert process.wait(120) == 0
        assert len(read_manifest(out)[1]) == 20
        again = [path for path in before if path.stat().st_mtime_ns != before[path]]
        # At most what two workers and their queue held was done again.
        assert len(again) <= 4
    with start(script, out) as process:
        assert process.stdout is not None
        process.stdout.read()
    assert process.returncode == 0
    rows = read(out)
    assert [row["id"] for row in rows] == [f"m{n}" for n in range(400)]
    assert {row["status"] for row in rows} == {"judged"}
    assert not list((out / "parts").glob(".*"))
