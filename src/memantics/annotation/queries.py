"""Frequent queries and queries over several tables, as SQLAlchemy Core expressions.

Each query is compiled once. Rare statements on one table are in the modules that use them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as p
from sqlalchemy.dialects import postgresql

from memantics.annotation.database import Query
from memantics.annotation.schema import (
    assignments,
    audit,
    drafts,
    exposures,
    items,
    memberships,
    projects,
    revisions,
    sessions,
    skips,
    users,
)

# Seconds; leases last at most seven days, and clocks of two servers may differ.
LONGEST_LEASE = 8 * 86_400


def _is(state: str, table: Any = assignments) -> Any:
    """Return a condition on the state as literal SQL, so that the partial index is used."""
    return table.c.state == sa.literal_column(f"'{state}'")


_mine = (assignments.c.user_id == p("user"), assignments.c.project_id == p("project"))
_this_item = assignments.c.item_id == p("item")

# Accounts and rights
SESSION = Query(
    sa.select(users.c.id, users.c.name, users.c.admin, sessions.c.expires_at)
    .join(sessions, sessions.c.user_id == users.c.id)
    .where(sessions.c.token_hash == p("hash"), sessions.c.kind == p("kind"))
    .where(sessions.c.expires_at > p("now"), users.c.active)
)
_member_columns = [
    memberships.c[name]
    for name in ("roles", "pseudonym", "consent_at", "training", "training_round")
] + [memberships.c.daily_limit, memberships.c.weekly_limit]
_project_columns = [
    projects.c.id.label("project_id"),
    *(projects.c[name] for name in ("workflow", "settings", "archived", "title", "language")),
]
_rights = sa.select(*_member_columns, *_project_columns, users.c.preferences).select_from(
    memberships.join(projects).join(users, users.c.id == memberships.c.user_id)
)
_active = (memberships.c.roles != "", users.c.active)
_membership = (memberships.c.project_id == p("project"), memberships.c.user_id == p("user"))
RIGHTS = Query(_rights.where(*_membership, *_active))
# Locks of PostgreSQL; ``database.py`` has their order. ``key_share`` stands for FOR NO KEY UPDATE.
_this_project = sa.select(projects.c.id).where(projects.c.id == p("project"))
LOCK_PROJECT = Query(_this_project.with_for_update(key_share=True))
LOCK_FREE_PROJECT = Query(_this_project.with_for_update(key_share=True, skip_locked=True))
# The lock of the membership row makes requests from two tabs sequential.
LOCK_OWN_MEMBER = Query(
    sa.select(memberships.c.user_id).where(*_membership).with_for_update(key_share=True)
)
OWN_RIGHTS = Query(
    _rights.where(memberships.c.user_id == p("user"), memberships.c.roles != "").order_by(
        projects.c.archived, projects.c.id.desc()
    )
)
PEOPLE = Query(
    sa.select(memberships.c.user_id.label("user"), memberships.c.pseudonym)
    .add_columns(users.c.name, memberships.c.training, memberships.c.roles)
    .join(users, users.c.id == memberships.c.user_id)
    .where(memberships.c.project_id == p("project"))
    .order_by(memberships.c.user_id)
)
ADD_AUDIT = Query(sa.insert(audit).inline(), "at user_id project_id action subject detail")

# Items and their assignments
ITEMS = Query(sa.select(items).where(items.c.project_id == p("project")).order_by(items.c.number))
_in_project = sa.select(assignments).where(assignments.c.project_id == p("project"))
PROJECT_ASSIGNMENTS = Query(
    _in_project.order_by(assignments.c.item_id, assignments.c.stage, assignments.c.slot)
)
PROJECT_ANSWERS = Query(
    _in_project.where(_is("done")).order_by(
        assignments.c.item_id, assignments.c.stage, assignments.c.slot
    )
)
_of_item = (
    sa.select(assignments)
    .where(_this_item)
    .order_by(assignments.c.stage, assignments.c.slot, assignments.c.id)
)
ALL_ASSIGNMENTS = Query(_of_item)
ASSIGNMENTS = Query(_of_item.where(assignments.c.training_round == 0))
NUMBERED_ASSIGNMENTS = Query(
    sa.select(assignments)
    .join(items)
    .where(items.c.project_id == p("project"), items.c.number == p("number"))
    .where(assignments.c.training_round == 0)
    .order_by(assignments.c.stage, assignments.c.slot)
)
ASSIGNMENT_ITEM = Query(sa.select(assignments.c.item_id).where(assignments.c.id == p("assignment")))
HISTORY = Query(
    sa.select(*(revisions.c[name] for name in ("stage", "action", "answer", "at", "version")))
    .add_columns(memberships.c.pseudonym)
    .join(
        memberships,
        sa.and_(
            memberships.c.project_id == revisions.c.project_id,
            memberships.c.user_id == revisions.c.user_id,
        ),
    )
    .where(revisions.c.item_id == p("item"))
    .order_by(revisions.c.id)
)
_assignment = sa.update(assignments).where(assignments.c.id == p("assignment"))
# Only free assignments change: a lease or answer from a parallel request stays.
MOVE_ASSIGNMENT = Query(
    _assignment.where(assignments.c.state == p("old"), assignments.c.version == p("seen")).values(
        state=p("new"), user_id=None, lease_until=None
    )
)
_no_answer = {"answer": None, "submitted_at": None, "seconds": None}
RESET_ASSIGNMENT = Query(
    _assignment.values(state="waiting", user_id=None, lease_until=None, **_no_answer)
)
CLOSE_ASSIGNMENT = Query(_assignment.values(state="closed", lease_until=None))
REOPEN_ASSIGNMENT = Query(_assignment.values(state="leased", lease_until=p("until")))
SET_SETTINGS = Query(
    sa.update(projects).where(projects.c.id == p("project")).values(settings=p("settings"))
)
SET_ITEM_STATE = Query(sa.update(items).where(items.c.id == p("item")).values(state=p("new")))

# Answers
SAVE_ANSWER = Query(
    _assignment.where(assignments.c.version == p("seen")).values(
        state=p("new"),
        answer=p("text"),
        version=assignments.c.version + 1,
        submitted_at=p("submitted"),
        seconds=p("took"),
        lease_until=p("until"),
        user_id=p("user"),
    )
)
ADD_REVISION = Query(
    sa.insert(revisions).inline(),
    "project_id item_id assignment_id user_id stage version action answer at seconds",
)
# SQLite also supports PostgreSQL's ON CONFLICT clause.
_draft = postgresql.insert(drafts).inline()
KEEP_DRAFT = Query(
    _draft.on_conflict_do_update(
        index_elements=["assignment_id", "user_id"],
        set_={"answer": _draft.excluded.answer, "saved_at": _draft.excluded.saved_at},
    ),
    "assignment_id user_id answer saved_at",
)
ADD_SKIP = Query(
    postgresql.insert(skips).on_conflict_do_nothing().inline(), "project_id user_id group_key at"
)
OWN_REVISIONS = Query(
    sa.select(revisions.c.version, revisions.c.action, revisions.c.answer)
    .where(revisions.c.assignment_id == p("assignment"), revisions.c.user_id == p("user"))
    .order_by(revisions.c.version)
)
PLACE = Query(
    sa.select(
        *(
            column
            for column in assignments.c
            if column.name not in ("id", "state", "training_round")
        ),
        assignments.c.id.label("assignment_id"),
        assignments.c.state.label("assignment_state"),
        assignments.c.training_round.label("assignment_round"),
        *(items.c[name] for name in ("id", "number", "item_key", "images", "shown")),
        *(items.c[name] for name in ("prelabels", "gold", "state")),
        *_member_columns,
        *(column for column in _project_columns if column.name != "project_id"),
        users.c.preferences,
        drafts.c.answer.label("draft"),
        drafts.c.saved_at,
    )
    .select_from(
        assignments.join(items)
        .join(projects, projects.c.id == assignments.c.project_id)
        .join(
            memberships,
            sa.and_(
                memberships.c.project_id == assignments.c.project_id,
                memberships.c.user_id == p("user"),
            ),
        )
        .join(users, users.c.id == memberships.c.user_id)
        .outerjoin(
            drafts,
            sa.and_(drafts.c.assignment_id == assignments.c.id, drafts.c.user_id == p("user")),
        )
    )
    .where(assignments.c.id == p("assignment"), *_active)
)
# Answers to one item are saved one after the other, so each sees the states that the previous one
# left.
LOCK_MEMBER = Query(
    sa.select(memberships.c.user_id)
    .join(assignments, assignments.c.project_id == memberships.c.project_id)
    .where(assignments.c.id == p("assignment"), memberships.c.user_id == p("user"))
    .with_for_update(of=memberships, key_share=True)
)
_other = assignments.alias("o")
LOCK_ITEM = Query(
    sa.select(_other.c.id)
    .join(assignments, _other.c.item_id == assignments.c.item_id)
    .where(assignments.c.id == p("assignment"))
    .order_by(_other.c.id)
    .with_for_update(of=_other, key_share=True)
)
LOCK_ASSIGNMENTS = Query(
    sa.select(assignments.c.id)
    .where(_this_item)
    .order_by(assignments.c.id)
    .with_for_update(key_share=True)
)
LOCK_ALL_ITEMS = Query(
    sa.select(assignments.c.id)
    .where(assignments.c.project_id == p("project"), assignments.c.training_round == 0)
    .order_by(assignments.c.id)
    .with_for_update(key_share=True)
)

# Activity of a person
LAST_ANSWERS = Query(
    sa.select(assignments, items.c.number)
    .join(items)
    .where(*_mine, assignments.c.submitted_at.is_not(None), _is("done"))
    .order_by(assignments.c.submitted_at.desc(), assignments.c.id.desc())
    .limit(p("limit"))
)
COUNT_ANSWERS = Query(
    sa.select(sa.func.count()).where(*_mine, _is("done"), assignments.c.training_round == 0)
)
LAST_SECONDS = Query(
    sa.select(assignments.c.seconds)
    .where(*_mine, assignments.c.seconds.is_not(None))
    .order_by(assignments.c.submitted_at.desc())
    .limit(50)
)
ANSWER_TIMES = Query(
    sa.select(assignments.c.submitted_at)
    .where(*_mine, assignments.c.submitted_at > p("since"))
    .order_by(assignments.c.submitted_at.desc())
)

# Exposure
_seen = (exposures.c.user_id == p("user"), exposures.c.project_id == p("project"))
# Days in the future are from a clock that was wrong; they must not count for years.
_week = exposures.c.day.between(p("today", type_=sa.Integer) - 6, p("today", type_=sa.Integer) + 1)
_today = exposures.c.day == p("today")


def _count(*conditions: Any) -> Any:
    return sa.func.coalesce(sa.func.sum(sa.case((sa.and_(*conditions), 1), else_=0)), 0)


COUNT_SEEN = Query(
    sa.select(
        _count(_today).label("today"),
        sa.func.count().label("week"),
        _count(_today, exposures.c.item_id == p("item")).label("again"),
    ).where(*_seen, _week)
)
COUNT_SEEN_EVERYWHERE = Query(
    sa.select(sa.func.count()).where(exposures.c.user_id == p("user"), _today)
)
SEEN_BY_DAY = Query(
    sa.select(exposures.c.day, sa.func.count().label("items"))
    .where(*_seen, _week)
    .group_by(exposures.c.day)
    .order_by(exposures.c.day)
)
WAS_SEEN = Query(
    sa.select(exposures.c.item_id).where(*_seen, exposures.c.item_id == p("item")).limit(1)
)
ADD_SEEN = Query(
    postgresql.insert(exposures).on_conflict_do_nothing().inline(),
    "user_id project_id day item_id at",
)


# Selection of assignments
def _not_skipped(group: Any) -> Any:
    return ~sa.exists().where(
        skips.c.project_id == p("project"),
        skips.c.user_id == p("user"),
        skips.c.group_key == group,
    )


HELD_ASSIGNMENTS = Query(
    sa.select(assignments.c.id, assignments.c.stage, assignments.c.item_id)
    .where(*_mine, _is("leased"), _not_skipped(assignments.c.group_key))
    .order_by(assignments.c.lease_until.desc())
)
# A reopened answer is leased for a week: opening it must not shorten the lease.
_until = p("until", type_=sa.Double)
RENEW_LEASE = Query(
    _assignment.where(assignments.c.user_id == p("user"), _is("leased")).values(
        lease_until=sa.case(
            (assignments.c.lease_until > _until, assignments.c.lease_until), else_=_until
        )
    )
)
# An unfinished answer of the previous annotator stays in the history.
TAKE_ASSIGNMENT = Query(
    _assignment.values(state="leased", user_id=p("user"), lease_until=p("until"), **_no_answer)
)


def _may_take(apart: int, exclude_uploader: bool) -> list[Any]:
    """Return the conditions under which a person may take an assignment at a stage."""
    twice, disjoint_from = assignments.alias("t"), assignments.alias("a")
    conditions = [
        assignments.c.project_id == p("project"),
        assignments.c.stage == p("stage"),
        ~sa.exists().where(
            twice.c.item_id == assignments.c.item_id,
            twice.c.stage == assignments.c.stage,
            twice.c.user_id == p("user"),
        ),
        _not_skipped(assignments.c.group_key),
    ]
    conditions += [
        ~sa.exists().where(
            disjoint_from.c.user_id == p("user"),
            disjoint_from.c.project_id == p("project"),
            disjoint_from.c.group_key == assignments.c.group_key,
            disjoint_from.c.stage == p(f"apart{number}"),
        )
        for number in range(apart)
    ]
    if exclude_uploader:
        is_owner = sa.exists().where(
            items.c.id == assignments.c.item_id, items.c.owner_id == p("user")
        )
        conditions.append(~is_owner)
    return conditions


@lru_cache(maxsize=16)
def count_free_assignments(*, apart: int, exclude_uploader: bool) -> Query:
    """Return the query that counts the free items at a stage, up to 1,000."""
    free = sa.select(assignments.c.item_id).where(_is("open"), *_may_take(apart, exclude_uploader))
    return Query(sa.select(sa.func.count()).select_from(free.distinct().limit(1000).subquery()))


@lru_cache(maxsize=16)
def find_free_assignment(*, apart: int, exclude_uploader: bool, expired: bool) -> Query:
    """Return the query for the first free assignment, or the first with an expired lease."""
    # Leases of training items do not expire.
    late = sa.or_(
        assignments.c.lease_until < p("now"),
        # No lease is that long: the clock was wrong when it began.
        assignments.c.lease_until > p("now", type_=sa.Double) + LONGEST_LEASE,
    )
    lapsed = (_is("leased"), late, assignments.c.training_round == 0)
    return Query(
        sa.select(assignments.c.id, assignments.c.place, assignments.c.item_id)
        .where(assignments.c.place >= p("start"), *(lapsed if expired else (_is("open"),)))
        .where(*_may_take(apart, exclude_uploader))
        .order_by(assignments.c.place, assignments.c.slot)
        .limit(1)
        .with_for_update(of=assignments, skip_locked=True, key_share=True)
    )


# Training rounds
_round = (assignments.c.training_round == p("round"), items.c.training_round == p("round"))
NEXT_TRAINING = Query(
    sa.select(items.c.id, items.c.group_key, items.c.number, items.c.training_round)
    .where(
        items.c.project_id == p("project"),
        _round[1],
        ~sa.exists().where(assignments.c.item_id == items.c.id, assignments.c.user_id == p("user")),
        _not_skipped(items.c.group_key),
    )
    .order_by(items.c.number)
    .limit(1)
)
TRAINING_ANSWERS = Query(
    sa.select(items.c.gold, assignments.c.answer)
    .select_from(assignments.join(items))
    .where(*_mine, _round[0], _is("done"))
    .order_by(assignments.c.submitted_at, assignments.c.id)
)
TRAINING_HELD = Query(sa.select(assignments.c.id).where(*_mine, _round[0], _is("leased")))
COUNT_TRAINING = Query(
    sa.select(sa.func.count()).where(items.c.project_id == p("project"), _round[1])
)

# Experienced annotators need not pass a training that is added later.
PASS_EXPERIENCED = Query(
    sa.update(memberships)
    .where(memberships.c.project_id == p("project"), memberships.c.training == "none")
    .where(
        sa.exists().where(
            assignments.c.project_id == memberships.c.project_id,
            assignments.c.user_id == memberships.c.user_id,
            assignments.c.training_round == 0,
            _is("done"),
        )
    )
    .values(training="passed")
)

# Progress of a project
COUNT_ASSIGNMENTS = Query(
    sa.select(assignments.c.stage, assignments.c.state, sa.func.count().label("assignments"))
    .where(assignments.c.project_id == p("project"), assignments.c.training_round == 0)
    .group_by(assignments.c.stage, assignments.c.state)
)
_real = items.c.training_round == 0
COUNT_ITEMS = Query(
    sa.select(
        _count(_real).label("items"),
        _count(_real, _is("done", items)).label("finished"),
        _count(~_real).label("training_items"),
    ).where(items.c.project_id == p("project"))
)
ANSWERS_BY_PERSON = Query(
    sa.select(assignments.c.user_id, assignments.c.seconds)
    .where(assignments.c.project_id == p("project"), _is("done"), assignments.c.training_round == 0)
    .where(assignments.c.user_id.is_not(None))
)
COUNT_DONE = Query(
    sa.select(sa.func.count()).where(assignments.c.project_id == p("project"), _is("done"))
)
