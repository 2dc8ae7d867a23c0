"""Safe files: bounded reading of given files, and writing that survives a killed process.

Every file that a user names is opened with ``open_regular`` or read with ``read_regular``: a named
pipe would block forever, and a link to a device such as ``/dev/zero`` would fill the memory.

Files are either append-only lines or replaced in one step, so that no reader sees an incomplete
file. Secrets are masked in all output. Opening a model registers the model's API key and secrets in
its URL and parameters for masking. Short values such as "EMPTY", which local servers accept as a
key, are not masked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, AnyStr
from urllib.parse import quote, quote_plus

import orjson

from memantics.core.errors import StoreError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MASK = "***"
_SHORTEST = 8
_NAMES = re.compile(r"(?i)(.*[-_])?(api[-_]?key|key|token|secret|password|authorization|sig)")
_ENVIRONMENT = ("_API_KEY", "_TOKEN", "_SECRET")
_known: dict[bytes, None] = {}

# Size limits in bytes of a file that is held in memory, and of one that is read piece by piece.
LARGEST_FILE, LARGEST_STREAM = 2 << 30, 1 << 40
LONGEST_LINE = 256 << 20  # bytes or characters of a line, which is held in memory
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def open_regular(path: str | os.PathLike[str], limit: int = LARGEST_STREAM) -> io.BufferedReader:
    """Open a file that a user named for reading bytes; reject anything but a regular file.

    The check is made on the open file, so no other file can take its place in between. A named
    pipe is rejected without waiting for its writer. The errors are ``OSError`` with ``strerror``,
    so that callers report them like a missing file.

    Args:
        path: The file. A symbolic link is followed, and its target is checked.
        limit: The maximum size in bytes.

    Returns:
        The open file.

    Raises:
        OSError: The path is missing, unreadable, not a regular file, or larger than the limit.

    Example:
        >>> open_regular("/dev/zero")
        Traceback (most recent call last):
        OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    try:
        opened = os.open(path, _FLAGS)
    except ValueError as error:  # a name with a zero byte
        raise OSError(errno.EINVAL, "not a valid file name", os.fspath(path)) from error
    try:
        facts = os.fstat(opened)
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if facts.st_size > limit:
            problem = f"{facts.st_size:,} bytes are more than the limit of {limit:,}"
            raise OSError(errno.EFBIG, problem, os.fspath(path))
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def open_regular_text(
    path: str | os.PathLike[str],
    encoding: str = "utf-8",
    *,
    newline: str | None = None,
) -> io.TextIOWrapper:
    """Open a file that a user named for reading text; see :func:`open_regular`."""
    return io.TextIOWrapper(open_regular(path), encoding=encoding, newline=newline)


def read_regular(path: str | os.PathLike[str], limit: int = LARGEST_FILE) -> bytes:
    """Return the content of a file that a user named; see :func:`open_regular`.

    Never holds more bytes than the limit, even if the file grows while it is read.
    """
    with open_regular(path, limit) as file:
        # ``read(limit)`` would reserve the whole limit; one byte more than the size finds the end.
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)
        if len(data) > size:  # the file grows, or states no size, like those of /proc
            pieces, left = [data], limit + 1 - len(data)
            while left > 0 and (piece := file.read(min(left, 1 << 20))):
                pieces.append(piece)
                left -= len(piece)
            data = b"".join(pieces)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes", os.fspath(path))
    return data


def read_regular_text(
    path: str | os.PathLike[str],
    encoding: str = "utf-8",
    *,
    errors: str = "strict",
    limit: int = LARGEST_FILE,
) -> str:
    """Return the text of a file that a user named; every line ends with a line feed."""
    data = io.BytesIO(read_regular(path, limit))
    return io.TextIOWrapper(data, encoding=encoding, errors=errors).read()


def check_regular(path: str | os.PathLike[str], limit: int = LARGEST_STREAM) -> None:
    """Raise ``OSError`` if :func:`open_regular` would, for libraries that open files themselves."""
    open_regular(path, limit).close()


def bounded_lines(file: IO[AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines of a file that is read piece by piece.

    A line is held in memory, and in a file without line breaks it would be the whole file.

    Raises:
        OSError: A line is longer than ``LONGEST_LINE``.
    """
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"a line has more than {LONGEST_LINE:,} characters")
        yield line


def learn_secrets(*values: str) -> None:
    """Mask these values in all later output, also in their JSON and URL encodings."""
    for value in values:
        if len(value) >= _SHORTEST:
            quoted = (quote(value, safe=safe) for safe in ("", "/", "/:?@!$'()*,;"))
            spelled = (value, json.dumps(value)[1:-1], *quoted, quote_plus(value))
            _known.update(dict.fromkeys(one.encode("utf-8", "replace") for one in spelled))


def learn_named(pairs: Iterable[tuple[str, object]]) -> None:
    """Mask the values of parameters whose names indicate a secret.

    >>> learn_named([("api_key", "sk-0123456789"), ("max_tokens", 100), ("stop", "a long word")])
    >>> hide("sk-0123456789, a long word")
    '***, a long word'
    """
    for name, value in pairs:
        if isinstance(value, Mapping):
            learn_named(value.items())
        elif isinstance(value, str) and _NAMES.fullmatch(name):
            learn_secrets(value)


def learn_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Mask the values of environment variables whose names indicate a secret."""
    learn_secrets(*(v for name, v in environment.items() if name.endswith(_ENVIRONMENT)))


def hide_bytes(data: bytes) -> bytes:
    """Return the data with every known secret masked."""
    for secret in _known:
        if secret in data:
            data = data.replace(secret, MASK.encode())
    return data


def hide(text: str) -> str:
    """Return the text with every known secret masked."""
    return hide_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock a folder for one writer until the returned file is closed."""
    lock = (folder / ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StoreError(
            f"{folder} is being written by another process",
            hint="wait until it ends, or choose another --out",
        ) from None
    return lock


@contextmanager
def refuse_unwritable(what: object, hint: str = "choose another --out") -> Iterator[None]:
    """Convert a file system error into a ``StoreError`` with the path and a hint."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what} cannot be written: {error.strerror}", hint=hint) from error


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Lock a folder while a small file in it is read and rewritten.

    The lock is on the folder itself, so no lock file is left behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


@contextmanager
def opening(folder: Path, what: str) -> Iterator[IO[bytes]]:
    """Create and lock a folder while its logs of model calls are opened; unlock it on failure."""
    with refuse_unwritable(what, "choose another with --out"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
        try:
            yield lock
        except BaseException:
            lock.close()
            raise


def drop_torn_tail(path: Path) -> None:
    """Remove an incomplete last line, left by a process that was killed while writing."""
    if not path.exists():
        return
    check_regular(path)
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        while size:
            start = max(0, size - 65536)
            file.seek(start)
            cut = file.read(size - start).rfind(b"\n")
            if cut >= 0:
                file.truncate(start + cut + 1)
                return
            size = start
        file.truncate(0)


def read_whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield complete lines with their numbers from 1; skip an incomplete last line."""
    if not path.exists():
        return
    try:
        with open_regular(path) as file:
            for number, line in enumerate(bounded_lines(file), 1):
                if line.endswith(b"\n"):
                    yield number, line
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}",
            hint="move it away, or choose another folder",
        ) from error


class AppendOnlyFile:
    """A file to which lines are only appended; ``what`` is the name of the file in error messages.

    After a write that failed halfway (full disk), further writes are rejected. An incomplete last
    line is removed at the next start, but an incomplete line in the middle would make the file
    unreadable.
    """

    def __init__(self, path: Path, what: object) -> None:
        drop_torn_tail(path)
        self._file: IO[bytes] = path.open("ab", buffering=0)
        self._end = self._file.tell()
        self._what = what
        self._broken: StoreError | None = None

    def append(self, line: bytes) -> int:
        """Write one line without buffering and return its byte offset in the file."""
        if self._broken is not None:
            raise self._broken
        try:
            line = hide_bytes(line)
            write_whole(self._file, line)
        except OSError as error:
            self._broken = StoreError(
                f"{self._what} cannot be written: {error.strerror}",
                hint="free disk space, then run the same command again: it resumes",
            )
            raise self._broken from error
        self._end += len(line)
        return self._end - len(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_whole(file: IO[bytes], line: bytes) -> None:
    """Write a complete line to an unbuffered file, even if the system writes it in pieces."""
    done = file.write(line)
    while done < len(line):
        done += file.write(line[done:])


def replace_file(path: Path, data: bytes, what: str = "file", flag: str = "--out") -> None:
    """Write a file atomically and create its folder; readers never see an incomplete file."""
    # Two threads or processes may write the same file at once, so each uses its own temporary file.
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(hide_bytes(data))
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise StoreError(
            f"{what} {path} cannot be written: {error.strerror}", hint=f"choose another {flag}"
        ) from error


def write_text(out: str | Path, text: str, what: str = "page", flag: str = "--out") -> Path:
    """Write a text atomically; lone surrogates, which come from file names, become ``?``."""
    replace_file(Path(out), text.encode("utf-8", "replace"), what, flag)
    return Path(out)


def write_lines(path: Path, records: Iterable[object]) -> Path:
    """Write records as JSON lines; the file gets its final name only when it is complete."""
    with whole_file(path) as file:
        for record in records:
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return path


class MaskingWriter(io.BufferedWriter):
    """A file in which secrets are masked; each write must be a whole line or document."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the masked data; return the length of the original, as callers expect."""
        given = bytes(data)
        super().write(hide_bytes(given))
        return len(given)


@contextmanager
def whole_file(path: Path, *, masked: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that is renamed to its final name only when it is complete.

    Use it for content that is too large for memory. Secrets are not masked in archives
    (``masked=False``), because archive headers contain the length of each member.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        raw = part.open("wb", buffering=0)
        with (MaskingWriter if masked else io.BufferedWriter)(raw) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
