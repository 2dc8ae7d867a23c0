"""Policies as guidelines: the workflow of a policy, its versions, and reviewers across projects."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memantics.annotation.errors import RoleRefused
from memantics.annotation.workflow import ROLES, workflow_text
from memantics.core.data import inside
from memantics.core.errors import InputError
from memantics.core.policy import (
    Clause,
    NotADecider,
    Policy,
    find_role,
    parse_policy,
    read_policy,
    write_policy,
)
from memantics.core.queue import QueueCard, QueueItem, QueueOption

if TYPE_CHECKING:
    from memantics.annotation.workflow import Workflow

WORKFLOW = "review-policy"
CLAUSE = "clause"
_REVIEWER = re.compile(r"reviewer-(\d{1,12})")
_INSTRUCTIONS = re.compile(r"^instructions = .*$", re.MULTILINE)


def make_policy_workflow(policy: Policy) -> str:
    """Return the text of a workflow whose guideline is a policy; the policy itself is part of it.

    >>> from memantics.annotation.workflow import parse_workflow
    >>> policy = parse_policy(EXAMPLE, "p.md")
    >>> parse_workflow(make_policy_workflow(policy), "w").instructions.en.splitlines()[-1]
    'Clause 1: Insults. No insults. Allowed: irony.'
    """
    texts = {name: _describe(policy, name) for name in ("en", "zh")}
    said = ", ".join(f"{name} = {_quote(text)}" for name, text in texts.items())
    line = f"instructions = {{ {said} }}\npolicy = {_quote(write_policy(policy))}"
    return _INSTRUCTIONS.sub(lambda _: line, workflow_text(WORKFLOW), count=1)


EXAMPLE = """---
id: p
version: 1
languages: en
deciders: lead
---
# Rules

## 1 Insults
severity: low

### Rule
No insults.

### Allowed
- irony
"""


def _quote(text: str) -> str:
    """Write a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _describe(policy: Policy, language: str) -> str:
    rules = {"en": "Decide by the clauses alone. ", "zh": "请仅按条款判断。"}[language]
    lines = [rules + policy.introduction]
    lines += [f"{name}: {text}" for name, text in policy.terms.items()]
    lines += [_describe_clause(clause, language) for clause in policy.clauses]
    return "\n".join(lines)


def _describe_clause(clause: Clause, language: str) -> str:
    words = {
        "en": ("Clause {}: {}. {}", " Allowed: {}.", "; "),
        "zh": ("第 {} 条：{}。{}", "允许：{}。", "；"),
    }
    head, tail, mark = words[language]
    rule = clause.say_rule(language).replace("*", "")
    text = head.format(clause.number, clause.say_title(language), rule)
    allowed = [one.rstrip(".。").replace("*", "") for one in clause.say_allowed(language)]
    return text + (tail.format(mark.join(allowed)) if allowed else "")


def check_roles(policy: Policy) -> Policy:
    """Return the policy; raise InputError if no role of the app may decide under it."""
    if not policy.allows(ROLES):
        raise InputError(
            f"policy {policy.name} lets only {' and '.join(policy.deciders)} decide; the annotation"
            " app has no such role",
            hint=f"add one of {', '.join(ROLES)} to 'deciders'",
        )
    return policy


def refuse_others(flow: Workflow, roles: Collection[str], name: str) -> None:
    """Raise RoleRefused if the policy of a workflow does not let these roles decide."""
    if flow.decided_by is not None:
        try:
            find_role(flow.decided_by, roles, name, "ask the lead of the project for one of them")
        except NotADecider as error:
            raise RoleRefused(error) from None


def find_queue_workflow(card: QueueCard, folder: Path) -> str:
    """Return the workflow of a queue: that of its policy, if it has one, else the named one."""
    if not card.policy or card.workflow != WORKFLOW:
        return card.workflow
    return make_policy_workflow(check_roles(read_policy(inside(folder, card.policy))))


def list_policy_options(policy: Policy) -> tuple[QueueOption, ...]:
    """Return the clauses as options of the form."""
    return tuple(
        QueueOption(
            value=one.number,
            en=f"{one.number} {one.say_title('en')}",
            zh=f"{one.number} {one.say_title('zh')}",
        )
        for one in policy.clauses
    )


def find_changed_clauses(flow: Workflow, policy: Policy) -> tuple[str, ...]:
    """Return the numbers of the clauses that differ from the policy of a workflow."""
    old = parse_policy(flow.policy, "policy of the project")
    numbers = dict.fromkeys(one.number for one in (*old.clauses, *policy.clauses))
    return tuple(number for number in numbers if old.find(number) != policy.find(number))


def name_reviewer(user: int) -> str:
    """Return the pseudonym of an account that is the same in all policy reviews of a database."""
    return f"reviewer-{user}"


def list_deciders(items: Iterable[QueueItem]) -> list[tuple[int, str]]:
    """Return pairs of account and group: who decided on a meme before must not review it.

    >>> item = QueueItem(id="d", group="m1", hidden={"decided_by": ["reviewer-7", "x"]})
    >>> list_deciders([item])
    [(7, 'm1')]
    """
    pairs = ((str(name), item.group) for item in items for name in _list_names(item))
    matches = ((_REVIEWER.fullmatch(name), group) for name, group in pairs)
    return [(int(match[1]), group) for match, group in matches if match]


def _list_names(item: QueueItem) -> list[object]:
    names = item.hidden.get("decided_by")
    return list(names) if isinstance(names, list) else []
