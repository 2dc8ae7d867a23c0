"""Logs of the web apps: one JSON line for each event, on standard error."""

from __future__ import annotations

import errno
import logging
import sys
import traceback
from datetime import UTC, datetime

import orjson

from memantics.core.files import hide

NAME = "memantics.web"
LOGGER = logging.getLogger(NAME)


class JsonLines(logging.Formatter):
    """Formats a record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: time, level, event, then what the event brought along."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            line |= facts
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = name_error(record.exc_info[1])
            line["where"] = traceback.format_tb(record.exc_info[2])[-6:]
        return hide(orjson.dumps(line, default=str).decode())


def name_error(error: BaseException) -> str:
    """The kind of an error without its message, which may hold a caption or the name of a file.

    >>> name_error(ValueError("a caption")), name_error(FileNotFoundError(2, "No such file", "a"))
    ('ValueError', 'FileNotFoundError: ENOENT')
    """
    kind = type(error).__name__
    code = getattr(error, "sqlite_errorname", "")
    if isinstance(error, OSError):
        code = errno.errorcode.get(error.errno or 0, "")
    return f"{kind}: {code}" if code else kind


def start_logs() -> None:
    """Send our log, and the server's warnings, to standard error as JSON lines.

    At a terminal only what is wrong is shown: a line for each request would push the link away.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    for name, lowest in ((NAME, level), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(lowest)
        logger.propagate = False


def note(event: str, **facts: object) -> None:
    """Write one event down."""
    if LOGGER.isEnabledFor(logging.INFO):
        # Made by hand: looking for the line that called takes as long as writing the event.
        extra = {"facts": facts}
        LOGGER.handle(LOGGER.makeRecord(NAME, logging.INFO, "", 0, event, (), None, extra=extra))


def note_failure(event: str, error: BaseException, **facts: object) -> None:
    """Write down what should not have happened, with where it did."""
    LOGGER.error(event, extra={"facts": facts}, exc_info=(type(error), error, error.__traceback__))
