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
from memantics.models.embedded.lexicon import MoodLexicon

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
    harms = [harm for harm in found.harms if not harm.baseline]
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
    for harm in harms:
        sides[harm.harmful].append(_tell_harm(harm))
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
    for harm in harms:
        if harm.harmful and not any(agrees(harm.type, one.kind) for one in toxic):
            yield Contradiction(
                "kind of harm",
                f"{harm.type} according to {harm.by}; "
                f"the dimensions of {model} say {_quote(toxic)}",
            )


def _compare_feelings(
    feeling: Feeling, emotions: Sequence[Individual], model: str
) -> Iterator[Contradiction]:
    """Against what a viewer is said to feel: a figure may well feel the opposite."""
    sign = (feeling.emotion in _GOOD) - (feeling.emotion in _BAD)
    lexicon = MoodLexicon()
    felt = [
        individual
        for individual in emotions
        if individual.description.endswith(f"({_VIEWER})")
        and not _LAUGHTER.search(individual.label)
    ]
    clear = [
        individual for individual in felt if abs(lexicon.feel(individual.label).valence) >= _CLEAR
    ]
    opposed = all(lexicon.feel(individual.label).valence * sign < 0 for individual in clear)
    if sign and clear and opposed:
        yield Contradiction(
            "emotion",
            f"{feeling.emotion} according to the verdict of {feeling.by}; the dimensions of "
            f"{model} say that the viewer feels {_quote(clear)}",
        )


def _tell_harm(harm: Harm) -> str:
    if harm.score is not None:
        return f"{harm.by} (chance {show_chance(harm.score)})"
    return f"the verdict of {harm.by}" + (f" ({harm.type})" if harm.type else "")


def _quote(listed: Sequence[Individual]) -> str:
    return ", ".join(
        f"“{value.label}”" + (f" ({value.kind.lower()})" if value.kind else "")
        for value in listed[:3]
    )
