"""Changed bytes in a knowledge store are one clear line, never a traceback."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memantics.actions.knowledge import STARTER, KnowledgeStore
from memantics.core.errors import StoreError
from memantics.knowledge.querying import select

EVERYTHING = "SELECT ?a ?c { GRAPH ?g { ?a ?b ?c } }"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "sound"
    KnowledgeStore.create(folder).import_path(STARTER)
    return folder


WAYS: dict[str, Callable[[KnowledgeStore], object]] = {
    "ids": lambda store: store.ids(),
    "dump": lambda store: store.dump(),
    "quads": lambda store: [list(store.quads(meme)) for meme in store.ids()],
    "select": lambda store: list(select(store.graphs, EVERYTHING)),
}


def test_changed_bytes_are_told_in_one_line(sound: Path, tmp_path: Path) -> None:
    files = sorted((sound / "graphs").glob("*.sst"), key=lambda path: -path.stat().st_size)
    told: list[str] = []
    for number, file in enumerate(files[:8]):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        data = bytearray(file.read_bytes())
        for place in range(100, len(data) * 3 // 4, 1000):  # its blocks, not their index
            data[place] ^= 0x55
        (folder / "graphs" / file.name).write_bytes(data)
        for look in WAYS.values():
            try:
                look(KnowledgeStore.open(folder))
            except StoreError as error:
                told.append(str(error))
    assert told
    assert all("cannot be used: Corruption" in line for line in told)
    assert all("import into a new folder" in line for line in told)
