"""SPARQL queries with limits on rows and time, and without network access.

A user's query runs in a separate process (:mod:`.answering`): the engine cannot be interrupted, and
sockets can be blocked only there.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from memantics.core.errors import InputError, MemanticsError, StoreError
from memantics.core.result import Result
from memantics.understanding.knowledge.records import MEME, PREFIXES, meme_of, read_thing

if TYPE_CHECKING:
    from pyoxigraph import Store

MOST_CHARACTERS = 100_000
PATIENCE = 60.0  # time limit in seconds of commands over a whole store
SHORT, BEHIND = 2.0, 5  # seconds that a query runs at normal priority, and the niceness afterwards
QueryRow = dict[str, str]
_HELPER = "memantics.understanding.knowledge.answering"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class QueryRows(Result):
    """The result rows of a query; ``cut`` is True if rows above the limit were left out."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    cut: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, str | None]]:
        return (dict(zip(self.variables, row, strict=True)) for row in self.rows)

    def to_pandas(self) -> Any:
        """Return the rows as a data frame."""
        try:
            import pandas as pd
        except ImportError:
            raise InputError("data frames need pandas", hint="pip install pandas") from None
        return pd.DataFrame(list(self.rows), columns=list(self.variables))

    def _repr_html_(self) -> str:
        def row(cells: tuple[str | None, ...], tag: str = "td") -> str:
            shown = (f"<{tag}>{html.escape(shorten(cell or ''))}</{tag}>" for cell in cells)
            return f"<tr>{''.join(shown)}</tr>"

        body = "".join(map(row, self.rows[:_SHOWN]))
        more = ", and more" if self.cut or len(self) > _SHOWN else ""
        return f"<table>{row(self.variables, 'th')}{body}</table><p>{len(self):,} rows{more}</p>"


@contextmanager
def store_errors(folder: Path | None = None) -> Iterator[None]:
    """Convert errors of RocksDB, the database of the store, to one-line errors."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        where = f"the knowledge store {folder}" if folder else "the knowledge store"
        text = str(getattr(error, "strerror", None) or error)
        if re.search(r"(?i)\block\b", text):  # clearer than RocksDB's "block checksum mismatch"
            raise StoreError(
                f"{where} is in use by another process",
                hint="wait until the other process ends",
            ) from error
        raise StoreError(
            f"cannot use {where}: {text[:200]}",
            hint="check the disk, or import into a new folder",
        ) from error


class Askable(Protocol):
    """The statements of a store, and its folder if any."""

    graphs: Store
    folder: Path | None


def select(store: Askable, *queries: str, timeout: float = PATIENCE) -> list[list[QueryRow]]:
    """Run internal SELECT queries and return their rows.

    A store in a folder is queried in a separate process: on a damaged block, an aggregate may loop
    forever and cannot be interrupted.
    """
    if store.folder is None:
        return [read_rows(store.graphs, query) for query in queries]
    reply = _call(
        {"folder": str(store.folder), "queries": queries},
        timeout,
        StoreError(
            f"the knowledge store {store.folder} did not answer within {timeout:g} seconds",
            hint="raise --timeout for a large store; import a damaged store into a new folder",
        ),
    )
    if "error" in reply:
        raise StoreError(reply["error"], hint=reply["hint"])
    answers: list[list[QueryRow]] = reply["answers"]
    return answers


def read_rows(graphs: Store, query: str, folder: Path | None = None) -> list[QueryRow]:
    """Return the rows of a SELECT query as values by variable, without unbound ones."""
    from pyoxigraph import QuerySolutions

    with store_errors(folder):
        found = graphs.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
        if not isinstance(found, QuerySolutions):
            raise InputError("only SELECT queries have rows")
        names = [variable.value for variable in found.variables]
        return [
            {n: t.value for n, t in zip(names, row, strict=True) if t is not None} for row in found
        ]


def shorten(value: str) -> str:
    """Shorten an IRI for people: the meme and its individual, or a prefixed name.

    >>> shorten("urn:memantics:meme:7#Scene/a%20duel"), shorten("urn:memantics:ontology#Scene")
    ('7 Scene/a duel', 'mm:Scene')
    """
    if value.startswith(MEME):
        meme = meme_of(value) or ""
        return f"{meme} {read_thing(value)}" if "#" in value else meme
    for prefix, start in PREFIXES.items():
        if value.startswith(start):
            return f"{prefix}:{value.removeprefix(start)}"
    return value


def ask(source: Path | bytes, query: str, limit: int, timeout: float) -> QueryRows:
    """Answer any query on a store folder, or on N-Quads, within a time limit."""
    if len(query) > MOST_CHARACTERS:
        raise InputError(
            f"the query has {len(query):,} characters; the limit is {MOST_CHARACTERS:,}",
            hint="split it into several queries",
        )
    folder = str(source) if isinstance(source, Path) else ""
    reply = _call(
        {"folder": folder, "query": _sound(query), "limit": limit},
        timeout,
        InputError(
            f"the query took more than {timeout:g} seconds",
            hint="restrict the query (more patterns, LIMIT), or raise --timeout",
        ),
        source if isinstance(source, bytes) else b"",
    )
    if "error" in reply:
        raise InputError(reply["error"], hint=reply["hint"])
    return QueryRows(tuple(reply["variables"]), tuple(map(tuple, reply["rows"])), reply["cut"])


def _call(
    head: dict[str, object], timeout: float, late: MemanticsError, body: bytes = b""
) -> dict[str, Any]:
    """Return the answer of the query process; the error ``late`` is raised on a timeout."""
    said = orjson.dumps({**head, "seconds": timeout}) + b"\n" + body
    helper = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", _HELPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with helper:
        try:
            answer = _wait(helper, said, timeout)
        except subprocess.TimeoutExpired as error:
            raise late from error
        finally:
            helper.kill()
    if helper.returncode:
        raise StoreError(
            f"the query ended with code {helper.returncode}",
            hint="it may have run out of memory or be nested too deeply: simplify it",
        )
    reply: dict[str, Any] = orjson.loads(answer)
    return reply


def _wait(helper: subprocess.Popen[bytes], said: bytes, timeout: float) -> bytes:
    """Wait for the answer of the query process; a long query gets a lower priority."""
    # One call of communicate: a second one, after a timeout, would not send the rest of the input.
    later = threading.Timer(SHORT, _lower_priority, (helper,))
    later.daemon = True
    later.start()
    try:
        return helper.communicate(said, timeout=timeout)[0]
    finally:
        later.cancel()


def _lower_priority(helper: subprocess.Popen[bytes]) -> None:
    if helper.returncode is None and hasattr(os, "setpriority"):
        with suppress(OSError):  # the process has just ended
            os.setpriority(os.PRIO_PROCESS, helper.pid, BEHIND)


def _sound(text: str) -> str:
    """Remove unpaired surrogates, which cannot be sent."""
    return text.encode("utf-8", "replace").decode()
