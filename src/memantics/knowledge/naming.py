"""IRIs of memes and of what is said about them: minted per meme, safe for any name, reversible."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

from memantics.knowledge.ontology.vocabulary import DIMENSIONS

# A URN names without promising a host that would have to answer.
ONTOLOGY = "urn:memantics:ontology"
TERM = f"{ONTOLOGY}#"
SAID = "urn:memantics:said#"
OWN = "urn:memantics:own#"
MEME = "urn:memantics:meme:"
MODEL = "urn:memantics:model:"
PERSON = "urn:memantics:person:"
PREFIXES = {
    "mm": TERM,
    "said": SAID,
    "own": OWN,
    "meme": MEME,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "prov": "http://www.w3.org/ns/prov#",
    "dcterms": "http://purl.org/dc/terms/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
THING = "thing"
_HALVES = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_OWN_NAME = re.compile(r"[A-Z][A-Za-z]{1,39}")


@lru_cache(maxsize=4096)
def escape(name: str) -> str:
    """A name as part of an IRI: letters and digits of any script stay, all else is encoded.

    >>> escape("two knights/1"), escape("蒸鱼"), unescape(escape("a%#<b>"))
    ('two%20knights%2F1', '蒸鱼', 'a%#<b>')
    """
    if _PLAIN.fullmatch(name):
        return name
    return "".join(
        char if _PLAIN.match(char) or _is_letter(char) else _encode(char) for char in name
    )


def _is_letter(char: str) -> bool:
    return char.isalnum() and "\u00a0" <= char <= "\uffef" and not "\ufdd0" <= char <= "\ufdef"


def _encode(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")


def unescape(part: str) -> str:
    """The name behind :func:`escape`."""
    return unquote(part, errors="surrogatepass")


def graph_iri(meme: str) -> str:
    """The graph of a meme, which is also the IRI of the meme itself.

    >>> graph_iri("01382")
    'urn:memantics:meme:01382'
    """
    return MEME + escape(meme)


def is_dimension(name: str) -> bool:
    """Whether a name is a dimension's: one of the ten, or what users may call their own.

    >>> is_dimension("Scene"), is_dimension("ColorUse"), is_dimension("color use")
    (True, True, False)
    """
    return name in DIMENSIONS or bool(_OWN_NAME.fullmatch(name))


def class_iri(dimension: str) -> str:
    """The class of a dimension: the ontology's, or one in a namespace of users' own.

    >>> class_iri("Scene"), class_iri("ColorUse")
    ('urn:memantics:ontology#Scene', 'urn:memantics:own#ColorUse')
    """
    return (TERM if dimension in DIMENSIONS else OWN) + dimension


def thing_iri(meme: str, key: str) -> str:
    """What ``Dimension/name`` stands for in a meme; other words become a thing of that name.

    >>> thing_iri("7", "Scene/a duel"), thing_iri("7", "a duel")
    ('urn:memantics:meme:7#Scene/a%20duel', 'urn:memantics:meme:7#thing/a%20duel')
    """
    dimension, slash, name = key.partition("/")
    if not slash or not is_dimension(dimension):
        dimension, name = THING, key
    return f"{graph_iri(meme)}#{dimension}/{escape(name)}"


def read_thing(iri: str) -> str:
    """The ``Dimension/name`` or the words behind :func:`thing_iri`."""
    place, _, name = iri.partition("#")[2].partition("/")
    return unescape(name) if place == THING else f"{place}/{unescape(name)}"


def meme_of(iri: str) -> str | None:
    """The meme that an IRI belongs to, None where it belongs to none.

    >>> meme_of("urn:memantics:meme:7#Scene/duel"), meme_of("urn:memantics:model:x")
    ('7', None)
    """
    if not iri.startswith(MEME):
        return None
    return unescape(iri.removeprefix(MEME).partition("#")[0])


def clean(text: str) -> str:
    """Text that any format can hold: half characters become the replacement character.

    >>> clean("a" + chr(0xD800))
    'a�'
    """
    return _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)
