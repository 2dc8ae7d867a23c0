"""Decisions on the flagged memes of a screening, by a policy.

With a model, the decision cites a clause. Without one the score of the detector decides, and the
row says that no clause was applied. Rows have no text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import orjson
from pydantic import JsonValue

from memantics.core.files import replace_file
from memantics.core.model import Taken
from memantics.core.policy import NO_CLAUSE, Policy
from memantics.core.waiting import run_sync
from memantics.models.client import CallSettings, open_client
from memantics.moderation.decisions.cases import NO_CLAUSE_NOTE
from memantics.moderation.policies.asking import PolicyMeme, PolicyReply, make_decision_step
from memantics.moderation.scale.records import ShardRow
from memantics.moderation.screening import read_rows

DECISIONS, CALLS = "decisions.jsonl", "policy-calls"
TEXT_ALONE = "the model decided by the text alone: images are kept only for memes in review"
_AT_ONCE = 256
_HARMFUL, _REVIEW = "harmful", "review"


@dataclass(frozen=True, slots=True)
class FlaggedDecision:
    """The decision on a flagged meme.

    ``verdict`` is ``violates`` or ``allowed``, and empty if a person has to decide. ``clause`` is
    ``none`` if no clause applies, and empty without a decision.
    """

    id: str
    label: str
    verdict: str
    clause: str
    policy: str
    model: str
    explanation: str = ""
    note: str = ""

    def to_hidden(self) -> dict[str, JsonValue]:
        """Return the fields of a review item, which reviewers do not see."""
        return {"model": self.model, "model_clause": self.clause} if self.model else {}


def decide_flagged(
    folder: Path, policy: Policy, model: str | None, calls: CallSettings
) -> dict[str, FlaggedDecision]:
    """Decide the flagged memes of a screening, write ``decisions.jsonl``, and return them by id.

    Calls are logged below the folder, so that an interrupted screening repeats none. Images are
    kept only for memes in review: of others, the model sees the text, and the note says so.
    """
    rows = (row for row in read_rows(folder) if row["label"] in (_HARMFUL, _REVIEW))
    if model is None:
        made = [_decide_by_score(row, policy) for row in rows]
    else:
        made = run_sync(_ask(folder, rows, policy, model, calls))
    body = b"".join(orjson.dumps(asdict(one)) + b"\n" for one in made)
    replace_file(folder / DECISIONS, body, "decisions")
    return {one.id: one for one in made}


def _decide_by_score(row: ShardRow, policy: Policy) -> FlaggedDecision:
    sure = row["label"] == _HARMFUL
    return FlaggedDecision(
        str(row["id"]),
        str(row["label"]),
        "violates" if sure else "",
        NO_CLAUSE if sure else "",
        policy.name,
        "",
        note=NO_CLAUSE_NOTE if sure else "needs human review; no clause was applied",
    )


async def _ask(
    folder: Path, rows: Iterator[ShardRow], policy: Policy, model: str, calls: CallSettings
) -> list[FlaggedDecision]:
    pictures = {path.stem: path for path in (folder / _REVIEW / "images").glob("*.*")}
    made: list[FlaggedDecision] = []
    async with open_client(model, calls, folder / CALLS) as client:
        while batch := list(islice(rows, _AT_ONCE)):
            memes = [_find_meme(row, pictures) for row in batch]
            seen = [meme for meme in memes if meme.text.strip() or meme.image]
            client.expect(len(seen))
            steps = (make_decision_step(policy, meme) for meme in seen)
            taken = await asyncio.gather(*(client.take(step) for step in steps))
            by_id = {meme.id: one for meme, one in zip(seen, taken, strict=True)}
            shown = {meme.id for meme in seen if meme.image is not None}
            for row in batch:
                one = _read(row, policy, client.model, by_id.get(str(row["id"])))
                unseen = row["sha256"] and one.verdict and one.id not in shown
                made.append(replace(one, note=TEXT_ALONE) if unseen else one)
    return made


def _find_meme(row: ShardRow, pictures: Mapping[str, Path]) -> PolicyMeme:
    return PolicyMeme(str(row["id"]), str(row["text"] or ""), pictures.get(row["sha256"] or ""))


def _read(
    row: ShardRow, policy: Policy, model: str, taken: Taken[PolicyReply] | None
) -> FlaggedDecision:
    reply = taken.value if taken else None
    reason = "its text and image are not stored" if taken is None else taken.status
    return FlaggedDecision(
        str(row["id"]),
        str(row["label"]),
        reply.verdict if reply else "",
        reply.clause if reply else "",
        policy.name,
        model,
        reply.explanation if reply else "",
        "" if reply else f"the model gave no decision: {reason}",
    )
