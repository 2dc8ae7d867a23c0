"""Measure how often an English detector sends texts in other languages to human review.

``python -m research.language`` splits the texts of Hateful Memes by hash. Thresholds of
``memantics.core.language`` were chosen on one half and on ten captions per other language, except
``UNTUNED``. Test data are the other half, MemeIntent, the sample data and fifty captions per
language. A detector is trained on the first half and applied to the captions in other languages.
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
from memantics.metrics.interval import wilson
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.verdict import HARMFUL, REVIEW, Verdict
from research.data import read_hateful
from research.protocol import DATA

CAPTIONS = Path(__file__).parent / "captions.toml"
REPORTED = 50
UNTUNED = ("pl", "sv")  # added after the thresholds were chosen
OTHER_LANGUAGE = ("the text may be in ", "part of the text is in ")


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
    return f"{refused} of {len(texts)} foreign ({_format_rate(refused, len(texts))}), {mixed} mixed"


def _format_rate(hits: int, n: int) -> str:
    low, high = wilson(hits, n) or (0.0, 1.0)
    return f"{100 * hits / n:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def names_language(verdict: Verdict) -> bool:
    """Tell whether another language is a reason for the human review of a meme."""
    return any(reason in verdict.review for reason in OTHER_LANGUAGE)


def tabulate_recall(verdicts: dict[str, list[Verdict]]) -> str:
    """Tabulate by language how many verdicts name another language as a reason for review.

    A verdict in the block band has no reason for review, even if the language is recognised. The
    last column counts verdicts that are neither sent to human review nor harmful.
    """
    groups = dict(verdicts)
    groups["all"] = [verdict for said in verdicts.values() for verdict in said]
    tuned = [said for name, said in verdicts.items() if name not in UNTUNED]
    groups["all but " + ", ".join(UNTUNED)] = [verdict for said in tuned for verdict in said]
    lines = [
        "| language | captions | recognised | review: language | review: any | blocked | passed |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, said in groups.items():
        seen = [understand(verdict.caption, ["en"]) for verdict in said]
        rates = (
            sum(bool(one.foreign or one.also) for one in seen),
            sum(names_language(verdict) for verdict in said),
            sum(verdict.outcome == REVIEW for verdict in said),
        )
        counts = (
            sum(verdict.outcome == HARMFUL for verdict in said),
            sum(not verdict.flagged for verdict in said),
        )
        cells = [_format_rate(hits, len(said)) for hits in rates] + [str(n) for n in counts]
        lines.append(f"| {name} | {len(said)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the values of docs/research/language.md."""
    out = sys.stdout.write
    looked, unseen = divide()
    intents = json.loads((DATA / "memeintent" / "sigdial.json").read_bytes())
    sample = map(json.loads, (SAMPLE / "memes.jsonl").read_text(encoding="utf-8").splitlines())
    parts = {
        "Hateful Memes, looked at": [e.text for e in looked],
        "Hateful Memes, unseen": [e.text for e in unseen],
        "MemeIntent": [str(intent["text"]) for intent in intents.values()],
        "sample data, English": [m["text"] for m in sample if m.get("language") == "en"],
    }
    for name, texts in parts.items():
        out(f"{name}: {_count_refused(texts)}\n")
    judge = Detector.train(looked, "words")
    out(f"trained on {judge.languages}, unseen {judge.card.get('unseen_ngram_rate')}\n")
    verdicts = judge.verdicts(unseen)
    for name, hits in (
        ("human review", sum(v.outcome == REVIEW for v in verdicts)),
        ("human review because of the language", sum(map(names_language, verdicts))),
        ("not scored", sum(v.status == "not_scored" for v in verdicts)),
    ):
        out(f"unseen half, {name}: {hits} ({_format_rate(hits, len(unseen))})\n")
    said = {
        name: judge.verdicts([Example(str(n), text) for n, text in enumerate(captions)])
        for name, captions in read_captions().items()
    }
    out(tabulate_recall(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
