"""Texts are spelled correctly and use the terms of ``docs/glossary.md``, not the replaced ones."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.places import ROOT
from tests.sources import parse_module

GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = ROOT / "src" / "memantics"
PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "src/memantics", "perf")
# The glossary and the changelog name replaced terms; readability.md quotes texts from before.
QUOTING = {"docs/glossary.md", "CHANGELOG.md", "docs/research/readability.md"}
# Folders whose texts are data or prompts: their words are not ours to change.
DATA_FOLDERS = {"prompts", "sample", "sample_data", "expected", "fonts", "dimensions"}
# Terms that need another pattern than the term as whole words, singular or plural.
PATTERNS = {
    "because": r"(?<=[`'\"])because(?=[`'\"])|\Abecause\Z",
    "disguise": r"disguis(?:e|es|ed|ing)",
    "family": r"template famil(?:y|ies)",
    "hole": r"named holes?|holes? of (?:a|the) prompt",
    "mend": r"mend(?:s|ed|ing)?",
    "plate": r"plain plates?|stands? on (?:a |plain )?plates?",
    "set aside": r"sets? aside|setting aside",
    "tempt": r"tempt(?:s|ed|ing)?(?: options?)?",
    "配文": "配文(?!字)",
}
# Texts of prompts that are in Python modules: another wording would change scores.
PROMPT_TEXTS = {"text in the picture that is no caption"}
# "is no" followed by these words is plain English.
PLAIN_AFTER_IS_NO = ("longer", "more", "less", "fewer", "better", "worse", "different", "other")
IS_NO = re.compile(rf"(?<!there )\bis no (?!(?:{'|'.join(PLAIN_AFTER_IS_NO)})\b)\w+", re.IGNORECASE)


@dataclass(frozen=True)
class ReplacedTerm:
    """One row of the glossary's table of replaced terms."""

    cell: str
    replacement: str

    @property
    def term(self) -> str:
        """The term without the marks of code."""
        return self.cell.strip("`")

    @property
    def beginning(self) -> str:
        """Letters that every match of the pattern contains: looking for them first is fast."""
        return self.term.split()[0][:5].casefold()

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that finds the term in a text; terms in code have no plural."""
        words = PATTERNS.get(self.term)
        if not self.term.isascii():
            return re.compile(words or re.escape(self.term))
        if words is None:
            words = r"\s+".join(map(re.escape, self.term.split()))
            words += "" if self.cell.startswith("`") else "(?:s|es)?"
        return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


@dataclass(frozen=True)
class Passage:
    """A text that people read, with the place where it begins."""

    file: str
    line: int
    text: str


def read_replaced_terms(page: str) -> list[ReplacedTerm]:
    """Read the table of replaced terms; a cell may name several terms, separated by commas."""
    section = page.partition("## Replaced terms")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", section, flags=re.MULTILINE)
    return [
        ReplacedTerm(cell, replacement)
        for cells, replacement in rows
        if cells != "replaced term"
        for cell in cells.split(", ")
    ]


def list_passages() -> Iterator[Passage]:
    """List the texts of documentation pages, messages, help and web pages."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"]
    for path in sorted(pages):
        if _name(path) not in QUOTING:
            yield Passage(_name(path), 1, path.read_text(encoding="utf-8"))
    for path in sorted(SOURCES.rglob("*")):
        if DATA_FOLDERS.isdisjoint(path.relative_to(SOURCES).parts):
            read = READERS.get(path.suffix)
            if path.suffix == ".py":
                yield from read_tree(_name(path), parse_module(path))
            elif read is not None:
                yield from read(_name(path), path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read_python(file: str, text: str) -> Iterator[Passage]:
    """Read the string literals of a module; a value inside an f-string becomes ``{}``.

    Regular expressions are not read: they match the words of models and people.
    """
    return read_tree(file, ast.parse(text))


def read_tree(file: str, tree: ast.Module) -> Iterator[Passage]:
    """Read the string literals of a parsed module."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or _compiles_pattern(node)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield Passage(file, node.lineno, "".join(map(str, parts)))
        elif _is_text(node):
            yield Passage(file, node.lineno, str(node.value))


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value not in PROMPT_TEXTS
    )


def _compiles_pattern(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="compile")):
            return True
    return False


def read_toml(file: str, text: str) -> Iterator[Passage]:
    """Read the string values of a TOML file, each at the first line that contains it."""

    def walk(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for part in value.values():
                yield from walk(part)
        elif isinstance(value, list):
            for part in value:
                yield from walk(part)

    for value in walk(tomllib.loads(text)):
        first = value.strip().partition("\n")[0].replace('"', '\\"')
        yield Passage(file, text[: max(text.find(first), 0)].count("\n") + 1, value)


def read_html(file: str, text: str) -> Iterator[Passage]:
    """Read the visible text of a template: no comments, styles, tags or template code."""
    hidden = r"<!--.*?-->|<(style|script)\b.*?</\1>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>"
    blank = re.sub(
        hidden, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL
    )
    yield Passage(file, 1, blank)


def read_script(file: str, text: str) -> Iterator[Passage]:
    """Read the string literals of a script."""
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`', text):
        yield Passage(file, text[: found.start()].count("\n") + 1, found.group())


READERS = {".py": read_python, ".toml": read_toml, ".html": read_html, ".js": read_script}


def find_terms(terms: Iterable[ReplacedTerm], passages: Iterable[Passage]) -> list[str]:
    """Find replaced terms in texts: one line per hit, with file, line, term and replacement."""
    patterns = [(term, term.pattern, term.beginning) for term in terms]
    return [
        f"{passage.file}:{line}: {found.group()!r}, write {term.replacement}"
        for passage in passages
        for folded in [passage.text.casefold()]
        for term, pattern, beginning in patterns
        if beginning in folded
        for line, found in _find(pattern, passage)
    ]


def _find(pattern: re.Pattern[str], passage: Passage) -> Iterator[tuple[int, re.Match[str]]]:
    for found in pattern.finditer(passage.text):
        yield passage.line + passage.text.count("\n", 0, found.start()), found


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return list(list_passages())


@pytest.fixture(scope="module")
def terms() -> list[ReplacedTerm]:
    return read_replaced_terms(GLOSSARY.read_text(encoding="utf-8"))


def test_words_are_spelled_right() -> None:
    command = [sys.executable, "-m", "codespell_lib", *PLACES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_text_uses_a_replaced_term(terms: list[ReplacedTerm], passages: list[Passage]) -> None:
    found = find_terms(terms, passages)
    assert found == [], "\n" + "\n".join(found)


def test_no_message_says_is_no(passages: list[Passage]) -> None:
    found = [
        f"{passage.file}:{line}: {hit.group()!r}, write 'is not a valid …' or 'is not a …'"
        for passage in passages
        for line, hit in _find(IS_NO, passage)
    ]
    assert found == [], "\n" + "\n".join(found)


def test_every_row_has_another_term(terms: list[ReplacedTerm]) -> None:
    assert len(terms) > 50
    assert [term.term for term in terms if term.pattern.search(term.replacement)] == []
    assert set(PATTERNS) <= {term.term for term in terms}


TABLE = """\
## Replaced terms

| replaced term | term | meaning |
|---|---|---|
| sealed part, `--old-flag` | locked test set | data |
| 旧词 | 新词 | data |
"""
MODULE = '''\
"""Measure the
sealed part once."""
raise ValueError(f"{name} is no range")
'''


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("page.md", "First line.\nThe sealed\nparts are here.", 2),
        ("page.md", "Use `--old-flag 3`.", 1),
        ("page.md", "这里是旧词。", 1),
        ("module.py", MODULE, 2),
        ("module.py", 'x = 1\nprint(f"{x} of the sealed part")', 2),
        ("texts.toml", 'a = "b"\n[help]\nc = ["the sealed part"]', 3),
        ("page.html", "<p\nclass='x'>the sealed part</p>", 2),
        ("page.js", 'let a = 1;\nshow("The sealed part");', 2),
    ],
)
def test_a_planted_term_is_found(file: str, text: str, line: int) -> None:
    read = READERS.get(Path(file).suffix)
    planted = list(read(file, text)) if read else [Passage(file, 1, text)]
    found = find_terms(read_replaced_terms(TABLE), planted)
    assert len(found) == 1
    assert found[0].startswith(f"{file}:{line}: ")
    assert found[0].endswith(("write locked test set", "write 新词"))


MATCHES = {
    "because": "use `because`",
    "disguise": "a Disguising text",
    "family": "template families",
    "hole": "holes of a prompt",
    "mend": "it was mended",
    "plate": "it stands on a plate",
    "set aside": "setting aside",
    "tempt": "Tempting options",
    "配文": "这里是配文。",
}


@pytest.mark.parametrize("term", PATTERNS)
def test_a_term_with_a_pattern_is_found(term: str) -> None:
    assert len(find_terms([ReplacedTerm(term, "x")], [Passage("page.md", 1, MATCHES[term])])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the unsealed part",
        "sealed partition",
        "--old-flag-name",
        "<p class='sealed part'>plain</p>",
    ],
)
def test_other_words_are_not_found(text: str) -> None:
    passages = list(read_html("page.html", text))
    assert find_terms(read_replaced_terms(TABLE), passages) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("'x' is no range", True),
        ("there is no such file", False),
        ("the file is no longer there", False),
    ],
)
def test_is_no_is_found(text: str, wrong: bool) -> None:
    assert bool(IS_NO.search(text)) is wrong
