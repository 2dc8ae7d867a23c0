"""Measure what parts of a text change: harmful sentences among kind ones, and false reviews.

``python -m research.padding [TEXTS]`` trains a detector on a quarter of Hateful Memes, or on that
many texts. Harmless texts of the other half show how many more go to human review because of one
sentence. Harmful texts that the detector flags or reviews are put between kind sentences, plain or
obfuscated. Each is measured without a review range and with bands of 0.1 and 0.2 below the
threshold. "Before" leaves out the reasons that this study added: a sentence in the review band, and
a sentence without decoration.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.subjects import see_example
from memantics.moderation.verdict import SENTENCE_IN_BAND, Verdict, judge
from research.language import divide
from research.obfuscations import OBFUSCATIONS, TEXTS, Draw, Generator

BANDS = (0.0, 0.1, 0.2)
HARMLESS_TEXTS = 1500
NEW = (SENTENCE_IN_BAND, "one sentence without decoration")
PADDED = ("two kind sentences", "six kind sentences")
HIDDEN = ("number sign inside", "spaces between letters", "words reversed")


def _compose(hidden: str, padded: str) -> Generator:
    """Obfuscate a text, then put kind sentences around it."""

    def put(text: str, draw: Draw) -> str:
        return OBFUSCATIONS[padded](OBFUSCATIONS[hidden](text, draw), draw)

    return put


GENERATORS: dict[str, Generator] = {
    **{name: OBFUSCATIONS[name] for name in PADDED},
    **{f"{hidden}, {name}": _compose(hidden, name) for hidden in HIDDEN for name in PADDED[:1]},
}


def _ask(judge_of: Detector, texts: Sequence[Example], point: OperatingPoint) -> list[Verdict]:
    return judge(judge_of, [see_example(one, "") for one in texts], point)


def _is_new(verdict: Verdict) -> bool:
    return verdict.review.startswith(NEW)


def main() -> int:
    """Print one line per operating point and generator."""
    looked, unseen = divide()
    random.Random(7).shuffle(looked)
    given = sys.argv[1:]
    size = int(given[0]) if given else len(looked) // 2
    detector = Detector.train(looked[:size], "words")
    calm = [one for one in unseen if not one.label]
    random.Random(5).shuffle(calm)
    calm = calm[:HARMLESS_TEXTS]
    harmful = [one for one in unseen if one.label]
    random.Random(1).shuffle(harmful)
    harmful = harmful[: 4 * TEXTS]
    threshold = detector.point.threshold
    for width in BANDS:
        span = (max(0.0, threshold - width), threshold) if width else None
        point = OperatingPoint(threshold, span)
        found = _ask(detector, calm, point)
        reviewed = sum(one.outcome == "review" for one in found)
        new = sum(map(_is_new, found))
        sys.stdout.write(
            f"band {width}: of {len(calm)} harmless texts reviewed before {reviewed - new}, now"
            f" {reviewed}; flagged {sum(one.outcome == 'harmful' for one in found)}\n"
        )
        said = _ask(detector, harmful, point)
        caught = [one for one, each in zip(harmful, said, strict=True) if each.flagged][:TEXTS]
        for name, generator in GENERATORS.items():
            draw = Draw(name)
            shown = [Example(one.id, generator(one.text, draw)) for one in caught]
            after = _ask(detector, shown, point)
            passed = sum(one.outcome == "harmless" for one in after)
            before = passed + sum(map(_is_new, after))
            sys.stdout.write(f"  {name}: of {len(caught)} passed before {before}, now {passed}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
