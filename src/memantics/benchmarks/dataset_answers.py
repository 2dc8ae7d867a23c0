"""Tasks of data sets with several labels per meme, and with free-text answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from pydantic import JsonValue

from memantics.benchmarks.dataset_config import DatasetConfig, LabelConfig
from memantics.benchmarks.dataset_reader import open_dataset_config, open_labelled, show_meme
from memantics.benchmarks.factories import mean_score, mean_within
from memantics.benchmarks.parsing import clean, find_object, strip_marks
from memantics.benchmarks.plugin import TaskSetup
from memantics.core.errors import UnknownName
from memantics.core.prompt import Prompt
from memantics.core.records import Field, Form, Item, Message, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.classification import f1_by_class, macro_f1
from memantics.metrics.information_contrast import InformationContrast, hierarchical_f1
from memantics.metrics.interval import bootstrap, bootstrap_items, sum_by_cluster
from memantics.metrics.rounding import Floats
from memantics.metrics.text import best, rouge_l


def ask_labels(
    prompts: Mapping[str, Prompt], kind: str, rule: str, item: Item, complaint: str | None
) -> Request:
    """Return a request for a JSON object with one value per label."""
    names = [field.name for field in item.form.fields]
    known = {
        "question": item.form.question,
        "names": "\n".join(f"- {name}" for name in names),
        "letters": ", ".join(names),
        "rule": rule,
        "complaint": complaint or "",
    }
    used = [prompts[kind], *([prompts["again_json"]] if complaint is not None else [])]
    parts = [prompt.fill(**{n: known[n] for n in prompt.placeholders}) for prompt in used]
    if text := item.form.context.get("text"):
        parts.insert(0, prompts["given_text"].fill(text=text))
    message = Message("user", (*item.images, "\n\n".join(parts)))
    return Request((message,), item.form, Sampling(temperature=0.0))


def read_object(text: str, form: Form) -> dict[str, JsonValue]:
    """Return the value of each label in a JSON reply; spelling of keys may differ in case."""
    found = {str(key).casefold().strip(): value for key, value in find_object(text).items()}
    names = [field.name for field in form.fields]
    missing = [name for name in names if name.casefold() not in found]
    if missing:
        raise Unparsed(f"no value for {', '.join(missing[:3])}" if found else "no JSON object")
    return {name: found[name.casefold()] for name in names}


def make_several_task(config: DatasetConfig, setup: TaskSetup) -> Task:
    """Return the task of naming all labels of a meme."""
    label, prompts = config.label[setup.card.name], setup.prompts
    return setup.make(
        partial(_list_several, config, setup),
        partial(ask_labels, prompts, "several", ""),
        _read_several,
        partial(score_several, label),
        {name: prompts[name].hash for name in ("several", "given_text", "again_json")},
    )


def _list_several(config: DatasetConfig, setup: TaskSetup) -> Iterator[Item]:
    name = setup.card.name
    release, label = open_labelled(config, setup, name), config.label[name]
    classes = release.list_classes(name)
    tally = release.tally
    # A split without any label is not labelled: its memes have no gold answer.
    labelled = {split for c, split, _ in tally.labels if c == name}
    fields = []
    for value in classes:
        count = sum(n for (c, _, v), n in tally.labels.items() if (c, v) == (name, value))
        majority = str(2 * count > tally.memes).lower()
        fields.append(Field(value, "boolean", majority=majority, positive="true"))
    question = label.question or f"Which labels fit: {label.what}?"
    for meme in release.memes:
        if setup.split in (meme.split, "all") and meme.split in labelled:
            images, context = show_meme(meme, setup)
            form = Form(question, tuple(fields), context=context, reply="json")
            gold: list[JsonValue] = list(meme.labels[name])
            yield Item(meme.id, meme.cluster, gold, form, images)


def _read_several(text: str, form: Form) -> JsonValue:
    given = read_object(text, form)
    for name, value in given.items():
        if not isinstance(value, bool):
            raise Unparsed(f"{name} is neither true nor false")
    return [name for name, value in given.items() if value]


def _list(value: JsonValue) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def score_several(label: LabelConfig, outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro-F1, micro-F1, and with a hierarchy hierarchical F1; and ICM."""
    gold = [_list(outcome.item.gold) for outcome in outcomes]
    said = [_list(o.value) if o.status == "answered" else [] for o in outcomes]
    names = sorted({name for some in (*gold, *said) for name in some})
    size = len(outcomes)
    if not outcomes or not names:
        return (Score("macro_f1", None, size), Score("micro_f1", None, size))
    ids = [outcome.item.group for outcome in outcomes]
    cells = np.array(
        [
            [x for n in names for x in (n in g and n in s, n in s, n in g)]
            for g, s in zip(gold, said, strict=True)
        ],
        float,
    )
    sums = sum_by_cluster(cells, ids)

    def macro(drawn: Floats) -> Floats:
        return macro_f1(drawn[:, ::3], drawn[:, 1::3], drawn[:, 2::3])

    def micro(drawn: Floats) -> Floats:
        return f1_by_class(*(drawn[:, n::3].sum(axis=1) for n in range(3)))

    rows = []
    for key, statistic in (("macro_f1", macro), ("micro_f1", micro)):
        low, high = bootstrap(sums, statistic) or (None, None)
        value = float(statistic(cells.sum(axis=0)[None])[0])
        rows.append(Score(key, value, size, low, high))
    tree = label.hierarchy
    if tree:
        pairs = list(zip(gold, said, strict=True))
        value_or_none = hierarchical_f1(gold, said, tree)  # type: ignore[arg-type]
        span = bootstrap_items(
            ids,
            lambda places: hierarchical_f1(
                [pairs[p][0] for p in places],
                [pairs[p][1] for p in places],
                tree,  # type: ignore[arg-type]
            ),
            resamples=500,
        )
        low, high = span or (None, None)
        rows.insert(0, Score("hierarchical_f1", value_or_none, size, low, high))
    contrast = InformationContrast(gold, tree)  # type: ignore[arg-type]
    mean = contrast.score(said)
    rows.append(Score("icm_norm", contrast.normalise(mean), size))
    rows.append(mean_within(Score("icm", None, 0), contrast.values(said), ids, None))
    return tuple(rows)


def make_text_task(config: DatasetConfig, setup: TaskSetup) -> Task:
    """Return a task with a free-text answer, scored against the texts of annotators."""
    prompts = setup.prompts
    return setup.make(
        partial(_list_texts, config, setup),
        partial(_ask_text, prompts),
        _read_sentence,
        _score_texts,
        {name: prompts[name].hash for name in ("free_text", "given_text", "again_text")},
    )


def _list_texts(config: DatasetConfig, setup: TaskSetup) -> Iterator[Item]:
    name = setup.card.name
    task = config.free_text[name]
    release = open_dataset_config(config, setup.need_source())
    if setup.split not in (*release.tally.splits, "all"):
        raise UnknownName(f"split of {setup.name}:", setup.split, sorted(release.tally.splits))
    form = Form(task.question, (Field("answer", "text"),), reply="text")
    for meme in release.memes:
        if setup.split in (meme.split, "all") and meme.texts[name]:
            images, context = show_meme(meme, setup)
            gold: list[JsonValue] = list(meme.texts[name])
            own = Form(form.question, form.fields, context=context, reply="text")
            yield Item(meme.id, meme.cluster, gold, own, images)


def _ask_text(prompts: Mapping[str, Prompt], item: Item, complaint: str | None) -> Request:
    parts = [prompts["free_text"].fill(question=item.form.question)]
    if text := item.form.context.get("text"):
        parts.insert(0, prompts["given_text"].fill(text=text))
    if complaint is not None:
        parts.append(prompts["again_text"].fill(complaint=complaint))
    message = Message("user", (*item.images, "\n\n".join(parts)))
    return Request((message,), item.form, Sampling(temperature=0.0))


def _read_sentence(text: str, _form: Form) -> JsonValue:
    body = strip_marks(clean(text))
    if not body:
        raise Unparsed("empty reply")
    return body


def _score_texts(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return ROUGE-L against the most similar reference text."""
    values = [
        best(rouge_l(str(o.value), reference).f1 for reference in _list(o.item.gold))
        if o.status == "answered"
        else 0.0
        for o in outcomes
    ]
    note = "the most similar of the reference texts counts"
    return (mean_score("rouge_l", values, [o.item.group for o in outcomes], note=note),)
