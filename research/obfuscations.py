"""Measure how many obfuscated harmful texts an English detector calls harmless.

``python -m research.obfuscations`` trains a detector on one half of Hateful Memes
(`research.language`). Harmful texts of the other half that it flags are obfuscated in many ways;
harmless texts show the effect on the false positive rate. "Before" scores the text as typed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.verdict import Verdict
from research import obfuscations_chinese
from research.language import divide

TEXTS = 150
KIND = (
    "have a lovely day everyone.",
    "what a beautiful morning with friends and family.",
    "thank you so much for all the love.",
    "my dog is the cutest little puppy.",
    "happy birthday to the best mom in the world.",
    "i love pizza and sunny weekends.",
)
_CYRILLIC = str.maketrans("aeopcyxi", "аеорсухі")
_LEET = str.maketrans("aeios", "43105")
Draw = random.Random


def _each(words: str, change: Callable[[str], str], draw: Draw, share: float = 0.6) -> str:
    """Change a random part of the words with four letters or more."""
    return " ".join(
        change(word) if len(word) >= 4 and draw.random() < share else word for word in words.split()
    )


def _insert(mark: str) -> Callable[[str, Draw], str]:
    def put(text: str, draw: Draw) -> str:
        def change(word: str) -> str:
            place = draw.randrange(1, len(word))
            return word[:place] + mark + word[place:]

        return _each(text, change, draw)

    return put


def _pad(count: int) -> Callable[[str, Draw], str]:
    def put(text: str, draw: Draw) -> str:
        chosen = draw.sample(KIND, count)
        return " ".join([*chosen[: count // 2], text.rstrip(".!? ") + ".", *chosen[count // 2 :]])

    return put


OBFUSCATIONS: dict[str, Callable[[str, Draw], str]] = {
    "zero-width space": _insert("\u200b"),
    "zero-width joiner": _insert("\u200d"),
    "soft hyphen": _insert("\u00ad"),
    "dot inside": _insert("."),
    "dots between letters": lambda text, draw: _each(text, ".".join, draw),
    "spaces between letters": lambda text, draw: _each(text, " ".join, draw),
    "full width": lambda text, draw: _each(
        text,
        lambda word: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word),
        draw,
    ),
    "percent-encoded": lambda text, draw: _each(
        text, lambda word: "".join(f"%{byte:02x}" for byte in word.encode()), draw
    ),
    "Cyrillic homoglyphs": lambda text, draw: _each(
        text, lambda word: word.translate(_CYRILLIC), draw
    ),
    "strokes": lambda text, draw: _each(
        text, lambda word: "".join(f"{c}\u0336" for c in word), draw
    ),
    "digits for letters": lambda text, draw: _each(text, lambda word: word.translate(_LEET), draw),
    "two kind sentences": _pad(2),
    "six kind sentences": _pad(6),
}


def is_missed(verdict: Verdict) -> bool:
    """Tell whether a verdict is harmless."""
    return verdict.outcome == "harmless"


def main() -> int:
    """Print one line per obfuscation, and one for texts without obfuscation."""
    if sys.argv[1:] == ["zh"]:
        return obfuscations_chinese.main()
    out = sys.stdout.write
    looked, unseen = divide()
    known = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    judge = Detector.load(known) if known else Detector.train(looked, "words")
    point = judge.point
    said = judge.machine.predict(unseen)
    flat = [point.is_harmful(own.probability) for own in said]
    verdicts = judge.verdicts(unseen)
    for label in (0, 1):
        rows = [n for n, example in enumerate(unseen) if example.label == label]
        now = [verdicts[n] for n in rows]
        out(
            f"{('harmless', 'harmful')[label]}: {len(rows)}; flagged before"
            f" {sum(flat[n] for n in rows)}, now {sum(v.label == 'harmful' for v in now)};"
            f" for human review {sum(v.outcome == 'review' for v in now)}, of them for one sentence"
            f" {sum(v.review.startswith('one sentence') for v in now)};"
            f" changed {sum(bool(v.obfuscation) for v in now)}\n"
        )
    sure = [e for e, hit in zip(unseen, flat, strict=True) if e.label and hit]
    sure = random.Random(1).sample(sure, TEXTS)
    total = [0, 0]
    for name, obfuscation in OBFUSCATIONS.items():
        draw = Draw(name)
        hidden = [Example(e.id, obfuscation(e.text, draw)) for e in sure]
        before = [not point.is_harmful(one.probability) for one in judge.machine.predict(hidden)]
        after = list(map(is_missed, judge.verdicts(hidden)))
        out(f"{name}: {sum(before)} of {len(sure)} missed before, now {sum(after)}\n")
        total = [total[0] + sum(before), total[1] + sum(after)]
    out(f"all: {total[0]} of {TEXTS * len(OBFUSCATIONS)} missed before, now {total[1]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
