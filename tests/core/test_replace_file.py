"""A file that several threads write at once ends whole, and none of them fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memantics.core.files import replace_file, whole_file

WRITERS, TIMES = 8, 20


def test_threads_replace_one_file(tmp_path: Path) -> None:
    bodies = [str(number).encode() * 50_000 for number in range(WRITERS)]
    for _ in range(TIMES):
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda body: replace_file(tmp_path / "a", body), bodies))
        assert (tmp_path / "a").read_bytes() in bodies
    assert not list(tmp_path.glob("a.*"))


def test_threads_write_one_long_file(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with whole_file(tmp_path / "a") as file:
            for _ in range(100):
                file.write(str(number).encode() * 100)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    assert (tmp_path / "a").read_bytes() in {str(n).encode() * 10_000 for n in range(WRITERS)}
    assert not list(tmp_path.glob("a.*"))
