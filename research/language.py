"""Measure how many texts an English detector rejects for their language.

``python -m research.language`` splits the texts of Hateful Memes by hash. Thresholds of
``memantics.core.language`` were chosen on one half and on ten captions per other language. Test
data are the other half, MemeIntent, the sample data and fifty captions per language. A detector
is trained on the first half and applied to the captions in other languages.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from memantics.core.language import understand
from memantics.core.samples import HERE as SAMPLE
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from research.data import read_hateful
from research.protocol import DATA

CAPTIONS = Path(__file__).parent / "captions.toml"
REPORTED = 50


def is_first_half(text: str) -> bool:
    """Tell whether a text is in the half used for choosing thresholds."""
    line = " ".join(text.lower().split())
    return int(hashlib.sha256(line.encode()).hexdigest(), 16) % 2 == 0


def read_captions() -> dict[str, list[str]]:
    """Read the test captions, by language."""
    listed = tomllib.loads(CAPTIONS.read_text(encoding="utf-8"))
    return {name: texts[:REPORTED] for name, texts in listed.items()}


def divide() -> tuple[list[Example], list[Example]]:
    """Split Hateful Memes into the half for training and choices, and the test half."""
    halves: tuple[list[Example], list[Example]] = ([], [])
    for row in read_hateful():
        text = str(row.content["text"])
        label = int(row.content["gold_hate"] == ["hateful"])
        halves[not is_first_half(text)].append(Example(row.id, text, label=label))
    return halves


def _count_refused(texts: Sequence[str]) -> str:
    found = [understand(text, ["en"]) for text in texts]
    refused, mixed = sum(bool(f.foreign) for f in found), sum(bool(f.also) for f in found)
    return f"{refused} of {len(texts)} refused ({refused / len(texts):.2%}), {mixed} mixed"


def main() -> int:
    """Print the values of docs/research/language.md."""
    out = sys.stdout.write
    looked, unseen = divide()
    intents = json.loads((DATA / "memeintent" / "sigdial.json").read_bytes())
    sample = map(json.loads, (SAMPLE / "memes.jsonl").read_text(encoding="utf-8").splitlines())
    parts = {
        "Hateful Memes, looked at": [e.text for e in looked],
        "Hateful Memes, unseen": [e.text for e in unseen],
        "MemeIntent": [str(own["text"]) for own in intents.values()],
        "sample data, English": [m["text"] for m in sample if m.get("language") == "en"],
    }
    for name, texts in parts.items():
        out(f"{name}: {_count_refused(texts)}\n")
    judge = Detector.train(looked, "words")
    out(f"trained on {judge.languages}, unseen {judge.card.get('unseen_ngram_rate')}\n")
    verdicts = judge.verdicts(unseen)
    review = sum(v.outcome == "review" for v in verdicts)
    out(f"unseen half: {review} of {len(unseen)} for people\n")
    for name, captions in read_captions().items():
        said = judge.verdicts([Example(str(n), text) for n, text in enumerate(captions)])
        refused = sum(v.status == "not_scored" for v in said)
        calm = sum(v.outcome == "harmless" for v in said)
        out(f"{name}: {refused} refused, {len(said) - calm} of {len(said)} not called harmless\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
