"""Drafts and verdicts brought together: what people agreed on replaces what a model proposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from memantics.core.errors import DataError, InputError
from memantics.core.language import language_of
from memantics.core.memes import CAPTIONS, Meme, read_captions, read_memes, with_captions
from memantics.core.queue import (
    CARD,
    VERDICTS,
    ItemVerdict,
    QueueCard,
    QueueItem,
    read_queue,
    read_verdicts,
)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An item of a queue with its final values; ``verdict`` is None where nobody judged it."""

    item: QueueItem
    values: Mapping[str, JsonValue]
    verdict: ItemVerdict | None

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
        return tuple(reviewed for reviewed in self.items if reviewed.verdict is not None)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question that people judged: its dimension, its meme, and whether it was accepted."""

    dimension: str
    meme: str
    accepted: bool
    first: bool


def list_judged_questions(review: Review) -> tuple[JudgedQuestion, ...]:
    """The questions of a validated queue, each with its dimension; none where it holds others.

    The second question of an item is about the element that the first one's toxicity rests on.
    """
    found: list[JudgedQuestion] = []
    for reviewed in review.judged:
        hidden, values = reviewed.item.hidden, reviewed.values
        dimension, element = hidden.get("dimension"), hidden.get("element")
        if not isinstance(dimension, str) or "questions" not in hidden:
            continue
        found.append(JudgedQuestion(dimension, reviewed.item.group, reviewed.kept, first=True))
        asked = "second_question" in values and isinstance(element, str) and element
        if asked:
            yes = all(values.get(name) == "yes" for name in ("second_question", "second_answer"))
            kind = str(element).partition("/")[0]
            found.append(
                JudgedQuestion(kind, reviewed.item.group, reviewed.kept and yes, first=False)
            )
    return tuple(found)


def read_review(queue: Path, verdicts: Path | None, *, unreviewed: bool = False) -> Review:
    """Read a queue and its verdicts (default: ``verdicts.jsonl`` beside the items).

    Items without a verdict stay out, unless ``unreviewed`` lets drafts through as they are. A
    folder of memes that people judged as it was is read like a queue of them.
    """
    given = verdicts or queue / VERDICTS
    plain = given.is_file() and not (queue / CARD).is_file()
    card, items = _read_folder(queue, given) if plain else read_queue(queue)
    found: dict[str, ItemVerdict] = {}
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


def _read_folder(folder: Path, verdicts: Path) -> tuple[QueueCard, list[QueueItem]]:
    """The memes of a folder as items; the verdicts say by which workflow they were judged."""
    first = next(read_verdicts(verdicts), None)
    if first is None:
        raise DataError(verdicts, "holds no verdict", hint="finish the review first")
    mined = folder / CAPTIONS
    memes = with_captions(read_memes(folder), read_captions(mined) if mined.is_file() else {})
    card = QueueCard(
        title=folder.resolve().name, workflow=first.workflow, warning="Memes may be offensive."
    )
    return card, [_make_item(meme, folder) for meme in memes]


def _make_item(meme: Meme, folder: Path) -> QueueItem:
    facts: dict[str, JsonValue] = {
        "text": meme.text,
        "language": meme.language or language_of(meme),
        "family": meme.family,
        "description": meme.notes.get("description", ""),
        "meaning": meme.notes.get("meaning", ""),
    }
    image = meme.image.relative_to(folder).as_posix()
    return QueueItem(id=meme.id, group=meme.id, images=[image], hidden=facts)


def _match(
    verdicts: Sequence[ItemVerdict], known: Mapping[str, QueueItem], where: Path
) -> dict[str, ItemVerdict]:
    found: dict[str, ItemVerdict] = {}
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


def find_queues(folder: Path) -> list[Path]:
    """The queues of a build in the order in which they were made, or the queue itself."""
    if (folder / CARD).is_file():
        return [folder]
    found = [path for path in folder.glob("queue*") if (path / CARD).is_file()]
    # queue, queue-2, … queue-10
    return sorted(found, key=lambda path: (len(path.name), path.name))


def read_reviews(queues: Sequence[Path], *, unreviewed: bool = False) -> Review:
    """The reviews of several rounds as one: of a meme that came again, the last word counts."""
    reviews = [read_review(path, None, unreviewed=unreviewed) for path in queues]
    if not reviews:
        raise InputError("no queue was found", hint=f"name a folder with {CARD}")
    if len(reviews) == 1:
        return reviews[0]
    merged = {reviewed.item.id: reviewed for review in reviews for reviewed in _rebase(review)}
    return Review(queues[0].parent, reviews[0].card, tuple(merged.values()))


def _rebase(review: Review) -> Iterator[Reviewed]:
    """The items of a queue with their images named from the folder above it."""
    name = review.folder.name
    for reviewed in review.items:
        hidden = dict(reviewed.item.hidden)
        if isinstance(edits := hidden.get("edits"), dict):
            hidden["edits"] = {editor: f"{name}/{image}" for editor, image in edits.items()}
        images = [f"{name}/{image}" for image in reviewed.item.images]
        item = reviewed.item.model_copy(update={"images": images, "hidden": hidden})
        yield Reviewed(item, reviewed.values, reviewed.verdict)
