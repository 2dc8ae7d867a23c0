"""Policies: a Markdown file with numbered clauses for reviewers, models and authors of posts.

A policy file has a front matter, an introduction, optional terms, and clauses::

    ---
    id: forum-rules
    version: 1
    languages: en, zh
    deciders: reviewer, lead
    ---
    # House rules

    ## Terms
    - *group*: people who share an origin, a belief or a body

    ## 1 Insults of groups
    severity: high
    categories: memantics:targeted, openai:hate
    title (zh): 侮辱群体

    ### Rule
    A meme must not insult a *group*.

    ### Allowed
    - Criticism of what a group does.

    ### Examples
    - text: All turnips are stupid
    - meme: post-12

    ### Counter-examples
    - text: I do not like turnips

The parser is strict: anything else is an error with a line number. A version is identified by the
hash of its content, so that blank lines and line ends do not make another version.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeVar, get_args

import orjson

from memantics.core.errors import DataError, InputError
from memantics.core.files import read_regular_text
from memantics.core.ids import find_id_fault
from memantics.core.text import drop_unseen

PolicySeverity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[PolicySeverity, ...] = get_args(PolicySeverity)
ExampleKind = Literal["text", "meme"]
NO_CLAUSE = "none"
LARGEST = 400_000  # bytes of a policy file
_MOST_CLAUSES = 200
_OWN = ("targeted", "offence", "sexual", "dispirited", "harmful")
OPENAI = (
    "harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
    "illicit/violent", "self-harm", "self-harm/intent", "self-harm/instructions", "sexual",
    "sexual/minors", "violence", "violence/graphic",
)  # fmt: skip
# Categories of the EU's transparency database, without their prefix STATEMENT_CATEGORY_.
EU = (
    "ANIMAL_WELFARE", "CONSUMER_INFORMATION", "CYBER_VIOLENCE", "CYBER_VIOLENCE_AGAINST_WOMEN",
    "DATA_PROTECTION_AND_PRIVACY_VIOLATIONS", "ILLEGAL_OR_HARMFUL_SPEECH",
    "INTELLECTUAL_PROPERTY_INFRINGEMENTS",
    "NEGATIVE_EFFECTS_ON_CIVIC_DISCOURSE_OR_ELECTIONS", "NOT_SPECIFIED_NOTICE",
    "OTHER_VIOLATION_TC", "PROTECTION_OF_MINORS", "RISK_FOR_PUBLIC_SECURITY",
    "SCAMS_AND_FRAUD", "SELF_HARM", "UNSAFE_AND_PROHIBITED_PRODUCTS", "VIOLENCE",
)  # fmt: skip
_CATEGORIES: Mapping[str, tuple[str, ...]] = {"memantics": _OWN, "openai": OPENAI, "eu": EU}
_ID = re.compile(r"[a-z][a-z0-9-]{0,59}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,29}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
ROLE = re.compile(r"[a-z][a-z0-9 -]{0,39}")
_CLAUSE = re.compile(r"## (\d{1,3}(?:\.\d{1,2})?) (\S.*)")
_PART = re.compile(r"### (Rule|Allowed|Examples|Counter-examples)(?: \(([A-Za-z0-9-]+)\))?")
_FACT = re.compile(r"(severity|categories|title)(?: \(([A-Za-z0-9-]+)\))?: (.*)")
_TERM = re.compile(r"[-*] \*([^*]+)\*: (\S.*)")
_USED = re.compile(r"(?<!\*)\*([^*\s](?:[^*]*[^*\s])?)\*(?!\*)")
_Text = TypeVar("_Text")
_FRONT = ("id", "version", "languages", "deciders")


@dataclass(frozen=True, slots=True)
class PolicyExample:
    """An example of a clause: a text, or the id of a meme; ``line`` is its line in the file."""

    kind: ExampleKind
    value: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A numbered clause. Titles, rules and allowed cases are texts by language.

    ``line`` is the line of its heading.
    """

    number: str
    title: Mapping[str, str]
    rule: Mapping[str, str]
    allowed: Mapping[str, tuple[str, ...]]
    examples: tuple[PolicyExample, ...]
    counter_examples: tuple[PolicyExample, ...]
    severity: PolicySeverity
    categories: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)

    def say_title(self, language: str) -> str:
        """Return the title in a language, else in the first language of the policy."""
        return _say(self.title, language)

    def say_rule(self, language: str) -> str:
        """Return the rule in a language, else in the first language of the policy."""
        return _say(self.rule, language)

    def say_allowed(self, language: str) -> tuple[str, ...]:
        """Return the allowed cases in a language, else in the first language of the policy."""
        first = next(iter(self.allowed.values()), ())
        return self.allowed.get(_find_language(self.allowed, language), first)

    def list_categories(self, scheme: str) -> tuple[str, ...]:
        """Return the categories of one scheme: ``memantics``, ``openai`` or ``eu``."""
        pairs = (name.partition(":") for name in self.categories)
        return tuple(name for head, _, name in pairs if head == scheme)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its clauses. ``deciders`` are the roles that may decide under it."""

    id: str
    version: str
    languages: tuple[str, ...]
    deciders: tuple[str, ...]
    title: str
    introduction: str
    terms: Mapping[str, str]
    clauses: tuple[Clause, ...]

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the content, which identifies this version."""
        plain = asdict(self)
        for clause in plain["clauses"]:
            del clause["line"]
            for example in (*clause["examples"], *clause["counter_examples"]):
                del example["line"]
        return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @property
    def name(self) -> str:
        """Return id, version and the first digits of the hash, as records cite the policy."""
        return f"{self.id}@{self.version}+{self.digest[:12]}"

    @property
    def language(self) -> str:
        """Return the main language: the first one."""
        return self.languages[0]

    def allows(self, roles: Collection[str]) -> bool:
        """Return whether somebody with these roles may decide under the policy."""
        return not set(roles).isdisjoint(self.deciders)

    def find(self, number: str) -> Clause | None:
        """Return the clause with a number."""
        return next((clause for clause in self.clauses if clause.number == number), None)


class NotADecider(InputError):
    """The role of a person is not among those that may decide under a policy."""

    def __init__(self, policy: Policy, roles: Collection[str], who: str, hint: str) -> None:
        held = f"the role {', '.join(sorted(roles))}" if roles else "no role"
        said = f"policy {policy.name} lets only {' and '.join(policy.deciders)} decide"
        super().__init__(f"{said}, but {who[:80]} has {held}", hint=hint)


def find_role(policy: Policy, roles: Collection[str], who: str, hint: str) -> str:
    """Return the role in which somebody decides: the first decider among the roles.

    Raises:
        NotADecider: None of the roles may decide.
    """
    if not policy.allows(roles):
        raise NotADecider(policy, roles, who, hint)
    return next(role for role in policy.deciders if role in roles)


def _find_language(texts: Mapping[str, object], language: str) -> str:
    if language in texts:
        return language
    return language.partition("-")[0]


def _say(texts: Mapping[str, str], language: str) -> str:
    return texts.get(_find_language(texts, language), next(iter(texts.values()), ""))


def find_terms(text: str) -> list[str]:
    """Return the terms that a text marks with asterisks.

    >>> find_terms("A meme must not insult a *group* or a *public figure*.")
    ['group', 'public figure']
    """
    return _USED.findall(text)


def read_policy(path: str | Path) -> Policy:
    """Read a policy file; an error names the file and the line."""
    try:
        text = read_regular_text(path, limit=LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            path, f"the policy cannot be read: {error}", hint="check the path"
        ) from error
    return parse_policy(text, str(path))


def parse_policy(text: str, where: str) -> Policy:
    """Parse the text of a policy; see the format at the top of this module.

    Raises:
        DataError: A line does not belong to the format; the message names its number.
    """
    return _Parser(text, where).parse()


class _Line(NamedTuple):
    number: int
    text: str


_END = _Line(0, "")


@dataclass
class _Draft:
    """A clause while it is read."""

    number: str
    title: dict[str, str]
    line: int
    severity: PolicySeverity | None = None
    categories: tuple[str, ...] | None = None
    rule: dict[str, str] = field(default_factory=dict)
    allowed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    examples: tuple[PolicyExample, ...] | None = None
    counter_examples: tuple[PolicyExample, ...] | None = None


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._lines = [
            _Line(number, drop_unseen(line, keep="\t\u200c\u200d").rstrip())
            for number, line in enumerate(text.split("\n"), 1)
        ]
        self._where = where
        self._languages: tuple[str, ...] = ()

    def _fail(self, line: int, problem: str, hint: str = "") -> NoReturn:
        raise DataError(
            f"{self._where}, line {line}", problem, hint=hint or "see 'memantics policy init'"
        )

    def parse(self) -> Policy:
        front, rest = self._read_front()
        self._languages = self._split(front["languages"], _LANGUAGE, "language code")
        deciders = self._split(front["deciders"], ROLE, "role")
        for name, form in (("id", _ID), ("version", _VERSION)):
            line, value = front[name]
            if not form.fullmatch(value):
                self._fail(line, f"{value[:60]!r} is not a valid {name}")
        sections = self._cut(rest)
        title, introduction = self._read_head(sections[0])
        terms: dict[str, str] = {}
        clauses: list[Clause] = []
        for section in sections[1:]:
            heading = section[0]
            if heading.text == "## Terms":
                if terms or clauses:
                    self._fail(heading.number, "terms come once, before the first clause")
                terms = self._read_terms(section[1:])
            elif found := _CLAUSE.fullmatch(heading.text):
                draft = _Draft(found[1], {self._languages[0]: found[2]}, heading.number)
                clauses.append(self._read_clause(draft, section[1:]))
            else:
                self._fail(
                    heading.number,
                    f"{heading.text[:60]!r} is not a clause heading",
                    "write '## NUMBER TITLE' or '## Terms'",
                )
        if not clauses:
            self._fail(self._lines[-1].number, "the policy has no clause")
        if len(clauses) > _MOST_CLAUSES:
            self._fail(clauses[-1].line, f"a policy has at most {_MOST_CLAUSES} clauses")
        self._check_order(clauses)
        return Policy(
            front["id"].text,
            front["version"].text,
            self._languages,
            deciders,
            title,
            introduction,
            terms,
            tuple(clauses),
        )

    def _read_front(self) -> tuple[dict[str, _Line], list[_Line]]:
        if self._lines[0].text != "---":
            self._fail(1, "the front matter is missing", "begin the file with a line ---")
        found: dict[str, _Line] = {}
        for place, line in enumerate([*self._lines, _END][1:], 1):
            if line is _END:
                self._fail(self._lines[-1].number, "the front matter has no end", "add a line ---")
            if line.text == "---":
                if missing := [name for name in _FRONT if name not in found]:
                    self._fail(line.number, f"the front matter has no {missing[0]!r}")
                return found, self._lines[place + 1 :]
            name, colon, value = line.text.partition(":")
            if not line.text.strip():
                continue
            if not colon or name not in _FRONT:
                self._fail(
                    line.number,
                    f"{line.text[:60]!r} is not a field of the front matter",
                    f"known: {', '.join(_FRONT)}",
                )
            if name in found:
                self._fail(line.number, f"{name!r} occurs twice")
            value = value.strip().strip("[]").strip().strip("\"'")
            found[name] = _Line(line.number, value)
        raise AssertionError("unreachable")

    def _split(self, given: _Line, form: re.Pattern[str], what: str) -> tuple[str, ...]:
        values = [part.strip() for part in given.text.split(",") if part.strip()]
        if not values:
            self._fail(given.number, f"give at least one {what}")
        for value in values:
            if not form.fullmatch(value):
                self._fail(given.number, f"{value[:60]!r} is not a valid {what}")
        if len(set(values)) < len(values):
            self._fail(given.number, f"a {what} occurs twice")
        return tuple(values)

    def _cut(self, lines: list[_Line]) -> list[list[_Line]]:
        """Cut the lines before each heading of the second level."""
        sections: list[list[_Line]] = [[]]
        for line in lines:
            if line.text.startswith("## "):
                sections.append([])
            sections[-1].append(line)
        return sections

    def _read_head(self, lines: list[_Line]) -> tuple[str, str]:
        filled = [line for line in lines if line.text]
        if not filled or not filled[0].text.startswith("# "):
            where = filled[0].number if filled else len(self._lines)
            self._fail(where, "the title is missing", "write '# TITLE' after the front matter")
        for line in filled[1:]:
            if line.text.startswith("#"):
                self._fail(line.number, f"{line.text[:60]!r} is not allowed here")
        return filled[0].text[2:].strip(), _join(lines[lines.index(filled[0]) + 1 :])

    def _read_terms(self, lines: list[_Line]) -> dict[str, str]:
        terms: dict[str, str] = {}
        for line in lines:
            if not line.text:
                continue
            found = _TERM.fullmatch(line.text)
            if not found:
                self._fail(line.number, "not a term", "write '- *TERM*: DEFINITION'")
            name = found[1].strip()
            if name.casefold() in {known.casefold() for known in terms}:
                self._fail(line.number, f"the term {name!r} is defined twice")
            terms[name] = found[2]
        return terms

    def _read_clause(self, draft: _Draft, lines: list[_Line]) -> Clause:
        line, number = draft.line, draft.number
        parts: list[list[_Line]] = [[]]
        for each in lines:
            if each.text.startswith("### ") or each.text.startswith("# "):
                parts.append([])
            parts[-1].append(each)
        for each in parts[0]:
            if each.text:
                self._read_fact(draft, each)
        for part in parts[1:]:
            self._read_part(draft, part[0], part[1:])
        main = self._languages[0]
        if draft.severity is None:
            self._fail(line, f"clause {number} has no severity", "add 'severity: medium'")
        if main not in draft.rule:
            self._fail(line, f"clause {number} has no rule", "add a part '### Rule'")
        return Clause(
            number,
            _order(draft.title, self._languages),
            _order(draft.rule, self._languages),
            _order(draft.allowed, self._languages),
            draft.examples or (),
            draft.counter_examples or (),
            draft.severity,
            draft.categories or (),
            line,
        )

    def _read_fact(self, draft: _Draft, line: _Line) -> None:
        found = _FACT.fullmatch(line.text)
        if not found:
            self._fail(
                line.number,
                f"{line.text[:60]!r} is not allowed before '### Rule'",
                "use severity, categories or title (LANGUAGE)",
            )
        name, language, value = found[1], found[2], found[3].strip()
        if name == "title":
            self._check_language(line, language)
            if language in draft.title:
                self._fail(line.number, f"the title in {language} occurs twice")
            draft.title[language] = value
        elif language:
            self._fail(line.number, f"{name} has no language")
        elif name == "severity":
            if value not in SEVERITIES or draft.severity:
                self._fail(
                    line.number,
                    f"{value[:60]!r} is not a valid severity, or it occurs twice",
                    f"use one of {', '.join(SEVERITIES)}",
                )
            draft.severity = value
        else:
            if draft.categories is not None:
                self._fail(line.number, "categories occur twice")
            draft.categories = tuple(self._read_categories(line, value))

    def _read_categories(self, line: _Line, value: str) -> Iterator[str]:
        for given in (part.strip() for part in value.split(",")):
            scheme, _, name = given.partition(":")
            if name not in _CATEGORIES.get(scheme, ()):
                known = _CATEGORIES.get(scheme)
                hint = f"{scheme}: {', '.join(known)}" if known else "memantics:, openai: or eu:"
                self._fail(line.number, f"{given[:60]!r} is not a known category", hint)
            yield given

    def _check_language(self, line: _Line, language: str | None) -> None:
        if language not in self._languages:
            self._fail(
                line.number,
                f"the policy has no language {language!r}",
                "add it to 'languages' in the front matter",
            )

    def _read_part(self, draft: _Draft, heading: _Line, lines: list[_Line]) -> None:
        found = _PART.fullmatch(heading.text)
        if not found:
            self._fail(
                heading.number,
                f"{heading.text[:60]!r} is not a part of a clause",
                "use Rule, Allowed, Examples or Counter-examples",
            )
        name, language = found[1], found[2] or self._languages[0]
        self._check_language(heading, language)
        twice = f"the part {heading.text[4:]!r} occurs twice"
        if name == "Rule":
            text = _join(lines)
            if not text:
                self._fail(heading.number, "the rule is empty")
            if language in draft.rule:
                self._fail(heading.number, twice)
            draft.rule[language] = text
        elif name == "Allowed":
            if language in draft.allowed:
                self._fail(heading.number, twice)
            draft.allowed[language] = tuple(text for _, text in self._list_entries(lines))
        else:
            if found[2]:
                self._fail(heading.number, "examples have no language")
            key = "examples" if name == "Examples" else "counter_examples"
            if getattr(draft, key) is not None:
                self._fail(heading.number, twice)
            setattr(draft, key, tuple(self._read_examples(lines)))

    def _list_entries(self, lines: list[_Line]) -> Iterator[_Line]:
        for line in lines:
            if not line.text:
                continue
            if not re.match(r"[-*] \S", line.text):
                self._fail(line.number, "not a list entry", "begin the line with '- '")
            yield _Line(line.number, line.text[2:].strip())

    def _read_examples(self, lines: list[_Line]) -> Iterator[PolicyExample]:
        seen: set[tuple[str, str]] = set()
        for number, text in self._list_entries(lines):
            kind, colon, value = text.partition(":")
            value = value.strip()
            if not colon or kind not in ("text", "meme") or not value:
                self._fail(number, "not an example", "write '- text: …' or '- meme: ID'")
            if kind == "meme" and (fault := find_id_fault(value)):
                self._fail(number, f"the id {value[:60]!r} {fault}")
            if (kind, value) in seen:
                self._fail(number, f"the example {value[:60]!r} occurs twice")
            seen.add((kind, value))
            yield PolicyExample("text" if kind == "text" else "meme", value, number)

    def _check_order(self, clauses: list[Clause]) -> None:
        last = (0, 0)
        for clause in clauses:
            whole, _, part = clause.number.partition(".")
            now = int(whole), int(part or 0)
            if now <= last:
                self._fail(clause.line, f"clause {clause.number} is not in ascending order")
            last = now


def _order(texts: Mapping[str, _Text], languages: tuple[str, ...]) -> dict[str, _Text]:
    return {name: texts[name] for name in languages if name in texts}


def _join(lines: list[_Line]) -> str:
    """Join the lines of a text; blank lines separate paragraphs."""
    text = "\n".join(line.text.strip() for line in lines).strip()
    return re.sub(r"\n{2,}", "\n\n", text)


def write_policy(policy: Policy) -> str:
    """Write a policy in the format that :func:`parse_policy` reads."""
    front = {
        "id": policy.id,
        "version": policy.version,
        "languages": ", ".join(policy.languages),
        "deciders": ", ".join(policy.deciders),
    }
    lines = ["---", *(f"{name}: {value}" for name, value in front.items()), "---"]
    lines += [f"# {policy.title}", ""]
    lines += [policy.introduction, ""] if policy.introduction else []
    if policy.terms:
        lines += ["## Terms", *(f"- *{name}*: {text}" for name, text in policy.terms.items()), ""]
    for clause in policy.clauses:
        lines += _write_clause(clause, policy.language)
    return "\n".join(lines).rstrip() + "\n"


def _write_clause(clause: Clause, main: str) -> Iterator[str]:
    def mark(name: str, language: str) -> str:
        return f"### {name}" if language == main else f"### {name} ({language})"

    yield f"## {clause.number} {clause.title[main]}"
    yield f"severity: {clause.severity}"
    if clause.categories:
        yield f"categories: {', '.join(clause.categories)}"
    yield from (f"title ({name}): {text}" for name, text in clause.title.items() if name != main)
    for name, text in clause.rule.items():
        yield from ("", mark("Rule", name), text)
    for name, listed in clause.allowed.items():
        yield from ("", mark("Allowed", name), *(f"- {text}" for text in listed))
    for heading, examples in (
        ("Examples", clause.examples),
        ("Counter-examples", clause.counter_examples),
    ):
        if examples:
            yield from ("", f"### {heading}", *(f"- {one.kind}: {one.value}" for one in examples))
    yield ""
