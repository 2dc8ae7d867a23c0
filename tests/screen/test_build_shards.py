"""Analyses, knowledge and captions over shards: the same contract, resumed without asking twice."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.errors import InputError
from memantics.core.memes import read_captions
from memantics.moderation.scale.engines import ShardOrder
from memantics.moderation.scale.records import ShardPart, Work
from memantics.workbench.shards import ShardsBuilt, ShardSettings, build_shards
from tests.scale.inline import InlineEngine

MEMES = {"en-001": "well, this is awkward", "CN90001": "最近有点键忘", "en-005": "one more time"}
KNOWLEDGE = ShardSettings("knowledge", "fake/drafter")


class DyingEngine(InlineEngine):
    """Ends after its first shard, as a machine does that is switched off."""

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        yield from [next(super().run(orders, work, folder))]
        raise KeyboardInterrupt


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lines: list[dict[str, Any]] = [
        {"id": name, "image": f"{name}.png", "text": text} for name, text in MEMES.items()
    ]
    for name in MEMES:
        (tmp_path / f"{name}.png").write_bytes((SAMPLE_IMAGES / f"{name}.png").read_bytes())
    lines.insert(1, {"id": "broken", "image": "broken.png", "text": "x"})
    (tmp_path / "broken.png").write_bytes(b"no image")
    path = tmp_path / "list.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def run(source: Path, out: Path, settings: ShardSettings, **options: Any) -> ShardsBuilt:
    engine = options.get("engine") or InlineEngine()
    return build_shards(source, settings, out=out, engine=engine, shard_size=2)


def list_calls(out: Path) -> Counter[str]:
    return Counter(
        json.loads(line)["key"]
        for path in out.glob("calls/*/calls.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def test_knowledge_is_resumed_without_asking_twice(tmp_path: Path, source: Path) -> None:
    whole = run(source, tmp_path / "whole", KNOWLEDGE)
    assert whole.statuses == {"done": 3, "failed": 1}
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "cut", KNOWLEDGE, engine=DyingEngine())
    before = list_calls(tmp_path / "cut")
    done = run(source, tmp_path / "cut", KNOWLEDGE)
    assert (done.rows, done.done_now) == (4, 2)
    after = list_calls(tmp_path / "cut")
    assert before
    assert before < after
    assert set(after.values()) == {1}

    def names(built: ShardsBuilt) -> list[str]:
        return [json.loads(line)["meme"] for line in built.file.read_text().splitlines()]

    assert names(done) == names(whole) == list(MEMES)
    with pytest.raises(InputError, match="other settings: language"):
        run(source, tmp_path / "cut", ShardSettings("knowledge", "fake/drafter", "zh"))
    with pytest.raises(InputError, match="needs a model"):
        ShardSettings("knowledge")


def test_analyses_from_an_archive_without_a_model(tmp_path: Path) -> None:
    path = tmp_path / "memes.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(SAMPLE_IMAGES / "CN90001.png", "CN90001.png")
        text = tmp_path / "t.txt"
        text.write_text("no picture", encoding="utf-8")
        archive.add(text, "word.txt")
    done = run(path, tmp_path / "out", ShardSettings("analysis"))
    assert done.statuses == {"done": 1, "failed": 1}
    (line,) = done.file.read_text(encoding="utf-8").splitlines()
    found = json.loads(line)
    assert "最近有点键忘" in json.dumps(found, ensure_ascii=False)
    (image,) = (tmp_path / "out" / "images").iterdir()
    assert image.read_bytes() == (SAMPLE_IMAGES / "CN90001.png").read_bytes()


def test_captions_are_a_detectors_data(tmp_path: Path, source: Path) -> None:
    settings = ShardSettings("captions", "fake/drafter")
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", settings, engine=DyingEngine())
    done = run(source, tmp_path / "out", settings)
    assert (done.statuses, done.done_now) == ({"done": 3, "failed": 1}, 2)
    assert set(list_calls(tmp_path / "out").values()) == {1}
    assert list(read_captions(done.file)) == list(MEMES)
    lines = [json.loads(line) for line in done.file.read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == list(MEMES.values())
    assert all(line["text_caption"] and line["image_caption"] for line in lines)
    with pytest.raises(InputError, match="needs a model"):
        ShardSettings("captions")
