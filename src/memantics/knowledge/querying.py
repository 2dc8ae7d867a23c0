"""Questions in SPARQL: bounded in rows and in time, and never sent to another machine.

A query on a folder runs in a process of its own, because the engine cannot be interrupted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from memantics.core.errors import InputError, MemanticsError, StoreError
from memantics.knowledge.naming import MEME, PREFIXES, meme_of, read_thing
from memantics.knowledge.store import KnowledgeStore

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

MEMORY = 6 * 1024**3
# Strings, IRIs and comments may hold any word; what is left is the query itself. An escaped mark in
# a name (``x:a\\#b``) begins none of them.
_WORDS = re.compile(
    r"\\.|\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|<[^<>\s]*>|#[^\n]*",
    re.DOTALL,
)
_SERVICE = re.compile(r"(?<![\w:?$@.-])SERVICE\b(?!:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows that a query found; ``cut`` says that there were more than the limit."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    cut: bool = False


def select(store: KnowledgeStore, query: str) -> Iterator[QuerySolution]:
    """The rows of a SELECT query of ours."""
    from pyoxigraph import QuerySolutions

    found = store.graphs.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
    if not isinstance(found, QuerySolutions):
        raise InputError("only SELECT queries have rows")
    return found


def ask(store: KnowledgeStore, query: str, limit: int = 100) -> Table:
    """Answer any kind of query as a table. Prefixes of the ontology need not be declared.

    >>> ask(KnowledgeStore.in_memory(), "SELECT ?label { mm:Scene rdfs:label ?label }").rows
    (('scene',),)
    >>> ask(KnowledgeStore.in_memory(), "ASK { mm:Scene a mm:Scene }").rows
    (('false',),)
    """
    from pyoxigraph import QueryBoolean, QuerySolutions

    if _SERVICE.search(_WORDS.sub(" ", query)):
        raise InputError(
            "SERVICE would send the query to another machine",
            hint="ask this store alone; export it to ask elsewhere",
        )
    try:
        found = store.graphs.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
        if isinstance(found, QueryBoolean):
            return Table(("answer",), ((str(bool(found)).lower(),),))
        if isinstance(found, QuerySolutions):
            variables = tuple(own.value for own in found.variables)
            rows = [tuple(map(_text, row)) for row in islice(found, limit + 1)]
        else:
            variables = ("subject", "predicate", "object")
            rows = [
                (_text(own.subject), _text(own.predicate), _text(own.object))
                for own in islice(found, limit + 1)
            ]
    except SyntaxError as error:
        raise InputError(
            f"the query is no SPARQL: {_brief(str(error))}",
            hint="such as 'SELECT ?s ?label { ?s a mm:Scene ; rdfs:label ?label }'",
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"the query cannot be answered: {_brief(str(error))}") from error
    return Table(variables, tuple(rows[:limit]), len(rows) > limit)


def _text(term: object) -> str | None:
    return None if term is None else str(getattr(term, "value", term))


def _brief(message: str) -> str:
    """The place and the start of a message: parsers list every letter that could have come."""
    head, _, rest = message.partition(": expected")
    return f"{head}: unexpected" if rest and head.startswith("error at") else message[:200]


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


def ask_folder(folder: Path, query: str, limit: int, timeout: float) -> Table:
    """Answer a query on a store in a folder, within a time."""
    KnowledgeStore.open(folder)  # a missing store is told at once
    command = [sys.executable, "-m", __name__, str(folder), str(limit)]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=query.encode("utf-8", "replace"),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"the query took more than {timeout:g} seconds",
            hint="ask for less (more patterns, LIMIT), or give it longer with --timeout",
        ) from error
    if done.returncode:
        raise StoreError(
            f"the query ended with code {done.returncode}",
            hint="it may have run out of memory: ask for less",
        )
    reply = orjson.loads(done.stdout)
    if "error" in reply:
        raise InputError(reply["error"], hint=reply["hint"])
    return Table(tuple(reply["variables"]), tuple(map(tuple, reply["rows"])), reply["cut"])


def _bound_memory() -> None:
    """A query that sorts everything with everything must not take the machine down."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main() -> None:
    """Answer the query on standard input, as JSON; errors are answers, too."""
    folder, limit = Path(sys.argv[1]), int(sys.argv[2])
    _bound_memory()
    query = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        reply: dict[str, object] = asdict(ask(KnowledgeStore.open(folder), query, limit))
    except MemanticsError as error:
        reply = {"error": error.what, "hint": error.hint}
    sys.stdout.buffer.write(orjson.dumps(reply))


if __name__ == "__main__":
    main()
