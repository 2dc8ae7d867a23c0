"""The words of the start page in one language, and our English sentences said in it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from markupsafe import Markup

from memantics.report.standings import Standings

Language = Literal["en", "zh"]
_CERTAIN = 0.99


@dataclass(frozen=True, slots=True)
class TourWords:
    """Texts by key (``t``), translations of our sentences, and patterns of faults of tables."""

    language: Language
    t: dict[str, Markup]
    said: dict[str, str]
    faults: tuple[tuple[re.Pattern[str], str], ...]

    def say(self, text: str) -> str:
        """A sentence of ours in this language; English where there is no translation."""
        return self.said.get(text, text) if self.language == "zh" else text

    def sure(self, confidence: float) -> str:
        """A probability in words that never say 100 %."""
        if confidence > _CERTAIN:
            return self.t["over"]
        return f"{confidence * 100:.0f} %"

    def fault(self, reason: str) -> str:
        """Why a printed figure cannot be true, in plain words."""
        for pattern, told in self.faults:
            if found := pattern.fullmatch(reason):
                return told.format(*(self.say(part.replace("_", " ")) for part in found.groups()))
        return reason

    def tell_faults(self, checked: int, certain: int, more: int) -> str:
        """How many rows of a table cannot be true, and how many more with the stated sizes."""
        told = self.t["faulty"].format(certain=certain, n=checked)
        gap = " " if self.language == "en" else ""
        return told + gap + self.t["faulty_stated"].format(more) if more else told

    def standing(self, board: Standings) -> Markup:
        """How many systems of a table are above its trivial baseline, and how that was judged."""
        above = board.count("above")
        return self.t["all_above" if above == len(board.rows) else "some_above"].format(
            n=len(board.rows),
            above=above,
            level=board.count("level"),
            below=board.count("below"),
            name=self.say(board.trivial.name),
            value=f"{board.trivial.value:.3f}",
            basis=self.t["by_interval" if board.by_interval else "by_figure"],
        )


def read_words(language: Language) -> TourWords:
    """The words of one language, from ``tour.toml``."""
    source = files("memantics.report.pages") / "templates" / "tour.toml"
    read = tomllib.loads(source.read_text(encoding="utf-8"))
    said, faults = read.pop("said"), read.pop("fault")
    return TourWords(
        language,
        {key: Markup(texts[language]) for key, texts in read.items()},  # noqa: S704 - ours
        said,
        tuple((re.compile(one["pattern"]), one[language]) for one in faults),
    )
