"""Guidelines that grow: find what divides people, settle it in words, have it judged again.

A guideline is the instructions of the workflow and what a lead added since. The additions are kept
with the project's settings; each is a version, and an answer belongs to the version that held when
it was saved: a form that was opened under an older one is shown again first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import queries, schema
from memantics.annotate.consensus import find_disagreements
from memantics.annotate.context import ServiceContext
from memantics.annotate.errors import AnswerError, NotFound
from memantics.annotate.lead import Lead
from memantics.annotate.project_settings import Clarification, Words
from memantics.annotate.records import Actor, Disagreement, Rights
from memantics.annotate.values import clean_text
from memantics.annotate.work import lock_item
from memantics.annotate.workflow import Workflow
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.text import clean_line

LONGEST = 2000
_CASES = 12
find_prompts = prompts_beside(__file__)


class Guideline:
    """What a lead does about items that people read in different ways."""

    def __init__(self, context: ServiceContext, lead: Lead) -> None:
        self._context = context
        self._lead = lead

    def unclear(self, actor: Actor, project: int, *, limit: int = 25) -> tuple[Disagreement, ...]:
        """Find: the items on which people are most divided; those of equal split in order."""
        found = find_disagreements(*self._lead.gather(actor, project))
        return tuple(sorted(found, key=lambda one: (-one.split, one.number))[:limit])

    def describe(self, actor: Actor, project: int, numbers: Sequence[int] = ()) -> str:
        """The prompt for a draft: the guideline, and what people said of the unclear items."""
        rights = self._context.lead_rights(actor, project)
        found = self.unclear(actor, project, limit=10_000)
        cases = [one for one in found if not numbers or one.number in numbers][:_CASES]
        if not cases:
            raise NotFound(
                "people do not differ on any of these items", hint="there is nothing to clarify"
            )
        flow = rights.workflow
        rules = [flow.instructions.en, *(example.en for example in flow.examples)]
        rules += [added.text.en for added in rights.settings.clarifications]
        return find_prompts()["clarify"].fill(
            task=flow.title.en,
            guideline=enclose("guideline", "\n".join(f"- {rule}" for rule in rules if rule)),
            cases="\n\n".join(enclose(f"item {one.number}", _say(flow, one)) for one in cases),
        )

    def clarify(
        self,
        actor: Actor,
        project: int,
        words: Words,
        items: Iterable[int] = (),
        *,
        drafted: str = "",
        again: bool = True,
    ) -> int:
        """Resolve: add to the guideline; returns its version, under which later answers stand.

        ``items`` are the numbers of the items that it settles: whoever judged them apart judges
        them ``again``, from what they said before.
        """
        said = {name: clean_text(text, lines=True)[:LONGEST] for name, text in words}
        if not said["en"]:
            raise AnswerError({"text": "say what is clear now"})
        with self._context.as_lead(actor, project, write=True) as (connection, rights):
            numbers = _known_numbers(connection, project, items)
            added = Clarification(
                text=Words(**said),
                at=self._context.clock(),
                person=rights.pseudonym,
                drafted=clean_line(drafted, 200),
                items=numbers,
            )
            settings = rights.settings.model_copy(
                update={"clarifications": (*rights.settings.clarifications, added)}
            )
            queries.SET_SETTINGS.run(
                connection, {"project": project, "settings": settings.model_dump_json()}
            )
            reopened = self._ask_again(connection, rights, numbers) if again else 0
            detail = {"version": settings.guideline, "reopened": reopened}
            self._context.log(
                connection,
                actor,
                "guideline.clarify",
                f"project:{project}",
                project=project,
                **detail,
                **added.model_dump(mode="json", exclude={"at"}),
            )
            return settings.guideline

    def _ask_again(self, connection: Connection, rights: Rights, numbers: Sequence[int]) -> int:
        """Give the answers to these items at the first stage of several back to their people."""
        stages = rights.workflow.stages
        apart = [n for n, stage in enumerate(stages) if stage.kind in ("independent", "review")]
        seats = schema.seats
        query = (
            sa.select(seats)
            .join(schema.items, schema.items.c.id == seats.c.item_id)
            .where(
                seats.c.project_id == rights.id,
                seats.c.state == "done",
                seats.c.training_round == 0,
                seats.c.stage.in_(apart[:1]),
                schema.items.c.number.in_(numbers),
            )
            .order_by(seats.c.item_id, seats.c.id)
        )
        rows = connection.execute(query).all()
        for row in rows:
            if not self._context.db.sqlite:
                lock_item(connection, row.id)
            self._lead.reopen_seat(connection, rights, row)
        return len(rows)


def _known_numbers(connection: Connection, project: int, numbers: Iterable[int]) -> tuple[int, ...]:
    wanted, table = sorted(set(numbers)), schema.items
    query = sa.select(table.c.number).where(
        table.c.project_id == project, table.c.number.in_(wanted)
    )
    if unknown := set(wanted) - set(connection.execute(query).scalars()):
        raise NotFound(f"the project has no item {min(unknown)}")
    return tuple(wanted)


def _say(flow: Workflow, case: Disagreement) -> str:
    """What an item shows and what was said of it, line by line; nobody is named."""
    lines = [f"{shown.label}: {_join(shown.value)}" for shown in case.shown]
    for name, votes in case.fields.items():
        said = ", ".join(sorted("nothing" if value is None else str(value) for _, value in votes))
        lines.append(f"{flow.field(name).label.en} People said: {said}")
    lines += [f"A person noted: {note}" for _, note in case.notes]
    return "\n".join(clean_line(line, 600) for line in lines)


def _join(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " / ".join(value)
