"""Queries that try to reach another machine, in as many spellings as the grammar allows."""

from __future__ import annotations

import random
from collections.abc import Iterator

SPOT = "@SPOT@"
# Found by people, each of which passed a filter on words.
KNOWN = (
    "SELECT * { SERVICE <@SPOT@> { ?s ?p ?o } }",
    "SELECT * { {}.SERVICE SILENT <@SPOT@> {?x ?b ?c} }",
    "PREFIX : <@SPOT@> SELECT * { SERVICE:x{ ?s ?p ?o } }",
    "PREFIX : <@SPOT@> SELECT * { ?a ?b :c.SERVICE SILENT:x{ ?s ?p ?o } }",
    "SELECT * { FILTER(1 <2) SERVICE SILENT <@SPOT@> { ?s ?p ?o } FILTER(3> 2) }",
    "SELECT * { ?a ?b ?c FILTER(?a <?b) . SERVICE <@SPOT@> { ?s ?p ?o } FILTER(?a>?b) }",
    "SELECT * { BIND(<@SPOT@> AS ?x) SERVICE SILENT ?x { ?s ?p ?o } }",
    "SELECT * { VALUES ?x { <@SPOT@> } SERVICE ?x { ?s ?p ?o } }",
    "SELECT * { ?x ?y 'a\\'' . SERVICE<@SPOT@>{ ?s ?p ?o } }",
    "PREFIX x: <urn:x:> SELECT * { ?x x:a\\#b ?y SERVICE <@SPOT@> { ?s ?p ?o } }",
    "PREFIX x: <urn:x:> SELECT * { ?x x:a\\'b ?y SERVICE SILENT <@SPOT@> {} ?y x:c 'd' }",
    'SELECT * { BIND("\\u0022" AS ?x) SERVICE SILENT <@SPOT@> { ?s ?p ?o } BIND("\\u0022" AS ?y) }',
    "SELECT * { \\u0053ERVICE SILENT <@SPOT@> { ?s ?p ?o } }",
    "ASK { FILTER EXISTS { SERVICE <@SPOT@> { ?s ?p ?o } } }",
    "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE SILENT <@SPOT@> { ?s ?p ?o } }",
    "DESCRIBE ?s { SERVICE <@SPOT@> { ?s ?p ?o } }",
    "SELECT * { { SELECT * { MINUS { SERVICE <@SPOT@> { ?s ?p ?o } } } } }",
    "SELECT * FROM <@SPOT@> { ?s ?p ?o }",
    "SELECT * FROM NAMED <@SPOT@> { GRAPH ?g { ?s ?p ?o } }",
    "BASE <@SPOT@> SELECT * { SERVICE SILENT <x> { ?s ?p ?o } }",
    "LOAD <@SPOT@>",
    "LOAD SILENT <@SPOT@> INTO GRAPH <urn:g>",
    "INSERT { ?s ?p ?o } WHERE { SERVICE <@SPOT@> { ?s ?p ?o } }",
    "SELECT * { ?s ?p ?o } ; LOAD <@SPOT@>",
)
_BEFORE = (
    "",
    "{} ",
    "{}.",
    "?a ?b ?c . ",
    "?a ?b ?c .\t",
    "OPTIONAL { ?a ?b ?c } ",
    "FILTER(1 <2) ",
    "FILTER(?a<?b&&?c>?d) ",
    "BIND('SERVICE' AS ?z) ",
    "BIND('''it''s''' AS ?z) ",
    'BIND("""a"b""" AS ?z) ',
    "?a <urn:b#c> 'd' . ",
    "?a x:b\\#c 'd' . ",
    "# SERVICE }\n ",
    "{ ?a ?b ?c } UNION ",
    "GRAPH ?g { ?a ?b ?c } ",
)
_AFTER = ("", " FILTER(3> 2)", " ?y ?z 'w'", " # }", " . {}", " BIND('\"' AS ?q)")
_WRAPS = (
    "%s",
    "{ %s }",
    "OPTIONAL { %s }",
    "{ SELECT * { %s } }",
    "GRAPH ?h { %s }",
    "MINUS { %s }",
)
_HEADS = (
    "SELECT * {%s}",
    "ASK {%s}",
    "CONSTRUCT { ?s ?p ?o } WHERE {%s}",
    "SELECT DISTINCT ?s {%s}",
)
_TARGETS = ("<@SPOT@>", "spot:x", "?there")


def generate(seed: int, count: int) -> Iterator[str]:
    """Queries with a call to another machine somewhere; ``SPOT`` stands for its address."""
    chance = random.Random(seed)
    for _ in range(count):
        word = "".join(chance.choice((c.upper(), c.lower())) for c in "service")
        gap = chance.choice((" ", "\n", "\t", " # note\n", ""))
        target = chance.choice(_TARGETS)
        silent = chance.choice(("", "SILENT" + gap))
        # A variable, a prefix and SILENT need a space before them; an IRI does not.
        space = gap or ("" if target[0] == "<" and not silent else " ")
        call = f"{word}{space}{silent}{target} {{ ?s ?p ?o }}"
        body = chance.choice(_BEFORE) + chance.choice(_WRAPS) % call + chance.choice(_AFTER)
        if "UNION" in body:
            body = f"{{ ?a ?b ?c }} UNION {{ {call} }}"
        known = "BIND(<@SPOT@> AS ?there) " if "?there" in call else ""
        head = f"PREFIX spot: <{SPOT}> PREFIX x: <urn:x:> "
        yield head + chance.choice(_HEADS) % f" {known}{body}\n "
