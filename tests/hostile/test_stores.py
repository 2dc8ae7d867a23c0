"""Changed bytes in a knowledge store are one clear line, never a traceback."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memantics.core.errors import StoreError
from memantics.understanding.kb import SAMPLE, KnowledgeStore
from memantics.understanding.knowledge.querying import read_rows
from memantics.understanding.knowledge.store import search
from tests.commands import Shell
from tests.hostile.cases import SEED, count_cases, noted
from tests.hostile.stores import damage, generate

EVERYTHING = "SELECT ?a ?c { GRAPH ?g { ?a ?b ?c } }"
SECONDS = 3.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "sound"
    KnowledgeStore.create(folder).import_path(SAMPLE)
    return folder


WAYS: dict[str, Callable[[KnowledgeStore], object]] = {
    "ids": lambda store: store.ids(),
    "dump": lambda store: store.dump(),
    "quads": lambda store: [list(store.quads(meme)) for meme in store.ids()],
    "rows": lambda store: read_rows(store.graphs, EVERYTHING, store.folder),
}
ASKED: dict[str, Callable[[KnowledgeStore], object]] = {
    "statistics": lambda store: store.statistics(SECONDS),
    "dangling": lambda store: store.dangling(SECONDS),
    "validate": lambda store: store.validate(timeout=SECONDS),
    "search": lambda store: search(store, "the"),
    "serialize": lambda store: store.serialize(),
}


def spoil(sound: Path, tmp_path: Path) -> Iterator[Path]:
    """Copies of a store, in each of which all blocks of one table are damaged."""
    files = sorted((sound / "graphs").glob("*.sst"), key=lambda path: -path.stat().st_size)
    for number, file in enumerate(files[:8]):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        data = bytearray(file.read_bytes())
        for place in range(100, len(data) * 3 // 4, 1000):  # its blocks, not their index
            data[place] ^= 0x55
        (folder / "graphs" / file.name).write_bytes(data)
        yield folder


@pytest.mark.slow
def test_changed_bytes_are_told_in_one_line(sound: Path, tmp_path: Path) -> None:
    told: list[str] = []
    for folder in spoil(sound, tmp_path):
        for look in WAYS.values():
            try:
                look(KnowledgeStore.open(folder))
            except StoreError as error:
                told.append(str(error))
    assert told
    assert all("cannot use the knowledge store" in line for line in told)
    assert all("Corruption" in line for line in told)
    assert all("import into a new folder" in line for line in told)


@pytest.mark.slow
def test_no_question_of_ours_waits_for_ever(sound: Path, tmp_path: Path) -> None:
    """An aggregate over damaged blocks counts errors without end."""
    late = "did not answer within 3 seconds"
    told: list[str] = []
    for folder in spoil(sound, tmp_path):
        try:
            KnowledgeStore.open(folder).statistics(SECONDS)
        except StoreError as error:
            told.append(str(error))
    assert all("Corruption" in line or late in line for line in told)
    assert any(late in line for line in told)


@pytest.mark.slow
def test_commands_end_in_one_line(sound: Path, shell: Shell, tmp_path: Path) -> None:
    ends = set()
    for folder in spoil(sound, tmp_path / "spoilt"):
        for words in (("stats", "--timeout", "3"), ("export",), ("stats", "--dangling")):
            ran = shell.run("kb", *words, "--store", folder)
            ends.add(ran.code)
            if ran.code:
                assert ran.code == 2
                assert "the knowledge store " in ran.err
                assert len(ran.err.strip().splitlines()) == 1
    assert 2 in ends


@pytest.mark.slow
def test_tables_changed_anywhere(sound: Path, tmp_path: Path) -> None:
    for number, case in enumerate(generate(SEED, count_cases(8))):
        with noted("stores", case):
            folder = damage(sound, tmp_path / str(number), case)
            for look in ASKED.values():
                try:
                    look(KnowledgeStore.open(folder))
                except StoreError as error:
                    assert "\n" not in str(error)  # noqa: PT017 - what the line looks like
        shutil.rmtree(folder)


@pytest.mark.slow
def test_questions_give_the_same_in_a_folder_and_in_memory(sound: Path) -> None:
    inside = KnowledgeStore.in_memory()
    inside.import_path(SAMPLE)
    outside = KnowledgeStore.open(sound)
    assert outside.statistics() == inside.statistics()
    assert outside.dangling() == inside.dangling()
    assert search(outside, "cat", "Scene") == search(inside, "cat", "Scene")
    assert search(outside, "cat")
