"""The parts of the official releases: known flaws must be found, with their numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.commands import Shell
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = [pytest.mark.slow, needs_shared_data]


def audit(shell: Shell, name: str, *words: str) -> dict[str, Any]:
    assert shell.run("data", "add", name.partition("/")[0], SHARED_DATA / name.partition("/")[0])
    ran = shell.run("audit", name, *words, "--json")
    assert ran.code == 0, ran.err
    return {own["key"]: own for own in json.loads(ran.out)["findings"]}


def value(own: dict[str, Any]) -> float:
    return round(float(own["score"]["value"]), 3)


def test_mquest(shell: Shell) -> None:
    found = audit(shell, "mquest")
    dead = found["options.never_correct"]
    assert dead["verdict"] == "broken"
    assert (value(dead), dead["score"]["n"]) == (0.0, 2039)
    assert "none of the others" in dead["title"]
    length = found["options.length"]
    assert (length["verdict"], value(length)) == ("broken", 0.471)
    bare = found["mquest.ungrounded"]
    assert (bare["verdict"], value(bare), bare["score"]["n"]) == ("broken", 0.763, 2652)
    names = found["mquest.class_names"]
    assert (names["verdict"], value(names)) == ("broken", 0.294)
    assert {row["label"]: row["value"] for row in names["rows"]}["grounded"] == 0.0
    assert found["options.position"]["verdict"] == "sound"
    # Checked against logistic regression on TF-IDF of the options alone: 0.766.
    assert value(found["shortcut.options_only"]) == pytest.approx(0.766, abs=0.02)
    assert found["makers.published"]["verdict"] == "worth knowing"
    assert found["tables.feasible"]["verdict"] == "broken"


def test_memeintent(shell: Shell) -> None:
    found = audit(shell, "memeintent/intent")
    kept, stripped = found["shortcut.majority"], found["shortcut.majority_stripped"]
    assert (kept["verdict"], value(kept)) == ("broken", 0.373)
    assert kept["score"]["low"] > kept["expected"] == 0.287
    assert value(stripped) == 0.236
    assert found["memeintent.background"]["score"]["value"] == pytest.approx(69 / 500)


def test_punmemecn(shell: Shell) -> None:
    found = audit(shell, "punmemecn/detection")
    always = found["shortcut.positive"]
    assert (always["verdict"], value(always), always["score"]["n"]) == ("broken", 0.5, 1500)
    assert {row["label"]: row["value"] for row in always["rows"]}["balanced accuracy"] == 0.5
    assert "published values are not above it" in always["meaning"]
    assert found["punmemecn.captions"]["verdict"] == "worth knowing"


def test_toxicn_mm(shell: Shell) -> None:
    found = audit(shell, "toxicn_mm/detection")
    numbers = found["toxicn_mm.numbers"]
    assert numbers["verdict"] == "broken"
    assert 0.74 < value(numbers) < 0.77
    assert "from 0.08 to 0.86" in numbers["meaning"]
    assert len(found["tables.feasible"]["details"]) == 3


def test_mer_bench(shell: Shell) -> None:
    found = audit(shell, "mer_bench")
    assert value(found["mer_bench.emotions"]) == 0.053
    assert found["mer_bench.layouts"]["verdict"] == "worth knowing"


@pytest.mark.parametrize(
    ("name", "split", "size"),
    [
        ("mquest", "toxmquest350", 54),
        ("memeintent/intent", "dev", 63),
        ("punmemecn/ocr", "test", 321),
    ],
)
def test_a_split_cuts_every_finding_down(shell: Shell, name: str, split: str, size: int) -> None:
    """What rests on printed tables, and what compares splits, is about no split."""
    found = audit(shell, name, "--split", split)
    whole = {"tables.feasible", "makers.published", "leak.split"}
    counts = {key: own["score"]["n"] for key, own in found.items() if key not in whole}
    assert counts
    assert max(counts.values()) == size, counts
