"""What counts as harmful: one taxonomy and threshold (``harm.toml``) for every prompt that asks."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from types import MappingProxyType
from typing import Literal, NamedTuple

from memantics.core.data import toml_beside

# What counts as toxic: the six kinds as M-QUEST's paper defines them, or what "analyze" calls harm.
ToxicityRule = Literal["paper", "reviewer"]
_ANY = "Harmful"  # the kind of toxicity that says no more than that there is harm


class HarmTerm(NamedTuple):
    """A type of harm, and the kinds of toxicity that say the same."""

    name: str
    definition: str
    kinds: frozenset[str]


def _read() -> tuple[str, Mapping[str, str], Mapping[str, HarmTerm]]:
    told = toml_beside(__file__, "harm.toml")
    terms = {
        name: HarmTerm(name, value["definition"], frozenset((*value["kinds"], _ANY)))
        for name, value in told["types"].items()
    }
    return told["threshold"], MappingProxyType(told["rules"]), MappingProxyType(terms)


THRESHOLD, RULES, HARM_TERMS = _read()


def list_types() -> str:
    """The types of harm for a prompt, one a line."""
    return "\n".join(f"- {term.name}: {term.definition}." for term in HARM_TERMS.values())


def tell_rule(rule: ToxicityRule) -> dict[str, str]:
    """What the holes of a prompt about toxicity say: what counts, types of harm, the threshold.

    >>> tell_rule("paper")["counts"]
    'Whatever is of one of the kinds below counts.'
    """
    types = "; ".join(term.definition for term in HARM_TERMS.values())
    holes = {"types": types, "threshold": THRESHOLD}
    return {"counts": Template(RULES[rule]).substitute(holes), **holes}


def agrees(type_: str, kind: str) -> bool:
    """Whether a type of harm and a kind of toxicity can both be right; unknown ones can.

    >>> agrees("targeted", "Hateful"), agrees("dispirited", "Propaganda"), agrees("", "Abusive")
    (True, False, True)
    """
    return type_ not in HARM_TERMS or not kind or kind in HARM_TERMS[type_].kinds
