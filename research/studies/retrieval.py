"""Studies of retrieval: how often the nearest known meme has the same label."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial

from memantics.core.labels import LabelledMeme
from memantics.core.retrieval import SHOWN_FROM
from memantics.metrics.weighted import Case, MetricSpec
from memantics.understanding.knowledge.retrieval import KnownMeme, Pool
from research.protocol import Claim, Row, Study
from research.studies.classifiers import ENCODER, read_label

NEAREST, SHOWN = "nearest meme", f"nearest meme, similarity {SHOWN_FROM} or more"
RANDOM, MAJORITY = "random meme", "majority class"


def compare(
    known: Sequence[Row[LabelledMeme]], asked: Sequence[Row[LabelledMeme]]
) -> dict[str, list[Case]]:
    """Predict by the nearest known meme, by a random known meme, and by the majority class."""
    pool = Pool((KnownMeme(row.id, row.content.text, "") for row in known), encoder=ENCODER)
    labels = {row.id: row.content.labels[0] for row in known}
    common = Counter(labels.values()).most_common(1)[0][0]
    cases: dict[str, list[Case]] = {name: [] for name in (NEAREST, SHOWN, RANDOM, MAJORITY)}
    for row in asked:
        (near,) = pool.find_memes(row.content.text, count=1)
        drawn = random.Random(row.id).choice(known).id
        said = {NEAREST: labels[near.meme], RANDOM: labels[drawn], MAJORITY: common}
        if (near.nearness or 0) >= SHOWN_FROM:
            said[SHOWN] = labels[near.meme]
        for name, label in said.items():
            gold = row.content.labels[0]
            cases[name].append(Case(row.id, row.group, gold, label, near.nearness, row.tags))
    return cases


def _study(name: str, label: str) -> Study[LabelledMeme]:
    return Study(
        f"nearest {name}/{label}",
        name,
        partial(read_label, name, label),
        compare,
        tuple(Claim(one, MetricSpec("accuracy")) for one in (NEAREST, SHOWN, RANDOM, MAJORITY)),
        "Nothing was chosen on these data: encoder and threshold are older than the study.",
    )


STUDIES = (
    _study("mer_bench", "emotion"),
    _study("punmemecn", "sentiment_type"),
    _study("toxicn_mm", "target"),
    _study("memeintent", "intent_verb"),
    _study("mquest", "toxicity"),
)
