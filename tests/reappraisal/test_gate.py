"""Only memes that people judged clearly negative are turned around."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.core.memes import Meme
from memantics.core.queue import AggregatedAnnotation, write_annotations
from memantics.understanding.reappraisal.rules import pass_gate

MEMES = [Meme(name, Path(f"{name}.png")) for name in ("a", "b", "c", "d", "e")]


def annotation(
    meme: str, *, kept: bool = True, reason: str = "", **values: str
) -> AggregatedAnnotation:
    return AggregatedAnnotation(
        item=meme,
        group=meme,
        workflow="find-emotions",
        kept=kept,
        values=dict(values),
        reason=reason,
    )


def test_clear_cases_pass_and_others_say_why_not(tmp_path: Path) -> None:
    path = tmp_path / "annotations.jsonl"
    write_annotations(
        path,
        [
            annotation("a", negative="yes", source_emotion="angry"),
            annotation("b", negative="unclear"),
            annotation("c", negative="no"),
            annotation("d", kept=False, reason="broken image"),
        ],
    )
    gate = pass_gate(MEMES, path)
    assert [meme.id for meme in gate.memes] == ["a"]
    assert gate.emotions == {"a": "angry"}
    assert gate.skipped == {
        "b": "not clearly negative: unclear",
        "c": "not clearly negative: no",
        "d": "broken image",
        "e": "not annotated",
    }


def test_without_verdicts_all_pass_and_without_clear_cases_none(tmp_path: Path) -> None:
    assert pass_gate(MEMES, None).memes == tuple(MEMES)
    path = tmp_path / "annotations.jsonl"
    write_annotations(path, [annotation("a", negative="yes")])
    with pytest.raises(DataError, match="no meme of the folder is annotated as clearly negative"):
        pass_gate(MEMES, path)
