"""Questions in SPARQL: bounded in rows and in time, and never sent to another machine.

A user's query runs in a process of its own (:mod:`.answering`): the engine
cannot be interrupted, and only there can sockets be ruled out.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
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
PATIENCE = 60.0  # seconds for what a command asks of a whole store
SHORT, BEHIND = 2.0, 5  # seconds of a question that keeps its priority; that of longer ones
QueryRow = dict[str, str]
_HELPER = "memantics.understanding.knowledge.answering"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class QueryRows(Result):
    """The rows that a query found; ``cut`` says that there were more than the limit."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    cut: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, str | None]]:
        return (dict(zip(self.variables, row, strict=True)) for row in self.rows)

    def to_pandas(self) -> Any:
        """The rows as a data frame."""
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
    """RocksDB's complaints as one line."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        where = f"the knowledge store {folder}" if folder else "the knowledge store"
        text = str(getattr(error, "strerror", None) or error)
        if re.search(r"(?i)\block\b", text):  # not "block checksum mismatch"
            raise StoreError(
                f"{where} is in use by another process",
                hint="wait until it is done",
            ) from error
        raise StoreError(
            f"{where} cannot be used: {text[:200]}",
            hint="check the disk, or import into a new folder",
        ) from error


class Askable(Protocol):
    """A store's statements, and the folder that they lie in, if any."""

    graphs: Store
    folder: Path | None


def select(store: Askable, *queries: str, timeout: float = PATIENCE) -> list[list[QueryRow]]:
    """The rows of each of these SELECT queries of ours.

    A store in a folder is asked in another process: where a block is damaged, an aggregate counts
    errors for ever, and nothing can stop it.
    """
    if store.folder is None:
        return [read_rows(store.graphs, query) for query in queries]
    reply = _call(
        {"folder": str(store.folder), "queries": queries},
        timeout,
        StoreError(
            f"the knowledge store {store.folder} gave no answer within {timeout:g} seconds",
            hint="give a large one longer with --timeout; import a damaged one into a new folder",
        ),
    )
    if "error" in reply:
        raise StoreError(reply["error"], hint=reply["hint"])
    answers: list[list[QueryRow]] = reply["answers"]
    return answers


def read_rows(graphs: Store, query: str, folder: Path | None = None) -> list[QueryRow]:
    """The rows of a SELECT query, values by variable; what is unbound is absent."""
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
    """An IRI as people read it: the meme and what is meant in it, or a prefixed name.

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
    """Answer any kind of query on a store's folder, or on statements as N-Quads, within a time."""
    if len(query) > MOST_CHARACTERS:
        raise InputError(
            f"the query has {len(query):,} characters; {MOST_CHARACTERS:,} are read",
            hint="ask in several steps",
        )
    folder = str(source) if isinstance(source, Path) else ""
    reply = _call(
        {"folder": folder, "query": _sound(query), "limit": limit},
        timeout,
        InputError(
            f"the query took more than {timeout:g} seconds",
            hint="ask for less (more patterns, LIMIT), or give it longer with --timeout",
        ),
        source if isinstance(source, bytes) else b"",
    )
    if "error" in reply:
        raise InputError(reply["error"], hint=reply["hint"])
    return QueryRows(tuple(reply["variables"]), tuple(map(tuple, reply["rows"])), reply["cut"])


def _call(
    head: dict[str, object], timeout: float, late: MemanticsError, body: bytes = b""
) -> dict[str, Any]:
    """What the helper says; ``late`` is raised where it says nothing in time."""
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
            hint="it may have run out of memory or be nested too deeply: ask for less",
        )
    reply: dict[str, Any] = orjson.loads(answer)
    return reply


def _wait(helper: subprocess.Popen[bytes], said: bytes, timeout: float) -> bytes:
    """What the helper answers; a long question steps back behind short requests."""
    with suppress(subprocess.TimeoutExpired):
        return helper.communicate(said, timeout=min(SHORT, timeout))[0]
    if hasattr(os, "setpriority"):
        with suppress(OSError):  # it has just ended
            os.setpriority(os.PRIO_PROCESS, helper.pid, BEHIND)
    return helper.communicate(timeout=max(timeout - SHORT, 0))[0]


def _sound(text: str) -> str:
    """A text without halves of surrogate pairs, which cannot be sent."""
    return text.encode("utf-8", "replace").decode()
