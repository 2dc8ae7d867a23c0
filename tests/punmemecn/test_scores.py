"""Known answers give known tables; every figure also agrees with somebody else's code."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score

from memantics.benchmarks.punmemecn.load import open_release
from memantics.benchmarks.punmemecn.matching import longest_run, recall
from memantics.benchmarks.punmemecn.statistics import statistics
from memantics.core.data import Source
from memantics.core.records import Form, Item, Outcome, Score, Status
from tests.places import SHARED_DATA, needs_shared_data
from tests.punmemecn.release import make_task

FORM = Form("?", ())


def table(scores: Sequence[Score], by: str = "") -> dict[str, tuple[Any, int]]:
    return {f"{s.key} {s.label}".strip(): (s.value, s.n) for s in scores if s.by == by}


def detected(puns: int, found: int, others: int, cleared: int) -> list[Outcome]:
    said = ["pun"] * found + ["non-pun"] * (puns - found)
    said += ["non-pun"] * cleared + ["pun"] * (others - cleared)
    roles = ["pun"] * puns + ["similar_image", "similar_text"] * (others // 2)
    return [
        Outcome(
            Item(
                str(i),
                str(i % puns),
                "pun" if role == "pun" else "non-pun",
                FORM,
                tags={"role": role},
            ),
            "answered",
            value,
        )
        for i, (role, value) in enumerate(zip(roles, said, strict=True))
    ]


@pytest.mark.parametrize(("found", "cleared"), [(652, 0), (600, 700), (0, 1304), (321, 1000)])
def test_f1_is_that_of_the_pun_class_at_one_to_two(found: int, cleared: int) -> None:
    outcomes = detected(652, found, 1304, cleared)
    rows = table(make_task("detection", None).score(outcomes))
    tpr, tnr = found / 652, cleared / 1304
    assert rows["tpr"] == (pytest.approx(tpr), 652)
    assert rows["tnr"] == (pytest.approx(tnr), 1304)
    assert rows["f1"] == (pytest.approx(2 * tpr / (tpr + 1 + 2 * (1 - tnr))), 1956)
    gold = [o.item.gold == "pun" for o in outcomes]
    said = [o.value == "pun" for o in outcomes]
    assert rows["f1"][0] == pytest.approx(f1_score(gold, said))
    assert rows["balanced_accuracy"][0] == pytest.approx(balanced_accuracy_score(gold, said))


def test_always_pun_has_an_f1_of_one_half() -> None:
    rows = table(make_task("detection", None).score(detected(652, 652, 1304, 0)))
    assert rows["f1"][0] == 0.5
    assert rows["balanced_accuracy"][0] == 0.5


def felt(meme: str, turn: int, final: str, votes: str, said: str | None) -> Outcome:
    target, _, type_ = final.partition("-")
    tags = {"target": target, "type": type_, "sentiment": final, "votes": votes}
    item = Item(f"{meme}@{turn}", meme, {"target": target, "type": type_}, FORM, tags=tags)
    if said is None:
        return Outcome(item, "unparsed")
    said_target, _, said_type = said.partition("-")
    return Outcome(item, "answered", {"target": said_target, "type": said_type})


SPLIT = "other-positive both-positive self-neutral"
FELT = [
    felt("m1", 1, "self-negative", "self-negative self-negative self-neutral", "self-negative"),
    felt("m2", 1, "other-positive", SPLIT, "other-neutral"),
    felt("m2", 2, "other-positive", SPLIT, None),
]


def test_sentiment_of_a_model() -> None:
    scores = make_task("sentiment", None).score(FELT)
    third = pytest.approx(1 / 3)
    assert table(scores) == {
        "accuracy": (third, 3),
        "target_accuracy": (pytest.approx(2 / 3), 3),
        "type_accuracy": (third, 3),
        "target_balanced": (0.75, 3),
        "type_balanced": (0.5, 3),
    }
    assert table(scores, "target")["target_accuracy other"] == (0.5, 2)
    assert table(scores, "target")["target_accuracy both"] == (None, 0)
    assert table(scores, "type")["type_accuracy negative"] == (1.0, 1)


def test_humans_on_the_same_items_each_against_the_others() -> None:
    rows = table(make_task("sentiment", None).score(FELT), "humans")
    assert rows == {
        "accuracy published": (0.5, 6),
        "target_accuracy published": (pytest.approx(4 / 6), 6),
        "type_accuracy published": (pytest.approx(4 / 6), 6),
        "accuracy same_items": (pytest.approx(4 / 9), 9),
        "target_accuracy same_items": (pytest.approx(5 / 9), 9),
        "type_accuracy same_items": (pytest.approx(6 / 9), 9),
        "accuracy leave_one_out": (0.0, 1),
        "target_accuracy leave_one_out": (1.0, 3),
        "type_accuracy leave_one_out": (0.0, 3),
        "accuracy model_leave_one_out": (1.0, 1),
        "target_accuracy model_leave_one_out": (1.0, 3),
        "type_accuracy model_leave_one_out": (pytest.approx(1 / 3), 3),
    }


@pytest.mark.slow
@needs_shared_data
def test_published_human_metrics_are_those_of_the_statistics() -> None:
    release = open_release(Source("release", SHARED_DATA / "punmemecn"))
    puns = [meme for meme in release.memes if meme.is_pun]
    outcomes = [
        felt(meme.id, turn, meme.sentiment, " ".join(meme.votes), None)
        for meme in puns
        for turn in (1, 2)
    ]
    rows = table(make_task("sentiment", None).score(outcomes), "humans")
    known = statistics(release)
    for key, name in (("accuracy", "overall"), ("target_accuracy", "target")):
        value, n = rows[f"{key} published"]
        assert n == 3 * len(puns)
        assert round(100 * value, 2) == known[f"human.{name}"]
        assert rows[f"{key} leave_one_out"][1] < 6 * len(puns)  # where two differ, none is right


def test_repetitions_do_not_narrow_an_interval() -> None:
    label = "self-negative"
    votes = " ".join([label] * 3)
    once = [felt(f"m{i}", 1, label, votes, label if i % 2 else "both-neutral") for i in range(40)]
    often = [
        felt(o.item.group, turn, label, votes, label if int(o.item.group[1:]) % 2 else "both-x")
        for o in once
        for turn in range(1, 11)
    ]
    score = make_task("sentiment", None).score
    narrow, wide = (
        next(s for s in score(outcomes) if s.key == "accuracy") for outcomes in (once, often)
    )
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low == pytest.approx(narrow.low, abs=0.01)


def test_balanced_metrics_agree_with_sklearn() -> None:
    chance = random.Random(3)
    labels = [f"{a}-{b}" for a in ("self", "both", "other") for b in ("positive", "negative")]
    rows = [(chance.choice(labels), chance.choice(labels)) for _ in range(300)]
    outcomes = [felt(str(i), 1, gold, gold, said) for i, (gold, said) in enumerate(rows)]
    found = table(make_task("sentiment", None).score(outcomes))
    for place, part in enumerate(("target", "type")):
        gold = [row[0].split("-")[place] for row in rows]
        said = [row[1].split("-")[place] for row in rows]
        assert found[f"{part}_balanced"][0] == pytest.approx(balanced_accuracy_score(gold, said))


def chosen(gold: str, said: str, topic: str, kinds: str) -> Outcome:
    tags = {"topic": topic, "kinds": kinds}
    return Outcome(Item(said + gold + topic, gold, gold, FORM, tags=tags), "answered", said)


def test_chat_by_topic_position_and_what_was_chosen() -> None:
    kinds = "text_sim correct image_sim sentiment_sim"
    outcomes = [
        chosen("B", "B", "work", kinds),
        chosen("B", "A", "work", kinds),
        chosen("B", "D", "daily", kinds),
        chosen("C", "C", "daily", "text_sim sentiment_sim correct image_sim"),
        Outcome(
            Item("e", "e", "C", FORM, tags={"topic": "daily", "kinds": kinds}), "unparsed", None
        ),
    ]
    scores = make_task("chat", None).score(outcomes)
    assert table(scores) == {"accuracy": (0.4, 5)}
    assert table(scores, "topic")["accuracy work"] == (0.5, 2)
    assert table(scores, "topic")["accuracy daily"] == (pytest.approx(1 / 3), 3)
    assert table(scores, "position")["accuracy B"] == (pytest.approx(1 / 3), 3)
    assert table(scores, "chosen") == {
        "proportion correct": (0.5, 4),
        "proportion image_sim": (0.0, 4),
        "proportion sentiment_sim": (0.25, 4),
        "proportion text_sim": (0.25, 4),
    }


def written(pairs: Sequence[tuple[str, str | None]]) -> Iterator[Outcome]:
    for number, (gold, said) in enumerate(pairs):
        item = Item(str(number), str(number), gold, FORM)
        yield Outcome(item, "unparsed" if said is None else "answered", said)


def test_captions_in_replies() -> None:
    pairs = [
        ("好巧，藕遇啊", "字幕：好巧 藕遇啊！"),
        ("好巧，藕遇啊", "好巧偶遇啊"),
        ("钟于下班了", "钟于下班了"),
        ("钟于下班了", None),
    ]
    rows = table(make_task("ocr", None).score(list(written(pairs))))
    assert rows["substring"] == (0.5, 4)
    assert rows["exact"] == (0.25, 4)
    assert rows["longest_run"] == (pytest.approx((1 + 0.4 + 1 + 0) / 4), 4)
    assert rows["characters"] == (pytest.approx((1 + 0.8 + 1 + 0) / 4), 4)


def test_pinyin_in_replies() -> None:
    pairs = [
        ("hǎo qiǎo", "hǎo qiǎo"),
        ("hǎo qiǎo", "hǎoqiǎo"),
        ("hǎo qiǎo", "hāo qiǎo"),
        ("hǎo qiǎo", "…"),
    ]
    rows = table(make_task("pinyin", None).score(list(written(pairs))))
    assert rows["substring"] == (0.5, 4)
    assert rows["toneless"] == (0.75, 4)
    assert rows["syllables"] == (pytest.approx((1 + 0 + 0.5) / 4), 4)
    assert rows["longest_run"] == (pytest.approx((1 + 1 + 5 / 7) / 4), 4)


@given(st.text("啊吧茶d", max_size=12), st.text("啊吧茶d", max_size=12))
def test_runs_agree_with_difflib(wanted: str, found: str) -> None:
    match = SequenceMatcher(None, wanted, found, autojunk=False).find_longest_match()
    assert longest_run(wanted, found) == match.size
    assert (recall(wanted, found) == 1.0) == all(
        found.count(char) >= wanted.count(char) for char in wanted
    )


def judged(kind: str, values: Sequence[Any]) -> list[Outcome]:
    rows = []
    for number, value in enumerate(values):
        item = Item(f"{kind}{number}", f"{kind}{number}", "harmful", FORM, tags={"kind": kind})
        status: Status = "answered" if value else "unparsed"
        if value == "declined":
            status = "refused"
        rows.append(Outcome(item, status, value if status == "answered" else None))
    return rows


def test_harm_behind_puns() -> None:
    outcomes = [
        *judged("pun", ["harmful", "harmless", "harmless", "refusal", None]),
        *judged("nonpun", ["harmful", "harmful", "declined", "harmless"]),
    ]
    counted = {s.key: s for s in make_task("harmful", None).score(outcomes)}
    assert (counted["recall_pun"].value, counted["recall_pun"].n) == (0.4, 5)
    assert counted["recall_nonpun"].value == 0.75
    assert counted["drop"].value == pytest.approx(0.35)
    assert counted["refusals"].value == pytest.approx(2 / 9)
    low, high = counted["drop"].low, counted["drop"].high
    assert low is not None
    assert high is not None
    assert -1 <= low < 0.35 < high <= 1
    strict = {s.key: s.value for s in make_task("harmful", None, refusal="invalid").score(outcomes)}
    assert strict["recall_pun"] == 0.2
    assert strict["recall_nonpun"] == 0.5


def test_the_drop_interval_narrows_with_the_data() -> None:
    def width(size: int) -> float:
        outcomes = [
            *judged("pun", ["harmful", "harmless"] * size),
            *judged("nonpun", ["harmful", "harmful", "harmful", "harmless"] * size),
        ]
        drop = next(s for s in make_task("harmful", None).score(outcomes) if s.key == "drop")
        assert drop.value == 0.25
        assert drop.low is not None
        assert drop.high is not None
        return drop.high - drop.low

    assert width(100) < 0.25
    assert width(100) < width(10) / 2


def test_one_kind_alone_has_no_drop() -> None:
    drop = make_task("harmful", None).score(judged("pun", ["harmful"] * 3))[2]
    assert (drop.key, drop.value, drop.low) == ("drop", None, None)
