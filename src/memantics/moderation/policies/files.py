"""Functions behind ``memantics policy init``, ``check``, ``show`` and ``diff``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import InputError
from memantics.core.files import read_regular_text, write_text
from memantics.core.parameters import Argument, Flag
from memantics.core.policy import (
    Clause,
    Policy,
    PolicyExample,
    find_terms,
    parse_policy,
    read_policy,
)
from memantics.core.result import Result, Table

PolicyArgument = Annotated[Path, Argument("Policy file.", metavar="POLICY.md")]
TEMPLATE = Path(__file__).with_name("template.md")
PolicyFault = Literal[
    "no_examples", "contradiction", "overlap", "undefined_term", "unused_term", "untranslated"
]


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """One problem of a policy: its kind, the line, and what to change.

    ``serious`` findings make ``policy check`` exit with 1.
    """

    kind: PolicyFault
    line: int
    clause: str
    message: str
    serious: bool = True


@dataclass(frozen=True, slots=True)
class CheckedPolicy(Result):
    """The findings of a policy, in order of lines."""

    policy: str
    clauses: int
    examples: int
    findings: tuple[PolicyFinding, ...]

    @property
    def sound(self) -> bool:
        """Whether no finding is serious."""
        return not any(finding.serious for finding in self.findings)

    def table(self) -> Table:
        """Show one row per finding."""
        rows = tuple((str(one.line), one.clause, one.message) for one in self.findings)
        return Table((">line", "clause", "problem"), rows)


def init_policy(
    out: Annotated[Path, Argument("Policy file to write.", metavar="POLICY.md")],
    *,
    policy_id: Annotated[str, Flag("Id of the policy.", "--id")] = "house-rules",
) -> Policy:
    """Write a policy file to start from: two clauses with examples, in English and Chinese.

    Args:
        out: File to write; it must not exist.
        policy_id: Id of the policy: lower-case letters, digits and hyphens.

    Returns:
        The policy in the file.

    Raises:
        InputError: The file exists, or the id is not valid.

    Example:
        >>> mm.init_policy("new-policy.md", policy_id="forum-rules").id
        'forum-rules'
    """
    path = Path(out)
    if path.exists():
        raise InputError(f"{path} already exists", hint="name another file")
    text = read_regular_text(TEMPLATE).replace("id: house-rules", f"id: {policy_id}", 1)
    made = parse_policy(text, str(path))
    write_text(path, text, "policy")
    return made


def show_policy(policy: PolicyArgument) -> Policy:
    """Read a policy file and return its clauses; an error names the line.

    Args:
        policy: The policy file.

    Returns:
        The policy. Its ``digest`` identifies this version.

    Raises:
        DataError: The file is not a valid policy.

    Example:
        >>> mm.show_policy("policy.md").clauses[0].title["en"]
        'Root vegetables'
    """
    return read_policy(policy)


def check_policy(policy: PolicyArgument) -> CheckedPolicy:
    """Find clauses without examples, contradictions, overlaps and undefined terms in a policy.

    Args:
        policy: The policy file.

    Returns:
        The findings in order of lines.

    Raises:
        DataError: The file is not a valid policy.

    Example:
        >>> mm.check_policy("policy.md").sound
        True
    """
    read = read_policy(policy)
    found = [
        *_find_missing(read),
        *_find_conflicts(read),
        *_find_undefined(read),
        *_find_untranslated(read),
    ]
    found.sort(key=lambda one: (one.line, one.kind))
    count = sum(len(one.examples) + len(one.counter_examples) for one in read.clauses)
    return CheckedPolicy(read.name, len(read.clauses), count, tuple(found))


def _find_missing(policy: Policy) -> Iterator[PolicyFinding]:
    for clause in policy.clauses:
        lacks = [
            name
            for name, given in (
                ("examples", clause.examples),
                ("counter-examples", clause.counter_examples),
            )
            if not given
        ]
        if lacks:
            message = f"the clause has no {' and no '.join(lacks)}"
            serious = "examples" in lacks
            yield PolicyFinding("no_examples", clause.line, clause.number, message, serious)


def _key(example: PolicyExample) -> tuple[str, str]:
    text = " ".join(example.value.casefold().split())
    return example.kind, text if example.kind == "text" else example.value


def _find_conflicts(policy: Policy) -> Iterator[PolicyFinding]:
    """Yield examples that one clause forbids and allows, or that two clauses claim."""
    claimed: dict[tuple[str, str], list[tuple[Clause, PolicyExample]]] = defaultdict(list)
    allowed: dict[tuple[str, str], list[Clause]] = defaultdict(list)
    for clause in policy.clauses:
        for example in clause.examples:
            claimed[_key(example)].append((clause, example))
        for example in clause.counter_examples:
            allowed[_key(example)].append(clause)
    for key, claims in claimed.items():
        for clause, example in claims:
            if any(other is clause for other in allowed[key]):
                message = f"{example.value[:60]!r} is an example and a counter-example"
                yield PolicyFinding("contradiction", example.line, clause.number, message)
        (first, _), *others = claims
        for clause, example in others:
            message = f"{example.value[:60]!r} is also an example of clause {first.number}"
            yield PolicyFinding("overlap", example.line, clause.number, message)


def _find_undefined(policy: Policy) -> Iterator[PolicyFinding]:
    defined = {name.casefold(): name for name in policy.terms}
    used: set[str] = set()
    for name, text in policy.terms.items():
        used |= {term.casefold() for term in find_terms(text)} - {name.casefold()}
    seen: set[str] = set()
    for clause in policy.clauses:
        allowed = (text for texts in clause.allowed.values() for text in texts)
        for text in (*clause.rule.values(), *allowed):
            for term in find_terms(text):
                used.add(term.casefold())
                if term.casefold() not in defined and term.casefold() not in seen:
                    seen.add(term.casefold())
                    message = f"the term {term!r} is used but not defined"
                    yield PolicyFinding("undefined_term", clause.line, clause.number, message)
    for key, name in defined.items():
        if key not in used:
            message = f"the term {name!r} is defined but not used"
            yield PolicyFinding("unused_term", 1, "", message, serious=False)


def _find_untranslated(policy: Policy) -> Iterator[PolicyFinding]:
    for clause in policy.clauses:
        for language in policy.languages[1:]:
            lacks = [
                name
                for name, texts in (("title", clause.title), ("rule", clause.rule))
                if language not in texts
            ]
            if lacks:
                message = f"no {' and no '.join(lacks)} in {language}"
                yield PolicyFinding(
                    "untranslated", clause.line, clause.number, message, serious=False
                )


ClauseChangeKind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class ClauseChange:
    """What changed in one clause: the parts by name, and the texts as a unified diff."""

    clause: str
    kind: ClauseChangeKind
    parts: tuple[str, ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyDifference(Result):
    """The difference between two policies: front matter and terms, then clauses."""

    first: str
    second: str
    facts: tuple[str, ...]
    clauses: tuple[ClauseChange, ...]

    @property
    def equal(self) -> bool:
        """Whether the policies have the same content."""
        return not self.facts and not self.clauses

    def lines(self) -> Iterator[str]:
        """Return the difference as lines of text."""
        yield f"{self.first} → {self.second}"
        if self.equal:
            yield "no difference"
        yield from (f"changed: {fact}" for fact in self.facts)
        for change in self.clauses:
            parts = f": {', '.join(change.parts)}" if change.parts else ""
            yield f"clause {change.clause} {change.kind}{parts}"
            yield from (f"  {line}" for line in change.lines)


def diff_policies(
    first: Annotated[Path, Argument("Earlier policy file.", metavar="A.md")],
    second: Annotated[Path, Argument("Later policy file.", metavar="B.md")],
) -> PolicyDifference:
    """Compare two policies clause by clause.

    Args:
        first: The earlier policy file.
        second: The later policy file.

    Returns:
        Changes of the front matter and the terms, and added, removed and changed clauses.

    Raises:
        DataError: A file is not a valid policy.

    Example:
        >>> [(one.clause, one.kind) for one in mm.diff_policies("policy.md", "v2.md").clauses]
        [('3', 'added')]
    """
    return compare_policies(read_policy(first), read_policy(second))


def compare_policies(old: Policy, new: Policy) -> PolicyDifference:
    """Compare two policies; see :func:`diff_policies`."""
    names = ("id", "version", "languages", "deciders", "title", "introduction", "terms")
    facts = tuple(name for name in names if getattr(old, name) != getattr(new, name))
    numbers = dict.fromkeys(clause.number for clause in (*old.clauses, *new.clauses))
    ordered = sorted(numbers, key=lambda number: tuple(map(int, re.findall(r"\d+", number))))
    changes: list[ClauseChange] = []
    for number in ordered:
        before, after = old.find(number), new.find(number)
        if before is None or after is None:
            kind: ClauseChangeKind = "added" if before is None else "removed"
            changes.append(ClauseChange(number, kind, ()))
        elif before != after:
            changes.append(_compare_clauses(before, after))
    return PolicyDifference(old.name, new.name, facts, tuple(changes))


def _compare_clauses(before: Clause, after: Clause) -> ClauseChange:
    pairs, now = _list_parts(before), _list_parts(after)
    parts = tuple(name for name in now if pairs[name] != now[name])
    lines = [
        line
        for name in parts
        for line in unified_diff(pairs[name], now[name], name, name, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    return ClauseChange(before.number, "changed", parts, tuple(lines))


def _list_parts(clause: Clause) -> Mapping[str, list[str]]:
    return {
        "title": [f"{name}: {text}" for name, text in clause.title.items()],
        "severity": [clause.severity],
        "categories": list(clause.categories),
        "rule": [f"{name}: {text}" for name, text in clause.rule.items()],
        "allowed": [f"{name}: {text}" for name, each in clause.allowed.items() for text in each],
        "examples": [f"{one.kind}: {one.value}" for one in clause.examples],
        "counter-examples": [f"{one.kind}: {one.value}" for one in clause.counter_examples],
    }
