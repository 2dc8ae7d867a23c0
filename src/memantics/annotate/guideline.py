"""Guidelines that grow: find what divides people, settle it in words, have it judged again.

A guideline is the instructions of the workflow and what a lead added since. The additions are kept
with the project's settings; each is a version, and an answer belongs to the version that held when
it was saved: a form that was opened under an older one is shown again first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from memantics.annotate import queries, schema
from memantics.annotate.consensus import find_disagreements
from memantics.annotate.context import ServiceContext, Visit, keep_settings
from memantics.annotate.errors import AnswerError, NotFound
from memantics.annotate.lead import Lead, reopen_seat
from memantics.annotate.project_settings import Clarification, Words
from memantics.annotate.records import Actor, Disagreement
from memantics.annotate.tasks import lock_item
from memantics.annotate.values import clean_text
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
        with self._context.as_lead(actor, project, write=True) as visit:
            numbers = _known_numbers(visit, items)
            added = Clarification(
                text=Words(**said),
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


def _ask_again(visit: Visit, numbers: Sequence[int]) -> int:
    """Give the answers to these items at the first stage of several back to their people."""
    seats = schema.seats
    query = (
        sa.select(seats)
        .join(schema.items, schema.items.c.id == seats.c.item_id)
        .where(
            seats.c.project_id == visit.rights.id,
            seats.c.state == "done",
            seats.c.training_round == 0,
            seats.c.stage.in_([place for place, _ in visit.flow.apart_stages][:1]),
            schema.items.c.number.in_(numbers),
        )
        .order_by(seats.c.item_id, seats.c.id)
    )
    rows = visit.connection.execute(query).all()
    for row in rows:
        lock_item(visit.connection, row.id)
        reopen_seat(visit, row)
    return len(rows)


def _known_numbers(visit: Visit, numbers: Iterable[int]) -> tuple[int, ...]:
    wanted = sorted(set(numbers))
    known = {item.number for item in queries.ITEMS.all(visit.connection, visit.key)}
    if unknown := set(wanted) - known:
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
