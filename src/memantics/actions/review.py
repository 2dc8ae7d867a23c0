"""The review queue of a screening: the memes that need a human decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memantics.actions.screen_work import read_rows
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.detector.operating_points import OperatingPoint
from memantics.scale.records import Row

# The memes of a screening that people are to look at, as a queue of the annotation app.

REVIEW = "review"
WORKFLOW = "review-harm"
DOUBT = "the detector is in doubt"


def write_review(folder: Path, point: OperatingPoint, people: int = 0) -> int:
    """Queue what is doubtful, unlike the training texts or, with a range for people, unjudged.

    Return how many memes there are. A queue of an earlier run is emptied where none is left.
    """
    queue = folder / REVIEW
    items = list(_list_items(folder, point))
    if not items and not queue.exists():
        return 0
    span = "" if point.review is None else "probability {:g} to {:g}, or ".format(*point.review)
    unjudged = "" if point.review is None else " or unjudged"
    languages = Counter(str(item.hidden["language"] or "en") for item in items)
    card = QueueCard(
        title=f"Screening: {span}unlike the training texts{unjudged}",
        workflow=WORKFLOW,
        language=max(sorted(languages), key=lambda name: languages[name], default="en"),
        warning="Memes that may be harmful.",
        origin="memantics screen",
        people=people,
    )
    return write_queue(queue, card, items)


def _list_items(folder: Path, point: OperatingPoint) -> Iterator[QueueItem]:
    pictures = {path.stem: path.name for path in (folder / REVIEW / "images").glob("*.*")}
    for number, row in enumerate(row for row in read_rows(folder) if _is_for_people(row, point)):
        picture = pictures.get(row["sha256"] or "")
        if not picture and not row["text"].strip():
            continue  # nothing that a person could look at
        hidden = ("id", "text", "probability", "type", "status", "reason", "language", "detector")
        yield QueueItem(
            id=f"{number:06d}",
            group=row["id"][:300],
            images=[f"images/{picture}"] if picture else [],
            shown=[
                *([Shown(label="text", value=row["text"])] if row["text"] else []),
                Shown(label="why", value=_explain(row)),
            ],
            hidden={name: row[name] for name in hidden},
        )


def _explain(row: Row) -> str:
    """Why a person sees a meme; a probability would lead them."""
    doubt = row["status"] == "judged" and not row["out_of_domain"]
    return DOUBT if doubt and row["reason"].startswith("its probability") else str(row["reason"])


def _is_for_people(row: Row, point: OperatingPoint) -> bool:
    unjudged = row["status"] == "unjudged" and point.review is not None
    return row["label"] == "review" or unjudged
