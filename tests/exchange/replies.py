"""What the scripted model answers: some right, some wrong, one without an answer, one failed."""

from __future__ import annotations

FAILED, UNREADABLE, FORMULA = 5, 6, 7


def plan_reply(number: int, gold: str) -> str:
    """The reply to an item by its number from 0: every third is wrong."""
    if number == FAILED:
        return "Failed to obtain answer via API."
    if number == UNREADABLE:
        return "I would rather not choose."
    letter = gold if number % 3 else "BCDA"["ABCD".index(gold)]
    if number == FORMULA:
        return f"={letter}"  # Excel takes this for a formula
    return f"It shows a joke.\nAnswer: {letter}"
