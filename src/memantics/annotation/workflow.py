"""Annotation workflows as TOML: fields, stages, roles, aggregation rules and thresholds.

A project's settings are applied to its workflow: annotators per item, and adjudication of ties. All
other modules use the resulting workflow. The stage for ties is added last, so that the positions of
the other stages do not change. Once added, it stays and is closed if nobody adjudicates.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import Field as Limit
from pydantic import ValidationError, model_validator

from memantics.annotation.project_settings import LocalizedText, ProjectSettings, is_sampled
from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.files import read_regular_text
from memantics.core.policy import Policy, parse_policy
from memantics.core.records import Closed

ProjectRole = Literal["lead", "annotator", "reviewer", "adjudicator"]
ROLES: tuple[ProjectRole, ...] = get_args(ProjectRole)
WorkflowFieldKind = Literal[
    "choice", "scale", "text", "longtext", "ranked", "list", "boolean", "pairwise"
]
StageKind = Literal["independent", "sequential", "review", "adjudicate"]
RuleName = Literal["majority", "plurality", "mean", "median", "last", "longest", "reviewed"]
Tie = Literal["adjudicate", "none", "longest", "first"]
FieldLevel = Literal["nominal", "ordinal", "interval", "none"]
Scalar = str | bool | int
WorkflowName = Annotated[str, Limit(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
FOLDER = Path(__file__).parent / "workflows"
PAIR = ("a", "b", "tie")


class WorkflowChoice(Closed):
    """One option of a choice, and its keyboard shortcut."""

    value: str
    label: LocalizedText
    key: Annotated[str, Limit(max_length=1)] = ""


class WorkflowField(Closed):
    """One input field of the form.

    ``show_if`` lists earlier fields and the values that make this field visible. ``needs`` is the
    label of a shown text that the field requires. ``each`` repeats the field for every element of
    an earlier list. ``of`` names what a pairwise field compares: the label of a shown text of kind
    ``pair``, or ``images`` for the last two images. With ``queue_options``, the options of a choice
    come from the queue; without options in the queue, the field is not asked. ``within`` names an
    earlier text field in which the text of this field must occur.
    """

    id: WorkflowName
    kind: WorkflowFieldKind
    label: LocalizedText
    help: LocalizedText = LocalizedText(en="")
    options: tuple[WorkflowChoice, ...] = ()
    queue_options: bool = False
    low: int = 1
    high: int = 5
    anchors: tuple[LocalizedText, ...] = ()
    required: bool = True
    show_if: Mapping[str, tuple[Scalar, ...]] = {}
    needs: str = ""
    each: str = ""
    of: str = ""
    within: str = ""
    ties: bool = True
    max_length: Annotated[int, Limit(ge=1, le=100_000)] = 4000
    max_items: Annotated[int, Limit(ge=1, le=500)] = 50
    level: FieldLevel | None = None

    @property
    def scale_level(self) -> FieldLevel:
        """Return the level of measurement for agreement metrics; ``none`` for free text."""
        if self.level is not None:
            return self.level
        if self.kind == "scale":
            return "ordinal"
        return "nominal" if self.kind in ("choice", "boolean", "pairwise") else "none"

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return the values of a choice."""
        return tuple(option.value for option in self.options)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.queue_options and self.options:
            raise ValueError(f"field {self.id!r}: use either options or queue_options")
        if (self.kind == "choice") != bool(self.options or self.queue_options):
            raise ValueError(
                f"field {self.id!r}: a field of kind 'choice' needs options, other kinds have none"
            )
        if len(set(self.allowed)) != len(self.options):
            raise ValueError(f"field {self.id!r}: two options have the same value")
        keys = [option.key for option in self.options if option.key]
        if len(set(keys)) != len(keys):
            raise ValueError(
                f"field {self.id!r}: two options have the same keyboard shortcut (key)"
            )
        if self.kind == "scale" and not self.low < self.high <= self.low + 20:
            raise ValueError(f"field {self.id!r}: a scale needs low < high and at most 21 steps")
        if self.anchors and len(self.anchors) != self.high - self.low + 1:
            raise ValueError(f"field {self.id!r}: anchors need one text per step of the scale")
        if self.each and self.kind not in ("scale", "choice", "boolean"):
            raise ValueError(f"field {self.id!r}: 'each' needs kind scale, choice or boolean")
        return self


class Exclusion(Closed):
    """An answer that excludes an item from all later stages, with the reason."""

    field: str
    values: tuple[Scalar, ...]
    reason: str


class Stage(Closed):
    """One step of a workflow: fields, role and number of annotators.

    Annotators of the stages in ``disjoint_from`` may not take this stage for the same meme.
    ``start`` defines the initial values of a sequential stage: empty, the pre-labels (if the
    project shows them), or always the drafts of the queue. ``exclude_if`` lists answers that
    exclude an item; at a stage with several independent annotators, more than half must choose one.
    With ``blind``, the adjudicator does not see the annotations, and the answer counts as one more
    annotation.
    """

    id: WorkflowName
    kind: StageKind
    title: LocalizedText
    fields: Annotated[tuple[str, ...], Limit(min_length=1)]
    role: ProjectRole = "annotator"
    annotators: Annotated[int, Limit(ge=1, le=50)] = 1
    disjoint_from: tuple[str, ...] = ()
    exclude_uploader: bool = True
    start: Literal["empty", "prelabels", "drafts"] = "empty"
    exclude_if: tuple[Exclusion, ...] = ()
    blind: bool = False


class Rule(Closed):
    """Rule that aggregates annotations of fields; ``joint`` treats several fields as one label.

    ``reviewed`` filters a list by its reviews: an element is kept if every rating in ``by`` is at
    least ``at_least``. If no element is kept, ``restore`` keeps those with the best mean.
    """

    fields: Annotated[tuple[str, ...], Limit(min_length=1)]
    rule: RuleName
    stage: str
    joint: bool = False
    tie: Tie = "none"
    by: str = ""
    at_least: float = 0
    restore: bool = True


class Keep(Closed):
    """Conditions on aggregated values that an item must meet to be kept."""

    when: Mapping[str, tuple[Scalar, ...]] = {}
    reason: str = "not confirmed"


class ProficiencyTest(Closed):
    """Questions with known answers; people with too few correct answers are not kept."""

    answers: Mapping[str, tuple[Scalar, ...]]
    at_least: Annotated[int, Limit(ge=1)]
    reason: str = "not proficient"

    def passed(self, values: Mapping[str, object]) -> bool:
        """Return whether enough answers are correct."""
        right = sum(values.get(name) in wanted for name, wanted in self.answers.items())
        return right >= self.at_least


class TrainingRounds(Closed):
    """Training rounds on items with known answers, passed before real work begins."""

    fields: Annotated[tuple[str, ...], Limit(min_length=1)]
    rounds: Annotated[int, Limit(ge=1, le=20)] = 3
    size: Annotated[int, Limit(ge=1, le=1000)] = 10
    threshold: Annotated[float, Limit(ge=0, le=1)] = 0.75
    feedback: bool = True


class Workflow(Closed):
    """Content of a workflow file; read it with :func:`read_workflow`.

    ``examples`` are worked examples shown below the instructions. With ``personal``, people answer
    about themselves: such a project needs its own database, and exports contain neither names nor
    times. ``policy`` is the text of the policy file that is the guideline.
    """

    name: Annotated[str, Limit(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
    title: LocalizedText
    instructions: LocalizedText = LocalizedText(en="")
    examples: tuple[LocalizedText, ...] = ()
    shuffle: bool = False
    personal: bool = False
    fields: Annotated[tuple[WorkflowField, ...], Limit(min_length=1)]
    stages: Annotated[tuple[Stage, ...], Limit(min_length=1)]
    aggregate: Annotated[tuple[Rule, ...], Limit(min_length=1)]
    keep: Keep = Keep()
    test: ProficiencyTest | None = None
    training: TrainingRounds | None = None
    settings: ProjectSettings = ProjectSettings()
    policy: str = ""

    def field(self, name: str) -> WorkflowField:
        """Return a field by its id."""
        return self._by_id[name]

    @cached_property
    def _by_id(self) -> dict[str, WorkflowField]:
        return {field.id: field for field in self.fields}

    def stage_fields(self, stage: int) -> tuple[WorkflowField, ...]:
        """Return the fields of a stage, in order."""
        return tuple(self.field(name) for name in self.stages[stage].fields)

    def place(self, stage: str) -> int:
        """Return the index of a stage."""
        return next(place for place, entry in enumerate(self.stages) if entry.id == stage)

    @property
    def independent_stages(self) -> list[tuple[int, Stage]]:
        """Return the index and stage of all stages with independent annotators."""
        kinds = ("independent", "review")
        return [(n, stage) for n, stage in enumerate(self.stages) if stage.kind in kinds]

    @property
    def main_stage(self) -> int:
        """Return the index of the first stage with independent annotators, or 0."""
        return next((place for place, _ in self.independent_stages), 0)

    def admits(self, stage: int, roles: Collection[str]) -> bool:
        """Return whether people with these roles work at a stage.

        Reviewers work like annotators if the workflow has no stage for reviewers. If the guideline
        is a policy, one of the roles must be among its deciders.
        """
        if self.decided_by is not None and not self.decided_by.allows(roles):
            return False
        role = self.stages[stage].role
        reviewed = any(entry.role == "reviewer" for entry in self.stages)
        return role in roles or (role == "annotator" and "reviewer" in roles and not reviewed)

    @cached_property
    def decided_by(self) -> Policy | None:
        """Return the policy that is the guideline; its deciders alone may work."""
        return parse_policy(self.policy, "policy of the project") if self.policy else None

    def list_tasks(self, role: ProjectRole) -> tuple[LocalizedText, ...]:
        """Return the titles of the stages at which a role works.

        >>> [title.en for title in read_workflow("review").list_tasks("reviewer")]
        ['Review']
        """
        stages = enumerate(self.stages)
        return tuple(stage.title for place, stage in stages if self.admits(place, {role}))

    def annotators_at(self, stage: int, item: str) -> int:
        """Return the number of annotators of an item at a stage.

        Items in the overlap, the part that everyone annotates, get the whole team.
        """
        rules, settings = self.stages[stage], self.settings
        shared = stage == self.main_stage and rules.kind != "sequential"
        if shared and is_sampled(item, "overlap", settings.overlap):
            return max(rules.annotators, settings.team)
        return rules.annotators

    def excluded_stages(self, stage: int) -> tuple[int, ...]:
        """Return the stages whose annotators may not take this one for the same meme."""
        return self._excluded[stage]

    @cached_property
    def _excluded(self) -> list[tuple[int, ...]]:
        return [
            tuple(
                place
                for place, other in enumerate(self.stages)
                if other.id in stage.disjoint_from or stage.id in other.disjoint_from
            )
            for stage in self.stages
        ]

    @model_validator(mode="after")
    def _check(self) -> Self:
        fields = [field.id for field in self.fields]
        stages = [stage.id for stage in self.stages]
        for what, names in (("field", fields), ("stage", stages)):
            if len(set(names)) != len(names):
                raise ValueError(f"two {what}s have the same id")
        for stage in self.stages:
            ends = [end.field for end in stage.exclude_if]
            _known(f"stage {stage.id!r}", [*stage.fields, *ends], fields)
            _known(f"stage {stage.id!r}: disjoint_from", stage.disjoint_from, stages)
        for field in self.fields:
            earlier = fields[: fields.index(field.id)]
            named = [*field.show_if, *filter(None, (field.each, field.within))]
            _known(f"field {field.id!r}: show_if, each and within", named, earlier)
        for rule in self.aggregate:
            by = [rule.by] if rule.by else []
            _known("aggregate: fields and by", [*rule.fields, *by], fields)
            _known("aggregate: stage", [rule.stage], stages)
            if (rule.rule == "reviewed") != bool(rule.by):
                raise ValueError("aggregate: rule 'reviewed' needs 'by', other rules have none")
        _known("keep.when", self.keep.when, fields)
        tested = self.test.answers if self.test else {}
        _known("test.answers", tested, fields)
        if self.test and self.test.at_least > len(tested):
            raise ValueError(
                f"test: at_least is {self.test.at_least}, but only {len(tested)} answers are given"
            )
        _known("training.fields", self.training.fields if self.training else (), fields)
        ties = any(rule.tie == "adjudicate" for rule in self.aggregate)
        if ties != any(stage.kind == "adjudicate" for stage in self.stages):
            raise ValueError(
                "a rule with tie = 'adjudicate' needs a stage of kind 'adjudicate', and such "
                "a stage needs such a rule"
            )
        return self


def _known(where: str, names: object, known: list[str]) -> None:
    assert isinstance(names, list | tuple | Mapping)
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: unknown name {name!r}; known names: {', '.join(known)}")


def parse_workflow(text: str, where: str) -> Workflow:
    """Parse the text of a workflow; errors name the file and the key.

    >>> parse_workflow("name = 3", "own.toml")
    Traceback (most recent call last):
    memantics.core.errors.DataError: own.toml: key 'name': Input should be a valid string
    """
    try:
        return Workflow.model_validate(load_toml(text))
    except tomllib.TOMLDecodeError as error:
        raise DataError(where, f"not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        message = re.sub(r"^Value error, ", "", first["msg"])
        if first["type"] == "extra_forbidden":
            message = "unknown key"
        raise DataError(where, f"key {key!r}: {message}" if key else message) from error


@lru_cache(maxsize=256)
def workflow_of(text: str) -> Workflow:
    """Parse the stored workflow of a project (cached)."""
    return parse_workflow(text, "workflow of the project")


def list_workflows() -> tuple[str, ...]:
    """Return the names of the built-in workflows."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def workflow_text(name: str | Path) -> str:
    """Return the text of a built-in workflow by name, or of a TOML file by path."""
    path = Path(name)
    if path.suffix == ".toml":
        try:
            return read_regular_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"workflow file {path} cannot be read: {error}") from error
    if str(name) not in list_workflows():
        raise UnknownName("workflow", str(name), list_workflows())
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def read_workflow(name: str | Path) -> Workflow:
    """Read and check a workflow by name or path.

    >>> read_workflow("pun-form").stages[0].annotators
    3
    """
    return parse_workflow(workflow_text(name), f"{Path(name).stem}.toml")


NOTE, COMMENT = "decision_note", "comment"
TIE_STAGE, EXTRA_STAGE = "settle_ties", "extra_annotation"
_TITLES = {
    "lead": LocalizedText(en="Adjudicate ties", zh="裁定分歧"),
    "extra-annotator": LocalizedText(en="Additional annotation", zh="追加标注"),
}


_FIELDS = {
    name: WorkflowField(id=name, kind="longtext", required=False, label=label)
    for name, label in (
        (NOTE, LocalizedText(en="Reason for the decision", zh="裁定理由")),
        (COMMENT, LocalizedText(en="Comment for the lead", zh="给负责人的备注")),
    )
}


@lru_cache(maxsize=1024)
def settings_of(text: str) -> ProjectSettings:
    """Parse the stored settings of a project (cached)."""
    return ProjectSettings.model_validate_json(text)


@lru_cache(maxsize=1024)
def with_settings(workflow: str, settings: str) -> Workflow:
    """Return the workflow with the project's settings applied, from their stored texts."""
    return apply_settings(workflow_of(workflow), settings_of(settings))


def apply_settings(flow: Workflow, settings: ProjectSettings) -> Workflow:
    """Apply annotators per item, overlap, adjudication, training and options to a workflow.

    >>> from memantics.annotation.workflow import read_workflow
    >>> settings = ProjectSettings(annotators_per_item=2, adjudicator="lead")
    >>> flow = apply_settings(read_workflow("validate"), settings)
    >>> [(stage.id, stage.kind, stage.annotators, stage.role) for stage in flow.stages]
    [('judge', 'independent', 2, 'annotator'), ('settle_ties', 'adjudicate', 1, 'lead')]
    """
    flow = _fill_options(flow, settings)
    stages = list(flow.stages)
    if settings.annotators_per_item:
        judging = stages[flow.main_stage]
        stages[flow.main_stage] = judging.model_copy(
            update={"annotators": settings.annotators_per_item}
        )
    rules = settings.model_dump(include={"overlap", "team", "random_proportion"})
    changes: dict[str, object] = {"settings": flow.settings.model_copy(update=rules)}
    if settings.comments:
        judging = stages[flow.main_stage]
        stages[flow.main_stage] = judging.model_copy(update={"fields": (*judging.fields, COMMENT)})
    if settings.adjudicator:
        stages = _settle_ties(flow, stages, settings)
        changes["aggregate"] = tuple(_hand_on(flow, rule, settings) for rule in flow.aggregate)
    added = [_FIELDS[COMMENT]] if settings.comments else []
    added += [_FIELDS[NOTE]] if settings.adjudicator else []
    changes |= {"fields": (*flow.fields, *added), "training": _apply_training(flow, settings)}
    made = flow.model_copy(update={**changes, "stages": tuple(stages)})
    for name in ("_by_id", "_excluded"):  # model_copy copies cached properties
        made.__dict__.pop(name, None)
    return made


def _fill_options(flow: Workflow, settings: ProjectSettings) -> Workflow:
    """Give fields the options of the queue, and remove fields for which the queue has none."""
    if not any(field.queue_options for field in flow.fields):
        return flow
    fields = [
        field.model_copy(update={"options": _make_choices(settings, field.id)})
        if field.queue_options
        else field
        for field in flow.fields
    ]
    kept = {field.id for field in fields if field.options or not field.queue_options}
    changes = {
        "fields": tuple(field for field in fields if field.id in kept),
        "stages": tuple(_restrict(stage, kept) for stage in flow.stages),
        "aggregate": tuple(
            _restrict(rule, kept) for rule in flow.aggregate if kept & set(rule.fields)
        ),
    }
    made = flow.model_copy(update=changes)
    made.__dict__.pop("_by_id", None)  # model_copy copies cached properties
    return made


_Listing = TypeVar("_Listing", Stage, Rule)


def _restrict(entry: _Listing, kept: Collection[str]) -> _Listing:
    return entry.model_copy(update={"fields": tuple(n for n in entry.fields if n in kept)})


def _make_choices(settings: ProjectSettings, field: str) -> tuple[WorkflowChoice, ...]:
    return tuple(
        WorkflowChoice(
            value=option.value, label=LocalizedText(en=option.en or option.value, zh=option.zh)
        )
        for option in settings.options.get(field, ())
    )


def _apply_training(flow: Workflow, settings: ProjectSettings) -> TrainingRounds | None:
    """Return the training of a workflow, or the default training if a pass mark is set."""
    rules, mark = flow.training, settings.pass_mark
    if rules is None and mark is None:
        return None
    if rules is None:
        asked = flow.stage_fields(0)
        graded = [one.id for one in asked if one.required and one.scale_level != "none"]
        rules = TrainingRounds(fields=tuple(graded) or flow.stages[0].fields)
    feedback = rules.feedback and settings.feedback
    threshold = rules.threshold if mark is None else mark
    return rules.model_copy(update={"threshold": threshold, "feedback": feedback})


def _settle_ties(flow: Workflow, stages: list[Stage], settings: ProjectSettings) -> list[Stage]:
    judging = stages[flow.main_stage]
    mine = next((stage for stage in stages if stage.kind == "adjudicate"), None)
    if mine is None:
        title = _TITLES.get(settings.adjudicator, _TITLES["lead"])
        mine = Stage(id=TIE_STAGE, kind="adjudicate", title=title, fields=judging.fields)
        mine = mine.model_copy(update={"exclude_if": judging.exclude_if})
        stages = [*stages, mine]
    lead = settings.adjudicator != "extra-annotator"
    changed = mine.model_copy(
        update={
            "id": EXTRA_STAGE if mine.id == TIE_STAGE and not lead else mine.id,
            "role": "lead" if lead else judging.role,
            "disjoint_from": () if lead else (judging.id,),
            "exclude_uploader": not lead,
            "blind": not lead,
            "fields": (*mine.fields, NOTE) if lead else mine.fields,
        }
    )
    return [changed if stage is mine else stage for stage in stages]


def _hand_on(flow: Workflow, rule: Rule, settings: ProjectSettings) -> Rule:
    """Set what happens on a tie for fields decided by vote; other rules do not change."""
    voted = rule.rule in ("majority", "plurality") and rule.stage == flow.stages[flow.main_stage].id
    if not voted or rule.tie not in ("none", "adjudicate"):
        return rule
    tie = "none" if settings.adjudicator == "none" else "adjudicate"
    return rule.model_copy(update={"tie": tie})
