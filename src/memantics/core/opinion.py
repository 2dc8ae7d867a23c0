"""What a trained expert says of one meme, with its source and how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from memantics.core.plugins import Plugins
from memantics.core.result import Result

UNKNOWN = "unknown"
SURE = 0.5  # a label is said only where it is more likely than not


@dataclass(frozen=True, slots=True)
class Opinion(Result):
    """A label by an expert; ``unknown`` where it cannot tell, and ``why``.

    ``topic`` is what the label is about, ``by`` names the expert. On memes held out in training
    of which it was as sure, ``accuracy`` is its share of right labels and ``baseline`` that of the
    best trivial answer.
    ``sample`` marks an expert that was trained on the starter pack.
    """

    topic: str
    label: str
    by: str
    probability: float | None = None
    accuracy: float | None = None
    baseline: float | None = None
    why: str = ""
    sample: bool = False

    @property
    def known(self) -> bool:
        """Whether anything is said."""
        return self.label != UNKNOWN

    @property
    def source(self) -> str:
        """Who says so and how often that is right, in words.

        >>> Opinion("emotion", "sad", "expert mer_bench/emotion", 0.7, 0.65, 0.33).source
        'expert mer_bench/emotion, right on 65% of held-out memes (best trivial answer 33%)'
        """
        if self.accuracy is None:
            return self.by
        best = "" if self.baseline is None else f" (best trivial answer {self.baseline:.0%})"
        return f"{self.by}, right on {self.accuracy:.0%} of held-out memes{best}"


@dataclass(frozen=True, slots=True)
class Judge:
    """An expert that is ready to be asked: ``ask`` takes a text and its language.

    ``name`` is what it was trained for, ``version`` pins its file.
    """

    topic: str
    name: str
    version: str
    classes: tuple[str, ...]
    ask: Callable[[str, str], Opinion]


Judges = Mapping[str, Judge]  # by topic
# Named, not imported: what only uses classifiers need not know the package that trains them.
_OPENERS: Plugins[Callable[[Sequence[str] | None], Judges]] = Plugins(
    "memantics.classifiers",
    cast("type[Callable[[Sequence[str] | None], Judges]]", Callable),
    {"ours": "memantics.detector.opinions:open_judges"},
)


def find_judges(topics: Sequence[str] | None = None) -> Judges:
    """The classifiers in use, by topic."""
    opener = _OPENERS.find("ours")
    return opener(topics) if opener else {}


def name_judges(judges: Judges) -> str:
    """Which experts these are, in one line; empty without any.

    >>> name_judges({})
    ''
    """
    return ", ".join(f"{judge.name}@{judge.version}" for _, judge in sorted(judges.items()))
