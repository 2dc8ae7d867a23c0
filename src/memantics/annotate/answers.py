"""Saving answers: every change is a new revision, and no change overwrites one unseen.

All of it happens inside a transaction that has read the place of the seat.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from memantics.annotate import queries
from memantics.annotate.context import dump, load
from memantics.annotate.errors import AnswerError, Conflict, Forbidden, Locked, Values
from memantics.annotate.leasing import give_feedback
from memantics.annotate.records import Action, Saved, SeatState
from memantics.annotate.tasks import Place, Seat, find_later, reset_seats, rests_on
from memantics.annotate.values import check, turn_pairs

LARGEST = 200_000


def submit_answer(
    place: Place, values: Values, version: int, seconds: float | None
) -> Saved | Conflict:
    """Save an answer, or say what stands in its way; a conflict keeps it as a draft."""
    if not place.may_work:
        raise Forbidden
    seat, workflow = place.seat, place.visit.flow
    kept = turn_pairs(workflow, values, swapped=place.swapped, outward=False)
    if seat.user != place.visit.actor.id:
        key = place.visit.key | {"item": place.item.id}
        if queries.WAS_SEEN.one(place.visit.connection, key) is None:
            raise Forbidden
        # The lease ran out and somebody else has the seat: what was typed is kept.
        return _conflict(place, values)
    if seat.state not in ("leased", "done"):
        raise Locked("this item is not open any more")
    answer = check(workflow, place.stage.fields, kept, labels=place.labels, state=place.state())
    if version != seat.version:
        if seat.done and seat.answer == answer:
            return Saved(seat.id, seat.version, again=True)
        return _conflict(place, values)
    if seat.done:
        _refuse_settled(place)
        if seat.answer == answer:
            return Saved(seat.id, seat.version, again=True)
    _write_revision(place, "edit" if seat.done else "submit", answer, _plausible(seconds))
    feedback = give_feedback(place.visit, place.item, answer) if seat.training_round else None
    return Saved(seat.id, seat.version + 1, feedback=feedback)


def undo_answer(place: Place, version: int) -> None:
    """Restore the answer before the last one; without one, the form is open again."""
    seat = place.seat
    if not seat.done:
        raise Locked("there is nothing to take back")
    stands = place.turn(seat.answer or {})
    if version != seat.version:
        raise Conflict(stands, stands, seat.version, by_me=True)
    _refuse_settled(place)
    former = _former(place)
    _write_revision(place, "undo", former)
    if former is None:
        keep_draft(place, stands)


def skip_item(place: Place) -> None:
    """This meme is never shown to this person again."""
    visit, item = place.visit, place.item
    skipped = {"project_id": visit.rights.id, "user_id": visit.actor.id, "at": visit.now}
    queries.ADD_SKIP.run(visit.connection, skipped | {"group_key": item.group_key})
    visit.log("item.skip", f"item:{item.id}")
    if place.seat.state == "leased":
        _let_go(place)


def release_item(place: Place) -> None:
    """Let go of a lease."""
    if place.seat.state != "leased":
        raise Locked("this item is not held")
    if not place.seat.training_round:  # a training item is theirs alone: it simply waits
        _let_go(place)


def keep_draft(place: Place, values: Values) -> None:
    """Keep what a person typed."""
    try:
        text = dump(dict(values))
    except TypeError as error:  # lone surrogates, endless numbers: no browser sends such
        raise AnswerError({"draft": "cannot be kept"}) from error
    if len(text) > LARGEST:
        raise AnswerError({"draft": "too long to be kept"})
    visit = place.visit
    draft = {"seat_id": place.seat.id, "user_id": visit.actor.id, "saved_at": visit.now}
    queries.KEEP_DRAFT.run(visit.connection, draft | {"answer": text})


def _let_go(place: Place) -> None:
    connection, mine = place.visit.connection, place.seat
    if mine.training_round:
        queries.CLOSE_SEAT.run(connection, {"seat": mine.id})
        return
    reset_seats(connection, [mine])
    place.settle([_freed(seat) if seat.id == mine.id else seat for seat in place.seats])


def _refuse_settled(place: Place) -> None:
    if place.seat.training_round:
        raise Locked("training answers stay as they are")
    if rests_on(place.visit.flow, place.seats, place.seat, place.visit.now):
        raise Locked


def _conflict(place: Place, values: Values) -> Conflict:
    seat = place.seat
    keep_draft(place, values)
    mine = seat.user == place.visit.actor.id
    theirs = place.turn((seat.answer or {}) if mine else {})
    return Conflict(values, theirs, seat.version, by_me=mine)


def _former(place: Place) -> dict[str, JsonValue] | None:
    """The answer under the last one, with undone ones taken off the pile."""
    pile: list[str] = []
    key = place.visit.key | {"seat": place.seat.id}
    for row in queries.OWN_REVISIONS.all(place.visit.connection, key):
        if row.action == "undo":
            pile = pile[:-1]
        else:
            pile.append(row.answer)
    return load(pile[-2]) if len(pile) > 1 else None


def _freed(seat: Seat) -> Seat:
    return replace(seat, state="waiting", user=None, lease_until=None, answer=None)


def _plausible(seconds: float | None) -> float | None:
    """A browser's word on how long it took; hours mean that somebody was away."""
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None


def _write_revision(
    place: Place,
    action: Action,
    answer: dict[str, JsonValue] | None,
    seconds: float | None = None,
) -> None:
    """Write an answer to its seat and to history, and move the seats that wait for it.

    Without an answer the seat is held again.
    """
    visit, seat, item = place.visit, place.seat, place.item
    state: SeatState = "leased" if answer is None else "done"
    text = dump(answer) if answer is not None else None
    row = {
        "seat": seat.id,
        "seen": seat.version,
        "new": state,
        "text": text,
        "submitted": visit.now if text is not None else None,
        "took": seconds,
        "until": visit.lease_end if state == "leased" else None,
        "user": visit.actor.id,
    }
    if queries.SAVE_ANSWER.run(visit.connection, row) != 1:
        raise Conflict(answer or {}, {}, seat.version, by_me=False)
    entry = {
        "project_id": visit.rights.id,
        "item_id": item.id,
        "seat_id": seat.id,
        "user_id": visit.actor.id,
        "stage": seat.stage,
        "version": seat.version + 1,
        "action": action,
        "answer": text,
        "at": visit.now,
        "seconds": seconds,
    }
    queries.ADD_REVISION.run(visit.connection, entry)
    seat = replace(seat, answer=answer, state=state, version=seat.version + 1)
    subject = f"assignment:{seat.id}"
    visit.log(f"answer.{action}", subject, item=item.item_key, version=seat.version)
    if not seat.training_round:
        # Who held a later seat and went away saw another state: what they bring is no answer to it.
        later = find_later(visit.flow, place.seats, seat)
        stale = {one.id: _freed(one) for one in later if one.state == "leased"}
        reset_seats(visit.connection, list(stale.values()))
        place.settle([(stale | {seat.id: seat}).get(one.id, one) for one in place.seats])
