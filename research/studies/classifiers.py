"""Studies of classifiers for the labels of the releases, on group-disjoint splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import Source
from memantics.core.labels import LabelledMeme, name_group
from memantics.metrics.weighted import Case, MetricSpec
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.moderation.fast import fit_labels
from memantics.moderation.heads import find_preset
from memantics.moderation.held_out import Remembering
from memantics.moderation.labels import gather_examples
from research.data import read_hateful, tag_length
from research.protocol import DATA, Claim, Row, Study

ENCODER = Remembering(SentenceEncoder())
EXPOSURE = "Five folds over all rows were evaluated once before the test set was locked."
# Names of groups that English hate speech targets. On memes that name a group, the topic alone
# predicts the label less well.
_GROUP = re.compile(
    r"\b(?:muslims?|islam\w*|jews?|jewish|christians?|blacks?|whites?|asians?|chinese|mexicans?"
    r"|immigrants?|refugees?|africans?|arabs?|indians?|women|woman|girls?|wife|feminis\w*|gays?"
    r"|lesbians?|trans\w*|homosexual\w*|disab\w*|retard\w*|race|racis\w*|terroris\w*|slaves?)\b"
)


def read_label(name: str, label: str) -> list[Row[LabelledMeme]]:
    """Read the memes of a release that have a value for a label."""
    benchmark = find_benchmark(name)
    release = benchmark.open(Source("release", DATA / name))
    return [
        Row(
            one.id,
            one.group or name_group(one.text) or one.id,
            one,
            {"label": one.labels[0], "length": tag_length(one.text)},
        )
        for one in benchmark.plugin.labels[label].read(release)
        if one.text.strip()
    ]


def judge(
    name: str, preset: str, known: Sequence[Row[LabelledMeme]], asked: Sequence[Row[LabelledMeme]]
) -> dict[str, list[Case]]:
    """Train on the known rows and predict the others; rare labels are merged into ``other``."""
    settings = find_preset(preset)
    embedder = ENCODER if settings.dense else None
    classifier = fit_labels(gather_examples([r.content for r in known], name), settings, embedder)
    classes = classifier.detector.labels.classes
    rows = {row.id: row for row in asked}
    found = gather_examples([row.content for row in asked], name, classes=classes)
    said = classifier.detector.classify(found.examples, embedder)
    return {
        "label": [
            Case(
                one.id,
                rows[one.id].group,
                found.gold[place][0],
                one.label,
                one.probability,
                rows[one.id].tags,
            )
            for place, one in enumerate(said)
        ]
    }


def judge_hate(
    preset: str, known: Sequence[Row[dict[str, object]]], asked: Sequence[Row[dict[str, object]]]
) -> dict[str, list[Case]]:
    """Predict from the text only whether memes are hateful, with heads for group and attack."""
    settings = find_preset(preset)
    embedder = ENCODER if settings.dense else None
    data = gather_examples(map(_label_hate, known), "hateful_memes", several=True)
    classifier = fit_labels(data, settings, embedder).detector
    examples = gather_examples(
        map(_label_hate, asked), "hateful_memes", several=True, classes=classifier.labels.classes
    ).examples
    cases = []
    for row, said in zip(asked, classifier.classify(examples, embedder), strict=True):
        hateful = "hateful" if row.content["gold_hate"] == ["hateful"] else "not hateful"
        told = "hateful" if "hateful" in said.labels else "not hateful"
        group = "named" if _GROUP.search(str(row.content["text"]).lower()) else "not named"
        tags = {**row.tags, "group": group}
        cases.append(Case(row.id, row.group, hateful, told, said.chances["hateful"], tags))
    named = [case for case in cases if case.tags["group"] == "named"]
    return {"text only": cases, "text only, group named": named}


def _label_hate(row: Row[dict[str, object]]) -> LabelledMeme:
    own = row.content
    labels = [name for name in ("gold_pc", "gold_attack") for name in _list(own[name])]
    held = ["hateful"] if own["gold_hate"] == ["hateful"] else []
    return LabelledMeme(row.id, str(own["text"]), (*held, *labels), row.group)


def _list(value: object) -> list[str]:
    return [str(one) for one in value if "empty" not in str(one)] if isinstance(value, list) else []


def _study(name: str, label: str, preset: str, exposure: str = EXPOSURE) -> Study[LabelledMeme]:
    return Study(
        f"classifier {name}/{label}, {preset}",
        name,
        partial(read_label, name, label),
        partial(judge, f"{name}/{label}", preset),
        (
            Claim("label", MetricSpec("accuracy")),
            Claim("label", MetricSpec("macro_f1")),
            Claim("label", MetricSpec("calibration_error")),
        ),
        exposure,
    )


def _study_hate(preset: str) -> Study[dict[str, object]]:
    return Study(
        f"classifier hateful_memes, {preset}",
        "hateful_memes",
        read_hateful,  # type: ignore[arg-type]
        partial(judge_hate, preset),
        (
            Claim("text only", MetricSpec("auroc", "hateful"), 0.64),
            Claim("text only, group named", MetricSpec("auroc", "hateful"), 0.64),
            Claim("text only", MetricSpec("calibration_error", "hateful")),
        ),
        "No test row was seen. A fifth of the texts occur with both labels.",
    )


STUDIES = (
    _study("mer_bench", "emotion", "words"),
    _study("mer_bench", "emotion", "words-full"),
    _study("punmemecn", "sentiment_type", "fast"),
    _study("punmemecn", "sentiment_type", "full"),
    _study("punmemecn", "sentiment_target", "fast"),
    _study("punmemecn", "sentiment_target", "full"),
    _study("memeintent", "intent_verb", "words"),
    _study("mquest", "toxicity", "words", "Only the label counts were seen."),
    _study("toxicn_mm", "target", "fast"),
    _study_hate("words"),
    _study_hate("words-full"),
)
