"""Tasks, labels and statistics of data sets that have a dataset config."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.card import Card, OptionCard, ReleaseCard, SampleCard, TaskCard
from memantics.benchmarks.dataset_answers import make_several_task, make_text_task
from memantics.benchmarks.dataset_config import DatasetConfig, LabelConfig
from memantics.benchmarks.dataset_files import is_encoded, sum_files
from memantics.benchmarks.dataset_reader import (
    ConfiguredRelease,
    open_dataset_config,
    open_labelled,
    show_meme,
)
from memantics.benchmarks.dataset_votes import OPTIONS, VOTES, make_votes_task
from memantics.benchmarks.factories import (
    LETTERS,
    Prompts,
    accuracy_score,
    choice_task,
    letter_field,
)
from memantics.benchmarks.plugin import BenchmarkPlugin, TaskSetup
from memantics.benchmarks.published import Expected
from memantics.core.data import Found
from memantics.core.errors import DataError
from memantics.core.labels import LabelledMeme, LabelSource, name_group
from memantics.core.records import Form, Item, Outcome, Score
from memantics.core.task import Task
from memantics.core.votes import distribute
from memantics.metrics.classification import (
    count_classes,
    f1,
    macro_metrics,
    multiclass_intervals,
)

_MOST_FOLDERS = 1000


def survey_dataset_config(release: ConfiguredRelease) -> Found:
    """Summarise a copy of a data set: counts by split and label, checksum, and missing files."""
    tally = release.tally
    counts = {f"split {split}": count for split, count in tally.splits.items()}
    images, expected = tally.images, tally.expected
    notes = []
    if expected and not images:
        notes.append("This copy contains no images: models get the text only.")
    if images < expected:
        more = ", …" if expected - images > len(tally.missing) else ""
        named = ", ".join(tally.missing) + more
        told = f"{expected - images:,} of {expected:,} images are missing: {named}"
        notes.append(told + _suggest_images(release))
    return Found(
        records=tally.memes,
        counts={"memes": tally.memes, **counts},
        files=tuple(path.name for path in release.files),
        checksum=sum_files(release.config, release.source.root, release.files),
        images_found=images,
        images_expected=expected,
        skips=release.skips,
        notes=tuple(notes),
    )


def _suggest_images(release: ConfiguredRelease) -> str:
    """Say where to find missing images; a subfolder that has the first one is named."""
    if release.source.images is not None or not release.tally.missing:
        return ""
    root, first = release.source.root, release.tally.missing[0]
    if is_encoded(first):
        return ". They are text (base64) in the table, which is not read: save them as files"
    if first.startswith("["):
        return ". A list of images is not read: give one image per row"
    if "://" in first:
        return ". Nothing is downloaded: save them in a folder, and name it with --images DIR"
    folders = sorted(root.iterdir())[:_MOST_FOLDERS]
    holds = [one for one in folders if one.is_dir() and (one / Path(first).name).is_file()]
    if holds:
        return (
            f". {holds[0]} contains {Path(first).name}: add --images {shlex.quote(str(holds[0]))}"
        )
    return ". Name their folder with data add --images DIR"


def count_dataset_config(
    dataset_config: DatasetConfig, release: ConfiguredRelease
) -> dict[str, JsonValue]:
    """Count the memes of each split that the dataset config lists."""
    counts = release.tally.splits | Counter(all=release.tally.memes)
    return {f"memes.{split}": counts.get(split) for split in dataset_config.counts}


def list_expected(dataset_config: DatasetConfig) -> tuple[Expected, ...]:
    """Return the counts of memes that a complete release should have."""
    return tuple(
        Expected(
            key=f"memes.{split}",
            title=f"Memes, {split}",
            paper=count,
            known=count,
            digits=None,
            definition="rows of the split with a unique id",
        )
        for split, count in dataset_config.counts.items()
    )


def read_labels(name: str, release: ConfiguredRelease) -> Iterator[LabelledMeme]:
    """Return memes with their values of one label; memes with the same text form a group."""
    labelled = {split for label, split, _ in release.tally.labels if label == name}
    labelled |= {split for label, split in release.tally.voted if label == name}
    for meme in release.memes:
        if meme.split in labelled:
            group = name_group(meme.text) or meme.id
            named, text, image = meme.labels[name], meme.text, meme.image
            votes = meme.votes.get(name, ())
            given = dict.fromkeys(value for vote in votes for value in vote.values)
            yield LabelledMeme(
                meme.id,
                text,
                named,
                group,
                image=image,
                split=meme.split,
                votes=distribute(votes, given),
                **meme.origin,
            )


def make_plugin(dataset_config: DatasetConfig) -> BenchmarkPlugin[ConfiguredRelease]:
    """Return the benchmark plugin of a dataset config: reader, summary, labels and tasks."""
    return BenchmarkPlugin(
        open_release=partial(open_dataset_config, dataset_config),
        survey=survey_dataset_config,
        statistics=partial(count_dataset_config, dataset_config),
        make_task=partial(_make_task, dataset_config),
        labels={
            name: LabelSource(
                label_config.what,
                partial(read_labels, name),
                label_config.several,
                label_config.topic or name,
            )
            for name, label_config in dataset_config.label.items()
        },
    )


def make_card(name: str, dataset_config: DatasetConfig) -> Card:
    """Return a dataset card with the tasks of a data set (default split ``test``)."""
    splits = (*sorted(dataset_config.files, key=lambda split: split.lower() != "test"), "all")
    tasks = [
        _card(label, label_config.what, _pick_main(label_config), splits)
        for label, label_config in dataset_config.label.items()
        if not label_config.several or label_config.question
    ]
    tasks += [
        _card(f"{label}{VOTES}", f"votes: {one.what}", "icm_soft_norm", splits, OPTIONS)
        for label, one in dataset_config.label.items()
        if one.votes is not None
    ]
    tasks += [
        _card(name, one.what, "rouge_l", splits) for name, one in dataset_config.free_text.items()
    ]
    if not tasks:
        hint = "give a label with several values a question"
        raise DataError(name, "the dataset config defines no task", hint=hint)
    release = ReleaseCard(
        source=dataset_config.source,
        revision="as downloaded",
        licence=dataset_config.licence,
        unit="memes",
        complete=sum(dataset_config.counts.values()),
        obtain=f"{dataset_config.source}; then run 'memantics data add {name} DIR'",
    )
    return Card(
        name=name,
        title=dataset_config.title,
        summary=dataset_config.summary,
        languages=dataset_config.languages,
        warning=dataset_config.warning,
        canary=dataset_config.canary,
        citation=dataset_config.citation,
        release=release,
        sample=SampleCard(licence="none"),
        task=tuple(tasks),
    )


def _card(
    name: str,
    title: str,
    main: str,
    splits: tuple[str, ...],
    option: tuple[OptionCard, ...] = (),
) -> TaskCard:
    baselines = ("baseline/majority", "baseline/random")
    return TaskCard(
        name=name,
        title=title,
        main=main,
        unit="memes",
        baselines=baselines,
        splits=splits,
        option=option,
    )


def _pick_main(label: LabelConfig) -> str:
    return "hierarchical_f1" if label.several and label.hierarchy else "macro_f1"


def _make_task(dataset_config: DatasetConfig, setup: TaskSetup) -> Task:
    name = setup.card.name
    if name in dataset_config.free_text:
        return make_text_task(dataset_config, setup)
    if name not in dataset_config.label:
        return make_votes_task(dataset_config, setup)
    if dataset_config.label[name].several:
        return make_several_task(dataset_config, setup)
    label = dataset_config.label[setup.card.name]
    prompts = setup.prompts
    told = {"text": prompts["given_text"]}
    used = Prompts(prompts["label"], prompts["again"], facts=told)
    return choice_task(
        setup, partial(_list_items, dataset_config, label, setup), prompts=used, score=_score_labels
    )


def count_values(release: ConfiguredRelease, name: str) -> Counter[str]:
    """Count the values of a label over all splits."""
    counts = Counter[str]()
    for (label, _, value), count in release.tally.labels.items():
        if label == name:
            counts[value] += count
    return counts


def _list_items(
    dataset_config: DatasetConfig, label: LabelConfig, setup: TaskSetup
) -> Iterator[Item]:
    """Yield one item per labelled meme, or per entity: its image, if available, and its text."""
    name = setup.card.name
    release = open_labelled(dataset_config, setup, name)
    classes = release.list_classes(name)
    if len(classes) > len(LETTERS):
        raise DataError(
            dataset_config.title,
            f"label {name} has {len(classes)} values, too many for one question",
        )
    keys = dict(zip(classes, LETTERS, strict=False))
    most_frequent = count_values(release, name).most_common(1)[0][0]
    field = letter_field(classes, keys[most_frequent])
    question = label.question or f"Which label fits: {label.what}?"
    for meme in release.memes:
        values = meme.labels[name]
        if setup.split not in (meme.split, "all") or (len(values) != 1 and not label.roles):
            continue
        images, context = show_meme(meme, setup)
        for place, value in enumerate(values):
            asked = question
            if label.roles:
                asked = question.replace("{entity}", meme.entities[name][place])
            form = Form(asked, (field,), context=context)
            called = f"{meme.id}#{place + 1}" if label.roles else meme.id
            yield Item(called, meme.cluster, keys[value], form, images, {"class": value})


def _score_labels(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro-F1, accuracy, and F1 per class of a labelling task."""
    names = {one.key: one.text for o in outcomes for one in o.item.form.fields[0].options}
    names |= {str(o.item.gold): o.item.tags["class"] for o in outcomes}
    gold = [names[str(o.item.gold)] for o in outcomes]
    said = [names.get(str(o.value)) if o.status == "answered" else None for o in outcomes]
    classes = sorted(names.values())
    counts = count_classes(gold, said, classes)
    spans = multiclass_intervals(gold, said, classes, [o.item.group for o in outcomes])
    size = len(outcomes)
    low, high = spans.f1 or (None, None)
    rows = [Score("macro_f1", macro_metrics(counts).f1, size, low, high)]
    rows.append(accuracy_score("accuracy", outcomes))
    for name in classes:
        low, high = spans.f1_by_class[name] or (None, None)
        rows.append(Score("f1", f1(counts[name]), gold.count(name), low, high, "class", name))
    return tuple(rows)
