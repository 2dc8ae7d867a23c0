"""The reader of PunMemeCN on the part of the official release that lies beside the checkout."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from typing import Any

import pytest

from memantics.benchmarks.punmemecn.load import PunRelease, open_release
from memantics.benchmarks.punmemecn.statistics import statistics, survey
from memantics.core.data import Source
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = needs_shared_data
FOLDER = SHARED_DATA / "punmemecn"


@pytest.fixture(scope="module")
def release() -> PunRelease:
    return open_release(Source("release", FOLDER))


@pytest.fixture(scope="module")
def meta() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / "_Meta.json").read_text(encoding="utf-8"))
    return data


@pytest.fixture(scope="module")
def numbers(release: PunRelease) -> dict[str, Any]:
    return dict(statistics(release))


def test_all_of_this_part_is_read(release: PunRelease, meta: dict[str, Any]) -> None:
    found = survey(release)
    assert found.records == len(meta) == 1500
    assert found.images_found == len(list((FOLDER / "images").glob("*.png"))) > 0
    for level in ("easy", "hard"):
        rows = json.loads((FOLDER / f"_Chat({level}).json").read_text(encoding="utf-8"))
        assert [chat.id for chat in release.chats(level)] == list(rows)
    assert not found.skips
    assert any("1,500 of the 1,959" in note for note in found.notes)


@pytest.mark.slow
def test_sentiments_and_agreement(numbers: dict[str, Any], meta: dict[str, Any]) -> None:
    puns = [row for row in meta.values() if row["meme_type"] == "pun"]
    targets = Counter(row["meme_sentiment"].split("-")[0] for row in puns)
    types = Counter(row["meme_sentiment"].split("-")[1] for row in puns)
    assert {name: numbers[f"sentiment.target.{name}"] for name in targets} == targets
    assert {name: numbers[f"sentiment.type.{name}"] for name in types} == types
    votes = [ast.literal_eval(row["meme_sentiment_annotations"]) for row in meta.values()]
    assert numbers["agreement.sentiment.all.count"] == sum(len(set(v.values())) == 1 for v in votes)
    hits = sum(
        vote == row["meme_sentiment"]
        for row in puns
        for vote in ast.literal_eval(row["meme_sentiment_annotations"]).values()
    )
    assert numbers["human.overall"] == round(100 * hits / (3 * len(puns)), 2)
    assert numbers["votes.majority.overruled"] == 0


def test_readings(numbers: dict[str, Any], meta: dict[str, Any]) -> None:
    puns = [row for row in meta.values() if row["meme_type"] == "pun"]
    changed = [row for row in puns if row["caption_1"] != row["caption_2"]]
    assert numbers["puns.homophone"] == len(changed)
    assert numbers["puns.polysemy"] == len(puns) - len(changed)
    parts = ("exact", "fuzzy", "length")
    assert sum(numbers[f"puns.homophone.{part}"] for part in parts) == len(changed)


def test_conversations(numbers: dict[str, Any], meta: dict[str, Any]) -> None:
    talks = [
        (topic, text)
        for row in meta.values()
        for topic, text in row.get("meme_chat", {}).items()
        if text
    ]
    assert numbers["chats.total"] == len(talks)
    lines = Counter(text.count("\n") + 1 for _, text in talks)
    assert {n: numbers[f"chats.turns.{n}"] for n in (4, 5, 6)} == lines
    topics = Counter(topic for topic, _ in talks)
    assert {name: numbers[f"chats.topic.{name}"] for name in topics} == topics
    tagged = re.compile(r"[甲乙]：!\[表情包\]\(CN\d{5}\.png\)")
    glued = [text for _, text in talks if not tagged.fullmatch(text.split("\n")[-1])]
    assert numbers["chats.slips.glued_tag"] == len(glued) == 2
    assert numbers["chats.slips.stray_stop"] == 1
    assert numbers["chats.per_pun.0"] == 3


@pytest.mark.slow
def test_distinct_words_of_the_chats(numbers: dict[str, Any], meta: dict[str, Any]) -> None:
    import jieba

    words: list[str] = []
    pairs: list[tuple[str, str]] = []
    for row in meta.values():
        for text in row.get("meme_chat", {}).values():
            for line in re.sub(r"!\[表情包\]\(.*?\)", "", text or "").split("\n"):
                cut = list(jieba.cut(re.sub(r"^[甲乙]：", "", line)))
                words += cut
                pairs += zip(cut, cut[1:], strict=False)  # noqa: RUF007
    assert numbers["chats.distinct_1"] == round(len(set(words)) / len(words), 4)
    assert numbers["chats.distinct_2"] == round(len(set(pairs)) / len(pairs), 4)


def test_distractors(release: PunRelease, numbers: dict[str, Any], meta: dict[str, Any]) -> None:
    hard = json.loads((FOLDER / "_Chat(hard).json").read_text(encoding="utf-8"))
    for chat in release.hard[:50]:
        options = hard[chat.id]["meme_response"]
        assert dict(chat.distractors) == {
            kind: options[f"wrong({kind})"].removesuffix(".png")
            for kind in ("text_sim", "image_sim", "sentiment_sim")
        }
        assert all(len(names) == 10 for names in chat.candidates.values())
        pick = meta[options["wrong(sentiment_sim)"]]["meme_sentiment"].split("-")[1]
        assert pick == meta[options["correct"]]["meme_sentiment"].split("-")[1]
    assert numbers["chats.hard.drawn_from_lists"] == numbers["chats.hard.same_type"] == len(hard)
    assert numbers["chats.hard.correct_in_list"] == numbers["chats.levels.different"] == 0
