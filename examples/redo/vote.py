"""Three made-up people vote on a folder of memes through the annotation app, as a table says.

    python vote.py MEMES LABELS --db FILE

The table has a line for each meme: id, harmful (yes or no), type, modality, target. Two of the
three vote as it says; the third calls every fifth meme harmless, so that not all agree.
"""

from __future__ import annotations

import argparse
import csv
import secrets
from pathlib import Path

from pydantic import JsonValue

from memantics.actions.annotate import Storage, find_admin, import_annotations, open_annotations
from memantics.annotate.workflow import Settings
from memantics.core.memes import read_memes

VOTERS = ("voter-1", "voter-2", "voter-3")
FIELDS = ("harmful", "type", "modality", "target")


def read_labels(path: Path) -> dict[str, dict[str, JsonValue]]:
    """What to vote, by meme; empty cells are not asked."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["id"]: {name: row[name] for name in FIELDS if row.get(name)} for row in rows}


def main() -> None:
    """Open the folder as a project and let everybody vote."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("memes", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--db", default="votes.db")
    given = parser.parse_args()
    labels, storage = read_labels(given.labels), Storage(given.db)
    made = import_annotations(storage, given.memes, workflow="label-by-vote")
    names = [meme.id for meme in read_memes(given.memes)]
    with open_annotations(storage) as service:
        lead = find_admin(service)
        project = service.projects.get(lead, made.project)
        settings = project.settings.model_copy(update={"training": False})
        service.projects.set_settings(lead, project.id, Settings.model_validate(settings))
        for place, name in enumerate(VOTERS):
            voter = service.accounts.create(lead, name, secrets.token_urlsafe(24))
            service.projects.add_member(lead, project.id, name, ("annotator",))
            service.projects.consent(voter, project.id)
            number = 0
            while (task := service.work.next(voter, project.id)) is not None:
                values = labels[names[task.number - 1]]
                if place == 2 and number % 5 == 4:
                    values = {"harmful": "no"}
                number += 1
                service.work.submit(voter, task.assignment, values, task.version, 20.0)


if __name__ == "__main__":
    main()
