"""Records that the service returns: immutable, without database objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field as Limit
from pydantic import JsonValue

from memantics.annotation.errors import FieldValues
from memantics.annotation.project_settings import LocalizedText, ProjectSettings
from memantics.annotation.workflow import ProjectRole, StageKind, Workflow
from memantics.core.queue import Shown
from memantics.core.records import Closed

AssignmentState = Literal["waiting", "open", "leased", "done", "closed"]
TrainingState = Literal["none", "running", "passed", "failed"]
Action = Literal["submit", "edit", "undo", "import"]
Record = TypeVar("Record")


def record_of(kind: type[Record], row: Any, **given: object) -> Record:
    """Build a record from a row with equally named columns; other fields are given."""
    names: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]
    found = {name: getattr(row, name) for name in names if name not in given}
    return kind(**found, **given)


@dataclass(frozen=True, slots=True)
class Actor:
    """The account that makes a request; only :class:`Accounts` creates one from a session."""

    id: int
    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """A new session; the token is shown once and stored only as a hash."""

    token: str
    actor: Actor
    expires: float


class Preferences(Closed):
    """Personal settings of an account; a limit of 0 means no personal limit."""

    language: Literal["en", "zh"] = "en"
    blur: bool = True
    grey: bool = False
    daily_limit: int = Limit(default=0, ge=0, le=100_000)
    break_minutes: int | None = Limit(default=None, ge=0, le=600)


@dataclass(frozen=True, slots=True)
class Invitation:
    """Content of an invitation; ``id`` is used to revoke it."""

    id: int
    project: int
    project_title: str
    workflow: Workflow
    roles: tuple[ProjectRole, ...]
    note: str
    expires: float
    used: bool


@dataclass(frozen=True, slots=True)
class Project:
    """A project as one of its members sees it."""

    id: int
    title: str
    workflow: Workflow
    settings: ProjectSettings
    language: str
    roles: frozenset[ProjectRole]
    consented: bool
    archived: bool
    pseudonym: str


@dataclass(frozen=True, slots=True)
class Rights(Project):
    """Rights of a person in a project, with the project's workflow and settings."""

    training: TrainingState
    training_round: int
    daily_limit: int | None
    weekly_limit: int | None
    preferences: Preferences


@dataclass(frozen=True, slots=True)
class Member:
    """A person in a project."""

    user: int
    name: str
    pseudonym: str
    roles: tuple[ProjectRole, ...]
    daily_limit: int | None
    weekly_limit: int | None
    training: TrainingState
    consented: bool
    active: bool


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One entry in the history of an item."""

    person: str
    stage: str
    action: str
    values: FieldValues
    at: float
    version: int


@dataclass(frozen=True, slots=True)
class AnnotationTask:
    """Everything needed to answer one item at one stage.

    ``state`` holds the values so far: sequential stages start from it, reviews rate it.
    ``suggestions`` are pre-labels, if the project shows them; they must not be preselected.
    ``draft`` is the unsubmitted input, ``answer`` the submitted one. ``annotations`` are the
    answers that an adjudicator decides between. A pairwise field is answered with ``first``,
    ``second`` or ``tie``, in the order of ``shown``.
    """

    assignment: int
    project: int
    number: int
    stage: str
    kind: StageKind
    title: LocalizedText
    fields: tuple[str, ...]
    images: tuple[str, ...]
    shown: tuple[Shown, ...]
    state: FieldValues
    suggestions: FieldValues
    draft: FieldValues | None
    answer: FieldValues | None
    version: int
    lease_until: float
    slot: int
    annotators: int
    training: bool
    history: tuple[HistoryStep, ...] = ()
    annotations: tuple[HistoryStep, ...] = ()
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback on a training item: expected values, and which fields were correct."""

    gold: FieldValues
    right: Mapping[str, bool]
    accuracy: float
    state: TrainingState


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved answer; ``again`` is true if the same answer was already saved."""

    assignment: int
    version: int
    again: bool = False
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """One of a person's recent answers."""

    assignment: int
    number: int
    stage: str
    at: float
    version: int
    training: bool
    changeable: bool


@dataclass(frozen=True, slots=True)
class PersonStanding:
    """Progress of a person in a project; ``pace`` is the median time per item in seconds.

    ``working_minutes`` is the time without a pause of ten minutes. A break is due when it exceeds
    ``break_minutes`` (0: no reminder).
    """

    done: int
    today: int
    week: int
    daily_limit: int
    weekly_limit: int
    open: int
    pace: float | None
    training: TrainingState
    training_round: int
    training_done: int
    training_size: int
    break_minutes: int
    working_minutes: float = 0.0


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Number of answers at one stage by state."""

    stage: str
    title: LocalizedText
    done: int
    leased: int
    open: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """Number of answers of one member; speed, times and skips are not recorded here."""

    person: str
    name: str
    done: int


@dataclass(frozen=True, slots=True)
class ProjectProgress:
    """Progress of a project; ``pace`` is the median time per answer in seconds."""

    items: int
    finished: int
    training_items: int
    stages: tuple[StageProgress, ...]
    people: tuple[PersonProgress, ...]
    pace: float | None = None

    @property
    def left(self) -> int:
        """Return the number of answers that are still missing."""
        return sum(stage.open + stage.leased + stage.waiting for stage in self.stages)


@dataclass(frozen=True, slots=True)
class AccuracyDrift:
    """Accuracy of one annotator on known answers; ``windows`` are consecutive blocks of items."""

    person: str
    name: str
    items: int
    accuracy: float | None
    windows: tuple[float, ...]
    training: TrainingState


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which annotators differ, by field.

    ``notes`` are the annotators' free texts. ``split`` is the largest proportion of annotators
    outside the majority, over fields: 2 against 1 is a third. ``at`` is the time of the last
    answer, ``decision`` the adjudicated answer. ``decidable`` is true if the item can be
    adjudicated now.
    """

    item: int
    number: int
    key: str
    group: str
    images: tuple[str, ...]
    fields: Mapping[str, tuple[tuple[str, JsonValue], ...]]
    state: str
    shown: tuple[Shown, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    split: float = 0.0
    at: float = 0.0
    decision: FieldValues | None = None
    decidable: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit log: who changed what, and when."""

    id: int
    at: float
    person: str
    action: str
    subject: str
    detail: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """One assignment of an item, for the lead."""

    assignment: int
    stage: str
    slot: int
    state: AssignmentState
    person: str
    version: int
    values: FieldValues | None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item with its assignments and history, for the lead."""

    id: int
    number: int
    key: str
    group: str
    images: tuple[str, ...]
    shown: tuple[Shown, ...]
    prelabels: FieldValues
    gold: FieldValues | None
    hidden: FieldValues
    assignments: tuple[AssignmentView, ...]
    history: tuple[HistoryStep, ...]


@dataclass(frozen=True, slots=True)
class ImportedItems:
    """Result of an import; ``skipped`` lists what was skipped, with the reason."""

    items: int
    images: int
    answers: int = 0
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Export:
    """A file for download."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """An image of a project: file, type and size."""

    id: str
    path: Path
    media_type: str
    width: int
    height: int
    size: int


@dataclass(frozen=True, slots=True)
class AggregatedItem:
    """Aggregated values of an item; ``details`` has counts, dropped and restored elements."""

    item: str
    group: str
    kept: bool
    values: FieldValues
    reason: str = ""
    complete: bool = True
    details: FieldValues = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """Whether the database responds, and its schema revision."""

    ok: bool
    database: str
    schema: str
