"""What the interfaces take and give, as schemas; the records of the Python API fill them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memantics.actions.analyze import (
    Contradiction,
    Feeling,
    Harm,
    Missing,
    Sight,
    Sound,
)
from memantics.actions.knowledge import MOST_CHARACTERS, Knowledge
from memantics.actions.phonetics import DoubleMeaning, Language, Reading, SecondSense, Spoken
from memantics.actions.reappraise import Checks, MemeFeeling, ReappraisalPlan, Target
from memantics.core.opinion import Opinion
from memantics.core.retrieved import FamilyUse, NearMeme
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


class QueryBody(ClosedBody):
    """A question in SPARQL; it can change nothing and reach no other machine."""

    query: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    limit: int = Field(default=100, ge=1, le=10_000)


class AnalysisRecord(BaseModel):
    """What was found out about a meme: the record that ``memantics analyze --json`` prints."""

    meme: str
    text: str
    lines: list[str]
    language: str
    panels: int
    shows: list[Sight]
    model: str
    sounds: list[Sound]
    intents: list[str]
    background: list[str]
    harm: list[Harm]
    emotion: list[Feeling]
    opinions: list[Opinion]
    near: list[NearMeme]
    family: FamilyUse | None
    contradictions: list[Contradiction]
    baselines: list[str]
    knowledge: Knowledge | None
    left_out: list[Missing]
    statuses: dict[str, int]


class PunsRecord(BaseModel):
    """What a caption may mean when it is read aloud; ``meant`` is the reading that is likely."""

    caption: str
    language: Language
    model: str
    sound: str
    readings: list[Reading]
    confidence: float
    threshold: float
    evidence: list[str]
    double_meanings: list[DoubleMeaning]
    senses: list[SecondSense]
    notes: list[str]
    signals: dict[str, float]
    meant: str | None


class ReappraisalRecord(BaseModel):
    """How a meme was turned around; ``image`` is the new one as a data URL, ``by`` who planned."""

    model_config = ConfigDict(extra="forbid")

    meme: str
    status: Literal["done", "failed", "skipped", "declined"]
    stage: Literal["reading", "feeling", "plan", "picture"]
    reason: str
    feeling: MemeFeeling | None
    plan: ReappraisalPlan | None
    checks: Checks | None
    by: str
    image: str | None


class RowsRecord(BaseModel):
    """The rows that a query found; ``cut`` says that there were more than the limit."""

    variables: list[str]
    rows: list[list[str | None]]
    cut: bool


class JobRecord(BaseModel):
    """A job as it stands. An ended one is kept until ``expires``.

    ``analysis`` or ``reappraisal`` is its result when it is done; ``reason`` says why it failed.
    """

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
    analysis: AnalysisRecord | None
    reappraisal: ReappraisalRecord | None


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
