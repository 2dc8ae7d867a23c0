"""Who may decide under a policy: decisions and outcomes of other roles are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.core.policy import NotADecider, find_role, read_policy
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.moderation import (
    Decision,
    appeal_decision,
    hash_content,
    measure_reviewers,
    record_decision,
    record_reviews,
    resolve_appeals,
)
from memantics.moderation.decisions.log import DecisionLog
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES

PATH = POLICIES / "forum.md"
FORUM = read_policy(PATH)
ONLY = f"policy {FORUM.name} lets only reviewer and lead decide, but reviewer"


def write_votes(path: Path, *people: tuple[str, list[str]], **hidden: str) -> None:
    """Two posts on which the same people agree, each with their roles."""
    rows = []
    for number in (1, 2):
        votes = [
            IndividualAnnotation(
                annotator=name, stage="review", values={"harmful": "no"}, roles=roles
            )
            for name, roles in people
        ]
        said = {"id": f"p{number}", "text": f"post {number}", **hidden}
        row = AggregatedAnnotation(
            item=f"{number}", group=f"{number}", workflow="review-policy", kept=True,
            values={"harmful": "no"}, annotations=votes, hidden={**said},
        )  # fmt: skip
        rows.append(row)
    write_annotations(path, rows[:1] if hidden else rows)


def list_bodies(url: str) -> list[dict[str, object]]:
    with DecisionLog(url) as log:
        return [dict(line.body) for line in log.walk()]


def test_the_first_decider_among_the_roles_counts() -> None:
    assert find_role(FORUM, ["lead", "annotator", "reviewer"], "x", "") == "reviewer"
    assert find_role(FORUM, ["lead"], "x", "") == "lead"
    with pytest.raises(NotADecider, match="has the role annotator, judge; ask"):
        find_role(FORUM, ["judge", "annotator"], "x", "ask")
    with pytest.raises(InputError, match="x has no role"):
        find_role(FORUM, [], "x", "")


@pytest.mark.parametrize(
    ("people", "flag", "refusal"),
    [
        ([("a", ["annotator", "reviewer"])], "", ""),
        ([("a", ["annotator"])], "", "a has the role annotator"),
        ([("a", [])], "", "a has no role"),
        ([("a", ["reviewer"]), ("b", ["annotator"])], "", "b has the role annotator"),
        ([("a", [])], "lead", ""),
        ([("a", ["annotator"])], "lead", ""),
        ([("a", ["reviewer"])], "trainee", "a has the role trainee"),
    ],
)
def test_record_refuses_other_roles(
    tmp_path: Path, people: list[tuple[str, list[str]]], flag: str, refusal: str
) -> None:
    shell = Shell(tmp_path)
    write_votes(tmp_path / "a.jsonl", *people)
    words = ["decisions", "record", "a.jsonl", "--db", "log.db", "--policy", str(PATH)]
    words += ["--role", flag] if flag else []
    if not refusal:
        assert "recorded: 2" in shell.done(*words)
        bodies = list_bodies(str(tmp_path / "log.db"))
        assert [one["role"] for one in bodies] == [flag or "reviewer"] * 2
        return
    line = shell.refused(*words)
    assert f"{ONLY} {refusal}" in line
    assert "name the role in which they decided with --role" in line
    assert list_bodies(str(tmp_path / "log.db")) == []


def test_without_a_policy_no_role_is_needed(tmp_path: Path) -> None:
    write_votes(tmp_path / "a.jsonl", ("a", []))
    assert len(record_reviews(tmp_path / "a.jsonl", str(tmp_path / "log.db")).decisions) == 2


def test_resolve_refuses_other_roles_before_it_records_anything(tmp_path: Path) -> None:
    url, shell = str(tmp_path / "log.db"), Shell(tmp_path)
    write_votes(tmp_path / "a.jsonl", ("a", ["lead"]))
    made = record_reviews(tmp_path / "a.jsonl", url, policy=PATH)
    name = made.decisions[0].id
    appeal_decision(name, url)
    write_votes(tmp_path / "b.jsonl", ("b", ["annotator"]), decision=name)
    words = ("decisions", "resolve", "b.jsonl", "--db", url, "--policy", PATH)
    assert f"{ONLY} b has the role annotator" in shell.refused(*words)
    assert len(list_bodies(url)) == 3
    with pytest.raises(NotADecider):
        resolve_appeals(tmp_path / "b.jsonl", url, policy=PATH, role="annotator")
    assert "upheld: 1" in shell.done(*words, "--role", "lead")
    assert list_bodies(url)[-1]["role"] == "lead"


def test_people_decide_on_what_was_decided_automatically(tmp_path: Path) -> None:
    """Only a repeated review is skipped, not one of a post that a model decided on."""
    url, shell = str(tmp_path / "log.db"), Shell(tmp_path)
    with DecisionLog(url) as log:
        automated = Decision(
            content_sha256=hash_content("post 1"), content_id="p1", verdict="undecided",
            band="review", policy=FORUM.name, policy_sha256=FORUM.digest, model="openai/x",
        )  # fmt: skip
        record_decision(log, automated)
    write_votes(tmp_path / "a.jsonl", ("a", ["reviewer"]))
    words = ("decisions", "record", "a.jsonl", "--db", url, "--policy", str(PATH))
    assert "recorded: 2; skipped: 0" in shell.done(*words)
    again = shell.done(*words)
    assert "recorded: 0; skipped: 2" in again
    assert "skipped memes have no clear answer, or were recorded before" in again
    assert [one["reviewer"] for one in list_bodies(url)] == ["", "a", "a"]


def test_an_unsure_reviewer_is_not_right_about_an_allowed_gold_item(tmp_path: Path) -> None:
    rows = [
        AggregatedAnnotation(
            item=answer, group=answer, workflow="review-policy", kept=True,
            values={"harmful": answer}, hidden={"gold": gold},
            annotations=[
                IndividualAnnotation(
                    annotator="a", stage="review", values={"harmful": answer, "clause": clause}
                )
            ],
        )
        for answer, clause, gold in (
            ("no", "", "none"), ("unsure", "", "none"), ("yes", "1", "1"), ("yes", "2", "1"),
        )
    ]  # fmt: skip
    write_annotations(tmp_path / "a.jsonl", rows)
    (found,) = measure_reviewers([tmp_path / "a.jsonl"])
    assert (found.items, found.right) == (4, 2)


def test_annotations_without_gold_items_measure_no_reviewer(tmp_path: Path) -> None:
    write_votes(tmp_path / "a.jsonl", ("a", ["reviewer"]))
    line = Shell(tmp_path).refused("decisions", "reviewers", "a.jsonl")
    assert "the annotations contain no test item whose correct policy clause is known" in line
    assert "--gold" in line


def test_resolve_refuses_a_clause_that_the_policy_does_not_have(tmp_path: Path) -> None:
    url, shell = str(tmp_path / "log.db"), Shell(tmp_path)
    write_votes(tmp_path / "a.jsonl", ("a", ["lead"]))
    name = record_reviews(tmp_path / "a.jsonl", url, policy=PATH).decisions[0].id
    appeal_decision(name, url)
    vote = IndividualAnnotation(
        annotator="b", stage="review", values={"harmful": "yes", "clause": "9"}, roles=["lead"]
    )
    row = AggregatedAnnotation(
        item="1", group="1", workflow="review-policy", kept=True, values=vote.values,
        annotations=[vote], hidden={"decision": name},
    )  # fmt: skip
    write_annotations(tmp_path / "b.jsonl", [row])
    words = ("decisions", "resolve", "b.jsonl", "--db", url, "--policy", PATH)
    assert f"'9' is not a clause of {FORUM.name}" in shell.refused(*words)
    assert len(list_bodies(url)) == 3
