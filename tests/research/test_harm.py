"""The study of harm: blocks of ids are group-disjoint, and every claim has its cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memantics.moderation.examples import natural_key
from research.protocol import Row
from research.studies.harm import BLOCKS, STUDIES, measure, split_blocks
from tests.moderation.samples import make_examples

ROWS = [
    Row(e.id, e.text[:4], e, {"target": "gender" if e.type == "targeted" else "none"})
    for e in make_examples(200)
]


def test_blocks_are_contiguous_and_group_disjoint() -> None:
    rows = [replace(row, group="twins") if row.id in ("3", "199") else row for row in ROWS]
    blocks = split_blocks("toxicn_mm", rows)
    assert len(blocks) == BLOCKS
    assert sorted(row.id for block in blocks for row in block) == sorted(row.id for row in rows)
    places = {row.id: place for place, block in enumerate(blocks) for row in block}
    assert places["199"] == places["3"] == 0
    ordered = sorted((row.id for row in rows if row.id != "199"), key=natural_key)
    assert [places[own] for own in ordered] == sorted(places[own] for own in ordered)


@pytest.mark.slow
def test_every_claim_has_its_cases() -> None:
    claims = {claim.cases for claim in STUDIES[0].claims}
    found = measure("fast", "random", ROWS[:140], ROWS[140:])
    assert claims <= found.keys() | {"target region", "target other"}
    assert {case.gold for case in found["homophones"]} == {"harmful"}
    plain, hidden = found["not obfuscated"], found["homophones"]
    assert [case.id for case in plain] == [case.id for case in hidden]
    assert "homophones" not in measure("fast", "blocks", ROWS[:140], ROWS[140:])
