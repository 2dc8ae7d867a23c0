"""The task of predicting how annotators vote: questions, replies and scores.

A model is asked for the percentage of annotators who choose each label (``ask=probability``), or
for its own label several times (``ask=samples``); the proportion of its answers is then compared
with that of the annotators. Scores by annotator group say with whom a model agrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import fmean

import numpy as np
from pydantic import JsonValue

from memantics.benchmarks.card import OptionCard
from memantics.benchmarks.dataset_answers import ask_labels, read_object
from memantics.benchmarks.dataset_config import DatasetConfig, LabelConfig
from memantics.benchmarks.dataset_reader import ConfiguredRelease, open_dataset_config, show_meme
from memantics.benchmarks.factories import (
    LETTERS,
    Prompts,
    letter_field,
    mean_score,
    mean_within,
    read_letter,
)
from memantics.benchmarks.plugin import TaskSetup
from memantics.core.errors import InputError, UnknownName
from memantics.core.records import Field, Form, Item, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed
from memantics.core.votes import Vote, distribute, find_majority, read_votes
from memantics.metrics.comparison import holm
from memantics.metrics.distributions import (
    binary_cross_entropy,
    cross_entropy,
    jensen_shannon,
    manhattan,
)
from memantics.metrics.information_contrast import SoftInformationContrast
from memantics.metrics.interval import bootstrap, sum_by_cluster
from memantics.metrics.paired import compare_means

VOTES = "_votes"
OPTIONS = (
    OptionCard(
        name="ask",
        help="ask for percentages, or sample answers",
        default="probability",
        choices=("probability", "samples"),
    ),
    OptionCard(name="samples", help="answers per meme, with ask=samples", default="10"),
)
# Limits of the bins of a plot of predicted against human proportions.
_BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_MOST_PLOTTED = 8
_INVALID = "an invalid answer counts as equal probabilities"
Distribution = Mapping[str, float]


def make_votes_task(config: DatasetConfig, setup: TaskSetup) -> Task:
    """Return the task of predicting the votes on a label."""
    name = setup.card.name.removesuffix(VOTES)
    label = config.label[name]
    sampled = setup.option("ask") == "samples"
    count = setup.read_whole("samples", 2, 100) if sampled else 0
    prompts = setup.prompts
    if sampled and not label.several:
        facts = {"text": prompts["given_text"]}
        used = Prompts(prompts["label"], prompts["again"], facts=facts)
        ask: Callable[[Item, str | None], Request] = used.ask
        recorded = {prompt.name: prompt.hash for prompt in used.all}
    else:
        kind = "several" if sampled else "probability"
        ask = partial(ask_labels, prompts, kind, _explain_sum(label))
        recorded = {n: prompts[n].hash for n in (kind, "given_text", "again_json")}
    return setup.make(
        partial(_list_items, config, name, setup, count),
        partial(_ask_sample, ask) if sampled else ask,
        partial(_read, label.several, sampled),
        partial(score_votes, label),
        recorded,
    )


def _explain_sum(label: LabelConfig) -> str:
    if label.several:
        return "An annotator may choose several labels."
    return "Every annotator chooses one label: the numbers add up to 100."


def _ask_sample(
    ask: Callable[[Item, str | None], Request], item: Item, complaint: str | None
) -> Request:
    """Ask with the seed of a sample; at temperature 0 all samples would be equal."""
    request = ask(item, complaint)
    sampling = Sampling(temperature=1.0, seed=int(item.tags["sample"]))
    return Request(request.messages, request.form, sampling, request.schema)


def _read(several: bool, sampled: bool, text: str, form: Form) -> JsonValue:
    """Return the predicted proportion of each label; for one sample, 0 or 1."""
    if sampled and not several:
        key = str(read_letter(text, form))
        return {option.text: float(option.key == key) for option in form.fields[0].options}
    given = read_object(text, form)
    if sampled:
        return {name: float(value is True) for name, value in given.items()}
    numbers: dict[str, float] = {}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unparsed(f"{name} is not a number")
        if not 0 <= value <= 100:
            raise Unparsed(f"{name} is not between 0 and 100")
        numbers[name] = float(value)
    total = sum(numbers.values())
    if several:
        return {name: value / 100 for name, value in numbers.items()}
    if not total:
        raise Unparsed("all percentages are 0")
    return {name: value / total for name, value in numbers.items()}


def _list_items(config: DatasetConfig, name: str, setup: TaskSetup, count: int) -> Iterator[Item]:
    """Yield one item per meme with votes, or ``count`` items if answers are sampled."""
    label = config.label[name]
    release = open_dataset_config(config, setup.need_source())
    voted = {split for found, split in release.tally.voted if found == name}
    if setup.split not in (*voted, "all") or not voted:
        known = sorted(release.tally.splits)
        raise UnknownName(f"split of {setup.name} with votes:", setup.split, known)
    classes = list_voted(release, name)
    fields = _make_fields(release, name, classes, sampled=bool(count))
    question = label.question or f"Which label fits: {label.what}?"
    reply = "key" if count and not label.several else "json"
    for meme in release.memes:
        if setup.split not in (meme.split, "all") or not meme.votes[name]:
            continue
        images, context = show_meme(meme, setup)
        form = Form(question, fields, context=context, reply=reply)  # type: ignore[arg-type]
        votes: list[JsonValue] = [vote.to_json() for vote in meme.votes[name]]
        item = Item(meme.id, meme.cluster, {"votes": votes, "labels": list(classes)}, form, images)
        if not count:
            yield item
        for place in range(1, count + 1):
            yield replace(item, id=f"{meme.id}#{place}", tags={"sample": str(place)})


def list_voted(release: ConfiguredRelease, name: str) -> list[str]:
    """Return every label that a vote gives, in the order of the config, else sorted."""
    label = release.config.label[name]
    given = label.values.values()
    if label.every_option:
        return list(dict.fromkeys(given))
    seen = {value for found, value in release.tally.votes if found == name}
    return [value for value in dict.fromkeys(given) if value in seen] or sorted(seen)


def _make_fields(
    release: ConfiguredRelease, name: str, classes: Sequence[str], sampled: bool
) -> tuple[Field, ...]:
    """Return the fields of a reply; the most frequent values are the mean votes."""
    tally, label = release.tally, release.config.label[name]
    memes = sum(n for (found, _), n in tally.voted.items() if found == name)
    rates = {value: tally.votes[name, value] / memes for value in classes}
    if sampled and not label.several:
        if len(classes) > len(LETTERS):
            raise InputError(
                f"{name} has {len(classes)} labels, too many for one question",
                hint="use --set ask=probability",
            )
        most = max(classes, key=lambda value: rates[value])
        return (letter_field(classes, LETTERS[classes.index(most)]),)
    if sampled:
        shares = {value: str(rates[value] > 0.5).lower() for value in classes}
        return tuple(Field(value, "boolean", majority=shares[value]) for value in classes)
    return tuple(
        Field(value, "integer", low=0, high=100, majority=str(round(100 * rates[value])))
        for value in classes
    )


@dataclass(frozen=True, slots=True)
class VotedMeme:
    """One meme with its votes, their distribution, and the predicted one (None: invalid).

    ``cluster`` is what intervals resample: the meme itself, unless rows are grouped.
    """

    id: str
    cluster: str
    votes: tuple[Vote, ...]
    gold: Distribution
    said: Distribution | None

    @property
    def filled(self) -> Distribution:
        """The predicted distribution; equal probabilities for an invalid answer."""
        return self.said or dict.fromkeys(self.gold, 1 / len(self.gold))


def gather_votes(outcomes: Sequence[Outcome], several: bool) -> list[VotedMeme]:
    """Join the samples of each meme: the mean of the valid answers is the prediction."""
    joined: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        item = outcome.item
        name = item.id.removesuffix(f"#{item.tags['sample']}") if "sample" in item.tags else item.id
        joined.setdefault(name, []).append(outcome)
    found = []
    for meme, some in joined.items():
        gold = some[0].item.gold
        facts = gold if isinstance(gold, dict) else {}
        votes = read_votes(facts.get("votes"))
        named = facts.get("labels")
        classes = [str(one) for one in named] if isinstance(named, list) else []
        answers = [o.value for o in some if o.status == "answered" and isinstance(o.value, dict)]
        said = {
            name: fmean(float(str(answer.get(name, 0.0))) for answer in answers)
            for name in classes
            if answers
        }
        total = math.fsum(said.values())
        if said and not several and total:
            said = {name: value / total for name, value in said.items()}
        cluster = some[0].item.group
        found.append(VotedMeme(meme, cluster, votes, distribute(votes, classes), said or None))
    return found


def score_votes(label: LabelConfig, outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return distances to the votes, agreement by annotator group, and the rows of the plot."""
    memes = gather_votes(outcomes, label.several)
    if not memes:
        return (Score("icm_soft_norm", None, 0),)
    clusters = [meme.cluster for meme in memes]
    entropy = binary_cross_entropy if label.several else cross_entropy
    rows = [*_score_contrast(label, memes)]
    for name, distance, bounds in (
        ("cross_entropy", entropy, None),
        ("jensen_shannon", _mean_divergence if label.several else jensen_shannon, (0.0, 1.0)),
        ("manhattan", manhattan, (0.0, float(len(memes[0].gold) if label.several else 2))),
    ):
        values = [distance(meme.gold, meme.filled) for meme in memes]
        row = Score(name, None, 0, note=_INVALID)
        rows.append(mean_within(row, values, clusters, bounds))
    if not label.several:
        rows.append(_score_majority(memes, label))
    rows += _score_groups(memes, label.several)
    rows += _list_plot(memes)
    return tuple(rows)


def _mean_divergence(gold: Distribution, said: Distribution) -> float:
    """Return the mean Jensen–Shannon divergence of the labels, each given or not given."""
    return fmean(
        jensen_shannon({"1": p, "0": 1 - p}, {"1": said.get(n, 0.0), "0": 1 - said.get(n, 0.0)})
        for n, p in gold.items()
    )


def _score_contrast(label: LabelConfig, memes: Sequence[VotedMeme]) -> Iterator[Score]:
    """Yield the normalised ICM-Soft and the plain one, with intervals over memes."""
    contrast = SoftInformationContrast([meme.gold for meme in memes], label.hierarchy)  # type: ignore[arg-type]
    said = contrast.values([meme.said or {} for meme in memes])
    best = contrast.values([meme.gold for meme in memes])
    size = len(memes)
    mean, top = sum(said) / size, sum(best) / size
    sums = sum_by_cluster(
        np.column_stack([said, best, np.ones(size)]), [meme.cluster for meme in memes]
    )

    def normalise(
        drawn: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.maximum(0.0, (drawn[:, 0] + drawn[:, 1]) / (2 * drawn[:, 1]))

    low, high = bootstrap(sums, normalise, bounds=None) or (None, None)
    norm = max(0.0, (mean + top) / (2 * top)) if top else None
    note = "an invalid answer counts as no label"
    yield Score("icm_soft_norm", norm, size, low, high, note=note)
    span = bootstrap(sums, lambda drawn: drawn[:, 0] / drawn[:, 2], bounds=None)
    low, high = span or (None, None)
    yield Score("icm_soft", mean, size, low, high, note=note)


def _score_majority(memes: Sequence[VotedMeme], label: LabelConfig) -> Score:
    """Return how often the most probable label is that of most annotators; ties are left out."""
    least = label.votes.at_least if label.votes else 0
    rows = []
    for meme in memes:
        gold = find_majority(meme.votes, several=False, at_least=least)
        if gold:
            said = meme.said or {"": 0.0}
            best = min(said, key=lambda name: (-round(said[name], 9), name))
            rows.append((meme.cluster, float(best == gold[0])))
    return mean_score("accuracy", [right for _, right in rows], [meme for meme, _ in rows])


def agree(vote: Vote, said: Distribution, several: bool) -> float:
    """Return the probability that a prediction gives to a vote.

    With several labels it is the mean over labels of being given or not given.

    >>> agree(Vote(("yes",)), {"yes": 0.7, "no": 0.3}, several=False)
    0.7
    >>> agree(Vote(("a",)), {"a": 0.5, "b": 0.25}, several=True)
    0.625
    """
    if several:
        return fmean(p if name in vote.values else 1 - p for name, p in said.items())
    return fmean(said.get(value, 0.0) for value in vote.values)


def _score_groups(memes: Sequence[VotedMeme], several: bool) -> Iterator[Score]:
    """Yield the agreement with each group of annotators, and tests between the groups."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    every: list[tuple[str, float]] = []
    clusters = {meme.id: meme.cluster for meme in memes}
    for meme in memes:
        for vote in meme.votes:
            value = agree(vote, meme.filled, several)
            every.append((meme.cluster, value))
            for attribute, group in vote.attributes.items():
                if group:
                    groups = values.setdefault(attribute, {}).setdefault(group, {})
                    groups.setdefault(meme.id, []).append(value)
    yield mean_score("vote_probability", [v for _, v in every], [meme for meme, _ in every])
    for attribute, by_group in sorted(values.items()):
        for group, by_meme in sorted(by_group.items()):
            flat = [(clusters[meme], value) for meme, some in by_meme.items() for value in some]
            yield mean_score(
                "vote_probability", [v for _, v in flat], [m for m, _ in flat], attribute, group
            )
        yield from _test_groups(attribute, by_group, clusters)


def _test_groups(
    attribute: str,
    by_group: Mapping[str, Mapping[str, Sequence[float]]],
    clusters: Mapping[str, str],
) -> Iterator[Score]:
    """Yield the difference of each group from the others on the same memes, with a test."""
    names = sorted(by_group)
    tested = []
    for name in names[:1] if len(names) == 2 else names if len(names) > 2 else ():
        ours, theirs = dict[str, float](), dict[str, float]()
        for meme, votes in by_group[name].items():
            others = [v for n in names if n != name for v in by_group[n].get(meme, ())]
            if others:
                ours[meme], theirs[meme] = fmean(votes), fmean(others)
        found = compare_means(
            [*theirs.values()], [*ours.values()], [clusters[meme] for meme in ours]
        )
        if found is not None:
            tested.append((name, len(ours), found))
    for (name, size, found), p in zip(tested, holm([f.p for _, _, f in tested]), strict=True):
        other = names[1] if len(names) == 2 else "others"
        told = f"p = {p:.3f}" + (f", Holm over {len(tested)} tests" if len(tested) > 1 else "")
        yield Score(
            "group_difference",
            found.difference,
            size,
            found.low,
            found.high,
            attribute,
            f"{name} − {other}",
            f"{told}; memes with votes of both",
        )


def _list_plot(memes: Sequence[VotedMeme]) -> Iterator[Score]:
    """Yield the mean predicted proportion of the memes whose human proportion is in a bin."""
    for name in list(memes[0].gold)[:_MOST_PLOTTED]:
        for low, high in pairwise(_BINS):
            inside = [
                meme
                for meme in memes
                if low <= round(meme.gold[name], 9) < high or (high == 1 and meme.gold[name] == 1)
            ]
            label = f"{100 * low:.0f}–{100 * high:.0f} %"
            said = [meme.filled.get(name, 0.0) for meme in inside]
            clusters = [meme.cluster for meme in inside]
            if inside:
                yield mean_score("predicted", said, clusters, f"annotators: {name}", label)
