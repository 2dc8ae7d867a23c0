"""The process that answers one SPARQL query without network access.

There are two safeguards. First, a query that could contact another machine is rejected by its
syntax tree. Second, before the engine runs, the limit of open files is set to zero: open files stay
usable, and no socket can be opened. The second safeguard needs POSIX limits; on Windows only the
syntax tree is checked.
"""

from __future__ import annotations

import math
import mmap
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import orjson

from memantics.core.errors import InputError, MemanticsError
from memantics.core.text import measure_nesting
from memantics.understanding.knowledge.querying import QueryRows, read_rows
from memantics.understanding.knowledge.records import PREFIXES
from memantics.understanding.knowledge.store import GraphStore

if TYPE_CHECKING:
    from pyoxigraph import Store

# memory limit in bytes, in addition to the memory of the store and the program
MEMORY = 2 * 1024**3
# maximum number of characters of an answer, since a short query can produce any length
MOST_CHARACTERS = 20_000_000
DEEPEST = 100  # maximum nesting of brackets
_FRAMES = 20_000  # Python stack limit; the parser needs dozens of frames per bracket
_OURS = "urn:memantics:"
# A query can contact another machine only with one of these words, or with an escape sequence that
# may encode one.
_SUSPECT = re.compile(r"service|from|\\u", re.IGNORECASE)


def check_query(query: str) -> None:
    """Reject a query that is nested too deeply or would contact another machine."""
    deepest = measure_nesting(query)
    if deepest > DEEPEST:
        raise InputError(
            f"the query has {deepest:,} nested brackets; the limit is {DEEPEST}",
            hint="use fewer nested brackets",
        )
    if not _SUSPECT.search(query):
        return
    if re.search(r"\\u00[0-7]|\\U000000[0-7]", query):
        # Parsers differ in whether this escape can end a string.
        raise InputError(
            "the query contains an escape sequence for a plain character",
            hint="write the character itself",
        )
    from rdflib.plugins.sparql.parser import parseQuery

    sys.setrecursionlimit(_FRAMES)
    try:
        prologue, body = parseQuery(query)
    except Exception as error:
        raise InputError(
            f"the query is not valid SPARQL, or it calls a remote SERVICE: {brief(str(error))}",
            hint="queries with SERVICE, FROM or escapes must be SPARQL 1.1",
        ) from error
    prefixes = PREFIXES | {
        str(declaration.prefix or ""): str(declaration.iri)
        for declaration in prologue
        if declaration.name == "PrefixDecl"
    }
    for name, part in _walk(body):
        if name == "ServiceGraphPattern":
            raise InputError(
                "SERVICE would send the query to another machine",
                hint="query only this store, or export it and query elsewhere",
            )
        if name == "DatasetClause":
            _check_graph(next(iter(part.values())), prefixes)


def _walk(part: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield every named node of a query's syntax tree."""
    if isinstance(part, dict):
        yield str(getattr(part, "name", "")), part
        part = part.values()
    if isinstance(part, Iterable) and not isinstance(part, str):
        for inner in part:
            yield from _walk(inner)


def _check_graph(graph: object, prefixes: dict[str, str]) -> None:
    if isinstance(graph, dict):
        name = dict(graph)
        iri = prefixes.get(str(name.get("prefix", "")), "") + str(name.get("localname", ""))
    else:
        iri = str(graph)
    if not iri.startswith(_OURS):
        raise InputError(
            f"FROM {iri[:200]}: the store has no such graph",
            hint="use meme:ID; graphs of other sources are not loaded",
        )


def answer(graphs: Store, query: str, limit: int = 100) -> QueryRows:
    """Answer a query of any kind as a table; the ontology's prefixes are predefined.

    >>> graphs = GraphStore.in_memory().graphs
    >>> answer(graphs, "SELECT ?label { mm:Scene rdfs:label ?label }").rows
    (('scene',),)
    >>> answer(graphs, "ASK { mm:Scene a mm:Scene }").rows
    (('false',),)
    """
    from pyoxigraph import QueryBoolean, QuerySolutions

    try:
        found = graphs.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
        if isinstance(found, QueryBoolean):
            return QueryRows(("answer",), ((str(bool(found)).lower(),),))
        if isinstance(found, QuerySolutions):
            variables = tuple(variable.value for variable in found.variables)
            rows = _hold(tuple(map(_text, row)) for row in islice(found, limit + 1))
        else:
            variables = ("subject", "predicate", "object")
            rows = _hold(
                (_text(triple.subject), _text(triple.predicate), _text(triple.object))
                for triple in islice(found, limit + 1)
            )
    except SyntaxError as error:
        raise InputError(
            f"the query is not valid SPARQL: {brief(str(error))}",
            hint="for example 'SELECT ?s ?label { ?s a mm:Scene ; rdfs:label ?label }'",
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"the query cannot be answered: {brief(str(error))}") from error
    return QueryRows(variables, tuple(rows[:limit]), len(rows) > limit)


def _hold(rows: Iterable[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    """Yield rows up to the answer limit; a larger answer is an error, never truncated silently."""
    held, characters = [], 0
    for row in rows:
        characters += sum(len(cell or "") for cell in row)
        if characters > MOST_CHARACTERS:
            raise InputError(
                f"the answer has more than {MOST_CHARACTERS:,} characters",
                hint="request fewer rows, or shorten texts with SUBSTR",
            )
        held.append(row)
    return held


def _text(term: object) -> str | None:
    return None if term is None else str(getattr(term, "value", term))


def brief(message: str) -> str:
    """Return the position and start of a parser message, without its long list of alternatives."""
    head, _, rest = message.partition(": expected")
    if rest and head.startswith("error at"):
        return f"{head}: unexpected"
    return " ".join(message.split())[:200]


def close_network() -> None:
    """Limit memory, and prevent opening of further files and sockets."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _measure_memory() + MEMORY
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _measure_memory() -> int:
    """Return the address space in use, including mapped store files."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    except OSError:  # not on macOS, which does not enforce this limit
        return 4 * 1024**3


def main(source: IO[bytes], out: IO[bytes]) -> None:
    """Answer the received queries; errors are returned as answers."""
    wanted = orjson.loads(source.readline())
    if hasattr(signal, "alarm"):
        # The parent may have been killed: then nothing else would stop this process.
        signal.alarm(math.ceil(min(wanted.get("seconds", 30.0), 86_400)) + 2)
    try:
        ours = wanted.get("queries", ())
        if not ours:
            check_query(wanted["query"])
        if wanted["folder"]:
            store = GraphStore.open(Path(wanted["folder"]))
        else:
            store = GraphStore.from_quads(source.read())
        close_network()
        reply: dict[str, object]
        if ours:
            reply = {"answers": [read_rows(store.graphs, one, store.folder) for one in ours]}
        else:
            reply = asdict(answer(store.graphs, wanted["query"], wanted["limit"]))
    except MemanticsError as error:
        reply = {"error": error.what, "hint": error.hint}
    out.write(orjson.dumps(reply))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
