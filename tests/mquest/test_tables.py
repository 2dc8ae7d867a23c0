"""Recorded answers with known outcomes give exactly the table that a plain count gives."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from memantics.benchmarks.factories import letter_field
from memantics.benchmarks.mquest.load import open_release
from memantics.benchmarks.mquest.plugin import parse_as_published
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_tasks
from memantics.core.data import Source
from memantics.core.records import Form, Item, Outcome, Score
from memantics.core.task import Unparsed
from memantics.models.cache import request_digest
from tests.commands import Shell
from tests.places import SHARED_DATA, needs_shared_data


def sample() -> tuple[list[Item], list[str]]:
    """The sample's items, and the hash of what each one sends."""
    [ref] = find_tasks(["mquest/qa"])
    task = ref.make({}, "ten", ref.benchmark.sample(), None)
    items = list(task.items())
    return items, [request_digest(task.ask(item, None)) for item in items]


def plan_reply(place: int, item: Item) -> tuple[str, bool | None]:
    """Every seventh reply is none, every third of the rest is wrong; None means invalid."""
    if place % 7 == 0:
        return "I cannot tell.", None
    letters = [option.key for option in item.form.fields[0].options]
    if place % 3 == 0:
        return f"Hm. Answer: {next(one for one in letters if one != item.gold)}", False
    return f"It is clear. Answer: {item.gold}", True


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def expect(items: list[Item], right: list[bool]) -> dict[tuple[str, str], tuple[float, int]]:
    """The table, counted the plain way."""
    by_meme: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    by_dimension: defaultdict[str, list[bool]] = defaultdict(list)
    for item, hit in zip(items, right, strict=True):
        toxic = item.tags["dimension"] == "Toxicity"
        by_meme[item.group].append((toxic, hit))
        by_dimension[item.tags["dimension"]].append(hit)
    rows = [row for group in by_meme.values() for row in group]
    groups = [
        all(hit for _, hit in group)
        for group in by_meme.values()
        if {toxic for toxic, _ in group} == {True, False}
    ]
    toxic_hits = [hit for toxic, hit in rows if toxic]
    other_hits = [hit for toxic, hit in rows if not toxic]
    macro = sum(map(share, by_dimension.values())) / len(by_dimension)
    table = {
        ("accuracy", ""): (share(right), len(right)),
        ("toxicity_accuracy", ""): (share(toxic_hits), len(toxic_hits)),
        ("reasoning_accuracy", ""): (share(other_hits), len(other_hits)),
        ("group_accuracy", ""): (share(groups), len(groups)),
        ("macro_accuracy", ""): (macro, len(by_dimension)),
    }
    parts = {("accuracy", name): (share(hits), len(hits)) for name, hits in by_dimension.items()}
    return table | parts


@pytest.mark.parametrize("policy", ["wrong", "drop"])
def test_recorded_answers_give_the_counted_table(shell: Shell, policy: str) -> None:
    items, digests = sample()
    replies = [plan_reply(place, item) for place, item in enumerate(items)]
    lines = [
        json.dumps({"prompt": digest, "text": text})
        for digest, (text, _) in zip(digests, replies, strict=True)
    ]
    (shell.folder / "answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran = shell.run(
        *("run", "mquest", "--data", "sample", "-m", "recorded/answers.jsonl"),
        *("--invalid", policy, "--json"),
    )
    assert ran.code == 0, ran
    [result] = json.loads(ran.out)
    invalid = sum(right is None for _, right in replies)
    counts = {"answered": len(items) - invalid, "refused": 0, "unparsed": invalid, "failed": 0}
    assert result["scores"]["counts"] == counts
    kept = [
        (item, bool(right))
        for item, (_, right) in zip(items, replies, strict=True)
        if right is not None or policy == "wrong"
    ]
    expected = expect([item for item, _ in kept], [right for _, right in kept])
    found = {(s["key"], s["label"]): (s["value"], s["n"]) for s in result["scores"]["scores"]}
    assert found.keys() == expected.keys()
    for key, (value, n) in expected.items():
        assert found[key] == (pytest.approx(value, abs=1e-12), n)
    assert rescore(shell, shell.folder / result["folder"]) == result["scores"]["scores"]


def rescore(shell: Shell, folder: Path) -> object:
    ran = shell.run("score", folder, "--json")
    assert ran.code == 0, ran
    return json.loads(ran.out)[0]["scores"]["scores"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("It is B. Sure.", "B"),
        ("I choose option C because", "C"),
        ("(D) it is", "D"),
        ("Answer: A because", "A"),
        ("So the answer is\nB  ", "B"),
        ("Answer B", "B"),
        ("The U.S. flag", "S"),
        ("Answer B because of the flag", None),
        ("answer b", None),
    ],
)
def test_parser_paper_takes_what_the_official_patterns_take(reply: str, letter: str | None) -> None:
    """Five patterns in turn; without a colon "Answer B" is one only where the reply ends."""
    if letter is None:
        with pytest.raises(Unparsed):
            parse_as_published(reply)
    else:
        assert parse_as_published(reply) == letter


def test_a_linked_pair_counts_not_all_of_a_memes_questions() -> None:
    """Of three reasons, one is linked to the toxicity question: the other two do not matter."""

    def outcome(name: str, dimension: str, right: bool, pair: str = "") -> Outcome:
        kind = "T" if dimension == "Toxicity" else "R"
        tags = {"dimension": dimension, "kind": kind} | ({"pair": pair} if pair else {})
        item = Item(name, name[:2], "A", Form("?", (letter_field(["a", "b"]),)), tags=tags)
        return Outcome(item, "answered", "A" if right else "B")

    rows = [
        outcome("m1-t", "Toxicity", True),
        outcome("m1-r", "Scene", True, "m1-t"),
        outcome("m1-s", "Emotion", False),
        outcome("m2-t", "Toxicity", True),
        outcome("m2-r", "Scene", False, "m2-t"),
        outcome("m3-t", "Toxicity", True),
        outcome("m3-r", "Scene", True),
    ]
    [ref] = find_tasks(["mquest/qa"])
    scores = ref.make({}, "ten", None, None).score(rows)
    [group] = [score for score in scores if score.key == "group_accuracy"]
    assert (group.value, group.n) == (0.5, 2)
    assert "linked" in group.note
    bare = [outcome(o.item.id, o.item.tags["dimension"], o.value == "A") for o in rows]
    [group] = [s for s in ref.make({}, "ten", None, None).score(bare) if s.key == "group_accuracy"]
    assert group.value == pytest.approx(1 / 3)
    assert group.n == 3


@needs_shared_data
def test_the_official_knowledge_says_which_questions_are_linked() -> None:
    """One of a meme's nine other questions, by the dimension of its toxic element."""
    [ref] = find_tasks(["mquest/qa"])
    images = SHARED_DATA / "mquest"
    release = open_release(Source("release", images))
    linked = release.toxic_dimensions
    assert 0 < len(linked) < len(release.refined)
    assert all(own and "Toxicity" not in own for own in linked.values() if own)
    task = ref.make({"images": "present"}, "ten", Source("release", images, SAMPLE_IMAGES), None)
    assert list(task.items()) == []  # this copy of the data has no images


def test_a_meme_with_several_reasoning_questions_needs_all_of_them() -> None:
    """Group accuracy as the spec defines it: all of a meme's questions, memes with both kinds."""

    def outcome(number: int, meme: str, dimension: str, right: bool) -> Outcome:
        kind = "T" if dimension == "Toxicity" else "R"
        form = Form("?", (letter_field(["a", "b"]),))
        item = Item(str(number), meme, "A", form, tags={"dimension": dimension, "kind": kind})
        return Outcome(item, "answered", "A" if right else "B")

    rows = [
        *(("both right", "Toxicity", True), ("both right", "Scene", True)),
        *(("one of three", "Toxicity", True), ("one of three", "Scene", True)),
        ("one of three", "Emotion", False),
        ("toxicity alone", "Toxicity", True),
        *(("reasons alone", "Scene", True), ("reasons alone", "Emotion", True)),
    ]
    [ref] = find_tasks(["mquest/qa"])
    task = ref.make({}, "ten", None, None)
    scores: tuple[Score, ...] = task.score([outcome(i, *row) for i, row in enumerate(rows)])
    [group] = [score for score in scores if score.key == "group_accuracy"]
    assert (group.value, group.n) == (0.5, 2)
