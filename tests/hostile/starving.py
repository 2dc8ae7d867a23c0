"""Questions in SPARQL that would eat time or memory for ever."""

from __future__ import annotations

import random
from collections.abc import Iterator


def _values(chance: random.Random) -> str:
    rows = " ".join(f'"{number:05}"' for number in range(chance.choice((10, 9_000))))
    return f"SELECT (COUNT(*) AS ?n) {{ VALUES ?a {{ {rows} }} ?s ?p ?o . ?t ?q ?u }}"


def _product(chance: random.Random) -> str:
    parts = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(chance.randrange(3, 7)))
    return f"SELECT {chance.choice(('(COUNT(*) AS ?n)', 'DISTINCT *', '*'))} {{ {parts} }}"


def _path(chance: random.Random) -> str:
    step = chance.choice(
        ("(<urn:a>|!<urn:a>)", "(mm:inMeme|^mm:inMeme|!mm:inMeme)", "(!(^rdf:type))")
    )
    return f"SELECT (COUNT(*) AS ?n) {{ ?a {step}{chance.choice('*+')} ?b . ?b {step}* ?c }}"


def _double(chance: random.Random) -> str:
    """A text that is twice as long at each step."""
    steps = " ".join(
        f"BIND(CONCAT(?a{n}, ?a{n}) AS ?a{n + 1})" for n in range(chance.randrange(25, 60))
    )
    return f'SELECT (STRLEN(?a25) AS ?n) {{ BIND("xxxxxxxx" AS ?a0) {steps} }}'


def _optional(chance: random.Random) -> str:
    parts = " ".join(f"OPTIONAL {{ ?a{n} ?b{n} ?c{n} }}" for n in range(chance.randrange(3, 8)))
    return f"SELECT * {{ {parts} }} ORDER BY ?c0 ?c1 RAND()"


def _group(chance: random.Random) -> str:
    inner = "?s ?p ?o . ?t ?q ?u" + " . ?v ?w ?x" * chance.randrange(2)
    return f"SELECT (GROUP_CONCAT(?o) AS ?all) {{ {inner} }} GROUP BY ?p"


def _match(chance: random.Random) -> str:
    pattern = chance.choice(("(a+)+$", "(.*)*x", "(x|x|x)*y", "a{1000}{1000}"))
    return (
        f'SELECT * {{ ?s ?p ?o . ?t ?q ?u FILTER(REGEX(CONCAT(STR(?o), STR(?u)), "{pattern}")) }}'
    )


def _exists(chance: random.Random) -> str:
    inner = "?x ?y ?z . ?k ?l ?m FILTER(?z = ?m && ?z != ?o)"
    word = chance.choice(("EXISTS", "NOT EXISTS"))
    return f"SELECT (COUNT(*) AS ?n) {{ ?s ?p ?o FILTER {word} {{ {inner} }} }}"


def _nested(chance: random.Random) -> str:
    text = "?s ?p ?o"
    for number in range(chance.randrange(5, 60)):
        text = f"{{ SELECT * {{ {text} . ?a{number} ?b{number} ?c{number} }} }}"
    return f"SELECT (COUNT(*) AS ?n) {{ {text} }}"


KINDS = (_product, _path, _values, _double, _optional, _group, _match, _exists, _nested)


def generate(seed: int, count: int) -> Iterator[str]:
    """Questions of every kind in turn."""
    chance = random.Random(seed)
    for number in range(count):
        yield KINDS[number % len(KINDS)](chance)
