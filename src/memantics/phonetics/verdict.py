"""Is a caption a pun? One chance from what was heard, what a dictionary says, and what it means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import orjson

from memantics.core.result import Result, Table
from memantics.core.text import show_chance
from memantics.phonetics.ranking import Linear
from memantics.phonetics.reading import Heard, Reading, SecondSense, explain

Kind = Literal["sound", "sense", "none"]


@dataclass(frozen=True, slots=True)
class PunVerdict(Result):
    """Whether a caption is a pun, how likely, by which readings, and why.

    ``probability`` is calibrated for memes of which a third are puns. ``kind`` says whether the
    sound or the sense of a word is played with. ``readings`` are best first. ``seen_by`` names
    the model that looked at the picture, empty where none did.
    """

    caption: str
    is_pun: bool
    probability: float
    threshold: float
    kind: Kind
    readings: tuple[Reading, ...]
    senses: tuple[SecondSense, ...]
    why: tuple[str, ...]
    seen_by: str = ""
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        rows = tuple(("", line) for line in self.why)
        title = f"{'a pun' if self.is_pun else 'no pun'}, {show_chance(self.probability)}"
        return Table((self.caption, title), rows)._repr_html_()


@dataclass(frozen=True, slots=True)
class PunWeights:
    """What tells puns from the rest with one language model.

    ``meaning`` weighs the numbers of a sentence vector; nothing where there is none.
    """

    linear: Linear
    meaning: tuple[float, ...]
    threshold: float

    def score(
        self, heard: Heard, vector: Sequence[float] | None, picture: Sequence[float] | None = None
    ) -> float:
        """The log-odds that a caption is a pun."""
        if vector is None or len(vector) != len(self.meaning):
            return self.linear.score(heard.signals)
        similar = _multiply(vector, picture) if picture is not None else 0.0
        return self.linear.score({**heard.signals, "similar": similar}) + _multiply(
            self.meaning, vector
        )


def _multiply(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


SHOWN = ("shown_rarest", "shown_share", "shown_thing", "shown_word")


@cache
def load_pun_weights(model: str, described: bool = False) -> PunWeights:
    """The weights for a language model, for captions alone or with the picture described."""
    file = resources.files("memantics.phonetics") / "weights.json"
    entry = orjson.loads(file.read_bytes())[model]["described" if described else "pun"]
    linear = Linear(entry["weights"], entry["bias"])
    return PunWeights(linear, tuple(entry["meaning"]), entry["threshold"])


def judge_pun(
    heard: Heard,
    vector: Sequence[float] | None = None,
    seen: bool | None = None,
    picture: Sequence[float] | None = None,
    *,
    trusted: bool = False,
) -> PunVerdict:
    """The verdict on a caption that was read aloud, alone or with a description of the picture.

    ``vector`` is its sentence vector where there is one, ``picture`` that of the description. A
    description counts where it names what the caption says, and then for a pun only: one that is
    silent, short, wrong or a list of tags is no evidence against it, unless it is ``trusted``.
    ``seen`` is what a model that sees the picture says; it counts as much as the published
    accuracy of such models has it, so neither the sound nor the model decides alone.
    """
    if heard.language != "zh" or heard.model == "none":
        odds, limit = _logit(heard.confidence), heard.threshold
    else:
        weights = load_pun_weights(heard.model)
        odds, limit = weights.score(heard, vector), weights.threshold
        shows = any(heard.signals.get(name, 0.0) > 0 for name in SHOWN)
        if shows or (trusted and SHOWN[0] in heard.signals):
            weights = load_pun_weights(heard.model, described=True)
            seen_odds, seen_limit = weights.score(heard, vector, picture), weights.threshold
            gain = (seen_odds - _logit(seen_limit)) - (odds - _logit(limit))
            if trusted or round(gain, 9) > 0:
                odds, limit = seen_odds, seen_limit
    if seen is not None:
        odds += _WITNESS if seen else -_WITNESS
    chance = round(1 / (1 + math.exp(-max(-30.0, min(30.0, odds)))), 4)
    is_pun = chance >= limit
    by_sound = heard.meant is not None or not (heard.senses or heard.double_meanings)
    kind: Kind = "none" if not is_pun else "sound" if by_sound else "sense"
    return PunVerdict(
        caption=heard.caption,
        is_pun=is_pun,
        probability=chance,
        threshold=limit,
        kind=kind,
        readings=heard.readings,
        senses=heard.senses,
        why=_list_reasons(heard, kind),
        notes=heard.notes,
    )


# Published models with image and caption are right about four times in five (F1 .61 to .76):
# what they say makes a pun four times likelier, or less likely.
_WITNESS = math.log(4.0)


def _logit(chance: float) -> float:
    bounded = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


def _list_reasons(heard: Heard, kind: Kind) -> tuple[str, ...]:
    lines = explain(heard, alternatives=0)
    if kind == "sound" or not heard.senses:
        return lines
    return (*(f"{sense.word}: {sense.why}" for sense in heard.senses[:3]), *lines)
