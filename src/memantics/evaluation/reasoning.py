"""Audit chains of thought: truncated, incomplete, or contradicting the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from memantics.benchmarks.registry import find_source
from memantics.core.data import DataKind, open_once
from memantics.core.errors import InputError
from memantics.core.result import Result, Table
from memantics.core.rundir import last_answers, read_facts, read_items
from memantics.core.task import Task, Unparsed
from memantics.evaluation.options import RunLike, find_folder
from memantics.evaluation.tasks import open_task_of_run
from memantics.models.engine import CUT_OFF

# Phrases that introduce a conclusion in a chain of thought.
_END = 300
_DECIDES = re.compile(
    r"\b(?:answer|choose|choice|option|correct|judge?ment)\b|答案|选择|判断|结论", re.IGNORECASE
)
# Words after which a reply gives the rationale that the prompt asked for.
_OPEN = re.compile(r"\W*(?:分析|analysis)\W*[:：]", re.IGNORECASE)
Must = Mapping[str, Sequence[frozenset[str]]]


@dataclass(frozen=True, slots=True)
class ChainAudit(Result):
    """Counts for one run, and the items with faulty chains of thought.

    ``silent`` chains of thought do not mention a required word; ``contrary`` ones conclude another
    answer. ``checked`` chains had required words; ``decided`` chains state a conclusion.
    """

    run: str
    answers: int
    chains: int
    cut_off: int
    checked: int
    decided: int
    silent: tuple[str, ...] = field(default=())
    contrary: tuple[str, ...] = field(default=())


def audit_reasoning_texts(folder: Path, task: Task, must: Must) -> ChainAudit:
    """Check every item's last chain of thought, or the rationale that the prompt asked for."""
    forms = {line.item.id: line.item.form for line in read_items(folder)}
    silent, contrary = [], []
    chains = cut_off = checked = decided = 0
    answers = last_answers(folder)
    for name, answer in answers.items():
        reply = answer.reply
        chain = reply.reasoning or (reply.text if _OPEN.match(reply.text) else "")
        if not chain or name not in forms:
            continue
        chains += 1
        cut_off += answer.reason == CUT_OFF
        if must.get(name):
            checked += 1
            if not names_all(chain, must[name]):
                silent.append(name)
        end = find_decision(reply.reasoning)
        if answer.status == "answered" and end:
            with suppress(Unparsed):
                value = task.parse(end, forms[name])
                decided += 1
                if value != answer.value:
                    contrary.append(name)
    return ChainAudit(
        str(folder), len(answers), chains, cut_off, checked, decided, tuple(silent), tuple(contrary)
    )


def names_all(chain: str, groups: Sequence[frozenset[str]]) -> bool:
    """Whether a chain of thought contains at least one word of each group, ignoring case.

    >>> names_all("左右为男 sounds like 左右为难", [frozenset({"男"}), frozenset({"难"})])
    True
    >>> names_all("a cat", [frozenset({"dog", "cat"}), frozenset({"sofa"})])
    False
    """
    body = chain.casefold()
    return all(any(word.casefold() in body for word in group) for group in groups)


def find_decision(chain: str) -> str:
    """Return the last concluding sentence near the end of a chain of thought; empty if none.

    >>> find_decision("A is odd. B fits. So the answer: B")
    'So the answer: B'
    >>> find_decision("Hm, a cat and a dog.")
    ''
    """
    sentences = re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n+", chain[-_END:].strip())
    return next(
        (sentence.strip() for sentence in reversed(sentences) if _DECIDES.search(sentence)), ""
    )


def audit_reasoning(run: RunLike) -> ChainAudit:
    """Count chains of thought that are cut off, incomplete, or contradict the answer.

    The required words come from the benchmark's data: the pun word and its homophone, or an element
    that a question cites. No model is called.

    Args:
        run: A run or its folder.

    Returns:
        The counts, and the items with the reason for each.

    Raises:
        InputError: The run contains no chain of thought.

    Example:
        >>> # after a run with a reasoning model, which needs a server
        >>> mm.audit_reasoning("runs/mquest-qa").cut_off  # doctest: +SKIP
    """
    folder = find_folder(run)
    facts = read_facts(folder)
    ref, task = open_task_of_run(facts, None)
    must: Must = {}
    hook = ref.benchmark.plugin.must_name
    if hook is not None:
        kind = cast("DataKind", facts.data.get("kind"))
        release = open_once(ref.benchmark.plugin.open_release, find_source(ref.benchmark, kind))
        must = hook(release)
    found = audit_reasoning_texts(folder, task, must)
    if not found.chains:
        raise InputError(
            f"run {folder} has no chains of thought",
            hint="run a reasoning model, or a prompt that asks for a rationale",
        )
    return found


def tabulate_reasoning(found: Sequence[ChainAudit]) -> Table:
    """Make a table with one row per run and the counts of its chains of thought."""
    columns = ("run", *(f">{n}" for n in ("answers", "chains", "cut off", "silent", "contrary")))
    rows = tuple(
        (
            Path(audit.run).name,
            *map(str, (audit.answers, audit.chains, audit.cut_off)),
            f"{len(audit.silent)} of {audit.checked}",
            f"{len(audit.contrary)} of {audit.decided}",
        )
        for audit in found
    )
    return Table(columns, rows)
