"""The project lead's view: progress, agreement, history, corrections, and guideline clarifications.

A guideline is the workflow's instructions plus the lead's additions, which are stored with the
project's settings. Each addition is a version, and an answer belongs to the version that was in
force when it was saved. A form that was opened under an older version is shown again first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from statistics import fmean, median
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotation import consensus, queries, records, schema, tasks
from memantics.annotation.agreement import (
    FieldAgreement,
    PairAgreement,
    compare_people,
    measure_agreement,
)
from memantics.annotation.consensus import (
    AssignedItem,
    DisagreementFilter,
    Person,
    find_disagreements,
)
from memantics.annotation.context import (
    DAY,
    ServiceContext,
    Visit,
    keep_settings,
    load,
    load_list,
    load_optional,
)
from memantics.annotation.errors import AnswerError, Forbidden, Locked, NotFound
from memantics.annotation.faults import retried
from memantics.annotation.membership import change_member, is_member
from memantics.annotation.policy import (
    CLAUSE,
    check_roles,
    find_changed_clauses,
    list_policy_options,
    make_policy_workflow,
)
from memantics.annotation.project_settings import Clarification, LocalizedText
from memantics.annotation.records import Actor, Disagreement, record_of
from memantics.annotation.tasks import lock_item
from memantics.annotation.values import clean_text
from memantics.annotation.workflow import PAIR, Workflow
from memantics.core.policy import Policy
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.text import clean_line

_REOPEN_DAYS = 7
EVERY_ONE = DisagreementFilter()
LONGEST = 2000
_CASES = 12
find_prompts = prompts_beside(__file__)


class Lead:
    """The project lead's queries and corrections: progress, agreement, history, training."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def progress(self, actor: Actor, project: int) -> records.ProjectProgress:
        """Return the progress of a project by stage and by member."""
        with self._context.as_lead(actor, project) as visit:
            counts = queries.COUNT_ITEMS.one(visit.connection, visit.key)
            assignments = queries.COUNT_ASSIGNMENTS.all(visit.connection, visit.key)
            answers = queries.ANSWERS_BY_PERSON.all(visit.connection, visit.key)
            done = Counter(row.user_id for row in answers)
            people = tuple(
                records.PersonProgress(person=one.pseudonym, name=one.name, done=done[user])
                for user, one in consensus.read_people(visit).items()
            )
            seconds = [row.seconds for row in answers if row.seconds is not None]
            return record_of(
                records.ProjectProgress,
                counts,
                stages=_stage_progress(visit.flow, assignments),
                people=people,
                pace=median(seconds) if seconds else None,
            )

    def agreement(
        self, actor: Actor, project: int, *, random_only: bool = False
    ) -> tuple[FieldAgreement, ...]:
        """Measure the current agreement per field and over all fields.

        With ``random_only``, only items that were queued in random order count, not those queued by
        uncertainty.
        """
        workflow, items, _ = self.gather(actor, project)
        return measure_agreement(workflow, items, random_only=random_only)

    def pairs(self, actor: Actor, project: int) -> tuple[PairAgreement, ...]:
        """Compare every two annotators, lowest agreement first."""
        return compare_people(*self.gather(actor, project))

    def drift(self, actor: Actor, project: int) -> tuple[records.AccuracyDrift, ...]:
        """Return each annotator's accuracy on items with known answers over time."""
        return consensus.measure_drift(*self.gather(actor, project))

    def disagreements(
        self,
        actor: Actor,
        project: int,
        *,
        limit: int = 50,
        offset: int = 0,
        wanted: DisagreementFilter = EVERY_ONE,
    ) -> tuple[Disagreement, ...]:
        """Return items on which annotators differ."""
        found = consensus.find_disagreements(*self.gather(actor, project))
        return tuple(islice(filter(wanted.fits, found), offset, offset + limit))

    def preferences(self, actor: Actor, project: int) -> dict[str, dict[str, float]]:
        """Return the win rate of each model in pairwise fields; a tie counts half.

        The hidden values ``a`` and ``b`` of an item name the two models.
        """
        workflow, items, _ = self.gather(actor, project)
        names = [field.id for field in workflow.fields if field.kind == "pairwise"]
        return {name: _win_rates(items, name) for name in names}

    def audit(
        self, actor: Actor, project: int, *, before: int | None = None, limit: int = 100
    ) -> tuple[records.AuditEntry, ...]:
        """Return audit entries, newest first; pass the last id as ``before`` for the next page."""
        table = schema.audit
        query = (
            sa.select(table, sa.func.coalesce(schema.users.c.name, "").label("person"))
            .outerjoin(schema.users, schema.users.c.id == table.c.user_id)
            .where(table.c.project_id == project)
            .order_by(table.c.id.desc())
            .limit(min(limit, 1000))
        )
        if before is not None:
            query = query.where(table.c.id < before)
        with self._context.as_lead(actor, project) as visit:
            return tuple(
                record_of(records.AuditEntry, row, detail=load(row.detail))
                for row in visit.connection.execute(query)
            )

    def items(
        self, actor: Actor, project: int, *, limit: int = 50, offset: int = 0
    ) -> tuple[records.ItemView, ...]:
        """Return items in order, each with its assignments and history."""
        table = schema.items
        query = (
            sa.select(table)
            .where(table.c.project_id == project)
            .order_by(table.c.number)
            .limit(min(limit, 500))
            .offset(offset)
        )
        with self._context.as_lead(actor, project) as visit:
            return _view_items(visit, visit.connection.execute(query).all())

    def item(self, actor: Actor, item: int) -> records.ItemView:
        """Return one item with its assignments and history."""
        with self._context.db.read() as connection:
            row = _find_row(connection, schema.items, item)
            visit = self._context.visit(connection, actor, row.project_id, role="lead")
            return _view_items(visit, [row])[0]

    @retried
    def reopen(self, actor: Actor, assignment: int) -> None:
        """Reopen an answer for its annotator for seven days and reset later stages.

        All answers stay in the history. The annotator starts from the reopened answer.
        """
        with self._context.db.write() as connection:
            project = _find_row(connection, schema.assignments, assignment).project_id
            visit = self._context.visit(connection, actor, project, role="lead", lock="project")
            tasks.lock_item(connection, assignment)
            row = _find_row(connection, schema.assignments, assignment)
            if row.state != "done" or row.training_round:
                raise Locked("only submitted answers outside training can be reopened")
            reopen_assignment(visit, row)
            visit.log("answer.reopen", f"assignment:{assignment}")

    @retried
    def set_training(self, actor: Actor, project: int, user: int, state: str) -> None:
        """Mark the training of a member as ``passed``, or restart its last round (``running``)."""
        if state not in ("passed", "running"):
            raise AnswerError({"state": "use passed or running"})
        members, assignments = schema.memberships, schema.assignments
        last_round = sa.select(members.c.training_round).where(is_member(project, user))
        with self._context.as_lead(actor, project, write=True) as visit:
            change_member(visit.connection, project, user, training=state)
            if state == "running":
                again = sa.and_(
                    assignments.c.project_id == project,
                    assignments.c.user_id == user,
                    assignments.c.training_round == last_round.scalar_subquery(),
                    assignments.c.state == "done",  # skipped items stay hidden
                )
                # The history keeps the answers; the assignments can be answered again.
                visit.connection.execute(sa.update(assignments).where(again).values(state="leased"))
            visit.log("member.training", f"user:{user}", state=state)

    def gather(
        self, actor: Actor, project: int
    ) -> tuple[Workflow, list[AssignedItem], dict[int, Person]]:
        """Return the workflow of a project, its items with annotations, and its members."""
        with self._context.as_lead(actor, project) as visit:
            items = consensus.gather(visit, answered=True)
            return visit.flow, items, consensus.read_people(visit)


def _find_row(connection: Connection, table: sa.Table, key: int) -> Any:
    """Return a row by id; raise Forbidden if it does not exist."""
    row = connection.execute(sa.select(table).where(table.c.id == key)).one_or_none()
    if row is None:
        raise Forbidden
    return row


def reopen_assignment(visit: Visit, row: Any) -> None:
    """Reopen an answer inside a transaction that holds the lock of its item."""
    connection, flow = visit.connection, visit.flow
    assignments = tasks.read_assignments(connection, row.item_id)
    later = tasks.find_later(flow, assignments, tasks.read_assignment(row))
    tasks.reset_assignments(
        connection, [assignment for assignment in later if assignment.state in ("done", "leased")]
    )
    until = visit.now + _REOPEN_DAYS * DAY
    queries.REOPEN_ASSIGNMENT.run(connection, {"assignment": row.id, "until": until})
    item = _find_row(connection, schema.items, row.item_id)
    tasks.settle(connection, flow, item, tasks.read_assignments(connection, row.item_id))


def _stage_progress(workflow: Workflow, rows: Sequence[Any]) -> tuple[records.StageProgress, ...]:
    counts = {(row.stage, row.state): int(row.assignments) for row in rows}
    return tuple(
        records.StageProgress(
            stage.id,
            stage.title,
            *(counts.get((place, state), 0) for state in ("done", "leased", "open", "waiting")),
        )
        for place, stage in enumerate(workflow.stages)
    )


def _view_items(visit: Visit, rows: Sequence[Any]) -> tuple[records.ItemView, ...]:
    """Return items with history; raise Forbidden for personal questionnaires."""
    if visit.flow.personal:
        raise Forbidden(
            "answers to a personal questionnaire are not shown individually",
            hint="export them instead: the export contains neither names nor times",
        )
    people = consensus.read_people(visit)
    return tuple(_view_item(visit, people, row) for row in rows)


def _view_item(visit: Visit, people: dict[int, Person], row: Any) -> records.ItemView:
    key = {"item": row.id}
    assignments = [
        tasks.read_assignment(assignment)
        for assignment in queries.ALL_ASSIGNMENTS.all(visit.connection, key)
    ]
    steps = queries.HISTORY.all(visit.connection, key)
    return record_of(
        records.ItemView,
        row,
        key=row.item_key,
        group=row.group_key,
        images=tuple(load_list(row.images)),
        shown=tasks.read_shown(row.shown),
        prelabels=load(row.prelabels),
        gold=load_optional(row.gold),
        hidden=load(row.hidden),
        assignments=tuple(
            _view_assignment(visit.flow, people, assignment) for assignment in assignments
        ),
        history=tuple(tasks.read_step(visit.flow, step) for step in steps),
    )


def _view_assignment(
    workflow: Workflow, people: dict[int, Person], assignment: tasks.Assignment
) -> records.AssignmentView:
    person = people[assignment.user].pseudonym if assignment.user in people else ""
    stage = workflow.stages[assignment.stage].id
    return record_of(
        records.AssignmentView,
        assignment,
        assignment=assignment.id,
        stage=stage,
        person=person,
        values=assignment.answer,
    )


def _win_rates(items: Sequence[AssignedItem], name: str) -> dict[str, float]:
    won: dict[str, list[float]] = defaultdict(list)
    for item in items:
        hidden = load(item.row.hidden)
        sides = {side: str(hidden.get(side, side)) for side in ("a", "b")}
        for assignment in item.answered():
            vote = (assignment.answer or {}).get(name)
            if vote in PAIR:
                for side, maker in sides.items():
                    won[maker].append(0.5 if vote == "tie" else float(vote == side))
    return {maker: fmean(points) for maker, points in sorted(won.items())}


class Guideline:
    """Find items with disagreement, draft rules and add them to the guideline."""

    def __init__(self, context: ServiceContext, lead: Lead) -> None:
        self._context = context
        self._lead = lead

    def unclear(self, actor: Actor, project: int, *, limit: int = 25) -> tuple[Disagreement, ...]:
        """Return the items with the largest disagreement, ties in order of their number."""
        found = find_disagreements(*self._lead.gather(actor, project))
        return tuple(sorted(found, key=lambda one: (-one.split, one.number))[:limit])

    def describe(self, actor: Actor, project: int, numbers: Sequence[int] = ()) -> str:
        """Return the prompt for a draft: guideline, and annotations of the unclear items."""
        rights = self._context.lead_rights(actor, project)
        found = self.unclear(actor, project, limit=10_000)
        cases = [one for one in found if not numbers or one.number in numbers][:_CASES]
        if not cases:
            raise NotFound(
                "annotators do not disagree on any of these items",
                hint="choose items with disagreement",
            )
        flow = rights.workflow
        rules = [flow.instructions.en, *(example.en for example in flow.examples)]
        rules += [added.text.en for added in rights.settings.clarifications]
        return find_prompts()["clarify"].fill(
            task=flow.title.en,
            guideline=enclose("guideline", "\n".join(f"- {rule}" for rule in rules if rule)),
            cases="\n\n".join(enclose(f"item {one.number}", _say(flow, one)) for one in cases),
        )

    @retried
    def clarify(
        self,
        actor: Actor,
        project: int,
        words: LocalizedText,
        items: Iterable[int] = (),
        *,
        drafted: str = "",
        again: bool = True,
    ) -> int:
        """Add a rule to the guideline and return the new version.

        ``items`` are the numbers of the items that the rule clarifies. With ``again``, their
        annotators annotate these items again, starting from their earlier answers.
        """
        said = {name: clean_text(text, lines=True)[:LONGEST] for name, text in words}
        if not said["en"]:
            raise AnswerError({"text": "enter the rule"})
        with self._context.as_lead(actor, project, write=True) as visit:
            numbers = _known_numbers(visit, items)
            added = Clarification(
                text=LocalizedText(**said),
                at=visit.now,
                person=visit.rights.pseudonym,
                drafted=clean_line(drafted, 200),
                items=numbers,
            )
            before = visit.rights.settings
            clarifications = (*before.clarifications, added)
            settings = before.model_copy(update={"clarifications": clarifications})
            keep_settings(visit.connection, project, settings)
            visit.log(
                "guideline.clarify",
                version=settings.guideline,
                reopened=_ask_again(visit, numbers) if again else 0,
                **added.model_dump(mode="json", exclude={"at"}),
            )
            return settings.guideline

    @retried
    def adopt(self, actor: Actor, project: int, policy: Policy, *, again: bool = True) -> int:
        """Replace the policy of a project by another version; return the guideline version.

        The clauses of the form change with it. With ``again``, items whose annotations cite a
        changed clause are annotated again, starting from the earlier answers.
        """
        with self._context.as_lead(actor, project, write=True) as visit:
            if not visit.flow.policy:
                raise AnswerError({"policy": "the guideline of this project is not a policy"})
            changed = find_changed_clauses(visit.flow, check_roles(policy))
            numbers = _find_citing(visit, changed)
            table, before = schema.projects, visit.rights.settings
            text = make_policy_workflow(policy)
            change = sa.update(table).where(table.c.id == project).values(workflow=text)
            visit.connection.execute(change)
            said = f"{policy.name}: changed clauses: {', '.join(changed) or 'none'}"
            added = Clarification(
                text=LocalizedText(en=said), at=visit.now, person=visit.rights.pseudonym,
                items=numbers,
            )  # fmt: skip
            known = {one.value: one for one in before.options.get(CLAUSE, ())}
            known |= {one.value: one for one in list_policy_options(policy)}
            options = {**before.options, CLAUSE: tuple(known.values())}
            clarifications = (*before.clarifications, added)
            settings = before.model_copy(
                update={"clarifications": clarifications, "options": options}
            )
            keep_settings(visit.connection, project, settings)
            reopened = _ask_again(visit, numbers) if again else 0
            visit.log("guideline.policy", policy=policy.name, reopened=reopened)
            return settings.guideline


def _find_citing(visit: Visit, clauses: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the items with an answer that cites one of these clauses."""
    items = consensus.gather(visit, answered=True)
    return tuple(
        item.row.number
        for item in items
        if any((one.answer or {}).get(CLAUSE) in clauses for one in item.answered())
    )


def _ask_again(visit: Visit, numbers: Sequence[int]) -> int:
    """Reopen the answers to these items at the main stage."""
    assignments = schema.assignments
    query = (
        sa.select(assignments)
        .join(schema.items, schema.items.c.id == assignments.c.item_id)
        .where(
            assignments.c.project_id == visit.rights.id,
            assignments.c.state == "done",
            assignments.c.training_round == 0,
            assignments.c.stage.in_([place for place, _ in visit.flow.independent_stages][:1]),
            schema.items.c.number.in_(numbers),
        )
        .order_by(assignments.c.item_id, assignments.c.id)
    )
    for row in visit.connection.execute(query).all():
        lock_item(visit.connection, row.id)
    rows = visit.connection.execute(query).all()  # read under the locks
    for row in rows:
        reopen_assignment(visit, row)
    return len(rows)


def _known_numbers(visit: Visit, numbers: Iterable[int]) -> tuple[int, ...]:
    wanted = sorted(set(numbers))
    known = {item.number for item in queries.ITEMS.all(visit.connection, visit.key)}
    if unknown := set(wanted) - known:
        raise NotFound(f"the project has no item {min(unknown)}")
    return tuple(wanted)


def _say(flow: Workflow, case: Disagreement) -> str:
    """Describe an item and its annotations as lines of text, without names."""
    lines = [f"{shown.label}: {_join(shown.value)}" for shown in case.shown]
    for name, votes in case.fields.items():
        said = ", ".join(sorted("nothing" if value is None else str(value) for _, value in votes))
        lines.append(f"{flow.field(name).label.en} People said: {said}")
    lines += [f"A person noted: {note}" for _, note in case.notes]
    return "\n".join(clean_line(line, 600) for line in lines)


def _join(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " / ".join(value)
