"""No test is in neither tier, and none is lost."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings, strategies

from tests.docs.test_examples import find_examples
from tests.places import ROOT
from tests.tiers import FEW_EXAMPLES, FIRST, SECOND, is_left_out, limit_examples

FEWEST = 9_200  # raise it, never lower it
FEWEST_OF_FIRST = 6_000
COLLECT = """
import orjson, pytest, sys

class Listing:
    def pytest_collection_finish(self, session):
        found = [
            (item.nodeid, str(item.path), [mark.name for mark in item.iter_markers()])
            for item in session.items
        ]
        sys.stderr.buffer.write(orjson.dumps(found))

words = ["--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
sys.exit(pytest.main(words, [Listing()]))
"""
SLOW_MODULE = "import pytest\n\npytestmark = pytest.mark.slow\n"
SLOW_AMONG_OTHERS = "pytestmark = [\n    pytest.mark.slow,\n    needs_data,\n]\n"
SLOW_TEST = "@pytest.mark.slow\ndef test_it() -> None: ...\n"
PROPERTY = "from hypothesis import given\n"
PLAIN = "def test_slow_readers_wait() -> None: ...\n"


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (SLOW_MODULE, True, False),
        (SLOW_AMONG_OTHERS, True, False),
        (SLOW_TEST, False, False),
        (PROPERTY, False, False),
        (PLAIN, False, True),
    ],
)
def test_modules_without_a_test_of_the_tier_are_left_out(
    text: str, first: bool, second: bool, tmp_path: Path
) -> None:
    module = tmp_path / "test_it.py"
    module.write_text(text)
    assert is_left_out(module, FIRST) is first
    assert is_left_out(module, SECOND) is second
    assert not is_left_out(module, "")
    assert not is_left_out(tmp_path / "folder", SECOND)


def test_a_fixture_that_marks_tests_slow_brings_its_modules_into_the_second_tier(
    tmp_path: Path,
) -> None:
    below = tmp_path / "annotation" / "web"
    below.mkdir(parents=True)
    for folder in (tmp_path, below):
        (folder / "test_it.py").write_text(PLAIN)
    kinds = 'KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]\n'
    (below.parent / "conftest.py").write_text(kinds)
    assert not is_left_out(below / "test_it.py", SECOND)
    assert is_left_out(tmp_path / "test_it.py", SECOND)


def test_both_tiers_are_what_make_and_ci_run() -> None:
    targets = (ROOT / "Makefile").read_text()
    assert f"-m '{FIRST}'" in targets
    assert f"-m '{SECOND}'" in targets
    assert "\ntest-all: test test-rest\n" in targets
    assert (ROOT / ".ci" / "run").read_text().endswith("\nmake test\nmake test-rest\n")


@pytest.mark.parametrize(("asked", "given_"), [(FEW_EXAMPLES + 1, FEW_EXAMPLES), (3, 3)])
def test_properties_have_few_examples_in_the_first_tier(asked: int, given_: int) -> None:
    seen = []

    @settings(max_examples=asked, database=None)
    @given(strategies.integers())
    def look(number: int) -> None:
        seen.append(number)

    limit_examples(look)
    look()
    assert len(seen) == given_


def list_modules() -> list[Path]:
    """Every module that holds a test or an example."""
    tests = (ROOT / "tests").rglob("test_*.py")
    examples = (
        path for path in (ROOT / "src").rglob("*.py") if "    >>> " in path.read_text("utf-8")
    )
    return sorted((*tests, *examples))


def test_no_folder_of_tests_has_a_name_that_pytest_passes_over(
    pytestconfig: pytest.Config,
) -> None:
    """By itself it passes over folders that are named build, dist or venv."""
    names = {part for path in list_modules() for part in path.relative_to(ROOT).parts[:-1]}
    patterns: list[str] = pytestconfig.getini("norecursedirs")
    assert [name for name in names for pattern in patterns if fnmatch(name, pattern)] == []


@pytest.mark.slow
def test_every_test_is_in_a_tier_and_none_is_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout.decode()[-2000:]
    found = orjson.loads(done.stderr[done.stderr.index(b"[[") :])
    first = {name for name, path, marks in found if "slow" not in marks}
    second = {name for name, path, marks in found if {"slow", "hypothesis"} & set(marks)}
    assert len(first | second) == len({name for name, *_ in found}) >= FEWEST
    assert len(first) >= FEWEST_OF_FIRST
    # `conftest.py` drops the examples of public functions; these tests run them.
    known = {path for _, path, _ in found} | {test.filename for _, test in find_examples()}
    assert [path for path in list_modules() if str(path) not in known] == []
    for name, path, _ in found:
        assert not (name in first and is_left_out(Path(path), FIRST)), name
        assert not (name in second and is_left_out(Path(path), SECOND)), name
