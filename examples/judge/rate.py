"""Let a simulated person with a known error rate every answer of an annotation project.

    python rate.py DATABASE PROJECT ANSWERS

ANSWERS is a table with the true ratings of each answer. The simulated person gives the true rating;
every sixth rating is off by one level.
"""

from __future__ import annotations

import csv
import secrets
import sys
from pathlib import Path

from pydantic import JsonValue

from memantics.annotation.commands import Storage, find_admin, open_annotations

PERSON = "ann"
EVERY = 6  # every sixth rating is off by one
SECONDS_PER_ITEM = 20.0


def read_truth(path: Path) -> dict[str, dict[str, int]]:
    """Read the true ratings by answer."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["answer"]: {name: int(row[name]) for name in ("correctness", "coverage")}
            for row in csv.DictReader(file)
        }


def rate(database: str, project: int, truth: dict[str, dict[str, int]]) -> int:
    """Create an account, rate all open items, and return their number."""
    count = 0
    with open_annotations(Storage(database)) as service:
        lead = find_admin(service)
        person = service.accounts.create(lead, PERSON, secrets.token_urlsafe(24))
        service.projects.add_member(lead, project, PERSON, ("annotator",))
        service.projects.consent(person, project)
        while (task := service.work.next(person, project)) is not None:
            answer = next(str(part.value) for part in task.shown if part.label == "Answer")
            ratings: dict[str, JsonValue] = {}
            for name, value in truth[answer].items():
                off = count % EVERY == EVERY - 1
                ratings[name] = value if not off else value - 1 if value > 1 else 2
            service.work.submit(person, task.assignment, ratings, task.version, SECONDS_PER_ITEM)
            count += 1
    return count


if __name__ == "__main__":
    rated = rate(sys.argv[1], int(sys.argv[2]), read_truth(Path(sys.argv[3])))
    sys.stdout.write(f"{PERSON} rated {rated} answers\n")
