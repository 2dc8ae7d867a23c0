"""What the classes of ToxiCN MM are called, in both languages, and what replies may call them."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.benchmarks.toxicn_mm.rows import CLASSES, TARGETS

HARMFUL, HARMLESS = "harmful", "harmless"
NOBODY = "none"
Words = Mapping[str, Mapping[str, str]]

QUESTIONS: Words = CLASSES["questions"]
VERDICTS: Words = CLASSES["verdicts"]
VERDICT_ALIASES: Mapping[str, list[str]] = CLASSES["verdict_aliases"]
LETTERS: Mapping[str, str] = CLASSES["letters"]
TYPES: Words = CLASSES["types"]
TYPE_ALIASES = {**CLASSES["type_aliases"], "none": VERDICT_ALIASES[HARMLESS]}
_NAMED = {name: CLASSES["targets"][name] for name in TARGETS} | {NOBODY: CLASSES["nobody"]}
TARGET_NAMES: Words = {
    language: {name: told[language] for name, told in _NAMED.items()} for language in ("zh", "en")
}
TARGET_ALIASES: Mapping[str, list[str]] = {
    name: [told["zh"], told["en"], *told["aliases"]] for name, told in _NAMED.items()
}
