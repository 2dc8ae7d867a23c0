"""Policy files: the strict parser, the hash of a version, findings and differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.errors import DataError, InputError
from memantics.core.policy import parse_policy, read_policy, write_policy
from memantics.moderation import check_policy, diff_policies, init_policy
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES

FORUM = (POLICIES / "forum.md").read_text(encoding="utf-8")


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), 1) if part in line)


def test_a_policy_reads_as_it_is_written(tmp_path: Path) -> None:
    made = init_policy(tmp_path / "policy.md", policy_id="mine")
    assert (made.id, made.version, made.languages) == ("mine", "1", ("en", "zh"))
    assert [clause.number for clause in made.clauses] == ["1", "2"]
    assert made.clauses[0].say_title("zh-CN") == "侮辱群体"
    assert made.clauses[0].say_title("fr") == "Insults of groups"
    assert made.clauses[0].list_categories("eu") == ("ILLEGAL_OR_HARMFUL_SPEECH",)
    again = parse_policy(write_policy(made), "again")
    assert again == made
    assert again.digest == made.digest
    assert check_policy(tmp_path / "policy.md").findings == ()
    with pytest.raises(InputError, match="already exists"):
        init_policy(tmp_path / "policy.md")


def test_the_hash_depends_on_the_content_alone() -> None:
    policy = parse_policy(FORUM, "x")
    other = FORUM.replace("\n", "\r\n").replace("\r\n\r\n### ", "\r\n\r\n\r\n### ")
    assert parse_policy(other, "x").digest == policy.digest
    for old, new in (("turnip, radish.", "turnip."), ("version: 1", "version: 2"), ("high", "low")):
        assert parse_policy(FORUM.replace(old, new, 1), "x").digest != policy.digest, old


@pytest.mark.parametrize(
    ("old", "new", "at", "said"),
    [
        ("severity: high", "severity: huge", "severity: huge", "severity"),
        ("severity: high\n", "", "## 1 Root", "has no severity"),
        ("openai:hate", "openai:hat", "openai:hat,", "'openai:hat' is not a known category"),
        ("## 2 Leaf", "## 1 Leaf", "## 1 Leaf", "not in ascending order"),
        ("## 2 Leaf", "## Leaf", "## Leaf", "not a clause heading"),
        ("### Allowed\n", "### Permitted\n", "### Permitted", "not a part of a clause"),
        ("- text: me when the kale", "- me when the kale", "- me when", "not an example"),
        ("- text: another sprout", "another sprout", "another sprout", "not a list entry"),
        ("title (zh): 叶菜类", "title (fr): x", "title (fr)", "no language 'fr'"),
        ("languages: en, zh", "languages: en, ENGLISH", "languages:", "language code"),
        ("deciders: reviewer, lead\n", "", "---", "no 'deciders'"),
        ("- *leaf vegetable*: kale", "- leaf vegetable: kale", "- leaf veg", "not a term"),
        ("id: forum", "id: forum\nid: again", "id: again", "occurs twice"),
        ("id: forum", "owner: me\nid: forum", "owner: me", "not a field of the front matter"),
    ],
)
def test_an_error_names_the_line(old: str, new: str, at: str, said: str) -> None:
    text = FORUM.replace(old, new, 1)
    assert text != FORUM
    with pytest.raises(DataError) as caught:
        parse_policy(text, "own.md")
    assert said in str(caught.value)
    if at != "---":
        assert f"own.md, line {line_of(text, at)}: " in str(caught.value)


@pytest.mark.slow
@given(st.integers(0, len(FORUM)), st.text(max_size=8), st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_a_damaged_policy_is_read_or_rejected(place: int, added: str, cut: int) -> None:
    try:
        read = parse_policy(FORUM[:place] + added + FORUM[place + cut :], "x")
    except DataError as error:
        said = str(error)
    else:
        assert parse_policy(write_policy(read), "y").digest == read.digest
        said = "x, line "
    assert "x, line " in said


def test_check_finds_planted_faults(tmp_path: Path) -> None:
    text = FORUM.replace(
        "- text: my boss and the old carrot again", "- text: my boss and the OLD turnip again"
    )
    text = text.replace(
        "- text: another sprout before the first coffee",
        "- text: look who brought a radish to the meeting",
    )
    text = text.replace("must not mention a *leaf vegetable*", "must not mention a *sad leaf*")
    text = text.replace("title (zh): 叶菜类\n", "")
    text += (
        "\n## 3 Fruit\nseverity: low\n\n### Rule\nNo *fruit*.\n\n### Rule (zh)\n不得提及水果。\n"
    )
    file = tmp_path / "p.md"
    file.write_text(text, encoding="utf-8")
    found = check_policy(file)
    kinds = [(one.kind, one.clause, one.line) for one in found.findings if one.serious]
    assert kinds == [
        ("contradiction", "1", line_of(text, "- text: my boss and the old turnip")),
        ("undefined_term", "2", line_of(text, "## 2 ")),
        (
            "overlap",
            "2",
            text.split("\n").index(
                "- text: look who brought a radish to the meeting",
                text.split("\n").index("## 2 Leaf vegetables"),
            )
            + 1,
        ),
        ("no_examples", "3", line_of(text, "## 3 ")),
        ("undefined_term", "3", line_of(text, "## 3 ")),
    ]
    assert [one.kind for one in found.findings if not one.serious] == [
        "untranslated",
        "untranslated",
    ]
    assert not found.sound
    assert check_policy(POLICIES / "forum.md").findings == ()


def test_a_difference_names_clauses_and_parts(tmp_path: Path) -> None:
    found = diff_policies(POLICIES / "forum.md", POLICIES / "forum-2.md")
    assert found.facts == ("version",)
    assert [(one.clause, one.kind) for one in found.clauses] == [("3", "added")]
    back = diff_policies(POLICIES / "forum-2.md", POLICIES / "forum.md")
    assert [(one.clause, one.kind) for one in back.clauses] == [("3", "removed")]
    changed = tmp_path / "c.md"
    changed.write_text(FORUM.replace("turnip, radish.", "turnip."), encoding="utf-8")
    (one,) = diff_policies(POLICIES / "forum.md", changed).clauses
    assert (one.clause, one.parts) == ("1", ("rule",))
    assert [line[:1] for line in one.lines] == ["-", "+"]
    assert diff_policies(changed, changed).equal


def test_commands(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "bad.md").write_text(FORUM.replace("severity: high", "severity: x"), "utf-8")
    assert "forum@1+" in shell.done("policy", "check", POLICIES / "forum.md")
    shown = json.loads(shell.done("policy", "show", POLICIES / "forum.md", "--json"))
    assert shown["digest"] == read_policy(POLICIES / "forum.md").digest
    assert "clause 3 added" in shell.done(
        "policy", "diff", POLICIES / "forum.md", POLICIES / "forum-2.md"
    )
    failed = shell.run("policy", "check", "bad.md")
    assert failed.code == 2
    assert "bad.md, line 16: " in failed.err
    assert "Traceback" not in failed.err
    start, end = FORUM.rindex("### Examples"), FORUM.rindex("### Counter-examples")
    (tmp_path / "gaps.md").write_text(FORUM[:start] + FORUM[end:], encoding="utf-8")
    assert shell.run("policy", "check", "gaps.md").code == 1
