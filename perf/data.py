"""Measure memory and time of registering, counting and describing data sets of growing size.

``python -m perf.data [--rows 10000 --rows 300000] [--form parquet|tar]`` writes made-up data sets
with embedded images, registers each in a process of its own, and prints the largest memory of that
process and the CPU time per row. ``data add`` reads the set twice: to check it, and for its page.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson
from PIL import Image

_BLOCK = 1000


def make_rows(count: int) -> Iterator[dict[str, object]]:
    """Yield made-up memes; one in fifty repeats the text of an earlier one."""
    for n in range(count):
        out = io.BytesIO()
        picture = Image.new("RGB", (4, 4), (n % 256, n // 256 % 256, n // 65536))
        picture.save(out, "PNG")
        yield {
            "id": f"meme-{n:07}",
            "image": {"bytes": out.getvalue(), "path": f"{n}.png"},
            "text": f"caption of the made-up meme number {n - n % 50 * (n % 50 == 49)}",
            "label": ("harmful", "harmless")[n % 3 == 0],
            "votes": ["yes" if (n + v) % 3 else "no" for v in range(3)],
        }


def write_parquet(path: Path, count: int) -> None:
    """Write a Parquet file in row groups of a thousand memes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, object]] = []
    writer: pq.ParquetWriter | None = None
    for row in make_rows(count):
        rows.append(row)
        if len(rows) == _BLOCK:
            table = pa.Table.from_pylist(rows)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            rows = []
    if writer is not None:
        writer.close()


def write_tar(path: Path, count: int) -> None:
    """Write a tar archive with an image, a text and JSON per meme."""
    with tarfile.open(path, "w") as archive:
        for row in make_rows(count):
            image = row["image"]
            assert isinstance(image, dict)
            facts = {name: row[name] for name in ("id", "label", "votes", "text")}
            for ending, data in (("png", image["bytes"]), ("json", orjson.dumps(facts))):
                info = tarfile.TarInfo(f"{row['id']}.{ending}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            archive.members = []  # type: ignore[attr-defined]  # tarfile keeps every header


def measure(folder: Path, home: Path) -> tuple[float, float, str]:
    """Register a folder in a new process; return its largest memory in MB, CPU time, and output."""
    words = ["data", "add", str(folder), "--label", "label", "--id", "id"]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *words],
        env=os.environ | {"MEMANTICS_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    *told, peak = done.stdout.strip().splitlines()
    memory, seconds = map(float, peak.split())
    return memory / 1024, seconds, told[0]


_CHILD = """
import resource, sys
from pathlib import Path
from memantics.cli.main import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
used = resource.getrusage(resource.RUSAGE_SELF)
# On Linux ru_maxrss starts with the memory of the parent, which has written the data.
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), used.ru_maxrss)
print(peak, used.ru_utime + used.ru_stime)
"""


def main() -> None:
    """Print one line per size and form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--form", choices=("parquet", "tar"), action="append")
    given = parser.parse_args()
    print(f"{'form':8} {'rows':>8} {'memory MB':>10} {'CPU ms/row':>10}")
    for form in given.form or ["parquet", "tar"]:
        for count in given.rows or [10_000, 100_000, 300_000]:
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place, "made_up")
                folder.mkdir()
                write = {"parquet": write_parquet, "tar": write_tar}[form]
                write(folder / f"test.{form}", count)
                memory, seconds, told = measure(folder, Path(place, "home"))
                assert f"{count:,}" in told, told
                print(f"{form:8} {count:8,} {memory:10.1f} {1000 * seconds / count:10.3f}")


if __name__ == "__main__":
    main()
