"""Where the parts of an analysis contradict each other, in words: harm and emotion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from memantics.build.analysis.records import Contradiction, Feeling, Findings, Harm
from memantics.build.extract.reading import ROLES
from memantics.build.harm import agrees
from memantics.core.text import show_chance
from memantics.knowledge.ontology.vocabulary import Dimension
from memantics.knowledge.records import Individual
from memantics.models.embedded.lexicon import Lexicon

_CLEAR = 0.3  # a word's valence from which its side is clear
_GOOD = frozenset({"happy", "calm", "relaxed", "excited"})
_BAD = frozenset({"sad", "angry", "tense", "bored"})
# A meme may amuse whatever feeling it carries.
_LAUGHTER = re.compile(
    r"amus|laugh|\bfun|humou?r|好笑|发笑|有趣|搞笑|逗乐|幽默|会心一笑", re.IGNORECASE
)
_VIEWER = ROLES["Emotion"][1]["viewer"]


def find_contradictions(
    found: Findings, answered: Collection[Dimension]
) -> Iterator[Contradiction]:
    """What two parts say differently about one meme; baselines contradict nobody.

    ``answered`` are the dimensions that a model did answer: an empty list of one of them says
    that there is nothing, that of another says nothing.
    """
    harms = [own for own in found.harms if not own.baseline]
    known = found.knowledge
    toxic = known.of("Toxicity") if known and "Toxicity" in answered else None
    yield from _compare_verdicts(harms, toxic, found.model)
    if toxic:
        yield from _compare_types(harms, toxic, found.model)
    emotions = known.of("Emotion") if known else ()
    for feeling in found.feelings:
        if not feeling.baseline:
            yield from _compare_feelings(feeling, emotions, found.model)


def _compare_verdicts(
    harms: Sequence[Harm], toxic: Sequence[Individual] | None, model: str
) -> Iterator[Contradiction]:
    sides: dict[bool, list[str]] = {True: [], False: []}
    for own in harms:
        sides[own.harmful].append(_tell_harm(own))
    if toxic is not None:
        listed = _quote(toxic) if toxic else "nothing"
        sides[bool(toxic)].append(f"the dimensions of {model} (toxicity: {listed})")
    if sides[True] and sides[False]:
        yield Contradiction(
            "harm",
            f"harmful according to {' and '.join(sides[True])}; "
            f"not harmful according to {' and '.join(sides[False])}",
        )


def _compare_types(
    harms: Sequence[Harm], toxic: Sequence[Individual], model: str
) -> Iterator[Contradiction]:
    """Both say harmful, but no kind of toxicity goes with the type of harm."""
    for own in harms:
        if own.harmful and not any(agrees(own.type, one.kind) for one in toxic):
            yield Contradiction(
                "kind of harm",
                f"{own.type} according to {own.by}; the dimensions of {model} say {_quote(toxic)}",
            )


def _compare_feelings(
    feeling: Feeling, emotions: Sequence[Individual], model: str
) -> Iterator[Contradiction]:
    """Against what a viewer is said to feel: a figure may well feel the opposite."""
    sign = (feeling.emotion in _GOOD) - (feeling.emotion in _BAD)
    lexicon = Lexicon()
    felt = [
        own
        for own in emotions
        if own.description.endswith(f"({_VIEWER})") and not _LAUGHTER.search(own.label)
    ]
    clear = [own for own in felt if abs(lexicon.feel(own.label).valence) >= _CLEAR]
    opposed = all(lexicon.feel(own.label).valence * sign < 0 for own in clear)
    if sign and clear and opposed:
        yield Contradiction(
            "emotion",
            f"{feeling.emotion} according to the verdict of {feeling.by}; the dimensions of "
            f"{model} say that the viewer feels {_quote(clear)}",
        )


def _tell_harm(own: Harm) -> str:
    if own.score is not None:
        return f"{own.by} (chance {show_chance(own.score)})"
    return f"the verdict of {own.by}" + (f" ({own.type})" if own.type else "")


def _quote(listed: Sequence[Individual]) -> str:
    return ", ".join(
        f"“{own.label}”" + (f" ({own.kind.lower()})" if own.kind else "") for own in listed[:3]
    )
