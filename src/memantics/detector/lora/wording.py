"""What a model is asked in the three styles, what it should say, and what it said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from memantics.core.prompt import Prompt, read_prompts
from memantics.detector.lora.cases import Case

Question = Literal["pun", "harm"]
Style = Literal["image", "caption", "reasons"]
Language = Literal["zh", "en"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
STYLES: tuple[Style, ...] = get_args(Style)
LANGUAGES: tuple[Language, ...] = get_args(Language)
WORDS: dict[Language, tuple[str, str]] = {"zh": ("否", "是"), "en": ("No", "Yes")}
_MARKS: dict[Language, str] = {"zh": "判断", "en": "Verdict"}
# Both widths of the colon: models copy whichever they saw last.
_VERDICT: dict[Language, re.Pattern[str]] = {
    "zh": re.compile(r"判断\s*[：:]\s*[“\"]?(是|否)"),
    "en": re.compile(r"verdict\s*[：:]\s*[“\"]?(yes|no)\b", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """How a meme is put to a model, and how its reply is read."""

    question: Question = "pun"
    style: Style = "caption"
    language: Language = "zh"

    @property
    def prompt(self) -> Prompt:
        """The text with its hole for the caption."""
        return _prompts()[f"{self.question}.{self.style}.{self.language}"]

    @property
    def words(self) -> tuple[str, str]:
        """What is said for no and for yes."""
        return WORDS[self.language]

    def ask(self, case: Case) -> str:
        """The question about one meme.

        >>> "蒸多鱼" in Wording().ask(Case("1", "1", True, caption="蒸多鱼"))
        True
        """
        prompt = self.prompt
        return prompt.fill(caption=case.caption) if prompt.holes else prompt.fill()

    def answer(self, case: Case) -> str:
        r"""What a tuned model should say.

        >>> case = Case("1", "1", True, reason="鱼和余同音。")
        >>> Wording().answer(case), Wording(style="reasons").answer(case)
        ('是', '鱼和余同音。\n判断：是')
        """
        word = self.words[case.label]
        if self.style != "reasons":
            return word
        colon = "：" if self.language == "zh" else ": "
        reason = " ".join(case.reason.split())
        return f"{reason}\n{_MARKS[self.language]}{colon}{word}".strip()

    def read(self, reply: str) -> bool | None:
        r"""The verdict in a reply; None where there is none, or more than one.

        >>> Wording(style="reasons").read("同音。\n判断: 否"), Wording().read("也许")
        (False, None)
        """
        if self.style == "reasons":
            verdicts = _VERDICT[self.language].finditer(reply)
            found = {str(verdict[1]).lower() for verdict in verdicts}
        else:
            first = re.match(r"[\s“\"]*(是|否|yes\b|no\b)", reply, re.IGNORECASE)
            found = {str(first[1]).lower()} if first else set()
        if len(found) != 1:
            return None
        return found.pop() == self.words[1].lower()


@cache
def _prompts() -> dict[str, Prompt]:
    return dict(read_prompts(Path(__file__).parent / "prompts"))
