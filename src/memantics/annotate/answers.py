"""Saving answers: every change is a new revision, and no change overwrites one unseen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.context import ServiceContext, dump, load, same
from memantics.annotate.errors import AnswerError, Conflict, Forbidden, Locked, Values
from memantics.annotate.leasing import give_feedback
from memantics.annotate.records import Action, Actor, Saved, SeatState
from memantics.annotate.tasks import (
    Place,
    Seat,
    find_later,
    is_swapped,
    reset_seats,
    rests_on,
    settle,
    with_answer,
)
from memantics.annotate.values import check, turn_pairs

LARGEST = 200_000


@dataclass(frozen=True, slots=True)
class SeatChange:
    """What becomes of a seat."""

    answer: dict[str, JsonValue] | None
    action: Action
    state: SeatState
    seconds: float | None = None


class Answers:
    """Changes to one seat, inside a transaction that has read its place."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def submit(
        self,
        connection: Connection,
        actor: Actor,
        place: Place,
        values: Values,
        version: int,
        seconds: float | None,
    ) -> Saved | Conflict:
        """Save an answer, or say what stands in its way; a conflict keeps it as a draft."""
        if not place.may_work:
            raise Forbidden
        swapped = is_swapped(place.item.id, actor.id)
        workflow = place.rights.workflow
        kept = turn_pairs(workflow, values, swapped=swapped, outward=False)
        seat = place.seat
        if seat.user != actor.id:
            return self._lost(connection, actor, place, values)
        if seat.state not in ("leased", "done"):
            raise Locked("this item is not open any more")
        fields = workflow.stages[seat.stage].fields
        answer = check(workflow, fields, kept, labels=place.labels, state=place.state())
        if version != seat.version:
            if seat.done and same(seat.answer, answer):
                return Saved(seat.id, seat.version, again=True)
            return self._conflict(connection, actor, place, values)
        if seat.done:
            self._refuse_settled(place)
            if same(seat.answer, answer):
                return Saved(seat.id, seat.version, again=True)
        action: Action = "edit" if seat.done else "submit"
        change = SeatChange(answer, action, "done", _plausible(seconds))
        write_revision(self._context, connection, actor, place, change)
        feedback = None
        if place.training_round:
            feedback = give_feedback(connection, actor, place.rights, place.item, answer)
        return Saved(seat.id, seat.version + 1, feedback=feedback)

    def undo(self, connection: Connection, actor: Actor, place: Place, version: int) -> None:
        """Restore the answer before the last one; without one, the form is open again."""
        seat = place.seat
        if not seat.done:
            raise Locked("there is nothing to take back")
        if version != seat.version:
            stands = _outward(place, actor, seat.answer or {})
            raise Conflict(stands, stands, seat.version, by_me=True)
        self._refuse_settled(place)
        former = self._former(connection, actor, seat.id)
        state: SeatState = "leased" if former is None else "done"
        change = SeatChange(former, "undo", state)
        write_revision(self._context, connection, actor, place, change)
        if former is None:
            self.keep_draft(connection, actor, seat.id, _outward(place, actor, seat.answer or {}))

    def skip(self, connection: Connection, actor: Actor, place: Place) -> None:
        """This meme is never shown to this person again."""
        project = place.rights.id
        skipped = {"project_id": project, "user_id": actor.id, "group_key": place.item.group_key}
        queries.ADD_SKIP.run(connection, skipped | {"at": self._context.clock()})
        self._context.log(connection, actor, "item.skip", f"item:{place.item.id}", project=project)
        if place.seat.state == "leased":
            self._let_go(connection, place)

    def release(self, connection: Connection, place: Place) -> None:
        """Let go of a lease."""
        if place.seat.state != "leased":
            raise Locked("this item is not held")
        if place.training_round:
            return  # a training item is theirs alone: it simply waits
        self._let_go(connection, place)

    def keep_draft(self, connection: Connection, actor: Actor, seat: int, values: Values) -> None:
        """Keep what a person typed."""
        try:
            text = dump(dict(values))
        except TypeError as error:  # lone surrogates, endless numbers: no browser sends such
            raise AnswerError({"draft": "cannot be kept"}) from error
        if len(text) > LARGEST:
            raise AnswerError({"draft": "too long to be kept"})
        now = self._context.clock()
        draft = {"seat_id": seat, "user_id": actor.id, "answer": text, "saved_at": now}
        queries.KEEP_DRAFT.run(connection, draft)

    def _let_go(self, connection: Connection, place: Place) -> None:
        if place.training_round:
            queries.CLOSE_SEAT.run(connection, {"seat": place.seat.id})
            return
        reset_seats(connection, [place.seat])
        seats = [_freed(seat) if seat.id == place.seat.id else seat for seat in place.seats]
        settle(connection, place.rights.workflow, place.item, seats, place.labels)

    def _refuse_settled(self, place: Place) -> None:
        if place.training_round:
            raise Locked("training answers stay as they are")
        workflow, now = place.rights.workflow, self._context.clock()
        if rests_on(workflow, place.seats, place.seat, now):
            raise Locked

    def _lost(self, connection: Connection, actor: Actor, place: Place, values: Values) -> Conflict:
        """The lease ran out and somebody else has the seat: what was typed is kept."""
        key = {"user": actor.id, "project": place.rights.id, "item": place.item.id}
        if queries.WAS_SEEN.one(connection, key) is None:
            raise Forbidden
        return self._conflict(connection, actor, place, values)

    def _conflict(
        self, connection: Connection, actor: Actor, place: Place, values: Values
    ) -> Conflict:
        seat = place.seat
        self.keep_draft(connection, actor, seat.id, values)
        mine = seat.user == actor.id
        theirs = _outward(place, actor, (seat.answer or {}) if mine else {})
        return Conflict(values, theirs, seat.version, by_me=mine)

    def _former(
        self, connection: Connection, actor: Actor, seat: int
    ) -> dict[str, JsonValue] | None:
        """The answer under the last one, with undone ones taken off the pile."""
        pile: list[str] = []
        for row in queries.OWN_REVISIONS.all(connection, {"seat": seat, "user": actor.id}):
            if row.action == "undo":
                pile = pile[:-1]
            else:
                pile.append(row.answer)
        return load(pile[-2]) if len(pile) > 1 else None


def _freed(seat: Seat) -> Seat:
    return replace(seat, state="waiting", user=None, lease_until=None, answer=None)


def _outward(place: Place, actor: Actor, values: Values) -> dict[str, JsonValue]:
    """An answer as its person sees it."""
    swapped = is_swapped(place.item.id, actor.id)
    return turn_pairs(place.rights.workflow, values, swapped=swapped, outward=True)


def _plausible(seconds: float | None) -> float | None:
    """A browser's word on how long it took; hours mean that somebody was away."""
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None


def write_revision(
    context: ServiceContext, connection: Connection, actor: Actor, place: Place, change: SeatChange
) -> None:
    """Write an answer to its seat and to history, and move the seats that wait for it."""
    seat, now = place.seat, context.clock()
    text = dump(change.answer) if change.answer is not None else None
    until = now + 60 * place.rights.settings.lease_minutes if change.state == "leased" else None
    row = {
        "seat": seat.id,
        "seen": seat.version,
        "new": change.state,
        "text": text,
        "submitted": now if text is not None else None,
        "took": change.seconds,
        "until": until,
        "user": actor.id,
    }
    if queries.SAVE_ANSWER.run(connection, row) != 1:
        raise Conflict(change.answer or {}, {}, seat.version, by_me=False)
    entry = {
        "project_id": place.rights.id,
        "item_id": place.item.id,
        "seat_id": seat.id,
        "user_id": actor.id,
        "stage": seat.stage,
        "version": seat.version + 1,
        "action": change.action,
        "answer": text,
        "at": now,
        "seconds": change.seconds,
    }
    queries.ADD_REVISION.run(connection, entry)
    subject = f"assignment:{seat.id}"
    context.log(
        connection,
        actor,
        f"answer.{change.action}",
        subject,
        project=place.rights.id,
        item=place.item.item_key,
        version=seat.version + 1,
    )
    if not place.training_round:
        # Who held a later seat and went away saw another state: what they bring is no answer to it.
        later = find_later(place.rights.workflow, place.seats, seat)
        stale = [one for one in later if one.state == "leased"]
        reset_seats(connection, stale)
        kept = [_freed(one) if one in stale else one for one in place.seats]
        seats = with_answer(kept, seat.id, change.answer, change.state)
        settle(connection, place.rights.workflow, place.item, seats, place.labels)
