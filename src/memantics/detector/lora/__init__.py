"""LoRA tuning of local vision-language models for pun and harm detection (extra ``detector``)."""

from memantics.detector.lora.cases import Case, Split, split_groups
from memantics.detector.lora.judging import Judge, Rates, Verdict, rate
from memantics.detector.lora.tuning import Tools, Tuned, Tuning, tune
from memantics.detector.lora.wording import (
    LANGUAGES,
    QUESTIONS,
    STYLES,
    Language,
    Question,
    Style,
    Wording,
)

__all__ = [
    "LANGUAGES",
    "QUESTIONS",
    "STYLES",
    "Case",
    "Judge",
    "Language",
    "Question",
    "Rates",
    "Split",
    "Style",
    "Tools",
    "Tuned",
    "Tuning",
    "Verdict",
    "Wording",
    "rate",
    "split_groups",
    "tune",
]
