"""Export for the human study of the MER-Bench paper, and comparison of judge models with people.

Randomly sampled outputs (100 in the paper) are rated blind on the judge's eight dimensions by the
workflow ``rate-edits``: six ratings from 1 to 6, the layout, and the feeling. Then every judge
model, or every configuration of one, is compared with people. The comparison gives the distance of
their ratings, and how often a judge is the nearest (win rate, the paper's figure 4).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from memantics.benchmarks.factories import mean_score, spanned
from memantics.benchmarks.mer_bench.judgement import EditJudgement
from memantics.benchmarks.plugin import (
    KEY,
    QUEUE,
    HumanExport,
    copy_image,
    name_origin,
    read_runs,
    write_apart,
)
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import InputError
from memantics.core.labels import Preference
from memantics.core.queue import AggregatedAnnotation, QueueCard, QueueItem, Shown, write_queue
from memantics.core.records import Item, Score
from memantics.core.rundir import last_answers, read_items
from memantics.metrics.agreement import krippendorff_alpha
from memantics.metrics.interval import clustered_wilson

TASK, WORKFLOW, PAIRS = "mer_bench/judge", "rate-edits", "pairs.jsonl"
LIKERT = ("vgq", "vea", "tgq", "tea", "hgq", "pes")
DIMENSIONS = (*LIKERT, "lc", "ppe")
_HIGHEST = 6


class PairRow(BaseModel):
    """The judged pair (source and edit) that a queue item shows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    item: str


def export_outputs(runs: Sequence[Path], out: Path, seed: int = 0, memes: int = 100) -> HumanExport:
    """Write a rating queue of edits that every run has judged, its hidden key, and the pairs."""
    facts = read_runs(runs, TASK)
    items = {line.item.id: line.item for line in read_items(runs[0])}
    shared = set(items).intersection(*(read_judgements(run) for run in runs))
    if not shared:
        raise InputError("no output is judged in all of these runs", hint="give finished runs")
    drawn = random.Random(seed).sample(sorted(shared), min(memes, len(shared)))
    named = {f"r{number:04}": items[name] for number, name in enumerate(drawn, 1)}
    editors = {name: item.tags["editor"] for name, item in named.items()}
    write_apart(
        out / KEY, [name_origin(name, editor, editor, {}) for name, editor in editors.items()]
    )
    write_apart(out / PAIRS, [{"id": name, "item": item.id} for name, item in named.items()])
    card = QueueCard(title="Edited memes", workflow=WORKFLOW, warning=facts[0].warning, origin=TASK)
    rows = [_item(name, item, out / QUEUE) for name, item in named.items()]
    count = write_queue(out / QUEUE, card, rows)
    shown = len({item.group for item in named.values()})
    return HumanExport(out / QUEUE, out / KEY, shown, len(set(editors.values())), count)


def _item(name: str, item: Item, queue: Path) -> QueueItem:
    """Return one output to rate, without the name of its editor and without a judge's rating."""
    pictures = zip(item.images, ("source", "edited"), strict=True)
    copied = (copy_image(image.path, queue, f"{name}-{what}") for image, what in pictures)
    return QueueItem(
        id=name,
        group=item.group,
        images=[image for image in copied if image],
        shown=[
            Shown(label="Feeling of the source", value=item.form.context["source_emotion"]),
            Shown(label="Target feeling", value=item.form.context["target_emotion"]),
        ],
    )


def read_judgements(run: Path) -> dict[str, EditJudgement]:
    """Return the judgements of a run by pair of source and edit, without invalid replies."""
    return {
        name: EditJudgement.model_validate(answer.value)
        for name, answer in last_answers(run).items()
        if isinstance(answer.value, dict)
    }


def read_people(
    queue: Path, annotations: Sequence[AggregatedAnnotation]
) -> dict[str, dict[str, list[float]]]:
    """Return human ratings by pair and dimension, from 0 to 1; ``pairs.jsonl`` maps items to pairs.

    The feeling is 1 if it equals the target emotion, as for the judge.
    """
    path = queue.parent / PAIRS
    rows = [conform(PairRow, value, path, row) for row, value in read_jsonl(path)]
    pairs = {row.id: row.item for row in rows}
    found: dict[str, dict[str, list[float]]] = {}
    for annotation in annotations:
        ratings = found.setdefault(pairs[annotation.item], {})
        for vote in annotation.annotations:
            for name, value in vote.values.items():
                if name in LIKERT and isinstance(value, int | float):
                    ratings.setdefault(name, []).append((value - 1) / (_HIGHEST - 1))
                elif name == "lc":
                    ratings.setdefault(name, []).append(float(value == "yes"))
                elif name == "label":
                    ratings.setdefault("label", []).append(float(_LABELS.index(str(value))))
    return found


_LABELS = ("angry", "sad", "tense", "bored", "calm", "happy", "excited", "relaxed", "other")


@dataclass(frozen=True, slots=True)
class JudgeStudy:
    """The ratings of judge models and people on the same outputs.

    ``judges`` gives, by name and pair, the eight dimensions from 0 to 1. ``people`` gives, by pair
    and dimension, each rater's value on the same scale. ``memes`` gives the meme of each pair.
    """

    judges: Mapping[str, Mapping[str, Mapping[str, float]]]
    people: Mapping[str, Mapping[str, Sequence[float]]]
    memes: Mapping[str, str]

    def mean(self, pair: str, dimension: str) -> float | None:
        """Return the mean of human ratings; None if there is none."""
        said = self.people.get(pair, {}).get(dimension, ())
        return fsum(said) / len(said) if said else None


def make_study(
    runs: Mapping[str, Path], people: Mapping[str, Mapping[str, Sequence[float]]]
) -> JudgeStudy:
    """Combine the judgements of runs, by judge name, with human ratings."""
    items = {line.item.id: line.item for run in runs.values() for line in read_items(run)}
    targets = {name: item.tags["target"] for name, item in items.items()}
    judges = {
        judge: {
            pair: to_dimensions(judgement, targets[pair])
            for pair, judgement in read_judgements(run).items()
        }
        for judge, run in runs.items()
    }
    said = {
        pair: {
            **{name: list(ratings) for name, ratings in given.items() if name != "label"},
            "ppe": [
                float(_LABELS[int(label)] == targets[pair]) for label in given.get("label", ())
            ],
        }
        for pair, given in people.items()
        if pair in targets
    }
    return JudgeStudy(judges, said, {name: item.group for name, item in items.items()})


def to_dimensions(judgement: EditJudgement, target: str) -> dict[str, float]:
    """Return the eight ratings of a judgement on the scale from 0 to 1."""
    rated = {name: (getattr(judgement, name) - 1) / 4 for name in LIKERT}
    return {**rated, "lc": float(judgement.lc), "ppe": float(judgement.label == target)}


def compare_with_people(study: JudgeStudy) -> Iterator[Score]:
    """Return, by judge and dimension, the distance to human ratings (0 to 1) and the agreement."""
    for judge, said in study.judges.items():
        for dimension in DIMENSIONS:
            both = [
                (judged[dimension], mean, pair)
                for pair, judged in said.items()
                if (mean := study.mean(pair, dimension)) is not None
            ]
            apart = [abs(one - other) for one, other, _ in both]
            groups = [study.memes[pair] for _, _, pair in both]
            yield mean_score("apart", apart, groups, f"people, {judge}", dimension)
            alpha = krippendorff_alpha([[one, other] for one, other, _ in both], "interval")
            yield Score("alpha", alpha, len(both), by=f"people, {judge}", label=dimension)


def agree_among_people(study: JudgeStudy) -> Iterator[Score]:
    """Return Krippendorff's alpha of the human raters, by dimension."""
    most = max((len(ratings) for by in study.people.values() for ratings in by.values()), default=0)
    for dimension in DIMENSIONS:
        rows = [
            [*ratings, *[None] * (most - len(ratings))]
            for by in study.people.values()
            if (ratings := list(by.get(dimension, ())))
        ]
        yield Score(
            "alpha", krippendorff_alpha(rows, "interval"), len(rows), by="raters", label=dimension
        )


def agree_among_judges(study: JudgeStudy) -> Iterator[Score]:
    """Return alpha and SD of several judges, or of repeated runs of one, on the same outputs.

    ``sd`` is the square root of the mean variance over judges of the same output, on the scale 0 to
    1.
    """
    names = list(study.judges)
    shared = sorted(
        set.intersection(*(set(judged) for judged in study.judges.values())) if names else ()
    )
    for dimension in DIMENSIONS if len(names) > 1 else ():
        rows = [[study.judges[name][pair][dimension] for name in names] for pair in shared]
        yield Score(
            "alpha", krippendorff_alpha(rows, "interval"), len(rows), by="judges", label=dimension
        )
        variances = [_variance(row) for row in rows]
        sd = (fsum(variances) / len(variances)) ** 0.5 if variances else None
        yield Score("sd", sd, len(rows), by="judges", label=dimension)


def _variance(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def win_rates(study: JudgeStudy) -> tuple[Score, ...]:
    """Return how often each judge's rating is nearer to human ratings than another judge's.

    The comparison covers all outputs, dimensions and opponents; a tie is half a win for both.
    """
    wins = dict.fromkeys(study.judges, 0.0)
    games: Counter[str] = Counter()
    for one, other in combinations(study.judges, 2):
        for pair in study.judges[one].keys() & study.judges[other].keys():
            for dimension in DIMENSIONS:
                mean = study.mean(pair, dimension)
                if mean is None:
                    continue
                a, b = (abs(study.judges[name][pair][dimension] - mean) for name in (one, other))
                games.update((one, other))
                won = 0.5 if abs(a - b) < 1e-9 else float(a < b)
                wins[one] += won
                wins[other] += 1 - won
    return tuple(
        Score(
            "win_rate", wins[name] / games[name] if games[name] else None, games[name], label=name
        )
        for name in study.judges
    )


def agree_with_choices(
    choices: Sequence[Preference], judges: Mapping[str, Mapping[tuple[str, int], float]]
) -> Iterator[Score]:
    """Return, by judge, how often it rates the version chosen by a person above another one.

    ``judges`` gives each judge's scores by choice and number of the version. Ties are excluded and
    counted in the note.
    """
    for name, rated in judges.items():
        hits, memes, ties = [], [], 0
        for choice in choices:
            for chosen, other in choice.pairs():
                one, two = rated.get((choice.id, chosen)), rated.get((choice.id, other))
                if one is None or two is None:
                    continue
                if abs(one - two) < 1e-9:
                    ties += 1
                else:
                    hits.append(one > two)
                    memes.append(choice.meme)
        share = fsum(hits) / len(hits) if hits else None
        score = Score("agreement", share, len(hits), label=name, note=f"{ties} ties")
        yield spanned(score, clustered_wilson(hits, memes))
