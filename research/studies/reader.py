"""Studies of ``embedded/reader`` and trivial baselines, on the texts of memes without images."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import orjson

from memantics.benchmarks.factories import LETTERS, letter_field
from memantics.benchmarks.punmemecn import detection, sentiment
from memantics.benchmarks.punmemecn.chat import QUESTION as CHAT
from memantics.benchmarks.punmemecn.chat import write_history
from memantics.benchmarks.registry import find_benchmark
from memantics.benchmarks.toxicn_mm import plugin as harm_task
from memantics.core.data import Source
from memantics.core.labels import name_group
from memantics.core.records import Field, Form, Option, Request
from memantics.metrics.text import rouge_l
from memantics.metrics.weighted import Case, MetricSpec
from memantics.models.baseline import SENTENCES
from memantics.models.kinds import ModelSettings, open_model
from research.data import tag_length
from research.protocol import DATA, Claim, Row, Study
from research.studies.classifiers import read_label

READER, MAJORITY = "reader", "majority class"
LONGEST, RANDOM = "longest option", "random option"
ALWAYS = "first option"


@dataclass(frozen=True, slots=True)
class Asked:
    """A form with the text of the meme in its context, the gold value and reference texts."""

    form: Form
    gold: str
    references: tuple[str, ...] = ()


Rows = list[Row[Asked]]


@cache
def open_reader() -> Any:
    """Open the reader without classifiers."""
    return open_model("embedded/reader", ModelSettings())


def reply(form: Form) -> str:
    """Return the reply of the reader; the values of a JSON reply are joined."""
    text: str = open_reader().reply(Request((), form))
    return "-".join(map(str, orjson.loads(text).values())) if form.reply == "json" else text


def answer(known: Sequence[Row[Asked]], asked: Sequence[Row[Asked]]) -> dict[str, list[Case]]:
    """Answer by the reader and by four trivial baselines."""
    common = Counter(row.content.gold for row in known).most_common(1)[0][0]
    cases: dict[str, list[Case]] = {one: [] for one in (READER, MAJORITY, LONGEST, RANDOM, ALWAYS)}
    for row in asked:
        form = row.content.form
        keys = _list_keys(form)
        said = {
            READER: reply(form),
            MAJORITY: common,
            LONGEST: max(form.fields[0].options, key=lambda option: len(option.text)).key,
            RANDOM: random.Random(row.id).choice(keys),
            ALWAYS: keys[0],
        }
        for name, label in said.items():
            cases[name].append(Case(row.id, row.group, row.content.gold, label, None, row.tags))
    return cases


def _list_keys(form: Form) -> list[str]:
    keys = [""]
    for field in form.fields:
        keys = [f"{key}-{option.key}".strip("-") for key in keys for option in field.options]
    return keys


def write(known: Sequence[Row[Asked]], asked: Sequence[Row[Asked]]) -> dict[str, list[Case]]:  # noqa: ARG001
    """Compute ROUGE-L of the reader's sentence and of one constant sentence."""
    cases: dict[str, list[Case]] = {READER: [], "constant sentence": []}
    for row in asked:
        said = {READER: reply(row.content.form), "constant sentence": SENTENCES["en"]}
        for name, text in said.items():
            value = max(rouge_l(text, reference).f1 for reference in row.content.references)
            cases[name].append(Case(row.id, row.group, "", None, value, row.tags))
    return cases


def _form(question: str, fields: tuple[Field, ...], text: str, language: str = "zh") -> Form:
    return Form(question, fields, language, context={"text": text})


def _choice(name: str, *names: str) -> Field:
    return Field(name, "choice", tuple(Option(one, one) for one in names))


def _open(name: str) -> Any:
    return find_benchmark(name).open(Source("release", DATA / name))


@cache
def read_detection() -> Rows:
    """Read the task: is a caption of PunMemeCN a pun?"""
    field = _choice("label", "双关", "非双关")
    return [
        Row(
            meme.id,
            meme.group,
            Asked(
                _form(detection.QUESTION["zh"], (field,), meme.caption),
                "双关" if meme.is_pun else "非双关",
            ),
            {"length": tag_length(meme.caption)},
        )
        for meme in _open("punmemecn").memes
    ]


@cache
def read_sentiment() -> Rows:
    """Read target and sentiment of each pun as one label."""
    words, names = sentiment.WORDS["zh"], sentiment.NAMES["zh"]
    fields = tuple(
        _choice(names[part], *(words[value] for value in values))
        for part, values in sentiment.VALUES.items()
    )
    return [
        Row(
            meme.id,
            meme.group,
            Asked(
                replace(_form(sentiment.QUESTION["zh"], fields, meme.caption), reply="json"),
                f"{words[meme.target]}-{words[meme.type]}",
            ),
            {"target": meme.target, "type": meme.type},
        )
        for meme in _open("punmemecn").memes
        if meme.is_pun
    ]


def read_chats(level: str) -> Rows:
    """Read the task: which of four captions answers a chat?"""
    release = _open("punmemecn")
    memes_by_id, rows = release.by_id(), []
    for chat in release.chats(level):
        memes = [chat.correct, *(one for _, one in chat.distractors)]
        if not all(each in memes_by_id for each in memes):
            continue
        random.Random(f"{chat.id}, order of options").shuffle(memes)
        field = letter_field([memes_by_id[meme].caption for meme in memes])
        form = Form(CHAT["zh"], (field,), "zh", context={"history": write_history(chat)})
        gold = LETTERS[memes.index(chat.correct)]
        group = memes_by_id[chat.correct].group
        rows.append(Row(chat.id, group, Asked(form, gold), {"topic": chat.topic}))
    return rows


def read_harm(label: str) -> Rows:
    """Read one label of ToxiCN MM: harm, type or target."""
    task = {"harm": "detection"}.get(label, label)
    if label == "type":
        keys = {one: letter for letter, one in harm_task.LETTERS.items()}
        texts = harm_task.TYPES["zh"]
    else:
        keys = dict((harm_task.VERDICTS if label == "harm" else harm_task.TARGET_NAMES)["zh"])
        texts = keys
    kept = [key for key in keys if label != "target" or key != harm_task.NOBODY]
    field = Field(task, "choice", tuple(Option(keys[each], texts[each]) for each in kept))
    question = harm_task.QUESTIONS["zh"][task]
    return [
        Row(
            row.id,
            row.group,
            Asked(
                _form(question, (field,), row.content.text),
                keys[row.content.labels[0]],
            ),
            row.tags,
        )
        for row in read_label("toxicn_mm", label)
    ]


@cache
def read_questions() -> Rows:
    """Read the questions of M-QUEST with the printed text from the knowledge bases."""
    release = _open("mquest")
    texts = {row.id: row.content.text for row in read_label("mquest", "toxicity")}
    groups = {row.id: row.group for row in read_label("mquest", "toxicity")}
    return [
        Row(
            question.id,
            groups.get(question.meme, question.meme),
            Asked(
                Form(
                    question.question,
                    (letter_field(question.options),),
                    context={"text": texts.get(question.meme, "")},
                ),
                LETTERS[question.answer],
            ),
            {"dimension": question.dimension},
        )
        for question in release.questions("ten")
        if question.answer is not None
    ]


@cache
def read_intents() -> Rows:
    """Read the intents of MemeIntent with the printed text."""
    field = (Field("intent", "text"),)
    question = "What does the author do with this meme?"
    return [
        Row(
            meme.id,
            name_group(meme.text) or meme.id,
            Asked(
                replace(_form(question, field, meme.text, "en"), reply="text"),
                "",
                tuple(meme.intents),
            ),
            {"length": tag_length(meme.text)},
        )
        for meme in _open("memeintent").memes()
    ]


def _few(read: Callable[[], Rows], most: int = 750) -> Callable[[], Rows]:
    """Limit the number of rows; whole groups are selected by hash."""

    def take() -> Rows:
        order = sorted(read(), key=lambda row: hashlib.sha256(row.group.encode()).hexdigest())
        return order[:most]

    return take


def _study(name: str, read: Callable[[], Rows], metric: MetricSpec, *beside: str) -> Study[Asked]:
    data = name.partition("/")[0]
    judge = write if metric.metric == "mean" else answer
    claims = tuple(Claim(one, metric) for one in (READER, *beside))
    return Study(f"reader {name}", data, read, judge, claims, _EXPOSURE)


_EXPOSURE = "Some rules were chosen on groups that are in the test set now."


def _list_studies() -> Iterator[Study[Asked]]:
    share, macro, pun = MetricSpec("accuracy"), MetricSpec("macro_f1"), MetricSpec("f1", "双关")
    yield _study("memeintent/intent", read_intents, MetricSpec("mean"), "constant sentence")
    yield _study("mquest/qa", _few(read_questions), share, LONGEST, MAJORITY, RANDOM)
    yield _study("punmemecn/detection", _few(read_detection), pun, ALWAYS, RANDOM)
    yield _study("punmemecn/sentiment", read_sentiment, share, MAJORITY, RANDOM)
    for level in ("easy", "hard"):
        read = _few(partial(read_chats, level))
        yield _study(f"punmemecn/chat, {level}", read, share, LONGEST)
    for task, label in (("detection", "harm"), ("type", "type"), ("target", "target")):
        yield _study(f"toxicn_mm/{task}", _few(partial(read_harm, label)), macro, MAJORITY, RANDOM)


STUDIES = tuple(_list_studies())
