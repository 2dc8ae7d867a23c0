"""Drafts and verdicts brought together: what people agreed on replaces what a model proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from memantics.core.errors import DataError, InputError
from memantics.core.queue import VERDICTS, QueueCard, QueueItem, Verdict, read_queue, read_verdicts


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An item of a queue with its final values; ``verdict`` is None where nobody judged it."""

    item: QueueItem
    values: Mapping[str, JsonValue]
    verdict: Verdict | None

    @property
    def kept(self) -> bool:
        """Whether it goes on: people dropped what they rejected, not what they did not see."""
        return self.verdict is None or self.verdict.kept


@dataclass(frozen=True, slots=True)
class Review:
    """A queue after its review."""

    folder: Path
    card: QueueCard
    items: tuple[Reviewed, ...]

    @property
    def judged(self) -> tuple[Reviewed, ...]:
        """Those that people judged."""
        return tuple(own for own in self.items if own.verdict is not None)


def read_review(queue: Path, verdicts: Path | None, *, unreviewed: bool = False) -> Review:
    """Read a queue and its verdicts (default: ``verdicts.jsonl`` beside the items).

    Items without a verdict stay out, unless ``unreviewed`` lets drafts through as they are.
    """
    card, items = read_queue(queue)
    given = verdicts or queue / VERDICTS
    found: dict[str, Verdict] = {}
    if given.is_file():
        found = _match(list(read_verdicts(given)), {item.id: item for item in items}, given)
    elif verdicts is not None or not unreviewed:
        raise InputError(
            f"{given}: no verdicts",
            hint="annotate the queue and export its verdicts, or publish drafts with --unreviewed",
        )
    merged = tuple(
        Reviewed(item, item.values | (found[item.id].values if item.id in found else {}), verdict)
        for item in items
        if (verdict := found.get(item.id)) is not None or unreviewed
    )
    if not merged:
        raise DataError(given, "no item of the queue has a verdict", hint="finish the review first")
    return Review(queue, card, merged)


def _match(
    verdicts: Sequence[Verdict], known: Mapping[str, QueueItem], where: Path
) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for row, verdict in enumerate(verdicts, 1):
        if verdict.item not in known:
            raise DataError(
                where, f"item {verdict.item!r} is not in this queue", row=row, hint="name its queue"
            )
        if verdict.item in found:
            raise DataError(where, f"item {verdict.item!r} has two verdicts", row=row)
        hidden = known[verdict.item].hidden
        if any(hidden.get(name, value) != value for name, value in verdict.hidden.items()):
            # A build that ran again may give the same ids to other questions.
            raise DataError(
                where,
                f"item {verdict.item!r} has changed since it was judged",
                row=row,
                hint="let people judge the queue as it is now, and take the old verdicts away",
            )
        found[verdict.item] = verdict
    return found
