"""``python -m perf.bounds [--only oldest|newest] [--json]``: test the lower bounds.

The core is installed twice into temporary environments: once with every direct dependency at the
oldest version that ``pyproject.toml`` allows (pip itself finds the newest of what those need in
turn), once with the newest of everything. In each the commands of ``perf.core_smoke`` are run
against a local server. Needs a package index. Exit code 1 where a command fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import orjson
from packaging.requirements import Requirement
from packaging.version import Version

from perf.core_smoke import walk

ROOT = Path(__file__).resolve().parent.parent
End = Literal["oldest", "newest"]


@dataclass(frozen=True, slots=True)
class Tried:
    """An install that was tried: its direct versions, commands that ran, and those that failed."""

    end: End
    versions: dict[str, str]
    commands: int
    failures: tuple[str, ...]


def read_dependencies() -> list[Requirement]:
    """The direct dependencies of the core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line) for line in project["dependencies"]]


def pin_oldest(requirements: Sequence[Requirement]) -> Iterator[str]:
    """Yield each requirement at the lowest version that it allows.

    >>> list(pin_oldest([Requirement("numpy>=1.26"), Requirement("rich>=13.9,<16")]))
    ['numpy==1.26', 'rich==13.9']
    """
    for requirement in requirements:
        low = [part.version for part in requirement.specifier if part.operator in (">=", "~=")]
        if not low:
            raise SystemExit(f"{requirement.name} has no lower bound in pyproject.toml")
        yield f"{requirement.name}=={max(low, key=Version)}"


def install(end: End, folder: Path) -> Path:
    """Install the core into an environment of its own; give its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pins = tuple(pin_oldest(read_dependencies())) if end == "oldest" else ("--upgrade",)
    command = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    subprocess.run((*command, *pins, str(ROOT)), check=True)
    return python


def list_versions(python: Path) -> dict[str, str]:
    """Return the installed version of each direct dependency."""
    names = [requirement.name for requirement in read_dependencies()]
    code = (
        "import json, sys; from importlib.metadata import version;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    done = subprocess.run([python, "-c", code, *names], check=True, capture_output=True)
    found: dict[str, str] = orjson.loads(done.stdout)
    return found


def try_out(end: End, folder: Path) -> Tried:
    """Install one end of the bounds and walk over the commands of the core."""
    python = install(end, folder / "environment")
    work = folder / "work"
    work.mkdir()
    steps = list(walk(python, work))
    failed = tuple(str(step) for step in steps if step.code)
    return Tried(end, list_versions(python), len(steps), failed)


def main() -> int:
    """Test oldest and newest versions, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.bounds", description=__doc__)
    parser.add_argument("--only", choices=("oldest", "newest"), help="try one end alone")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    ends: tuple[End, ...] = (given.only,) if given.only else ("oldest", "newest")
    tried = []
    for end in ends:
        with tempfile.TemporaryDirectory() as folder:
            tried.append(try_out(end, Path(folder)))
    if given.json:
        print(orjson.dumps([asdict(one) for one in tried]).decode())
    else:
        for one in tried:
            print(f"{one.end}: " + ", ".join(f"{n} {v}" for n, v in one.versions.items()))
            print(f"{one.commands - len(one.failures)} of {one.commands} commands work")
            for failure in one.failures:
                print(f"  {failure}")
    return 1 if any(one.failures for one in tried) else 0


if __name__ == "__main__":
    sys.exit(main())
