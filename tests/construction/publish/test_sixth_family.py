"""A family that we do not know is published by its own folder: a card, and a ``write.py``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.places import ROOT

WRITE = """
import orjson
from memantics.plugins import (
    Made,
    Review,
    Writer,
    gather_memes,
    take_text,
    take_texts,
    walk_kept,
)

def write(review: Review) -> Made:
    memes = gather_memes(review)
    rows = [
        {"id": meme.id, "image": meme.file, "text": meme.text,
         "meaning": take_text(own, "meaning"), "others": take_texts(own, "others")}
        for own, meme in walk_kept(review, memes)
    ]
    lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    table = [{"meme": row["id"], "meaning": row["meaning"]} for row in rows]
    return Made("meanings", ("choose",), tuple(memes.values()), {"memes.jsonl": lines},
                {"meanings": table})

WRITER = Writer(write)
"""


@pytest.fixture
def families(tmp_path: Path) -> Path:
    """The example benchmark with a writer, in a folder of the user's own."""
    place = tmp_path / "families"
    shutil.copytree(ROOT / "examples" / "meanings", place / "my meanings")
    card = place / "my meanings" / "card.toml"
    head, _, tasks = card.read_text().partition("[[task]]")
    card.write_text(f'{head}[publish]\nworkflows = ["write-meanings"]\n\n[[task]]{tasks}')
    (place / "my meanings" / "write.py").write_text(WRITE)
    return place


def test_it_is_found_by_its_card_written_by_its_folder_and_runs(
    shell: Shell, families: Path, tmp_path: Path
) -> None:
    memes = pick_memes("en", 4)
    queue = make_queue(tmp_path / "queue", "write-meanings", memes)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {"others": ["It is cold.", "It is late.", "It is far."]} for meme in memes
    }
    judge(queue, "write-meanings", values, frozenset({memes[3].id}))
    wish = ("publish", queue, "--name", "my_meanings", "--licence", "CC0-1.0", "--json")
    said = json.loads(shell.done(*wish, MEMANTICS_BENCHMARKS=str(families)))
    assert (said["format"], said["memes"], said["records"]) == ("meanings", 3, {"meanings": 3})
    shell.done("run", "my_meanings/choose", "-m", "fake/keys", MEMANTICS_BENCHMARKS=str(families))
    (run,) = (shell.folder / "runs").iterdir()
    assert len((run / "items.jsonl").read_text().splitlines()) == 3
    # Without the family's folder there is no code that reads it: one line says so.
    assert "benchmark format of my_meanings" in shell.refused(
        "run", "my_meanings", "-m", "fake/keys"
    )


def test_a_workflow_that_no_card_names_is_refused(shell: Shell, tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "queue", "write-meanings", pick_memes("en", 1))
    wish = ("publish", queue, "--name", "mine", "--licence", "CC0-1.0", "--unreviewed")
    assert "workflow 'write-meanings' has no benchmark format" in shell.refused(*wish)


def test_a_card_without_its_writer_is_refused(shell: Shell, families: Path, tmp_path: Path) -> None:
    (families / "my meanings" / "write.py").write_text("WRITER = None\n")
    queue = make_queue(tmp_path / "queue", "write-meanings", pick_memes("en", 1))
    wish = ("publish", queue, "--name", "mine", "--licence", "CC0-1.0", "--unreviewed")
    line = shell.refused(*wish, MEMANTICS_BENCHMARKS=str(families))
    assert "write.py: does not define the name WRITER" in line
