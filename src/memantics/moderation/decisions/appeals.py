"""The queue of open appeals for the annotation app."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.core.errors import InputError, StoreError
from memantics.core.ids import escape_id
from memantics.core.parameters import Argument, Flag
from memantics.core.policy import read_policy
from memantics.core.queue import QueueItem, Shown
from memantics.core.result import Result
from memantics.moderation.decisions.cases import DecisionCase, hash_content, list_open_appeals
from memantics.moderation.decisions.images import find_images, say_not_kept, write_queue_image
from memantics.moderation.decisions.log import DecisionLog
from memantics.moderation.decisions.reviews import (
    ImagesFlag,
    LogFlag,
    mix_gold,
    write_policy_queue,
)


@dataclass(frozen=True, slots=True)
class AppealQueue(Result):
    """A queue of appeals for the annotation app.

    ``images_missing`` counts items on an image that was not kept: reviewers see a note instead.
    """

    folder: Path
    items: int
    images_missing: int = 0


def queue_appeals(
    out: Annotated[Path, Argument("Folder of the queue to write.")],
    database: LogFlag = None,
    *,
    policy: Annotated[Path, Flag("Policy file; its clauses are the options of the form.")],
    gold: Annotated[
        float,
        Flag(
            "Proportion of test items with a known clause, taken from the examples of the policy.",
            min=0,
            max=0.5,
        ),
    ] = 0.0,
    images: ImagesFlag = None,
) -> AppealQueue:
    """Write the open appeals as a review queue, without the first decision and its reviewer.

    Reviewers see the images that were stored with the decision or are in ``images``; the annotation
    app blurs them until a reviewer asks for them.

    Args:
        out: Folder of the queue.
        database: SQLite file or PostgreSQL URL of the log.
        policy: Policy file whose clauses are the options.
        gold: Share of hidden gold items among the items.
        images: Folder with the images, found by their hash.

    Returns:
        The folder, the number of items, and the number of images that were not kept.

    Raises:
        InputError: There is no open appeal.
        StoreError: A stored image was changed.

    Example:
        >>> mm.queue_appeals("appeals", "decisions.db", policy="policy.md").items
        1
    """
    read = read_policy(policy)
    with DecisionLog(database, create=False) as log:
        cases = list(list_open_appeals(log))
        statements = {
            case.decision.id: log.read_content(case.appeal.id) or ""
            for case in cases
            if case.appeal is not None
        }
        pictures = dict(_read_pictures(log, cases))
    if not cases:
        raise InputError("there is no open appeal", hint="try again later")
    language = Counter(case.decision.language or "en" for case in cases).most_common(1)[0][0]
    pictured = {
        case.decision.content_sha256 for case in cases if case.decision.content_type == "image"
    }
    if images is not None:
        pictures |= find_images(Path(images), pictured - set(pictures))
    named = {sha: write_queue_image(Path(out), sha, data) for sha, data in pictures.items()}
    items = [_make_item(case, statements[case.decision.id], named, language) for case in cases]
    missing = sum(
        case.decision.content_type == "image" and case.decision.content_sha256 not in named
        for case in cases
    )
    items = list(mix_gold(items, read, gold))
    count = write_policy_queue(Path(out), read, items, "Appeals", language)
    return AppealQueue(Path(out), count, missing)


def _read_pictures(log: DecisionLog, cases: Sequence[DecisionCase]) -> Iterator[tuple[str, bytes]]:
    """Yield the stored images with their hash; raise StoreError for one that was changed."""
    for case in cases:
        data = log.read_image(case.decision.id)
        if data is None:
            continue
        if hash_content(data) != case.decision.content_sha256:
            raise StoreError(
                f"the stored image of {case.decision.id} was changed",
                hint="run 'memantics decisions verify'",
            )
        yield case.decision.content_sha256, data


def _make_item(
    case: DecisionCase, statement: str, pictures: Mapping[str, str], language: str
) -> QueueItem:
    decision = case.decision
    picture = pictures.get(decision.content_sha256)
    shown = [Shown(label="text", value=case.text)] if case.text else []
    if not case.text and not picture:
        shown.append(Shown(label="id", value=decision.content_id or decision.id))
    if decision.content_type == "image" and not picture:
        shown.append(say_not_kept(language))
    shown += [Shown(label="statement of the poster", value=statement)] if statement else []
    hidden: dict[str, JsonValue] = {
        "id": decision.content_id,
        "text": case.text or "",
        "sha256": decision.content_sha256 if decision.content_type == "image" else "",
        "decision": decision.id,
        "decided_by": [name.strip() for name in decision.reviewer.split(",") if name.strip()],
        "language": decision.language,
    }
    group = escape_id(decision.content_id or decision.id)
    images = [picture] if picture else []
    return QueueItem(id=decision.id, group=group, images=images, shown=shown, hidden=hidden)
