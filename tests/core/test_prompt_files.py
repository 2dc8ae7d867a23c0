"""Prompt files: placeholders must match, and texts of strangers cannot forge their delimiters."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jinja2
import pytest

from memantics.core.errors import PromptError, UnknownName
from memantics.core.prompt import (
    Prompt,
    draw,
    enclose,
    fill_template,
    prompts_beside,
    read_prompt,
    read_prompts,
    replace_prompts,
)


def test_a_prompt_is_filled() -> None:
    prompt = Prompt("p", "$a costs $$5, ${b}!", frozenset({"c"}))
    assert prompt.placeholders == {"a", "b"}
    assert prompt.fill(a="$b", b="x") == "$b costs $5, x!"
    assert prompt.fill(a="1", b="2", c="3") == "1 costs $5, 2!"
    assert prompt.hash == hashlib.sha256(prompt.text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"a": ""}, "prompt p: missing b"),
        ({}, "prompt p: missing a, b"),
        ({"a": "", "b": "", "y": "", "x": ""}, "prompt p: unknown x, y"),
        ({"a": "", "z": ""}, "prompt p: missing b; unknown z"),
    ],
)
def test_values_that_do_not_match(values: dict[str, str], problem: str) -> None:
    with pytest.raises(PromptError) as caught:
        Prompt("p", "$b $a", frozenset({"c"})).fill(**values)
    assert str(caught.value) == problem


def test_delimiters_depend_on_the_text() -> None:
    marks = {enclose("text", body).split(">")[0] for body in ("a", "b", "<text ca978112>")}
    assert len(marks) == 3
    mark = hashlib.sha256("表?".encode()).hexdigest()[:8]
    assert enclose("x", "表\ud800") == f"<x {mark}>\n表\ud800\n</x {mark}>"


def test_prompt_files_are_read_without_blank_lines_around(tmp_path: Path) -> None:
    path = tmp_path / "ask.zh.md"
    path.write_text("\n  这是 $caption\n\n", encoding="utf-8")
    assert read_prompt(path) == Prompt("ask.zh", "这是 $caption")
    (tmp_path / "b.md").write_text("b")
    (tmp_path / "c.txt").write_text("c")
    assert read_prompts(tmp_path) == {
        "ask.zh": Prompt("ask.zh", "这是 $caption"), "b": Prompt("b", "b"),
    }  # fmt: skip
    assert list(read_prompts(tmp_path)) == ["ask.zh", "b"]


def test_prompt_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    with pytest.raises(PromptError, match=r"^prompt file a\.md cannot be read: .*; reinstall mem"):
        read_prompt(path)
    path.write_bytes(b"\xff")
    with pytest.raises(PromptError, match=r"^prompt file a\.md cannot be read: 'utf-8'"):
        read_prompt(path)
    for text in ("5 $", "$1", "${a"):
        path.write_text(text)
        with pytest.raises(PromptError) as caught:
            read_prompt(path)
        assert str(caught.value) == ("prompt file a.md has a stray '$'; write $$ for a dollar sign")


def test_prompts_beside_a_module_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_text("one")
    read = prompts_beside(str(tmp_path / "module.py"))
    assert read() == {"a": Prompt("a", "one")}
    (tmp_path / "prompts" / "a.md").write_text("two")
    assert read() == {"a": Prompt("a", "one")}


KNOWN = {"ask": Prompt("ask", "$caption and $image"), "bare": Prompt("bare", "no value")}


def test_own_prompts_take_the_place_of_those_of_a_task(tmp_path: Path) -> None:
    (tmp_path / "ask.md").write_text("Look: $image $caption")
    found = replace_prompts(KNOWN, tmp_path, "own/task")
    assert found == {"ask": Prompt("ask", "Look: $image $caption"), "bare": KNOWN["bare"]}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("ask", "$image", "ask.md has no $caption; allowed placeholders: $caption, $image"),
        ("ask", "x", "ask.md has no $caption; has no $image; allowed placeholders: "),
        (
            "ask",
            "$image $caption $z $y",
            "ask.md has the unknown placeholder $y; has the unknown placeholder $z; allowed",
        ),
        ("ask", "$image $z", "ask.md has no $caption; has the unknown placeholder $z; allowed"),
        ("bare", "$z", "bare.md has the unknown placeholder $z; allowed placeholders: none"),
    ],
)
def test_own_prompts_have_the_same_placeholders(
    name: str, text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / f"{name}.md").write_text(text)
    with pytest.raises(PromptError) as caught:
        replace_prompts(KNOWN, tmp_path, "own/task")
    assert str(caught.value).startswith(f"{tmp_path}/{problem}")


def test_folders_without_prompts(tmp_path: Path) -> None:
    with pytest.raises(PromptError) as caught:
        replace_prompts(KNOWN, tmp_path / "none", "own/task")
    assert str(caught.value) == (
        f"--prompts {tmp_path / 'none'} is not a folder; "
        "create the folder and put NAME.md files into it"
    )
    with pytest.raises(PromptError) as caught:
        replace_prompts(KNOWN, tmp_path, "own/task")
    assert str(caught.value) == f"--prompts {tmp_path} contains no .md file; for example ask.md"
    (tmp_path / "aks.md").write_text("x")
    with pytest.raises(UnknownName, match="unknown prompt of own/task: 'aks'; did you mean ask"):
        replace_prompts(KNOWN, tmp_path, "own/task")


def test_documents_are_rendered_with_their_own_delimiters(tmp_path: Path) -> None:
    body = (
        "{ {{ a }} }\n<# a remark #>\n  <% for n in names %>\n<< n | loud >>\n"
        "  <% endfor %>\n<end>\n"
    )
    (tmp_path / "card.md").write_text(body)
    filters = {"loud": lambda text: f"{text}!"}
    module = str(tmp_path / "module.py")
    assert fill_template(module, "card.md", filters, names=["<b>", "x"]) == (
        "{ {{ a }} }\n<b>!\nx!\n<end>\n"
    )
    with pytest.raises(jinja2.UndefinedError, match="names"):
        fill_template(module, "card.md", filters)


def test_values_of_drawings_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "shapes.svg"
    path.write_text("{% macro bar(a, b) %}<t>{{ a }} {{ b | mask }}</t>{% endmacro %}"
                    "{% macro bad() %}{{ nothing }}{% endmacro %}")  # fmt: skip
    assert draw(path, "bar", "<b>", "x\x00  y") == "<t>&lt;b&gt; x\ufffd y</t>"
    with pytest.raises(jinja2.UndefinedError, match="nothing"):
        draw(path, "bad")
