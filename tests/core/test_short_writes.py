"""A write that the system cuts short is continued; half a line never counts as a whole one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memantics.core.files import AppendOnlyFile, write_whole


class ShortFile(io.BytesIO):
    """A raw file that takes a few bytes at a time, as a full pipe or a slow disk does."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.calls = most, 0

    def write(self, data: object, /) -> int:
        self.calls += 1
        return super().write(bytes(data)[: self.most])  # type: ignore[call-overload]


@pytest.mark.parametrize(("most", "calls"), [(1, 7), (3, 3), (6, 2), (7, 1), (100, 1)])
def test_a_line_is_written_to_its_end(most: int, calls: int) -> None:
    file = ShortFile(most)
    write_whole(file, b"a line\n")
    assert (file.getvalue(), file.calls) == (b"a line\n", calls)


def test_a_file_at_its_size_limit_is_reported_and_resumes(tmp_path: Path) -> None:
    """The system writes the part of a line that fits, then fails: the rest is not counted."""
    script = f"""
import resource, signal
from pathlib import Path
from memantics.core.errors import StoreError
from memantics.core.files import AppendOnlyFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file = AppendOnlyFile(Path({str(tmp_path / "a")!r}), "the log")
assert file.append(b"x" * 59 + b"\\n") == 0
for _ in range(2):
    try:
        file.append(b"y" * 59 + b"\\n")
    except StoreError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    hint = "free disk space, then run the same command again: it resumes"
    assert done.stdout.splitlines() == [f"the log cannot be written: File too large; {hint}"] * 2
    assert (tmp_path / "a").stat().st_size == 100
    file = AppendOnlyFile(tmp_path / "a", "the log")
    assert file.append(b"z\n") == 60
    file.close()
    assert (tmp_path / "a").read_bytes() == b"x" * 59 + b"\nz\n"


def test_a_pipe_in_place_of_a_log_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(OSError, match="not a regular file"):
        AppendOnlyFile(tmp_path / "a", "the log")
