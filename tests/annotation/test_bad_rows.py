"""One unusable row of a queue is skipped with its number; the others are imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.annotation.service import AnnotationService
from memantics.core.errors import DataError
from tests.annotation.team import make_lead, make_queue, plain_items
from tests.commands import Shell

BAD = ["a\tb", "a\nb", " a", "a ", "a\u200bb", "a\x1bb"]


def queue_with(folder: Path, good: int, place: int, bad: str) -> Path:
    """A queue as an earlier version wrote it, with one id that is no longer allowed."""
    make_queue(folder, "label-by-vote", plain_items(good))
    lines = (folder / "items.jsonl").read_text().splitlines()
    lines.insert(place, json.dumps({"id": bad, "group": "g"}))
    (folder / "items.jsonl").write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_id_does_not_refuse_the_queue(
    service: AnnotationService, tmp_path: Path, bad: str
) -> None:
    """A11: the whole queue was refused."""
    queue = queue_with(tmp_path / "q", 3, 1, bad)
    lead = make_lead(service)
    project = service.exchange.make_project(lead, queue)
    done = service.exchange.import_queue(lead, project.id, queue)
    assert done.items == 3
    (line,) = done.skipped
    assert line.startswith(f"items.jsonl row 2: id {bad!a} ")
    keys = [item.key for item in service.lead.items(lead, project.id)]
    assert keys == ["m1", "m2", "m3"]


def test_a_queue_of_bad_ids_alone_is_refused(service: AnnotationService, tmp_path: Path) -> None:
    queue = queue_with(tmp_path / "q", 0, 0, " a")
    lead = make_lead(service)
    with pytest.raises(DataError, match=r"no item can be imported: items\.jsonl row 1"):
        service.exchange.make_project(lead, queue)
    assert service.projects.mine(lead) == ()


def test_the_command_lists_the_row(shell: Shell, tmp_path: Path) -> None:
    queue_with(tmp_path / "q", 2, 2, "x\ty")
    said = shell.done("annotate", "import", "q", "--db", "a.db")
    assert "2 new items" in said
    assert r"skipped: items.jsonl row 3: id 'x\ty'" in said
