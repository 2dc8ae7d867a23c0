"""Let two simulated annotators answer every item of an annotation project.

    python annotate.py DATABASE PROJECT

The project uses the workflow ``validate``: annotators confirm or reject generated questions.
Both annotators reject the marked answer of every fifth item. Annotator ``bo`` also rejects every
seventh item, so that the annotators disagree on some items.
"""

from __future__ import annotations

import secrets
import sys

from pydantic import JsonValue

from memantics.annotation.commands import Storage, find_admin, open_annotations

ANNOTATORS = ("ann", "bo")
SECONDS_PER_ITEM = 20.0
# Each field of the form, and the label without which the form does not show the field.
FIELDS = {
    "knowledge": "knowledge",
    "element": "element",
    "question": "",
    "answer": "",
    "second_question": "second question",
    "second_answer": "second question",
}


def answer_item(annotator: str, item: int, labels: frozenset[str]) -> dict[str, JsonValue]:
    """Return the answers of one annotator for the fields that one item has."""
    answers: dict[str, JsonValue] = {
        field: "yes" for field, label in FIELDS.items() if not label or label in labels
    }
    if item % 5 == 0 or (annotator == "bo" and item % 7 == 0):
        answers["answer"] = "no"
    return answers


def annotate(database: str, project: int) -> dict[str, int]:
    """Create both accounts, answer all open items, and return the number of items per account."""
    counts = dict.fromkeys(ANNOTATORS, 0)
    with open_annotations(Storage(database)) as service:
        lead = find_admin(service)
        for name in ANNOTATORS:
            person = service.accounts.create(lead, name, secrets.token_urlsafe(24))
            service.projects.add_member(lead, project, name, ("annotator",))
            service.projects.consent(person, project)
            while (task := service.work.next(person, project)) is not None:
                answers = answer_item(name, task.number, task.labels)
                service.work.submit(
                    person, task.assignment, answers, task.version, SECONDS_PER_ITEM
                )
                counts[name] += 1
    return counts


if __name__ == "__main__":
    for name, count in annotate(sys.argv[1], int(sys.argv[2])).items():
        print(f"{name}: {count} items annotated")
