"""What the data layer hands to its callers: plain, frozen, free of the database."""

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
    """A record from a row whose columns bear the names of its fields; others are given."""
    names: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]
    found = {name: getattr(row, name) for name in names if name not in given}
    return kind(**found, **given)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. Only :meth:`Accounts.actor_of` and its kin make one."""

    id: int
    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """A fresh session; the token is shown once and stored only as a hash."""

    token: str
    actor: Actor
    expires: float


class Preferences(Closed):
    """What a person chose for themselves. 0: no limit of their own."""

    language: Literal["en", "zh"] = "en"
    blur: bool = True
    grey: bool = False
    daily_limit: int = Limit(default=0, ge=0, le=100_000)
    break_minutes: int | None = Limit(default=None, ge=0, le=600)


@dataclass(frozen=True, slots=True)
class Invitation:
    """What an invitation offers; ``id`` serves to revoke it, the token is not stored."""

    id: int
    project: int
    project_title: str
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
    """What a person may do in a project, and the project's rules."""

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
    """One entry in the history of an item, as its readers may see it."""

    person: str
    stage: str
    action: str
    values: FieldValues
    at: float
    version: int


@dataclass(frozen=True, slots=True)
class AnnotationTask:
    """All that a person needs to answer one item at one stage.

    ``state`` is what stands so far (sequential stages start from it, reviews rate it),
    ``suggestions`` are pre-labels where the project shows them: never preselect them.
    ``draft`` is what this person typed and did not submit, ``answer`` what they submitted.
    ``votes`` are the answers that an adjudicator decides between. A pairwise field is answered
    with ``first``, ``second`` or ``tie``, in the order in which ``shown`` has the two.
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
    """After a training item: what was expected, and which fields were right."""

    gold: FieldValues
    right: Mapping[str, bool]
    accuracy: float
    state: TrainingState


@dataclass(frozen=True, slots=True)
class Saved:
    """An acknowledged answer: it is on disk. ``again``: the same answer was there already."""

    assignment: int
    version: int
    again: bool = False
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """One of my last items."""

    assignment: int
    number: int
    stage: str
    at: float
    version: int
    training: bool
    changeable: bool


@dataclass(frozen=True, slots=True)
class PersonStanding:
    """Where a person stands in a project; ``pace`` is their median seconds an item.

    ``working_minutes`` is how long they have been at it without a pause of ten minutes: time for
    a break when it passes ``break_minutes`` (0: they want no reminder).
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
    """How far one stage is, in answers."""

    stage: str
    title: LocalizedText
    done: int
    leased: int
    open: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """How many answers one person gave; how fast, when and what they skip is theirs to know."""

    person: str
    name: str
    done: int


@dataclass(frozen=True, slots=True)
class ProjectProgress:
    """How far a project is; ``pace`` is the median of the seconds of all answers."""

    items: int
    finished: int
    training_items: int
    stages: tuple[StageProgress, ...]
    people: tuple[PersonProgress, ...]
    pace: float | None = None

    @property
    def left(self) -> int:
        """How many answers are still to come."""
        return sum(stage.open + stage.leased + stage.waiting for stage in self.stages)


@dataclass(frozen=True, slots=True)
class AccuracyDrift:
    """One person against gold, in order of time: ``windows`` are accuracies of successive runs."""

    person: str
    name: str
    items: int
    accuracy: float | None
    windows: tuple[float, ...]
    training: TrainingState


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which people differ, field by field.

    ``notes`` are the free texts of those who answered, ``split`` the largest share of people
    outside the largest group, over fields: 2 against 1 is a third. ``at`` is when the last of
    them answered, ``decision`` what an adjudicator said; ``decidable``: one may say it now.
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
    """One change: who, when, what."""

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
    """An item with all that happened to it, for the lead."""

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
    """What an import brought; ``skipped`` says what was left out, and why."""

    items: int
    images: int
    answers: int = 0
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Export:
    """A file to hand out."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """An image of a project: where its bytes are, and what they are."""

    id: str
    path: Path
    media_type: str
    width: int
    height: int
    size: int


@dataclass(frozen=True, slots=True)
class AggregatedItem:
    """How an item ended. ``details`` says what a rule did (counts, drops, restores)."""

    item: str
    group: str
    kept: bool
    values: FieldValues
    reason: str = ""
    complete: bool = True
    details: FieldValues = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """Whether the database answers, and at which schema."""

    ok: bool
    database: str
    schema: str
