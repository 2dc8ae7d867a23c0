"""Probabilities of options, from the log-probabilities of tokens that a server returns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.core.closed import Lenient
from memantics.core.records import Form

_AROUND = " \t\r\n\"'`*()[]{}.,:;。，、：；（）【】「」“”"


class _Token(Lenient):
    token: str
    logprob: float


class _Step(_Token):
    top_logprobs: tuple[_Token, ...] = ()


class _Logprobs(Lenient):
    content: tuple[_Step, ...] | None = None


_LOGPROBS = TypeAdapter(_Logprobs)


def list_keys(form: Form) -> tuple[str, ...]:
    """The options of a form that asks for one of them by its key; else none."""
    if form.reply != "key" or len(form.fields) != 1:
        return ()
    return tuple(option.key for option in form.fields[0].options)


def read_masses(logprobs: JsonValue, keys: Sequence[str]) -> dict[str, float] | None:
    """The probability of each option where the answer is given; None where none is said.

    That is the first token, if it stands for an option, else the last one that does: a model that
    reasons aloud names options before it decides.

    >>> top = [{"token": "B", "logprob": -0.1}, {"token": " A", "logprob": -2.5}]
    >>> step = {"token": "B", "logprob": -0.1, "top_logprobs": top}
    >>> read_masses({"content": [step]}, ["A", "B"])
    {'B': 0.904837, 'A': 0.082085}
    >>> read_masses(None, ["A", "B"]) is None
    True
    """
    try:
        steps = _LOGPROBS.validate_python(logprobs).content or ()
    except ValidationError:
        return None
    spoken = [step for step in steps if step.token.strip(_AROUND)]
    named = [step for step in spoken if match_key(step.token, keys)]
    if not named:
        return None
    step = named[0] if named[0] is spoken[0] else named[-1]
    masses: dict[str, float] = {}
    for token in step.top_logprobs or (step,):
        key = match_key(token.token, keys)
        if key is not None:
            masses[key] = masses.get(key, 0.0) + math.exp(min(0.0, token.logprob))
    return {key: round(mass, 6) for key, mass in masses.items()} or None


def match_key(token: str, keys: Sequence[str]) -> str | None:
    """The option that a token stands for: it is the key, or the beginning of one key alone.

    >>> match_key(" b", ["A", "B"]), match_key("harm", ["harmful", "harmless"])
    ('B', None)
    >>> match_key("有", ["有害", "无害"]), match_key("The", ["A", "B"])
    ('有害', None)
    """
    said = token.strip(_AROUND).casefold()
    if not said:
        return None
    for key in keys:
        if key.casefold() == said:
            return key
    begun = [key for key in keys if key.casefold().startswith(said)]
    return begun[0] if len(begun) == 1 else None
