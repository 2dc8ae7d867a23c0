"""The two tiers of tests, and where their time goes.

``make test`` runs the first tier, ``make test-rest`` the second: what is marked ``slow``, and each
property once more with all its examples. What is marked in neither way is in the first.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import forks

FIRST, SECOND = "not slow", "slow or hypothesis"  # what ``-m`` is given
# Most wrong lines that a property finds, it finds in its first examples; the rest look on.
FEW_EXAMPLES = 15
WHOLE_MODULE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)
ANY_TEST = re.compile(r"\bmark\.slow\b|\bhypothesis\b")
FOLDER = Path("build")


def is_left_out(path: Path, tier: str) -> bool:
    """Whether a module has no test of the tier: it and its packages need not be imported.

    Packages of models take seconds to import, in every process.
    """
    if path.suffix != ".py" or tier not in (FIRST, SECOND):
        return False
    text = path.read_text(encoding="utf-8")
    if tier == FIRST:
        return WHOLE_MODULE.search(text) is not None
    return ANY_TEST.search(text) is None and not _has_slow_fixtures(path.parent)


@cache
def _has_slow_fixtures(folder: Path) -> bool:
    """Whether fixtures of a folder or of those above mark tests slow: those of two databases."""
    conftest = folder / "conftest.py"
    if conftest.is_file() and "marks=pytest.mark.slow" in conftest.read_text(encoding="utf-8"):
        return True
    return folder.parent != folder and _has_slow_fixtures(folder.parent)


class Tiers:
    """A plugin, since hooks of a ``conftest.py`` do not see the doctests of ``src``."""

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        return is_left_out(collection_path, config.option.markexpr) or None

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        if config.option.markexpr == FIRST:
            for item in items:
                limit_examples(getattr(item, "function", None))


def limit_examples(test: Any) -> None:
    """Give a property fewer examples than it asks for."""
    if getattr(test, "is_hypothesis_test", False):
        name = "_hypothesis_internal_use_settings"
        asked: settings = getattr(test, name, settings())
        few = min(asked.max_examples, FEW_EXAMPLES)
        setattr(test, name, settings(asked, max_examples=few))


class Spending:
    """User CPU time and duration of every test, those of its processes with it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.before = 0.0
        self.seconds: dict[str, float] = defaultdict(float)
        self.durations: dict[str, float] = defaultdict(float)

    def pytest_runtest_logstart(self) -> None:
        self.before = read_user_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = read_user_seconds()
        report.user_seconds, self.before = now - self.before, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += getattr(report, "user_seconds", 0.0)
        self.durations[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Keep all of them, most expensive first; the processes of pytest-xdist have ended."""
        if self.config.option.durations is None:
            return
        tests, total = sum(self.seconds.values()), read_user_seconds()
        said = (
            f"user CPU: {total / 60:.1f} min, {tests / 60:.1f} of them in {len(self.seconds)} tests"
        )
        lines = [
            f"{spent:8.2f} {self.durations[name]:8.2f} {name}"
            for name, spent in sorted(self.seconds.items(), key=lambda pair: -pair[1])
        ]
        kept = FOLDER / f"durations{'-rest' * (self.config.option.markexpr == SECOND)}.txt"
        (self.config.rootpath / FOLDER).mkdir(exist_ok=True)
        head = "user CPU s, duration s, test"
        text = "\n".join([said, head, *lines]) + "\n"
        (self.config.rootpath / kept).write_text(text, encoding="utf-8")
        terminalreporter.write_line(f"{said}; each in {kept}")

    def pytest_unconfigure(self) -> None:
        forks.end()


def read_user_seconds() -> float:
    """User CPU time of this process, its ended children, and the helper with its forks."""
    times = os.times()
    return times.user + times.children_user + forks.read_user_seconds()


@cache
def count_workers(tier: str) -> int:
    """One a core; one more in the second tier, whose tests wait for browsers and servers.

    Each may need four gigabytes: it loads every model and package that there is.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = (os.cpu_count() or 2) + (tier != FIRST)
    return max(2, min(3, cores, memory // (4 << 30)))
