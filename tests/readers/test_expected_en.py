"""Tables of expected figures: complete, unique, and every recomputed figure is declared."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import memantics.benchmarks
from memantics.benchmarks.card import read_card
from memantics.benchmarks.published import compare, read_expected
from memantics.core.data import Source
from tests.readers.mquest_release import write_release
from tests.readers.test_memeintent import entry as intent_entry
from tests.readers.test_mer_bench import entry as mer_entry

FOLDER = Path(memantics.benchmarks.__file__).parent
NAMES = ("mquest", "mer_bench", "memeintent")


def make_release(name: str, root: Path) -> Path:
    if name == "mquest":
        return write_release(root)
    if name == "mer_bench":
        (root / "index_final.json").write_text(json.dumps([mer_entry()]))
    else:
        (root / "sigdial.json").write_text(json.dumps({"1": intent_entry()}))
    return root


def recompute(name: str, root: Path) -> Mapping[str, object]:
    load = importlib.import_module(f"memantics.benchmarks.{name}.load")
    numbers = importlib.import_module(f"memantics.benchmarks.{name}.statistics")
    found: Mapping[str, object] = numbers.statistics(load.open_release(Source("release", root)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_declared_and_every_known_one_recomputed(name: str, tmp_path: Path) -> None:
    rows = {row.key: row for row in read_expected(FOLDER / name / "expected" / "statistics.json")}
    values = recompute(name, make_release(name, tmp_path))
    assert values.keys() <= rows.keys()
    for key in rows.keys() - values.keys():
        assert rows[key].known is None, key
        assert "not recomputable" in rows[key].note, key


@pytest.mark.parametrize("name", NAMES)
def test_known_values_carry_the_verdict_they_should(name: str) -> None:
    rows = read_expected(FOLDER / name / "expected" / "statistics.json")
    assert len({row.key for row in rows}) == len(rows)
    known = {row.key: row.known for row in rows if row.known is not None}
    verdicts = {row.key: row.verdict for row in compare(rows, known)}
    for row in rows:
        if row.known is not None and row.paper is None:
            assert verdicts[row.key] == "reproduced", row.key


@pytest.mark.parametrize("name", NAMES)
def test_card(name: str) -> None:
    card = read_card(FOLDER / name / "card.toml")
    assert card.name == name
    assert card.release is not None
    assert card.warning
