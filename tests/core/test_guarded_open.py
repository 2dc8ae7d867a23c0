"""The guarded open rejects pipes, devices, folders and oversized files at once."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from memantics.core.errors import StoreError
from memantics.core.files import (
    check_regular,
    open_regular,
    open_regular_text,
    read_regular,
    read_regular_text,
    read_whole_lines,
)


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\r")
    assert read_regular(file) == file.read_bytes()
    assert read_regular_text(file, "utf-8-sig") == "a\nb\n"
    with open_regular(file) as opened:
        assert opened.readline() == b"\xef\xbb\xbfa\r\n"
    with open_regular_text(file, "utf-8-sig", newline="") as text:
        assert text.read() == "a\r\nb\r"
    check_regular(file)
    (tmp_path / "link").symlink_to(file)
    assert read_regular(str(tmp_path / "link")) == file.read_bytes()


def test_an_empty_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert read_regular(tmp_path / "a", 0) == b""


def test_the_limit_is_the_largest_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_regular(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="5 bytes are more than the limit of 4") as caught:
        read_regular(tmp_path / "a", 4)
    assert caught.value.errno == errno.EFBIG


def test_a_file_that_grows_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    """``/proc`` files are regular files that state no size."""
    with pytest.raises(OSError, match="more than 3 bytes"):
        read_regular("/proc/self/status", 3)


def test_a_pipe_neither_blocks_nor_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    outcome: list[str | None] = []

    def read() -> None:
        for name in ("pipe", "link"):
            try:
                read_regular(tmp_path / name)
            except OSError as error:
                outcome.append(error.strerror)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    assert outcome == ["not a regular file"] * 2


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_link_to_a_device_is_rejected(device: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(device)
    for read in (read_regular, open_regular, check_regular, read_regular_text, open_regular_text):
        with pytest.raises(OSError, match="not a regular file"):
            read(tmp_path / "link")


def test_folders_sockets_and_odd_names_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="No such device"):
            open_regular(tmp_path / "s")
    with pytest.raises(OSError, match="not a valid file name"):
        open_regular("a\0b")
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "loop")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular("/dev/zero")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_whole_lines_of_a_folder_are_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"items\.jsonl cannot be read: Is a directory"):
        list(read_whole_lines(tmp_path / "items.jsonl"))
    assert not list(read_whole_lines(tmp_path / "missing"))
