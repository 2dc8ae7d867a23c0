"""The audit's ranking of likely label errors beside that of cleanlab, computed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.moderation.classifier import find_labelled
from memantics.moderation.held_out import number_labels
from research.audits import flip
from research.label_noise import FIRST, rank_all
from tests.audit.planted import make_memes, write_table

pytestmark = pytest.mark.slow


def test_the_audit_finds_as_many_wrong_labels_as_cleanlab(tmp_path: Path) -> None:
    """A tenth of 400 labels is flipped; both rank the same held-out probabilities."""
    table = write_table(make_memes(3, 400), tmp_path / "memes.csv")
    data = find_labelled(f"{table}/label")
    labels = number_labels(data)
    given = flip(labels, len(data.labels.classes), 0)
    ranked = rank_all(data, table, given)
    wrong = given != labels
    assert wrong.sum() == 40
    found = {name: int(wrong[order[:FIRST]].sum()) for name, order in ranked.items()}
    assert {len(order) for order in ranked.values()} == {400}
    assert found["audit"] >= found["cleanlab, same probabilities"] - 3, found
    assert found["audit"] >= 30, found
