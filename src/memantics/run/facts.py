"""What a run is: the facts in ``run.json``, the fingerprint of its answers, its folder's name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import orjson
from pydantic import JsonValue

from memantics import __version__
from memantics.core.card import Card, TaskCard
from memantics.core.data import DataKind
from memantics.core.errors import InputError
from memantics.core.model import Answerer
from memantics.core.parameters import Data, Limit, Sample, Seed, Split
from memantics.core.rundir import RunFacts
from memantics.core.task import Task


@dataclass(frozen=True, slots=True)
class DataFacts:
    """Which data a run is on."""

    kind: DataKind
    checksum: str
    records: int
    revision: str
    licence: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of which data is asked: a split, a few items, or a seeded sample.

    ``None`` leaves it to the benchmark; a task that was posed has its ``split`` named. ``spread``
    says by what the items of ``limit`` were chosen; empty: they are the first ones.
    """

    data: Data = None
    split: Split = None
    limit: Limit = None
    sample: Sample = None
    seed: Seed = None
    spread: str = ""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.limit is not None and self.sample is not None:
            hint = "leave one of them out"
            raise InputError("--limit and --sample exclude each other", hint=hint)
        if self.seed is not None and self.sample is None:
            hint = "add --sample N, or leave it out"
            raise InputError("--seed is the seed of a sample", hint=hint)


def describe(
    cards: tuple[Card, TaskCard],
    task: Task,
    model: Answerer,
    data: DataFacts,
    scope: Scope,
    prices: tuple[float, float] | None = None,
) -> RunFacts:
    """The facts of a run that begins now."""
    card, task_card = cards
    shape: dict[str, JsonValue] = {
        "task": task.name,
        "options": dict(task.options),
        "prompts": dict(task.prompts),
        "attempts": task.invalid.attempts,
        "identity": dict(model.identity),
        "data": data.checksum,
        "kind": data.kind,
        "split": scope.split,
        "limit": scope.limit,
    }
    seed = None if scope.sample is None else scope.seed or 0
    if scope.sample is not None:
        shape["sample"] = [scope.sample, seed]
    if scope.spread:
        shape["spread"] = scope.spread
    if task.probe:
        shape["probe"] = task.probe
    return RunFacts(
        benchmark=card.name,
        task=task.name,
        title=f"{card.title}: {task_card.title}",
        main=task.main,
        unit=task_card.unit,
        model=model.name,
        model_note=model.note,
        identity=model.identity,
        options=task.options,
        split=scope.split or "",
        limit=scope.limit,
        invalid=str(task.invalid),
        prompts=task.prompts,
        data=asdict(data),
        # The sample is ours and harmless; the warning is about the release.
        warning=card.warning if data.kind == "release" else "",
        version=__version__,
        fingerprint=fingerprint(shape),
        started=now(),
        prices=prices,
        sample=scope.sample,
        seed=seed,
        probe=task.probe,
        spread=scope.spread,
    )


def add_needs(facts: RunFacts, needs: Mapping[str, RunFacts]) -> RunFacts:
    """The facts of a run whose requests hold the answers of other runs: what shapes them too."""
    if not needs:
        return facts
    shape: dict[str, JsonValue] = {
        "run": facts.fingerprint,
        "needs": {name: need.fingerprint for name, need in needs.items()},
    }
    folders = {name: folder_name(need) for name, need in needs.items()}
    return replace(facts, fingerprint=fingerprint(shape), needs=folders)


def fingerprint(shape: Mapping[str, JsonValue]) -> str:
    """One hash of all that shapes the answers of a run.

    >>> len(fingerprint({"task": "mquest/qa"}))
    16
    """
    body = orjson.dumps(shape, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()[:16]


def folder_name(facts: RunFacts) -> str:
    """A name people can read, and that two different runs never share.

    The end comes from the fingerprint, so the same command finds its folder again.
    """
    words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{facts.task}_{facts.model}").strip("-.")
    return f"{words[:80]}-{facts.fingerprint[:8]}"


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
