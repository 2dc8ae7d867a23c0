"""Simulate three annotators who fill in a questionnaire and label memes in the annotation app.

    python vote.py introduce QUESTIONNAIRE --db FILE
    python vote.py vote MEMES LABELS --db FILE

The table of labels has one line per meme: id, harmful (yes or no), type, modality, target. Two
annotators follow the table; the third labels every fifth meme harmless, so that they disagree.
"""

from __future__ import annotations

import argparse
import csv
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from memantics.annotation.commands import Storage, find_admin, import_annotations, open_annotations
from memantics.annotation.project_settings import ProjectSettings
from memantics.core.memes import read_memes

Values = Mapping[str, JsonValue]
PEOPLE: dict[str, Values] = {
    "voter-1": {"gender": "female", "age": "20_to_30", "region": "asian"},
    "voter-2": {"gender": "male", "age": "20_to_30", "region": "asian"},
    "voter-3": {"gender": "female", "age": "over_30", "region": "other"},
}
FIELDS = ("harmful", "type", "modality", "target")


def read_labels(path: Path) -> dict[str, Values]:
    """Return the labels to give, by meme; empty cells are skipped."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["id"]: {name: row[name] for name in FIELDS if row.get(name)} for row in rows}


def answer_all(storage: Storage, project: int, answer: Callable[[str, int, int], Values]) -> None:
    """Answer all items as each annotator; ``answer`` gets annotator, item and turn."""
    with open_annotations(storage) as service:
        lead = find_admin(service)
        settings = service.projects.get(lead, project).settings
        plain = ProjectSettings.model_validate(settings.model_copy(update={"training": False}))
        service.projects.set_settings(lead, project, plain)
        for name in PEOPLE:
            person = service.accounts.create(lead, name, secrets.token_urlsafe(24))
            service.projects.add_member(lead, project, name, ("annotator",))
            service.projects.consent(person, project)
            turn = 0
            while (task := service.work.next(person, project)) is not None:
                values = answer(name, task.number - 1, turn)
                service.work.submit(person, task.assignment, dict(values), task.version, 20.0)
                turn += 1


def introduce(queue: Path, storage: Storage) -> None:
    """Fill in the questionnaire as each annotator."""
    made = import_annotations(storage, queue)
    answer_all(storage, made.project, lambda name, _, __: {"consent": "yes", **PEOPLE[name]})


def vote(memes: Path, table: Path, storage: Storage) -> None:
    """Open the folder as a project and label every meme as each annotator."""
    labels, names = read_labels(table), [meme.id for meme in read_memes(memes)]
    made = import_annotations(storage, memes, workflow="label-by-vote")

    def say(name: str, item: int, turn: int) -> Values:
        differs = name == "voter-3" and turn % 5 == 4
        return {"harmful": "no"} if differs else labels[names[item]]

    answer_all(storage, made.project, say)


def main() -> None:
    """Parse the command line and run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("introduce", "vote"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("labels", type=Path, nargs="?")
    parser.add_argument("--db", required=True)
    given = parser.parse_args()
    if given.what == "introduce":
        introduce(given.folder, Storage(given.db))
    else:
        vote(given.folder, given.labels, Storage(given.db))


if __name__ == "__main__":
    main()
