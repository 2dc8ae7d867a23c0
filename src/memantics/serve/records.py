"""What the interfaces take and give, as schemas; the records of the Python API fill them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, create_model

from memantics.actions.analyze import Analysis, Feeling, Harm, Missing
from memantics.actions.knowledge import MOST_CHARACTERS, QueryRows
from memantics.actions.phonetics import Heard, Spoken
from memantics.actions.reappraise import Reappraisal, Target
from memantics.serve.inputs import ClosedBody
from memantics.serve.jobs import JobKind, JobStatus, StoredJob

_IMAGE = "The image: a data URL, or its bytes as base64."


class AnalyzeBody(ClosedBody):
    """A meme to analyse; with ``with_model`` the service's model is asked, as a job."""

    image: str = Field(description=_IMAGE)
    with_model: bool = False
    model: str | None = Field(default=None, description="One of the service's models.")
    language: str | None = Field(default=None, max_length=16, description="Of what is written.")


class PunsBody(ClosedBody):
    """A caption to read aloud; ``description`` says what the picture shows."""

    caption: str = Field(min_length=1, max_length=2000)
    description: str | None = Field(default=None, max_length=4000)
    language: Spoken = "auto"
    limit: int = Field(default=5, ge=1, le=50)


class ReappraiseBody(ClosedBody):
    """A meme to turn around, always as a job; without a model a lexicon plans (a baseline)."""

    image: str = Field(description=_IMAGE)
    with_model: bool = False
    model: str | None = Field(default=None, description="One of the service's models.")
    target: Target | None = None
    versions: int = Field(default=1, ge=1, le=8, description="How many to draw and compare.")


class QueryBody(ClosedBody):
    """A question in SPARQL; it can change nothing and reach no other machine."""

    query: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    limit: int = Field(default=100, ge=1, le=10_000)


def describe_result(name: str, result: type, without: Collection[str] = (), **other: object) -> Any:
    """The schema of what a result's ``to_dict`` gives, from its fields.

    ``without`` are fields that are not sent, ``other`` are sent beside or instead of them.
    """
    hints = get_type_hints(result)
    kept = {field.name: hints[field.name] for field in fields(result)}
    sent = {key: kind for key, kind in kept.items() if key not in without} | other
    doc = (result.__doc__ or "").partition("\n")[0]
    parts: dict[str, Any] = {key: (kind, ...) for key, kind in sent.items()}
    return create_model(name, __doc__=doc, **parts)


AnalysisRecord = describe_result(
    "AnalysisRecord",
    Analysis,
    without=("harms", "feelings", "missing", "size"),
    meme=str,
    text=str,
    caption=str,
    harm=tuple[Harm, ...],
    emotion=tuple[Feeling, ...],
    baselines=tuple[str, ...],
    left_out=tuple[Missing, ...],
)
PunsRecord = describe_result("PunsRecord", Heard, meant=str | None)
# ``image`` is the new meme as a data URL, ``by`` who planned it. Where several versions were
# wanted, ``images`` are theirs, ``sheet`` all of them on one picture, ``page`` the same as HTML.
ReappraisalRecord = describe_result(
    "ReappraisalRecord",
    Reappraisal,
    without=("folder", "resumed"),
    by=str,
    image=str | None,
    images=list[str],
    sheet=str | None,
    page=str | None,
)
RowsRecord = describe_result("RowsRecord", QueryRows)


class StandingJob(BaseModel):
    """What every job has, whatever its kind."""

    id: str
    kind: JobKind
    status: JobStatus
    created: datetime
    ended: datetime | None
    expires: datetime | None
    done: int
    total: int | None
    reason: str
    location: str
    events: str


JobRecord: Any = create_model(
    "JobRecord",
    __base__=StandingJob,
    __doc__="""A job as it stands. An ended one is kept until ``expires``.

    ``analysis`` or ``reappraisal`` is its result when it is done; ``reason`` says why it failed.
    """,
    analysis=(AnalysisRecord | None, ...),
    reappraisal=(ReappraisalRecord | None, ...),
)


def show_job(job: StoredJob) -> dict[str, object]:
    """A job as it is sent, see :class:`JobRecord`."""
    return {
        "id": job.id,
        "kind": job.kind,
        "status": job.status,
        "created": _moment(job.created),
        "ended": _moment(job.ended),
        "expires": _moment(job.expires),
        "done": job.done,
        "total": job.total,
        "reason": job.reason,
        "location": f"/v1/jobs/{job.id}",
        "events": f"/v1/jobs/{job.id}/events",
        "analysis": job.result if job.kind == "analyze" else None,
        "reappraisal": job.result if job.kind == "reappraise" else None,
    }


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
