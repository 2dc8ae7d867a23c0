"""The parts of PunMemeCN: ours, since the authors' own is not released."""

from __future__ import annotations

import pytest

import memantics as mm


@pytest.mark.parametrize("task", ["detection", "sentiment", "chat", "ocr", "pinyin", "harmful"])
def test_train_and_test_share_no_group_and_leave_nothing_out(task: str) -> None:
    parts = {
        split: mm.load_dataset("punmemecn", task=task, split=split, data="sample")
        for split in ("all", "train", "test")
    }
    ids = {split: {item.id for item in part} for split, part in parts.items()}
    assert ids["train"] | ids["test"] == ids["all"]
    assert ids["train"] & ids["test"] == set()
    groups = {split: {item.group for item in part} for split, part in parts.items()}
    assert groups["train"] & groups["test"] == set()
    assert groups["train"]
    assert groups["test"]


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(mm.UnknownName, match="known: all, test, train"):
        mm.load_dataset("punmemecn", split="dev", data="sample")
