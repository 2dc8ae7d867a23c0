"""Projects, their members and settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from memantics.annotation import queries, schema
from memantics.annotation.context import (
    ServiceContext,
    keep_settings,
    ordered_roles,
    read_rights,
    read_roles,
    write_roles,
)
from memantics.annotation.database import insert_row, lock_database
from memantics.annotation.errors import AnnotateError, AnswerError, Forbidden, NotFound
from memantics.annotation.faults import retried
from memantics.annotation.intake import adjust_assignments
from memantics.annotation.leasing import rearrange
from memantics.annotation.membership import change_member, find_user, join_project, require_admin
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Actor, Member, Project, record_of
from memantics.annotation.values import clean_text
from memantics.annotation.workflow import Workflow, parse_workflow, workflow_of, workflow_text
from memantics.core.errors import InputError

_projects, _members, _users = schema.projects, schema.memberships, schema.users


class Projects:
    """Create, list, change and archive projects, and manage their members."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    @retried
    def create(
        self,
        actor: Actor,
        title: str,
        workflow: str | Path,
        *,
        changes: Mapping[str, object] = MappingProxyType({}),
        language: str = "en",
    ) -> Project:
        """Create a project with a built-in workflow, a TOML file, or the text of one.

        ``changes`` are settings by name that differ from the workflow's, ``language`` included.
        """
        text, rules = read_rules(workflow)
        said = {"language": language, **changes}
        language = _read_language(said.pop("language"))
        title = clean_text(title, lines=False)[:300]
        if not title:
            raise AnswerError({"title": "enter a title"})
        now = self._context.clock()
        entry = {
            "title": title,
            "workflow": text,
            "settings": change_settings(rules.settings, said).model_dump_json(),
            "language": language,
            "archived": False,
            "created_at": now,
            "created_by": actor.id,
        }
        with self._context.db.write() as connection:
            lock_database(connection)
            require_admin(connection, actor)
            _keep_apart(connection, rules)
            project = insert_row(connection, _projects, entry)
            join_project(connection, project, actor.id, ["lead"], now)
            visit = self._context.visit(connection, actor, project)
            visit.log("project.create", title=title, workflow=rules.name)
            return visit.rights

    def mine(self, actor: Actor) -> tuple[Project, ...]:
        """Return the projects of a person, newest first."""
        with self._context.db.read() as connection:
            rows = queries.OWN_RIGHTS.all(connection, {"user": actor.id})
            return tuple(read_rights(row) for row in rows)

    def get(self, actor: Actor, project: int) -> Project:
        """Return one project of a person."""
        with self._context.as_member(actor, project) as visit:
            return visit.rights

    @retried
    def set_settings(self, actor: Actor, project: int, settings: ProjectSettings) -> None:
        """Change the settings of a project, except the guideline (see :meth:`Lead.clarify`).

        All annotations are kept. With more annotators per item, finished items reopen; with fewer,
        items with enough annotations are finished.
        """
        with self._context.as_lead(actor, project, write=True) as visit:
            connection, before = visit.connection, visit.rights.settings
            names = ("clarifications", "team", "suggested", "options")
            kept: dict[str, object] = {name: getattr(before, name) for name in names}
            if before.comments:
                kept["comments"] = True  # existing comments stay visible
            if settings.prelabels != before.prelabels:
                shown = settings.prelabels == "shown"
                kept["suggested"] = (*before.suggested, (visit.now, shown))
            if before.adjudicator and not settings.adjudicator:
                kept["adjudicator"] = "none"  # the existing adjudication stage stays and is closed
            settings = settings.model_copy(update=kept)
            keep_settings(connection, project, settings)
            visit.log("project.settings", **settings.model_dump(exclude={"clarifications"}))
            adjust_assignments(connection, project)
            if "uncertainty" in (before.order, settings.order) and not visit.flow.shuffle:
                rearrange(self._context.visit(connection, actor, project))

    def change(self, actor: Actor, project: int, changes: Mapping[str, object]) -> ProjectSettings:
        """Change settings by name, and the language of the project; return all settings."""
        rights, said = self._context.lead_rights(actor, project), dict(changes)
        language = _read_language(said.pop("language", rights.language))
        changed = change_settings(rights.settings, said)
        if language != rights.language:
            self._update(actor, project, language=language)
        if said:
            self.set_settings(actor, project, changed)
        return self._context.lead_rights(actor, project).settings

    def archive(self, actor: Actor, project: int, *, archived: bool = True) -> None:
        """Close a project for work, or reopen it; no data is deleted."""
        self._update(actor, project, archived=archived)

    @retried
    def _update(self, actor: Actor, project: int, **values: str | bool) -> None:
        action = "project.archive" if "archived" in values else "project.language"
        with self._context.as_lead(actor, project, write=True) as visit:
            change = sa.update(_projects).where(_projects.c.id == project)
            visit.connection.execute(change.values(**values))
            visit.log(action, **values)

    def members(self, actor: Actor, project: int) -> tuple[Member, ...]:
        """Return all members of a project, including former members."""
        query = (
            sa.select(_members, _members.c.user_id.label("user"), _users.c.name, _users.c.active)
            .join(_users, _users.c.id == _members.c.user_id)
            .where(_members.c.project_id == project)
            .order_by(_members.c.joined_at, _members.c.user_id)
        )
        with self._context.as_lead(actor, project) as visit:
            return tuple(_view_member(row) for row in visit.connection.execute(query))

    @retried
    def add_member(self, actor: Actor, project: int, name: str, roles: Iterable[str]) -> None:
        """Add a person with an existing account."""
        wanted = list(roles)
        with self._context.as_lead(actor, project, write=True) as visit:
            user = find_user(visit.connection, name)
            if user is None:
                raise NotFound(f"no account is named {name!r}", hint="send an invitation instead")
            join_project(visit.connection, project, user, wanted, visit.now)
            adjust_assignments(visit.connection, project, joined=True)
            visit.log("member.add", user=user, roles=write_roles(wanted))

    @retried
    def set_roles(self, actor: Actor, project: int, user: int, roles: Iterable[str]) -> None:
        """Set the roles of a member; an empty set removes the member. The last lead must stay.

        Members may remove themselves. Their annotations are kept.
        """
        text = write_roles(roles)
        with self._context.as_member(actor, project, write=True, lock="project") as visit:
            if "lead" not in visit.rights.roles and (text or user != actor.id):
                raise Forbidden
            if "lead" not in text.split(",") and _only_lead(visit.connection, project, user):
                raise AnswerError({"roles": "a project needs at least one lead"})
            change_member(visit.connection, project, user, roles=text)
            adjust_assignments(visit.connection, project, joined=True)
            visit.log("member.roles", user=user, roles=text)

    @retried
    def set_limits(
        self, actor: Actor, project: int, user: int, daily: int | None, weekly: int | None
    ) -> None:
        """Set the daily and weekly limit of a person; None uses the project's, 0 means no limit."""
        for limit in (daily, weekly):
            if limit is not None and not 0 <= limit <= 1_000_000:
                raise AnswerError({"limit": "use a number from 0"})
        with self._context.as_lead(actor, project, write=True) as visit:
            change_member(visit.connection, project, user, daily_limit=daily, weekly_limit=weekly)
            visit.log("member.limits", user=user, daily=daily, weekly=weekly)

    @retried
    def consent(self, actor: Actor, project: int) -> None:
        """Record that a member accepted the content warning."""
        with self._context.as_member(actor, project, write=True, lock="member") as visit:
            if not visit.rights.consented:
                change_member(visit.connection, project, actor.id, consent_at=visit.now)
                visit.log("member.consent")


def change_settings(settings: ProjectSettings, changes: Mapping[str, object]) -> ProjectSettings:
    """Return settings with changed values; raise an error that names an invalid value.

    >>> change_settings(ProjectSettings(), {"annotators_per_item": 99})
    Traceback (most recent call last):
    memantics.core.errors.InputError: annotators_per_item: Input should be less than or equal to 50
    """
    try:
        return ProjectSettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        shaped = first["type"] == "string_pattern_mismatch"
        message = "not a valid URL, such as https://example.org" if shaped else first["msg"]
        raise InputError(f"{first['loc'][0]}: {message}") from error


def _read_language(code: object) -> str:
    """Return a valid language code, such as zh or pt-BR."""
    text = clean_text(str(code), lines=False)
    if len(text) > 20 or not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*|", text):
        raise InputError(
            f"{text[:40]!r} is not a valid language code", hint="use a code such as en, zh or pt-BR"
        )
    return text


def read_rules(workflow: str | Path) -> tuple[str, Workflow]:
    """Return the text and the content of a workflow: a name, a file, or the text of one."""
    if isinstance(workflow, str) and "\n" in workflow:
        return workflow, parse_workflow(workflow, "workflow")
    text = workflow_text(workflow)
    return text, parse_workflow(text, Path(workflow).name)


def _keep_apart(connection: Connection, rules: Workflow) -> None:
    """Raise an error if questionnaires and other projects would share a database."""
    texts = connection.execute(sa.select(_projects.c.workflow)).scalars()
    if all(workflow_of(text).personal == rules.personal for text in texts):
        return
    if rules.personal:
        raise AnnotateError(
            f"{rules.name} is a personal questionnaire, and this database contains other projects",
            hint="use a separate database, such as --db people.db",
        )
    raise AnnotateError(
        "this database contains a personal questionnaire",
        hint="use another database for annotations: --db FILE",
    )


def _only_lead(connection: Connection, project: int, user: int) -> bool:
    query = sa.select(_members.c.user_id, _members.c.roles).where(_members.c.project_id == project)
    leads = {row.user_id for row in connection.execute(query) if "lead" in read_roles(row.roles)}
    return leads == {user}


def _view_member(row: Any) -> Member:
    roles = ordered_roles(row.roles)
    active = bool(row.active) and bool(roles)
    consented = row.consent_at is not None
    return record_of(Member, row, roles=roles, consented=consented, active=active)
