"""Figures of stated probabilities and of repeats, and what a repeat asks, against hand counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.core.records import (
    Answer,
    Field,
    Form,
    Image,
    Item,
    Message,
    Odds,
    Option,
    Outcome,
    Reply,
    Request,
    Sampling,
    Score,
)
from memantics.core.rundir import RunWriter, Scores, read_scores, write_scores
from memantics.core.task import InvalidPolicy, Task, Unparsed
from memantics.evaluation.ask import choose, score_certainty, state_odds
from memantics.evaluation.facts import read_shots, repeat_facts, repeat_task, show_shots
from memantics.evaluation.scoring import group_repeats, note_repeats, score_repeats
from memantics.models.engine import CUT_OFF, bump_seed, read_reply
from tests.engine.toy import FACTS, draw_image

FORM = Form("?", (Field("answer", "choice", (Option("A", ""), Option("B", ""))),))


def parse(text: str, _form: Form) -> str:
    if text == "B":
        raise Unparsed("never B")
    return text.lower()


def ask(_item: Item, complaint: str | None) -> Request:
    system = Message("system", ("Be short.",))
    return Request((system, Message("user", (f"Why? {complaint}",))), FORM)


TASK = Task("toy/choice", lambda: iter(()), ask, parse, lambda _: (), "accuracy")


def outcome(name: str, value: str | None, gold: str = "a") -> Outcome:
    item = Item(name, name, gold, FORM)
    if value is None:
        return Outcome(item, "unparsed")
    return Outcome(item, "failed") if value == "!" else Outcome(item, "answered", value)


def test_the_gold_option_is_the_one_that_reads_as_the_gold_value() -> None:
    masses = {"A": 0.3, "B": 0.1}
    assert state_odds(masses, FORM, TASK, "b") is None
    odds = state_odds(masses, FORM, TASK, "a")
    assert odds is not None
    assert odds.gold == "A"
    assert odds.stated == pytest.approx({"A": 0.75, "B": 0.25})
    assert choose({"B": 0.0}, FORM) == "A"
    assert choose({"B": 0.1}, FORM) == "B"


def test_what_is_kept_above_each_threshold_and_at_each_coverage() -> None:
    sure = (0.5, 0.7, 0.9, 0.95)
    odds = [Odds({"A": p, "B": 1 - p}, "B" if p == 0.9 else "A") for p in sure]
    item = Item("1", "1", "a", FORM)
    outcomes = [Outcome(item, "answered", "a", odds=one) for one in odds]
    found = list(score_certainty([*outcomes, Outcome(item, "answered", "a")]))
    plain = {score.key: score for score in found if not score.by}
    assert {score.n for score in plain.values()} == {4}
    # (0.5 + 0.18 + 1.62 + 0.005) / 4
    assert plain["brier"].value == pytest.approx(0.57625)
    assert plain["calibration_error"].value is not None
    kept = [(s.label, s.value, s.n) for s in found if s.by == "abstaining below"]
    thirds = pytest.approx(2 / 3)
    assert kept == [("0.5", 0.75, 4), ("0.7", thirds, 3), ("0.9", 0.5, 2), ("0.95", 1.0, 1)]
    risks = [(s.label, s.value, s.n) for s in found if s.by == "coverage"]
    third, half = pytest.approx(1 / 3), 0.5
    assert risks == [
        ("10%", 0.0, 1),
        ("25%", 0.0, 1),
        ("50%", half, 2),
        ("75%", third, 3),
        ("90%", 0.25, 4),
        ("100%", 0.25, 4),
    ]
    assert sum(s.n for s in found if s.by == "confidence") == 4
    assert not list(score_certainty([Outcome(item, "answered", "a")]))


def test_nobody_is_above_a_threshold() -> None:
    item = Item("1", "1", "a", FORM)
    found = score_certainty([Outcome(item, "answered", "a", odds=Odds({"A": 0.6, "B": 0.4}, "A"))])
    kept = [(s.label, s.value, s.n) for s in found if s.by == "abstaining below"]
    assert kept == [("0.5", 1.0, 1), ("0.7", None, 0), ("0.9", None, 0), ("0.95", None, 0)]


def tell_repeats(
    runs: list[list[Outcome]], means: list[float | None], then: str = "wrong"
) -> dict[tuple[str, str], Score]:
    task = replace(TASK, invalid=InvalidPolicy(then=then))  # type: ignore[arg-type]
    named = [{one.item.id: one for one in run} for run in runs]
    found = list(score_repeats(task, "accuracy", named, means))
    assert {score.by for score in found} == {"repeats"}
    return {(score.key, score.label): score for score in found}


def test_repeats_say_mean_deviation_and_votes() -> None:
    first = [outcome("1", "a"), outcome("2", "b"), outcome("3", "a"), outcome("4", "a")]
    second = [outcome("1", "a"), outcome("2", "a"), outcome("3", None), outcome("4", "!")]
    third = [outcome("1", "b"), outcome("2", "b"), outcome("3", "a")]
    found = tell_repeats([first, second, third], [0.75, 0.5, 0.25])
    mean, deviation = found["accuracy", "mean of 3"], found["accuracy", "SD across repeats"]
    assert (mean.value, mean.n, deviation.n) == (0.5, 3, 3)
    assert deviation.value == pytest.approx(0.25)
    # Items 1 to 3: right 2, 1 and 2 times of 3. Item 4 failed once and is missing once.
    metrics = {label: (s.value or 0.0) for (key, label), s in found.items() if key == "right"}
    assert {score.n for (key, _), score in found.items() if key == "right"} == {3}
    assert metrics["pass@1"] == pytest.approx(5 / 9)
    assert metrics["pass@2"] == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert metrics["pass@3"] == 1.0
    assert "pass@4" not in metrics
    assert metrics["majority@3"] == pytest.approx(2 / 3)
    assert {"variance between items", "variance between repeats"} <= set(metrics)


def test_repeats_without_metrics_or_shared_answers_say_so() -> None:
    found = tell_repeats([[outcome("1", None)], [outcome("1", "a")]], [0.5, None], then="drop")
    assert {label: (s.value, s.n) for (_, label), s in found.items()} == {
        "mean of 2": (0.5, 1),
        "SD across repeats": (None, 1),
    }
    nothing = tell_repeats([[], []], [None, None])
    assert nothing["accuracy", "mean of 2"].value is None


def test_a_repeat_is_asked_with_another_seed_and_known_as_one() -> None:
    assert repeat_task(TASK, 0) is TASK
    item = Item("1", "1", "a", FORM)
    seeds = [repeat_task(TASK, n).ask(item, None).sampling.seed for n in (0, 1, 2)]
    assert seeds == [None, 1000, 2000]
    assert repeat_facts(FACTS, 0) is FACTS
    one, two = repeat_facts(FACTS, 1), repeat_facts(FACTS, 2)
    assert (one.repeat, one.repeat_of, two.repeat) == (1, FACTS.fingerprint, 2)
    assert len({FACTS.fingerprint, one.fingerprint, two.fingerprint}) == 3


def test_demonstrations_stand_before_the_last_question(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text('{"text": "One?", "answer": "A"}\n\n{"text": "Two?", "answer": "B"}\n')
    shots = read_shots(path)
    shown = show_shots(TASK, shots)
    messages = shown.ask(Item("1", "1", "a", FORM), "again").messages
    assert [(m.role, m.parts[0]) for m in messages] == [
        ("system", "Be short."),
        ("user", "One?"),
        ("assistant", "A"),
        ("user", "Two?"),
        ("assistant", "B"),
        ("user", "Why? again"),
    ]
    assert shown.prompts == {"shots": shots.hash}
    path.write_text('{"text": "One?A", "answer": ""}\n')
    assert read_shots(path).hash != shots.hash
    for text, words in (("\n \n", "has no few-shot examples"), ("\n{}", "2")):
        path.write_text(text)
        with pytest.raises(DataError, match=words):
            read_shots(path)


def write_repeat(folder: Path, number: int, replies: dict[str, str], metric: float) -> Path:
    """A run of the toy with its figure; the first is the plain run."""
    with RunWriter(folder, repeat_facts(FACTS, number)) as writer:
        for name, text in replies.items():
            writer.add_item(Item(name, name, "a", FORM), ())
            writer.add_answer(Answer(name, 0, "answered", Reply(text), text.lower()))
    scores = (Score("accuracy", 0.125, 1, by="kind", label="x"), Score("accuracy", metric, 2))
    write_scores(folder, Scores("accuracy", {"answered": len(replies)}, scores))
    return folder


def test_repeats_find_the_plain_run_and_one_another(tmp_path: Path) -> None:
    folders = [write_repeat(tmp_path / f"{n}", n, {"1": "A"}, 0.5) for n in (2, 0, 1)]
    lone = tmp_path / "other"
    with RunWriter(lone, replace(FACTS, fingerprint="other")):
        pass
    second, first, third = folders
    assert group_repeats([second, lone, first, third]) == [[first, third, second], [lone]]
    assert group_repeats([]) == []


def test_what_repeats_say_stands_in_the_first_and_is_not_written_twice(tmp_path: Path) -> None:
    folders = [
        write_repeat(tmp_path / "0", 0, {"1": "A", "2": "A"}, 1.0),
        write_repeat(tmp_path / "1", 1, {"1": "A", "2": "C"}, 0.5),
    ]
    for _ in range(2):
        note_repeats(folders, TASK)
        found = read_scores(folders[0]).scores
        told = {(score.key, score.label): score.value for score in found if score.by == "repeats"}
        assert told["accuracy", "mean of 2"] == 0.75, "of the main figure, not of its parts"
        assert told["right", "pass@1"] == 0.75
        assert len(told) == len([score for score in found if score.by == "repeats"]) == 7
        assert len(found) == 9
    assert len(read_scores(folders[1]).scores) == 2
    note_repeats(folders[:1], TASK)
    assert [score.by for score in read_scores(folders[0]).scores] == ["kind", ""]


def refuse(_text: str) -> int:
    raise Unparsed("no number")


def stumble(_text: str) -> int:
    raise Unparsed("")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("x"), "no number"),
        (Reply("x", finish="length"), "no number (the answer was cut at the token limit)"),
        (Reply(" ", finish="length", reasoning="because"), CUT_OFF),
        (Reply(" ", reasoning="because"), "no number"),
        (
            Reply("x", finish="length", reasoning="because"),
            "no number (the answer was cut at the token limit)",
        ),
        (Reply(" ", finish="length"), "no number (the answer was cut at the token limit)"),
    ],
)
def test_why_a_reply_has_no_value(reply: Reply, reason: str) -> None:
    assert read_reply(reply, refuse) == ("unparsed", None, reason)
    assert read_reply(Reply("7", finish="length"), int) == ("answered", 7, "")
    assert read_reply(Reply("x"), stumble) == ("unparsed", None, "no valid answer")
    failed = read_reply(Reply("x"), int)
    assert failed[:2] == ("unparsed", None)
    assert failed[2].startswith("the parser failed: ValueError: invalid literal")


def test_a_later_attempt_has_another_seed_where_there_is_one() -> None:
    plain = Request((), FORM)
    seeded = replace(plain, sampling=Sampling(seed=7))
    assert bump_seed(plain, 2) is plain
    assert bump_seed(seeded, 0) is seeded
    assert [bump_seed(seeded, n).sampling.seed for n in (1, 2)] == [8, 9]


def test_a_repeat_adds_to_the_seed_and_keeps_it_when_fed() -> None:
    def ask_seeded(item: Item, complaint: str | None) -> Request:
        return replace(ask(item, complaint), sampling=Sampling(seed=5))

    fed = replace(TASK, ask=ask_seeded)
    task = repeat_task(replace(TASK, feed=lambda _: fed), 2)
    item = Item("1", "1", "a", FORM)
    assert task.ask(item, None).sampling.seed == 2000
    assert task.feed is not None
    assert task.feed({}).ask(item, None).sampling.seed == 2005


def test_pictures_of_demonstrations_stand_beside_the_file_and_count(tmp_path: Path) -> None:
    draw_image(tmp_path)
    path = tmp_path / "shots.jsonl"
    line = '{"text": "One?", "answer": "A", "images": ["meme.png"]}\n'
    path.write_text(line)
    shots = read_shots(path)
    assert shots.messages[0].parts == (Image(tmp_path / "meme.png"), "One?")
    (tmp_path / "meme.png").write_bytes(b"another picture")
    other = read_shots(path)
    assert (len(shots.hash), other.hash == shots.hash) == (16, False)
    path.write_text('{"text": "One?", "answer": "A", "more": 1}\n')
    with pytest.raises(DataError, match="more"):
        read_shots(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_shots(tmp_path / "none.jsonl")
