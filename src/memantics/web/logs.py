"""Event logs of the web apps: one JSON line per event, on standard error."""

from __future__ import annotations

import errno
import logging
import sys
import traceback
from datetime import UTC, datetime

import orjson

from memantics.core.files import hide

NAME = "memantics.web"
_INNERMOST = 8  # a web framework adds dozens of outer calls, which say nothing about the error
LOGGER = logging.getLogger(NAME)


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record: time, level, event, then the fields of the event."""
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
            line["where"] = traceback.format_tb(record.exc_info[2])
        return hide(orjson.dumps(line, default=str).decode())


def name_error(error: BaseException) -> str:
    """Return the type of an error without its message, which may contain user data.

    >>> name_error(ValueError("a caption")), name_error(FileNotFoundError(2, "No such file", "a"))
    ('ValueError', 'FileNotFoundError: ENOENT')
    """
    kind = type(error).__name__
    code = getattr(error, "sqlite_errorname", "")
    if isinstance(error, OSError):
        code = errno.errorcode.get(error.errno or 0, "")
    return f"{kind}: {code}" if code else kind


def start_logs() -> None:
    """Write the event log and warnings of the server to standard error as JSON lines.

    If standard error is a terminal, only warnings are shown, so that the start-up link stays
    visible.
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
    """Log one event of a web app."""
    if LOGGER.isEnabledFor(logging.INFO):
        # The record is created directly: finding the calling line takes as long as writing the
        # event.
        extra = {"facts": facts}
        LOGGER.handle(LOGGER.makeRecord(NAME, logging.INFO, "", 0, event, (), None, extra=extra))


def warn(event: str, **facts: object) -> None:
    """Log a warning of a web app; on a terminal it is shown, other than events."""
    LOGGER.warning(event, extra={"facts": facts})


def note_failure(event: str, error: BaseException, **facts: object) -> None:
    """Log an unexpected error with the innermost calls that led to it."""
    trace = error.__traceback__
    for _ in range(sum(1 for _ in traceback.walk_tb(trace)) - _INNERMOST):
        trace = trace.tb_next if trace else None
    LOGGER.error(event, extra={"facts": facts}, exc_info=(type(error), error, trace))
