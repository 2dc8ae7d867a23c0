"""The settings of a project laid over its workflow: how many people judge, and who settles ties.

Every other module sees the workflow as it holds for the project. A stage for ties comes last, so
that the places of the other stages stay; once there, it stays (closed, where nobody adjudicates).
"""

from __future__ import annotations

from functools import lru_cache

from memantics.annotate.project_settings import ProjectSettings, Words
from memantics.annotate.workflow import (
    Rule,
    Stage,
    TrainingRounds,
    Workflow,
    WorkflowField,
    workflow_of,
)

NOTE, COMMENT = "decision_note", "comment"
_STAGE = "settle_ties"
_TITLES = {
    "lead": Words(en="Decide ties", zh="裁决分歧"),
    "vote": Words(en="One more vote", zh="加投一票"),
}


_FIELDS = {
    name: WorkflowField(id=name, kind="longtext", required=False, label=label)
    for name, label in (
        (NOTE, Words(en="Why? Explain the decision", zh="为什么？说明理由")),
        (COMMENT, Words(en="A comment for the lead", zh="给负责人的备注")),
    )
}


@lru_cache(maxsize=1024)
def settings_of(text: str) -> ProjectSettings:
    """Settings from their column, parsed once."""
    return ProjectSettings.model_validate_json(text)


@lru_cache(maxsize=1024)
def overlaid(workflow: str, settings: str) -> Workflow:
    """The workflow as it holds for a project, from the two columns."""
    return lay_over(workflow_of(workflow), settings_of(settings))


def lay_over(flow: Workflow, settings: ProjectSettings) -> Workflow:
    """A workflow in which so many people judge each item, and in which ties go where they shall.

    >>> from memantics.annotate.workflow import read_workflow
    >>> flow = lay_over(read_workflow("validate"), ProjectSettings(people=2, adjudicator="lead"))
    >>> [(stage.id, stage.kind, stage.people, stage.role) for stage in flow.stages]
    [('judge', 'independent', 2, 'annotator'), ('settle_ties', 'adjudicate', 1, 'lead')]
    """
    stages = list(flow.stages)
    if settings.people:
        judging = stages[flow.judging]
        stages[flow.judging] = judging.model_copy(update={"people": settings.people})
    rules = settings.model_dump(include={"shared", "team", "random_share"})
    changes: dict[str, object] = {"settings": flow.settings.model_copy(update=rules)}
    if settings.comments:
        judging = stages[flow.judging]
        stages[flow.judging] = judging.model_copy(update={"fields": (*judging.fields, COMMENT)})
    if settings.adjudicator:
        stages = _settle_ties(flow, stages, settings)
        changes["resolve"] = tuple(_hand_on(flow, rule, settings) for rule in flow.resolve)
    added = [_FIELDS[COMMENT]] if settings.comments else []
    added += [_FIELDS[NOTE]] if settings.adjudicator else []
    changes |= {"fields": (*flow.fields, *added), "training": _lay_training(flow, settings)}
    made = flow.model_copy(update={**changes, "stages": tuple(stages)})
    for name in ("_by_id", "_apart"):  # a copy takes what was computed along
        made.__dict__.pop(name, None)
    return made


def _lay_training(flow: Workflow, settings: ProjectSettings) -> TrainingRounds | None:
    """The training of a workflow, or of any one that gets a pass mark."""
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
    judging = stages[flow.judging]
    mine = next((stage for stage in stages if stage.kind == "adjudicate"), None)
    if mine is None:
        title = _TITLES.get(settings.adjudicator, _TITLES["lead"])
        mine = Stage(id=_STAGE, kind="adjudicate", title=title, fields=judging.fields)
        mine = mine.model_copy(update={"ends": judging.ends})
        stages = [*stages, mine]
    lead = settings.adjudicator != "vote"
    changed = mine.model_copy(
        update={
            "role": "lead" if lead else judging.role,
            "apart_from": () if lead else (judging.id,),
            "not_own": not lead,
            "blind": not lead,
            "fields": (*mine.fields, NOTE) if lead else mine.fields,
        }
    )
    return [changed if stage is mine else stage for stage in stages]


def _hand_on(flow: Workflow, rule: Rule, settings: ProjectSettings) -> Rule:
    """What a rule does about ties: those of texts keep their longest one."""
    voted = rule.rule in ("majority", "plurality") and rule.stage == flow.stages[flow.judging].id
    if not voted or rule.tie not in ("none", "adjudicate"):
        return rule
    tie = "none" if settings.adjudicator == "nobody" else "adjudicate"
    return rule.model_copy(update={"tie": tie})
