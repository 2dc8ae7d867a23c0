"""``python -m perf.install [--extra offline] [--machine aarch64] [--json]``: megabytes installed.

The wheels of the core, or of the core with extras, are installed for that machine at the versions
of ``constraints.txt`` into a temporary folder; nothing of them is run, so that any machine can
measure for any other. Compiled files count, as pip writes them. Promises on x86-64: the core at
most 150 MB, with ``offline`` at most 600 MB. Needs a package index.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parent.parent
# Megabytes by the extras that are installed; other combinations have no promise.
TARGETS = {(): 150.0, ("offline",): 600.0}
# Newest first. The first two numbers are the oldest glibc that a wheel runs on.
TAGS = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
FROM_SOURCE = ("jieba",)  # has no wheel; pure Python, so that one built here fits every machine
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def install(machine: str, folder: Path, extras: Sequence[str] = ()) -> Path:
    """Install the core, and extras, for a machine into a folder of its own."""
    wheels, place = folder / "wheels", folder / machine
    pinned = ("--constraint", str(ROOT / "constraints.txt"))
    build = (*PIP, "wheel", "--no-deps", "--wheel-dir", str(wheels), *pinned)
    subprocess.run((*build, str(ROOT), *FROM_SOURCE), check=True)
    (own,) = wheels.glob("memantics-*.whl")
    tags = [word for tag in TAGS for word in ("--platform", f"{tag}_{machine}")]
    only = ("--only-binary", ":all:", "--find-links", str(wheels), "--target", str(place))
    wanted = f"{own}[{','.join(extras)}]" if extras else str(own)
    subprocess.run((*PIP, "install", *only, *tags, *pinned, wanted), check=True)
    return place


def weigh(place: Path) -> dict[str, float]:
    """Megabytes by package, the largest first."""
    found = {
        package.metadata["Name"]: sum(
            path.stat().st_size
            for file in package.files or ()
            if (path := Path(str(package.locate_file(file)))).is_file()
        )
        / 1e6
        for package in distributions(path=[str(place)])
    }
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def show(machine: str, sizes: Mapping[str, float], target: float | None) -> None:
    """Print what is above a megabyte, the rest as one line, and the sum."""
    print(f"{'package, ' + machine:<36}{'MB':>8}")
    large = {name: size for name, size in sizes.items() if size >= 1}
    for name, size in large.items():
        print(f"{name:<36}{size:>8.1f}")
    total = sum(sizes.values())
    others = f"{len(sizes) - len(large)} others"
    print(f"{others:<36}{total - sum(large.values()):>8.1f}")
    judged = "" if target is None else f"  {'kept' if total <= target else 'MISSED'}: {target:.0f}"
    print(f"{'all':<36}{total:>8.1f}{judged}")


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.install", description=__doc__)
    parser.add_argument("--machine", default="x86_64", choices=("x86_64", "aarch64"))
    parser.add_argument("--extra", action="append", default=[], help="an extra; may be repeated")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = weigh(install(given.machine, Path(folder), given.extra))
    target = TARGETS.get(tuple(sorted(given.extra)))
    if given.json:
        measurements = {"machine": given.machine, "extras": given.extra, "target": target}
        print(orjson.dumps(measurements | {"packages": sizes}).decode())
    else:
        show(given.machine, sizes, target)
    return 0 if target is None or sum(sizes.values()) <= target else 1


if __name__ == "__main__":
    sys.exit(main())
