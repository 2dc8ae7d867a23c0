"""``screen --policy``: a model cites a clause for flagged memes, or no clause is applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    write_annotations,
)
from memantics.core.samples import IMAGES
from memantics.moderation import record_reviews
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES, serve_scripted

pytestmark = pytest.mark.slow
TEXTS = ("look who brought a turnip", "the kale is back", "a lovely morning")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "posts.csv").write_text(
        "id,text\n" + "".join(f"p{n},{text}\n" for n, text in enumerate(TEXTS)), encoding="utf-8"
    )
    return Shell(tmp_path)


def screen(shell: Shell, *more: str) -> tuple[str, list[dict[str, str]]]:
    """Send every post to review; return the output, and the rows of decisions.jsonl."""
    policy = str(POLICIES / "forum.md")
    out = shell.done(
        "screen", "posts.csv", "--review-range", "0..1", "--policy", policy, "--out", "s", *more
    )
    lines = (shell.folder / "s" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    return out, [json.loads(line) for line in lines]


def test_with_a_model_flagged_memes_cite_a_clause(shell: Shell) -> None:
    with serve_scripted() as url:
        out, rows = screen(shell, "--model", "openai/obeys", "--base-url", url)
    found = {row["id"]: (row["verdict"], row["clause"]) for row in rows}
    assert found == {
        "p0": ("violates", "1"), "p1": ("violates", "2"), "p2": ("allowed", "none"),
    }  # fmt: skip
    assert "openai/obeys decided flagged memes by clause" in out
    assert "1: 1, 2: 1, none: 1" in " ".join(out.split())
    assert not any(text in json.dumps(rows) for text in TEXTS)
    # Reviewers do not see what the model decided; the log names it if they agree.
    _, items = read_queue(shell.folder / "s" / "review")
    assert all("obeys" not in str(item.shown) for item in items)
    made = []
    for item, (harmful, clause) in zip(
        items, [("yes", "1"), ("yes", "1"), ("no", "")], strict=True
    ):
        values: dict[str, JsonValue] = {"harmful": harmful, "clause": clause}
        vote = IndividualAnnotation(
            annotator="reviewer-1", stage="review", values=values, roles=["reviewer"]
        )
        made.append(
            AggregatedAnnotation(
                item=item.id, group=item.group, workflow="review-policy", kept=True,
                values=values, annotations=[vote], hidden=item.hidden,
            )
        )  # fmt: skip
    write_annotations(shell.folder / "a.jsonl", made)
    done = record_reviews(
        shell.folder / "a.jsonl", str(shell.folder / "log.db"), policy=POLICIES / "forum.md"
    )
    assert [one.model for one in done.decisions] == ["openai/obeys", "", "openai/obeys"]


def test_without_a_model_no_clause_is_applied(shell: Shell) -> None:
    out, rows = screen(shell)
    assert "no clause was applied" in out
    assert len(rows) == 3
    assert all("no clause was applied" in row["note"] for row in rows)
    assert {row["clause"] for row in rows} == {""}
    # A hidden gold item has the same parts as the others.
    screen(shell, "--gold", "0.4")
    _, items = read_queue(shell.folder / "s" / "review")
    gold = [item for item in items if "gold" in item.hidden]
    assert len(gold) == 2
    labels = {tuple(part.label for part in item.shown) for item in items}
    assert labels == {("text", "why")}
    assert "--policy" in shell.refused("screen", "posts.csv", "--model", "openai/x")


def test_a_decision_on_a_harmful_image_says_that_the_model_saw_only_the_text(
    tmp_path: Path,
) -> None:
    """Images are kept for review; a meme that the detector blocks has none."""
    (tmp_path / "meme.png").write_bytes((IMAGES / "CN90001.png").read_bytes())
    rows = (f"p{n},{text},meme.png\n" for n, text in enumerate(TEXTS[:2]))
    (tmp_path / "posts.csv").write_text("id,text,image\n" + "".join(rows), encoding="utf-8")
    shell = Shell(tmp_path)
    policy = ("--policy", str(POLICIES / "forum.md"), "--model", "openai/obeys")
    with serve_scripted() as url:
        words = ("screen", "posts.csv", *policy, "--base-url", url)
        out = shell.done(*words, "--threshold", "0", "--out", "s")
        shell.done(*words, "--review-range", "0..1", "--out", "r")
    found = {}
    for name in ("s", "r"):
        lines = (tmp_path / name / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
        found[name] = [json.loads(line) for line in lines]
    assert [one["verdict"] for one in (*found["s"], *found["r"])] == ["violates"] * 4
    assert all(one["note"].startswith("the model decided by the text alone") for one in found["s"])
    assert "2 of them: the model decided by the text alone" in " ".join(out.split())
    assert [one["note"] for one in found["r"]] == ["", ""]


def test_a_model_that_is_not_there_loses_no_verdict(shell: Shell) -> None:
    policy = ("--review-range", "0..1", "--policy", str(POLICIES / "forum.md"))
    words = ("screen", "posts.csv", *policy, "--out", "s", "--model", "openai/obeys")
    failed = shell.run(*words, "--base-url", "http://127.0.0.1:9/v1")
    assert failed.code == 2
    assert "cannot be reached" in failed.err
    with serve_scripted() as url:
        assert "1: 1, 2: 1, none: 1" in " ".join(shell.done(*words, "--base-url", url).split())
