"""``docs/explanation/security.md`` promises what tests hold, and every attack stands on it."""

from __future__ import annotations

import re
from pathlib import Path

from perf.hostile import CASES

from tests.hostile.cases import CORPUS, read_corpus
from tests.places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
HERE = Path(__file__).parent


def test_every_promise_is_held_by_tests_that_exist() -> None:
    promises = [line for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(promises) >= 10
    for promise in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)`", promise.rpartition(" | ")[2])
        assert named, promise
        assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_attack_stands_on_the_page() -> None:
    attacks = {path.name for path in HERE.glob("test_*.py")} - {"test_page.py"}
    assert {name for name in attacks if f"tests/hostile/{name}" not in PAGE} == set()


def test_fresh_seeds_reach_every_generator() -> None:
    """Images and queries were left out of ``make hostile`` once."""
    seeded = {
        path.name
        for path in HERE.glob("test_*.py")
        if re.search(r"generate\(SEED", path.read_text(encoding="utf-8"))
    }
    assert {"test_images.py", "test_queries.py"} <= seeded <= set(CASES)


def test_every_corpus_can_be_read() -> None:
    kinds = sorted(path.stem for path in CORPUS.glob("*.jsonl"))
    assert kinds == ["backups", "cachedrows", "detectors", "headers", "names", "sources"]
    assert all(read_corpus(kind) for kind in kinds)
