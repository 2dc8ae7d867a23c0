"""``policy test`` with two scripted models: one obeys the policy, one ignores it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.core.policy import read_policy
from memantics.core.task import Unparsed
from memantics.metrics.calibration import conditional_entropy
from memantics.models.client import CallSettings
from memantics.moderation import PolicyTest, PolicyTestSettings, measure_policy
from memantics.moderation.policies.asking import (
    PolicyMeme,
    invert_clause,
    make_decision_step,
    read_decision,
    remove_clause,
)
from memantics.moderation.policies.scores import measure_people
from memantics.moderation.policies.testing import read_policy_memes
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES, serve_scripted

pytestmark = pytest.mark.slow
FORUM = read_policy(POLICIES / "forum.md")
MODELS = ("openai/obeys", "openai/ignores")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> PolicyTest:
    with serve_scripted() as url:
        return measure_policy(
            POLICIES / "forum.md",
            MODELS,
            data=POLICIES / "gold.csv",
            against=POLICIES / "forum-2.md",
            settings=PolicyTestSettings(samples=4, flips=True),
            calls=CallSettings(base_url=url, prices=(1.0, 2.0), use_cache=False),
            folder=tmp_path_factory.mktemp("calls"),
        )


def test_agreement_confusion_and_cost(found: PolicyTest) -> None:
    obeys, obeys_new, ignores, _ = found.runs
    assert obeys.statuses == {"answered": 20}
    scores = {(one.key, one.label): one for one in obeys.agreement}
    assert scores["clause_agreement", ""].value == 1.0
    assert scores["clause_agreement", "1"].n == 6
    assert obeys.confusion == (("1", "1", 6), ("2", "2", 6), ("none", "none", 8))
    assert obeys_new.confusion == (
        ("1", "1", 6), ("2", "2", 6), ("none", "3", 2), ("none", "none", 6),
    )  # fmt: skip
    assert ("2", "none", 2) in ignores.confusion
    low, high = scores["clause_agreement", ""].interval or (0, 0)
    assert (round(low, 4), high) == (0.8389, 1.0)
    assert obeys.cost == pytest.approx((obeys.tokens_in + 2 * obeys.tokens_out) / 1e6)
    assert obeys.tokens_in > 0


def test_pairs_are_compared_on_the_same_memes(found: PolicyTest) -> None:
    rows = {(one.kind, one.measure, one.first): one for one in found.comparisons}
    assert len(found.comparisons) == 8
    policies = rows["policy", "clause", found.runs[0].name]
    assert (policies.n, policies.difference) == (20, -0.1)
    models = rows["model", "verdict", found.runs[0].name]
    assert models.difference == -0.2
    assert models.low < -0.2 < models.high


def test_the_explanation_of_the_model_that_ignores_it_does_not_decide(found: PolicyTest) -> None:
    obeys, _, ignores, _ = found.runs
    assert obeys.entropy is not None
    assert ignores.entropy is not None
    assert obeys.entropy.value == 0.0
    assert (ignores.entropy.value or 0) > 0.7
    assert (ignores.entropy.low or 0) > 0.5


def test_inverting_a_clause_flips_its_pairs_and_no_others(found: PolicyTest) -> None:
    obeys, _, ignores, _ = found.runs
    assert {(one.clause, one.change) for one in obeys.flips} == {
        (number, change) for number in "12" for change in ("inverted", "removed")
    }
    for one in obeys.flips:
        assert (one.own, one.flipped) == (6, 6)
        assert (one.others, one.others_flipped) == (14, 0)
    inverted = [one for one in ignores.flips if one.change == "inverted"]
    assert [(one.flipped, one.others_flipped) for one in inverted] == [(0, 0)] * 2
    assert inverted[0].score.value == 0.0


def test_the_page_shows_every_part(found: PolicyTest, tmp_path: Path) -> None:
    page = found.save(tmp_path / "test.html").read_text(encoding="utf-8")
    for part in ("Agreement by clause", "Confusion between", "Flipped decisions", "Paired comp"):
        assert part in page
    assert "20 memes" in page
    assert "look who forgot the gherkin" in page
    chinese = found.save(tmp_path / "zh.html", "zh").read_text(encoding="utf-8")
    for part in ("各条款的一致率", "条款之间的混淆", "改变的决定", "配对比较", "反转"):
        assert part in chinese
    body = chinese.partition("<body")[2]
    for word in ("agreement", "refused", ">none<", "inverted", "Skip"):
        assert word not in body


def test_replies_are_answered_refused_unparsed_or_failed(tmp_path: Path) -> None:
    """A recorded model: an answer, a refusal, a clause that does not exist, and no reply at all."""
    shell = Shell(tmp_path)
    (tmp_path / "memes.csv").write_text("id,text,clause\na,a turnip,1\nb,b,1\nc,c,2\nd,d,none\n")
    memes, _ = read_policy_memes(tmp_path / "memes.csv", FORUM)
    said = [
        {
            "text": json.dumps(
                {"verdict": "violates", "clause": "1", "explanation": "It says turnip."}
            )
        },
        {"text": "", "refusal": "I can't help with that."},
        {"text": json.dumps({"verdict": "violates", "clause": "9", "explanation": "x"})},
    ]
    lines = []
    from memantics.models.cache import request_digest

    for meme, reply in zip(memes, said, strict=False):
        request = make_decision_step(FORUM, meme, attempts=1).request
        lines.append(json.dumps({"prompt": request_digest(request), "reply": reply}))
    (tmp_path / "replies.jsonl").write_text("\n".join(lines) + "\n")
    run = shell.run(
        "policy", "test", POLICIES / "forum.md", "--data", "memes.csv",
        "--model", "recorded/replies.jsonl", "--attempts", "1", "--json",
    )  # fmt: skip
    assert run.code == 1, run.err
    (only,) = json.loads(run.out)["runs"]
    assert only["statuses"] == {"answered": 1, "refused": 1, "unparsed": 1, "failed": 1}
    first = only["agreement"][0]
    assert (first["value"], first["n"]) == (pytest.approx(1 / 3), 3)


def test_the_table_has_what_was_measured(found: PolicyTest) -> None:
    table = found.table()
    assert table.columns[-2:] == (">entropy", ">cost")
    assert [row[1] for row in table.rows] == ["forum@1", "forum@2", "forum@1", "forum@2"]
    assert "answered/refused/unparsed/failed" in table.title
    bare = replace(found, runs=tuple(replace(one, entropy=None, cost=None) for one in found.runs))
    assert bare.table().columns == ("model", "policy", ">statuses", ">verdict", ">clause")


def test_data_without_gold_clauses_are_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "memes.csv").write_text("id,text,rule\na,a turnip,1\n")
    with serve_scripted() as url:
        words = ("policy", "test", POLICIES / "forum.md", "--data", "memes.csv")
        told = shell.done(*words, "--model", "openai/obeys", "--base-url", url)
    assert "no meme has a gold clause: add a column clause" in " ".join(told.split())


def test_decisions_are_parsed_strictly() -> None:
    made = read_decision('{"verdict": "violates", "clause": "2", "explanation": "leek"}', FORUM)
    assert (made.verdict, made.clause) == ("violates", "2")
    for reply in (
        '{"verdict": "allowed", "clause": "2"}',
        '{"verdict": "violates", "clause": "none"}',
        '{"verdict": "violates", "clause": "7"}',
        '{"verdict": "maybe", "clause": "none"}',
        "It breaks clause 2.",
    ):
        with pytest.raises(Unparsed):
            read_decision(reply, FORUM)


def test_changed_policies_and_hidden_examples() -> None:
    inverted = invert_clause(FORUM, "1")
    assert inverted.clauses[1] == FORUM.clauses[1]
    assert inverted.clauses[0].examples == FORUM.clauses[0].counter_examples
    assert [one.number for one in remove_clause(FORUM, "1").clauses] == ["2"]
    example = FORUM.clauses[0].examples[0].value
    step = make_decision_step(FORUM, PolicyMeme("m", example))
    prompt = str(step.request.messages[0].parts[0])
    assert prompt.count(example) == 1
    assert FORUM.clauses[0].examples[1].value in prompt


def test_data_are_read_strictly(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    for rows, said in (
        ("id,text,clause\na,x,7\n", "'7' is not a clause of forum"),
        ("id,text,clause\na,x,1\na,y,1\n", "occurs twice"),
        ("id,text,clause\na,,1\n", "no text and no image"),
        ("id,words\na,b\n", r"no column with texts or images; its columns are id, words; rename"),
    ):
        table.write_text(rows)
        with pytest.raises(DataError, match=said):
            read_policy_memes(table, FORUM)


def test_a_foreign_table_is_read_as_it_is(tmp_path: Path) -> None:
    """JSON lines named .json, with the columns of Hateful Memes, and without the images."""
    rows = [{"id": n, "img": f"img/{n}.png", "label": 0, "text": f"a turnip {n}"} for n in (7, 8)]
    (tmp_path / "train.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    memes, _ = read_policy_memes(tmp_path / "train.json", FORUM)
    assert [(one.id, one.text) for one in memes] == [("7", "a turnip 7"), ("8", "a turnip 8")]
    assert memes[0].image == tmp_path / "img" / "7.png"
    shell = Shell(tmp_path)
    with serve_scripted() as url:
        told = shell.done(
            "policy", "test", POLICIES / "forum.md", "--data", "train.json", "--model",
            "openai/obeys", "--base-url", url, "--out", "t.html",
        )  # fmt: skip
    assert "2 memes were decided by their text alone" in " ".join(told.split())
    assert "the image file is missing: 2." in (tmp_path / "t.html").read_text(encoding="utf-8")


def test_entropy_and_people() -> None:
    assert conditional_entropy([["1", "2", "none", "1"]]) == 1.5
    people = measure_people({"a": ["1", "1"], "b": ["2", "none"], "c": ["1"]})
    assert people is not None
    assert (people.memes, people.by_clause) == (2, {"1": 1.0, "2": 0.0, "none": 0.0})
