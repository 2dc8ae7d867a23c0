"""Memes of a screening that need human review, as a queue for the annotation app."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from memantics.core.files import write_text
from memantics.core.ids import escape_id
from memantics.core.policy import Policy, write_policy
from memantics.core.queue import QueueCard, QueueItem, QueueOption, Shown, write_queue
from memantics.moderation.decisions.reviews import list_clause_options, mix_gold
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.policies.screened import FlaggedDecision
from memantics.moderation.scale.records import ShardRow
from memantics.moderation.screening import read_rows, read_tables

REVIEW = "review"
WORKFLOW, POLICY_REVIEW, POLICY_FILE = "review", "review-policy", "policy.md"
# Labels of the detector's harm types in the review form.
_CATEGORIES: Mapping[str, tuple[str, str]] = {
    "targeted": ("Targets a person or group", "针对个人或群体"),
    "offence": ("General offence", "一般冒犯"),
    "sexual": ("Sexual content", "色情或性暗示"),
    "dispirited": ("Dispirited culture", "丧文化"),
}
DOUBT = "the detector is uncertain"
FLAGGED = ("harmful", "review")


def write_review(
    folder: Path,
    point: OperatingPoint,
    people: int = 0,
    policy: Policy | None = None,
    gold: float = 0.0,
    decided: Mapping[str, FlaggedDecision] | None = None,
) -> int:
    """Queue every meme that needs human review; return how many.

    A meme needs review if its probability is in the review band, if it differs from the training
    texts, if it is doubtful for another reason, or if it was not scored or failed. If none is left,
    an existing queue is emptied. The categories of the form are the detector's harm types; without
    types, the form has no categories. With a policy, the form asks for the clause instead, and a
    proportion of hidden gold items is mixed in; the decisions of a model stay hidden.
    """
    queue = folder / REVIEW
    items = list(_list_items(folder))
    if not items and not queue.exists():
        return 0
    ends = point.review_band
    span = "" if ends is None else f"probability {ends[0]:g} to {ends[1]:g}, or "
    languages = Counter(str(item.hidden["language"] or "en") for item in items)
    card = QueueCard(
        title=f"Screening: {span}doubtful, or not scored",
        workflow=WORKFLOW,
        language=max(sorted(languages), key=lambda name: languages[name], default="en"),
        warning="Memes that may be harmful.",
        origin="memantics screen",
        annotators_per_item=people,
        options={"category": options} if (options := _list_categories(folder)) else {},
    )
    if policy is None:
        return write_queue(queue, card, items)
    hidden = {"operating_point": point.summary}
    known = {name: one.to_hidden() for name, one in (decided or {}).items()}
    items = [
        one.model_copy(
            update={"hidden": {**one.hidden, **hidden, **known.get(str(one.hidden["id"]), {})}}
        )
        for one in items
    ]
    form = {"workflow": POLICY_REVIEW, "options": {"clause": list_clause_options(policy)}}
    card = card.model_copy(update={**form, "policy": POLICY_FILE})
    write_text(queue / POLICY_FILE, write_policy(policy), "policy")
    write_queue(queue, card, list(mix_gold(items, policy, gold)))
    return len(items)


def _list_categories(folder: Path) -> list[QueueOption]:
    """List the harm types of the verdicts as options; empty if the detector has no types."""
    for table in read_tables(folder, ("types",)):
        for types in table["types"].to_pylist():
            if types:
                known = {entry["type"] for entry in types} - {"none"}
                return [_make_option(name) for name in sorted(known)]
    return []


def _make_option(name: str) -> QueueOption:
    en, zh = _CATEGORIES.get(name, ("", ""))
    return QueueOption(value=name, en=en, zh=zh)


def _list_items(folder: Path) -> Iterator[QueueItem]:
    pictures = {path.stem: path.name for path in (folder / REVIEW / "images").glob("*.*")}
    for number, row in enumerate(row for row in read_rows(folder) if row["label"] == REVIEW):
        picture = pictures.get(row["sha256"] or "")
        hidden = (
            "id", "text", "sha256", "probability", "type", "status", "reason", "language",
            "detector",
        )  # fmt: skip
        # Without an image and a text, the reviewer looks the meme up by its id.
        blank = not picture and not row["text"].strip()
        yield QueueItem(
            id=f"{number:06d}",
            group=escape_id(row["id"]),
            images=[f"images/{picture}"] if picture else [],
            shown=[
                *([Shown(label="text", value=row["text"])] if row["text"] else []),
                *([Shown(label="id", value=row["id"])] if blank else []),
                Shown(label="why", value=_explain(row)),
            ],
            hidden={name: row[name] for name in hidden},
        )


def _explain(row: ShardRow) -> str:
    """Explain why a person sees a meme; the probability is hidden, since it would bias them."""
    parts = str(row["reason"]).split("; ")
    shown = (DOUBT if part.startswith("its probability") else part for part in parts)
    return "; ".join(dict.fromkeys(shown))
