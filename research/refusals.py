"""Measure the detector of refusals on replies that its rules were not written for.

Run ``python -m research.refusals``. The replies in ``refusals_blind.jsonl`` are by an author who
did not know the rules of :mod:`memantics.core.refusals`. Do not read them: replies that rules were
fitted to do not measure anything. The replies in ``refusals.jsonl`` and ``refusals_styles.jsonl``
were written before the present rules and were used to improve them; their errors are printed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.refusals import find_refusal
from memantics.metrics.interval import Span, wilson

REPLIES = Path(__file__).with_suffix(".jsonl")
STYLES = REPLIES.with_stem("refusals_styles")
BLIND = REPLIES.with_stem("refusals_blind")


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A reply and whether it is a refusal."""

    text: str
    language: str
    refusal: bool


@dataclass(frozen=True, slots=True)
class RefusalRates:
    """Counts of right and wrong decisions."""

    found: int
    missed: int
    false: int
    passed: int

    @property
    def precision(self) -> tuple[float, Span]:
        """Proportion of flagged replies that are refusals, with its 95% confidence interval."""
        return _rate(self.found, self.found + self.false)

    @property
    def recall(self) -> tuple[float, Span]:
        """Proportion of refusals that are flagged, with its 95% confidence interval."""
        return _rate(self.found, self.found + self.missed)


def _rate(part: int, whole: int) -> tuple[float, Span]:
    return (part / whole if whole else 0.0), wilson(part, whole) or (0.0, 1.0)


def read_replies(path: Path = REPLIES) -> list[WrittenReply]:
    """Read the written replies."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [WrittenReply(**json.loads(line)) for line in lines]


def measure(replies: Sequence[WrittenReply]) -> RefusalRates:
    """Count the decisions of the detector."""
    said = [(one.refusal, bool(find_refusal(one.text))) for one in replies]
    return RefusalRates(
        found=said.count((True, True)),
        missed=said.count((True, False)),
        false=said.count((False, True)),
        passed=said.count((False, False)),
    )


def print_table(replies: Sequence[WrittenReply]) -> None:
    """Print precision and recall by language."""
    parts = {
        "English": [one for one in replies if one.language == "en"],
        "Chinese": [one for one in replies if one.language == "zh"],
        "both": replies,
    }
    print("| language | refusals | near misses | precision | recall |")
    print("|---|---:|---:|---:|---:|")
    for name, part in parts.items():
        rates = measure(part)
        cells = [
            f"{v:.3f} ({low:.3f}–{high:.3f})" for v, (low, high) in (rates.precision, rates.recall)
        ]
        counts = f"{rates.found + rates.missed} | {rates.false + rates.passed}"
        print(f"| {name} | {counts} | {cells[0]} | {cells[1]} |")


def main() -> None:
    """Print precision and recall on all files, and the errors on those that the rules have seen."""
    print_table(read_replies(BLIND))
    for path in (REPLIES, STYLES):
        replies = read_replies(path)
        print_table(replies)
        for one in replies:
            if bool(find_refusal(one.text)) != one.refusal:
                print(("missed: " if one.refusal else "false: ") + " ".join(one.text.split()))


if __name__ == "__main__":
    main()
