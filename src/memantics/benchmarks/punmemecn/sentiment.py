"""Task 2: target and type of the sentiment of a pun meme."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic import JsonValue

from memantics.benchmarks.factories import most_frequent, proportion_score
from memantics.benchmarks.parsing import clean
from memantics.benchmarks.punmemecn import examples
from memantics.benchmarks.punmemecn.load import TARGETS, TYPES, PunMeme
from memantics.benchmarks.punmemecn.matching import find_objects, first_braces, read_choice
from memantics.benchmarks.punmemecn.official import asked_keys
from memantics.benchmarks.punmemecn.wording import Brief, describe
from memantics.core.records import Field, Form, Item, Option, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.classification import accuracy_by, macro, macro_interval

KEYS = ("accuracy", "target_accuracy", "type_accuracy")
NOTES = {
    "published": "annotators compared with the final label, each meme once; n counts votes",
    "same_items": "annotators compared with the final label, on the run's items; n counts votes",
    "leave_one_out": (
        "each annotator compared with the agreed label of the other two; n counts such votes"
    ),
    "model_leave_one_out": "the model compared with two agreeing annotators; n counts such pairs",
}

PEOPLE = {
    "same_items": "annotators",
    "leave_one_out": "annotators, each compared with the other two",
}


@dataclass(frozen=True, slots=True)
class SentimentJudgement:
    """A label and its reference label, both as "target-type"."""

    meme: str
    said: str
    wanted: str


def part(label: str, key: str) -> str:
    """Return the part of a label "target-type" that a metric uses.

    >>> [part("self-negative", key) for key in KEYS]
    ['self-negative', 'self', 'negative']
    """
    target, _, type_ = label.partition("-")
    return {"accuracy": label, "target_accuracy": target, "type_accuracy": type_}[key]


def score_human_eval(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    """Return annotators' scores, and the model's score, against leave-one-out labels.

    The votes of the annotators determine the gold label, so comparing a vote with it favours
    annotators. Instead, each vote and the model's answer are compared with the label on which the
    other two annotators agree. Items on which these two disagree are excluded, so compare these
    scores only with each other.
    """
    once = {outcome.item.group: outcome for outcome in outcomes}
    for key in KEYS:
        rows = {
            "published": _against_final(list(once.values())),
            "same_items": _against_final(outcomes),
            "leave_one_out": _against_others(outcomes, key, model=False),
            "model_leave_one_out": _against_others(outcomes, key, model=True),
        }
        for label, judgements in rows.items():
            yield _row(key, label, list(judgements))


def score_annotators(outcomes: Sequence[Outcome]) -> dict[str, tuple[Score, ...]]:
    """Return rows of annotators: scored against the final label, and against each other."""
    rows: dict[str, list[Score]] = {name: [] for name in PEOPLE.values()}
    for row in score_human_eval(outcomes):
        if row.label in PEOPLE and row.n:
            rows[PEOPLE[row.label]].append(replace(row, by="", label=""))
    return {name: tuple(scores) for name, scores in rows.items() if scores}


def _against_final(outcomes: Sequence[Outcome]) -> Iterator[SentimentJudgement]:
    for outcome in outcomes:
        final = outcome.item.tags["sentiment"]
        for vote in read_votes(outcome):
            yield SentimentJudgement(outcome.item.group, vote, final)


def _against_others(
    outcomes: Sequence[Outcome], key: str, *, model: bool
) -> Iterator[SentimentJudgement]:
    for outcome in outcomes:
        votes = read_votes(outcome)
        for place, vote in enumerate(votes):
            others = {part(other, key) for i, other in enumerate(votes) if i != place}
            if len(others) == 1 and len(votes) > 1:
                # Any of the other votes can be used, since they agree here.
                wanted = votes[place - 1]
                said = join_value(outcome) if model else vote
                yield SentimentJudgement(outcome.item.group, said, wanted)


def _row(key: str, label: str, judgements: list[SentimentJudgement]) -> Score:
    right = [part(j.said, key) == part(j.wanted, key) for j in judgements]
    return proportion_score(key, right, [j.meme for j in judgements], "humans", label, NOTES[label])


def read_votes(outcome: Outcome) -> list[str]:
    """Return the annotators' labels stored in the item."""
    return outcome.item.tags["votes"].split()


def join_value(outcome: Outcome) -> str:
    """Return the model's answer as one label; an invalid answer matches no label."""
    if outcome.status != "answered" or not isinstance(outcome.value, dict):
        return "-"
    return f"{outcome.value['target']}-{outcome.value['type']}"


NAMES = {
    "zh": {"target": "情感指向对象", "type": "情感类别"},
    "en": {"target": "target", "type": "type"},
}
WORDS: Mapping[str, Mapping[str, str]] = {
    "zh": {
        **dict(zip(TARGETS, ("自己", "双方", "他人"), strict=True)),
        **dict(zip(TYPES, ("积极", "中性", "消极"), strict=True)),
    },
    "en": {name: name for name in (*TARGETS, *TYPES)},
}
VALUES = {"target": TARGETS, "type": TYPES}
_MORE = {
    "self": ("自我", "本人", "发送者", "sender"),
    "both": ("两者", "双方都"),
    "other": ("对方", "别人", "其他人", "others"),
    "positive": ("正面", "正向"),
    "neutral": ("中立",),
    "negative": ("负面", "负向"),
}
ALIASES = {
    part: {name: (WORDS["zh"][name], name, *_MORE[name]) for name in names}
    for part, names in VALUES.items()
}
QUESTION = {
    "zh": "这张双关表情包表达的情感指向谁，是积极、中性还是消极？",
    "en": "Whom is the sentiment of this pun meme about, and is it positive, neutral or negative?",
}
SEED = 2025
_LEFT_OUT = frozenset(name for ids in examples.SENTIMENT.values() for name in ids)


def make(brief: Brief) -> Task:
    """Build the task ``sentiment``."""
    official = brief.read_official("sentiment")
    names = NAMES[brief.language]
    if official is not None:
        names = dict(zip(VALUES, asked_keys(official, len(VALUES)), strict=True))
    prompt = examples.prepare(
        "sentiment", brief, examples.SENTIMENT, partial(write_label, brief.language, names)
    )
    temperature = brief.read_number("temperature", 0, 2)
    task = brief.make(
        items=lambda: _items(brief, names),
        ask=lambda item, _complaint: _ask(prompt, item, temperature),
        parse=partial(_parse, brief),
        score=score,
        used=prompt.hashes,
    )
    return replace(task, people=score_annotators)


def write_label(language: str, names: Mapping[str, str], meme: PunMeme) -> str:
    """Return the correct answer in the requested format."""
    words = WORDS[language]
    label = {names["target"]: words[meme.target], names["type"]: words[meme.type]}
    return json.dumps(label, ensure_ascii=False)


def _items(brief: Brief, names: Mapping[str, str]) -> Iterator[Item]:
    puns = [
        meme
        for meme in brief.release.memes
        if meme.is_pun and not (brief.excludes and meme.id in _LEFT_OUT)
        # Only usable items are balanced; a copy without all images would otherwise be unbalanced.
        if brief.show(meme) is not None
    ]
    drawn = [(meme, 0) for meme in puns]
    repeats = brief.options["per_target"] != "auto" or not brief.published
    if brief.options["set"] == "balanced" and repeats:
        drawn = examples.balance(puns, _per_target(brief, puns))
    memes = [meme for meme, _ in drawn]
    fields = tuple(_field(brief.language, part, memes, names[part]) for part in VALUES)
    for meme, turn in drawn:
        image = brief.show(meme)
        if image is not None:
            yield Item(
                id=f"{meme.id}@{turn}" if turn else meme.id,
                group=meme.id,
                gold={"target": meme.target, "type": meme.type},
                form=Form(
                    QUESTION[brief.language],
                    fields,
                    language=brief.language,
                    reply="json",
                    context=describe(meme, brief.style),
                ),
                images=(image,),
                tags={
                    "target": meme.target,
                    "type": meme.type,
                    "sentiment": meme.sentiment,
                    "votes": " ".join(meme.votes),
                    "turn": str(turn),
                },
            )


def _per_target(brief: Brief, puns: Sequence[PunMeme]) -> int:
    """Return the number of items per target; sample data are too small for the paper's number.

    A user's set repeats puns only if this option gives a number.
    """
    if brief.options["per_target"] != "auto":
        return brief.read_whole("per_target", 1, 100_000)
    if brief.source is not None and brief.source.kind == "release":
        return examples.PER_TARGET
    return max((sum(m.target == target for m in puns) for target in TARGETS), default=1)


def _field(language: str, part: str, memes: Sequence[PunMeme], name: str = "") -> Field:
    """Return the form field for target or type; its majority is part of the most frequent label.

    The most frequent target together with the most frequent type may be a rare label.
    """
    words = WORDS[language]
    whole = most_frequent(meme.sentiment for meme in memes)
    majority = next((getattr(meme, part) for meme in memes if meme.sentiment == whole), None)
    return Field(
        name=name or NAMES[language][part],
        kind="choice",
        options=tuple(Option(words[name], words[name]) for name in VALUES[part]),
        majority=words[majority] if majority else None,
    )


def _ask(prompt: examples.MemePrompt, item: Item, temperature: float) -> Request:
    # Repetitions of a meme are identical requests. Only different seeds make them independent
    # samples for the server and the cache.
    turn = int(item.tags["turn"])
    seed = SEED + turn if temperature > 0 and turn else None
    return Request(prompt.write(item), item.form, Sampling(temperature=temperature, seed=seed))


def _parse(brief: Brief, text: str, form: Form) -> JsonValue:
    named = zip(VALUES, form.fields, strict=True)
    names = {part: field.name.casefold() for part, field in named}
    if brief.options["parser"] == "paper":
        return parse_as_published(text, names, form.language)
    return parse_sentiment(text, names, last=brief.style.reasons)


def parse_sentiment(text: str, names: Mapping[str, str], *, last: bool) -> dict[str, JsonValue]:
    """Return target and type from the JSON object that names both; after reasons, the last one.

    Without reasons, a reply with two different answers is invalid.

    >>> names = {"target": "target", "type": "type"}
    >>> parse_sentiment('Sure: {"target": "Self", "type": "消极"}', names, last=False)
    {'target': 'self', 'type': 'negative'}
    """
    found = []
    for reply in find_objects(clean(text)):
        folded = {key.strip().casefold(): value for key, value in reply.items()}
        if all(name in folded for name in names.values()):
            found.append({part: folded[name] for part, name in names.items()})
    if not found:
        raise Unparsed(f"no JSON object with {' and '.join(names.values())}")
    if not last and any(other != found[0] for other in found):
        raise Unparsed("several answers that differ")
    return {part: read_choice(found[-1][part], ALIASES[part], name) for part, name in names.items()}


def parse_as_published(text: str, names: Mapping[str, str], language: str) -> dict[str, JsonValue]:
    """Apply the official rule: the first braces as a Python literal with exactly the given words.

    The authors execute the literal as code; here it is parsed. In English they accept any words;
    here the words must be known labels.
    """
    value = first_braces(text.lower())
    words = {WORDS[language][name]: name for names_ in VALUES.values() for name in names_}
    read: dict[str, JsonValue] = {}
    for part, name in names.items():
        said = value.get(name) if isinstance(value, dict) else None
        known = words.get(said) if isinstance(said, str) else None
        if known not in VALUES[part]:
            raise Unparsed(f"{name} is not one of the words that were asked for")
        read[part] = known
    return read


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return the accuracy of target, type and both, means over classes, and annotators' scores."""
    memes = [outcome.item.group for outcome in outcomes]
    right = {
        "accuracy": [_says(o, "target") and _says(o, "type") for o in outcomes],
        "target_accuracy": [_says(o, "target") for o in outcomes],
        "type_accuracy": [_says(o, "type") for o in outcomes],
    }
    rows = [proportion_score(key, hits, memes) for key, hits in right.items()]
    for part in VALUES:
        kinds = [outcome.item.tags[part] for outcome in outcomes]
        hits = right[f"{part}_accuracy"]
        low, high = macro_interval(hits, kinds, memes) or (None, None)
        rows.append(
            Score(
                f"{part}_balanced",
                macro(accuracy_by(hits, kinds)),
                len(hits),
                low,
                high,
                note="unweighted mean of the class accuracies",
            )
        )
    for part, names in VALUES.items():
        for name in names:
            kept = [i for i, o in enumerate(outcomes) if o.item.tags[part] == name]
            hits = [right[f"{part}_accuracy"][i] for i in kept]
            rows.append(
                proportion_score(
                    f"{part}_accuracy", hits, [memes[i] for i in kept], by=part, label=name
                )
            )
    return (*rows, *score_human_eval(outcomes))


def _says(outcome: Outcome, part: str) -> bool:
    value = outcome.value if outcome.status == "answered" else None
    return isinstance(value, dict) and value[part] == outcome.item.tags[part]
