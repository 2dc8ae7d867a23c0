"""Table 1 for any file of chats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.construction.chats.quality import measure_file, read_chats, write_metrics
from memantics.core.errors import DataError
from tests.commands import Shell
from tests.places import SHARED_DATA, needs_shared_data
from tests.punmemecn.release import SAMPLE

SAID = [["早", "早，吃了吗", "吃了"], ["走", "不走"]]


class Lengths:
    """A flow and a fluency that can be reckoned by hand."""

    note = "BERTScore F1: by hand"

    def measure(self, texts: Sequence[object]) -> list[float | None]:
        return [float(len(own)) if isinstance(own, str) else 0.5 for own in texts]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("pun.json", {"chat_1": {"chat_history": [f"甲：{t}" for t in SAID[0]] + ["乙："]}}),
        ("duconv.txt", {"goal": [["a", "b", "c"]], "conversation": SAID[0]}),
        ("natural.json", [{"dialog_id": "x", "content": SAID[0]}]),
        ("ours.jsonl", {"meme": "m", "turns": [{"speaker": "A", "text": t} for t in SAID[0]]}),
        (
            "meta.json",
            {"CN.png": {"meme_chat": {"work": "甲：早\n乙：早，吃了吗\n甲：吃了\n乙：![x](y)"}}},
        ),
    ],
)
def test_shapes_of_chat_files(tmp_path: Path, name: str, body: object) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
    assert read_chats(path) == [SAID[0]]


def test_metrics_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"content": own} for own in SAID]), encoding="utf-8")
    found = measure_file(path, Lengths(), Lengths())  # type: ignore[arg-type]
    assert (found.chats, found.utterances) == (2, 5)
    assert found.perplexity == pytest.approx((1 + 5 + 2 + 1 + 2) / 5)
    assert found.coherence == 0.5
    assert found.distinct_1 is not None
    write_metrics(tmp_path / "out.json", [found])
    keys = json.loads((tmp_path / "out.json").read_text())
    assert keys.keys() == {
        *("chats.perplexity", "chats.bertscore", "chats.distinct_1", "chats.distinct_2")
    }
    write_metrics(tmp_path / "out.json", [found, replace(found, file="DuConv.txt")])
    keys = json.loads((tmp_path / "out.json").read_text())
    assert keys["chats.DuConv.perplexity"] == keys["chats.perplexity"]
    alone = measure_file(path, None, None)
    assert (alone.perplexity, alone.coherence) == (None, None)
    assert "chats.bertscore" not in {k for k, v in alone.metrics().items() if v is not None}


@pytest.mark.slow
def test_a_cosine_is_no_bertscore(tmp_path: Path, shell: Shell) -> None:
    easy = SAMPLE.root / "_Chat(easy).json"
    done = shell.run("build", "chat-quality", easy, "--out", tmp_path / "out.json")
    assert done.code == 0
    assert "coherence: cosine" in done.out
    assert "chats.bertscore" not in json.loads((tmp_path / "out.json").read_text())


def test_a_file_without_chats_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="contains no chats"):
        read_chats(path)


@needs_shared_data
def test_distinct_is_that_of_the_release() -> None:
    """1,579 of the 2,008 chats lie in the shared part."""
    found = measure_file(SHARED_DATA / "punmemecn" / "_Meta.json", None, None)
    assert (found.chats, found.distinct_1, found.distinct_2) == (1579, 0.0738, 0.424)
