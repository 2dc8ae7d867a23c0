"""What exports for human ratings share: checks of the runs, images in the queue, the key apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from memantics.core.data import inside
from memantics.core.errors import InputError, StoreError
from memantics.core.images import read_bytes
from memantics.core.rundir import RunFacts, dump_line, read_facts

QUEUE, KEY = "queue", "key.jsonl"


def read_runs(folders: Sequence[Path], task: str) -> list[RunFacts]:
    """The facts of runs that can be rated side by side: one task, one set of data, each once."""
    if not folders:
        raise InputError("no run was given", hint=f"give run directories of {task}")
    found = []
    for folder in folders:
        facts = read_facts(folder)
        if facts.task.partition("/")[2] != task.partition("/")[2]:
            raise InputError(f"{folder} is a run of {facts.task}", hint=f"give runs of {task}")
        found.append(facts)
    if len({run_facts.fingerprint for run_facts in found}) < len(found):
        raise InputError("a run was given twice", hint="give each setting once")
    if len({run_facts.data.get("checksum") for run_facts in found}) > 1:
        raise InputError("these runs are on different data", hint="give runs on the same data")
    return found


def copy_image(source: Path, queue: Path, name: str) -> str | None:
    """Put an image into the queue, which must be complete on its own; None where there is none."""
    if not source.is_file():
        return None
    place = inside(queue, f"images/{name}{source.suffix.lower()}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(read_bytes(source))
    return f"images/{place.name}"


def name_origin(name: str, run: str, model: str, options: Mapping[str, str]) -> dict[str, object]:
    """Where an item of a queue comes from, as a line of the key; kept from those who rate."""
    return {"id": name, "run": run, "model": model, "options": options}


def write_apart(path: Path, rows: Iterable[object]) -> None:
    """Write a new file of lines: one that is there may have been handed out already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(dump_line(row) for row in rows)
    except FileExistsError:
        raise StoreError(f"{path} exists already", hint="choose another --out") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
