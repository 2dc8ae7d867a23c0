"""The ToxiCN MM plugin: whether a Chinese meme is harmful, the type of harm, and its target.

It contains the tasks ``detection``, ``type`` and ``target``, their parsers, metrics and labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from pydantic import JsonValue

from memantics.benchmarks.factories import (
    Prompts,
    accuracies_by_tag,
    accuracy_score,
    label_task,
    most_frequent,
    spanned,
)
from memantics.benchmarks.parsing import clean, parse_label, parse_letter
from memantics.benchmarks.plugin import AuditHooks, BenchmarkPlugin, TaskSetup
from memantics.benchmarks.toxicn_mm import statistics as audit
from memantics.benchmarks.toxicn_mm.load import (
    CLASSES,
    MODALITIES,
    TARGETS,
    HarmMeme,
    HarmRelease,
    open_release,
)
from memantics.benchmarks.toxicn_mm.load import TYPES as TYPE_NAMES
from memantics.benchmarks.toxicn_mm.statistics import statistics, survey
from memantics.core import records
from memantics.core.data import Source, open_once
from memantics.core.labels import LabelledMeme, LabelSource
from memantics.core.prompt import Prompt
from memantics.core.records import Form, Outcome, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.classification import (
    ClassCounts,
    MulticlassIntervals,
    count_classes,
    f1,
    macro_metrics,
    multiclass_intervals,
)

# Names of the classes in both languages, and their aliases in replies.

HARMFUL, HARMLESS = "harmful", "harmless"
NOBODY = "none"
ClassWords = Mapping[str, Mapping[str, str]]

QUESTIONS: ClassWords = CLASSES["questions"]
VERDICTS: ClassWords = CLASSES["verdicts"]
VERDICT_ALIASES: Mapping[str, list[str]] = CLASSES["verdict_aliases"]
LETTERS: Mapping[str, str] = CLASSES["letters"]
TYPES: ClassWords = CLASSES["types"]
TYPE_ALIASES = {**CLASSES["type_aliases"], "none": VERDICT_ALIASES[HARMLESS]}
_NAMED = {name: CLASSES["targets"][name] for name in TARGETS} | {NOBODY: CLASSES["nobody"]}
TARGET_NAMES: ClassWords = {
    language: {name: told[language] for name, told in _NAMED.items()} for language in ("zh", "en")
}
TARGET_ALIASES: Mapping[str, list[str]] = {
    name: [told["zh"], told["en"], *told["aliases"]] for name, told in _NAMED.items()
}


# Parsers of replies. A reply that negates the class it names is not an answer.


def find_conclusion(text: str, reasons: str) -> str:
    r"""Return the part of a reply that contains the conclusion, if reasons were requested.

    >>> find_conclusion("有害\n没有无害的意思", "last"), find_conclusion("有害", "none")
    ('有害', '有害')
    >>> find_conclusion("要是无害……\n结论：有害", "first")
    '结论:有害'
    """
    if reasons == "none":
        return text
    lines = [line for line in clean(text).splitlines() if line.strip()]
    if not lines:
        return text
    if reasons == "last":
        return lines[0]
    marked = [line for line in lines if "结论" in line or "conclusion" in line.casefold()]
    # A model may write the conclusion on the line below its heading.
    return "\n".join(lines[lines.index(marked[-1]) :]) if marked else lines[-1]


def parse_verdict(text: str) -> str:
    """Return harmful or harmless, according to the conclusion of a reply.

    >>> parse_verdict("分析：话里没有脏字。结论：有害"), parse_verdict("It is not harmful.")
    ('harmful', 'harmless')
    >>> parse_verdict("It can hardly be called harmful")
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the reply denies the label that it names
    """
    return parse_label(text, VERDICT_ALIASES, {HARMFUL: HARMLESS})


def parse_type(text: str, form: Form) -> str:
    """Return the type of harm by its letter or, without one, by its name.

    >>> from memantics.benchmarks.factories import letter_field
    >>> form = Form("?", (letter_field(["targeted", "offence", "sexual", "gloom", "harmless"]),))
    >>> parse_type("B。话里带刺", form), parse_type("性暗示", form)
    ('offence', 'sexual')
    """
    known = {option.key: option.text for option in form.fields[0].options}
    try:
        return LETTERS[parse_letter(text, known)]
    except Unparsed:
        return parse_label(text, TYPE_ALIASES)


def parse_target(text: str, form: Form) -> str:
    """Return the target by its name; a target that was not offered is not an answer.

    >>> from memantics.core.records import Field, Option
    >>> form = Form("?", (Field("target", "choice", (Option("地域", "地域"),)),))
    >>> parse_target("针对的是地域。", form)
    'region'
    """
    offered = {option.key for option in form.fields[0].options}
    known = {name: names for name, names in TARGET_ALIASES.items() if offered & set(names)}
    return parse_label(text, known)


def parse_strictly(text: str, keys: Mapping[str, str]) -> str:
    """Return the class whose key is the whole reply, ignoring case and final punctuation.

    >>> parse_strictly(" Harmful. ", {"harmful": "harmful", "harmless": "harmless"})
    'harmful'
    """
    body = clean(text).strip(" \n.。!\"'“”").casefold()
    for key, name in keys.items():
        if body == key.casefold():
            return name
    raise Unparsed(f"reply is not one of {', '.join(keys)}")


# Metrics of the three tasks.

MACRO_NOTE = "unweighted mean over the classes that occur"
HARMFUL_NOTE = "F1 of the harmful class; a missing answer counts as harmless"


def score_detection(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro scores and F1 of the harmful class; accuracy by modality, type and target."""
    counts, spans = _count(outcomes, (HARMLESS, HARMFUL))
    span = spans.f1_by_class[HARMFUL]
    members = sum(o.item.gold == HARMFUL for o in outcomes)
    return (
        *_macro(counts, spans, len(outcomes)),
        spanned(Score("f1_harmful", f1(counts[HARMFUL]), members, note=HARMFUL_NOTE), span),
        accuracy_score("accuracy", outcomes),
        *accuracies_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
        *accuracies_by_tag(outcomes, "type", [name for name in TYPE_NAMES if name != "none"]),
        *accuracies_by_tag(outcomes, "target", TARGETS),
    )


def score_type(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro scores over five classes and F1 of each; accuracy by modality and target."""
    return (
        *_score_classes(outcomes, TYPE_NAMES, "type"),
        *accuracies_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
        *accuracies_by_tag(outcomes, "target", TARGETS),
    )


def score_target(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro scores over the targets and F1 of each; accuracy by modality."""
    return (
        *_score_classes(outcomes, (*TARGETS, NOBODY), "target"),
        *accuracies_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
    )


def _score_classes(outcomes: Sequence[Outcome], classes: Sequence[str], by: str) -> list[Score]:
    counts, spans = _count(outcomes, classes)
    rows = [*_macro(counts, spans, len(outcomes)), accuracy_score("accuracy", outcomes)]
    for name in classes:
        class_counts = counts[name]
        if class_counts.occurs:
            span = spans.f1_by_class[name]
            rows.append(
                spanned(
                    Score(
                        "f1", f1(class_counts), class_counts.tp + class_counts.fn, by=by, label=name
                    ),
                    span,
                )
            )
    return rows


def _count(
    outcomes: Sequence[Outcome], classes: Sequence[str]
) -> tuple[dict[str, ClassCounts], MulticlassIntervals]:
    gold = [str(o.item.gold) for o in outcomes]
    said = [cast("str | None", o.value) if o.status == "answered" else None for o in outcomes]
    memes = [o.item.group for o in outcomes]
    return count_classes(gold, said, classes), multiclass_intervals(gold, said, classes, memes)


def _macro(
    counts: dict[str, ClassCounts], spans: MulticlassIntervals, n: int
) -> tuple[Score, Score, Score]:
    found = macro_metrics(counts)
    return (
        spanned(Score("macro_f1", found.f1, n, note=MACRO_NOTE), spans.f1),
        spanned(Score("macro_precision", found.precision, n, note=MACRO_NOTE), spans.precision),
        spanned(Score("macro_recall", found.recall, n, note=MACRO_NOTE), spans.recall),
    )


SCORERS: Mapping[str, Callable[[Sequence[records.Outcome]], tuple[records.Score, ...]]] = {
    "detection": score_detection,
    "type": score_type,
    "target": score_target,
}


def make(setup: TaskSetup) -> Task:
    """Build the task ``detection``, ``type`` or ``target``."""
    name, chosen = setup.card.name, setup.options
    language = chosen["language"]
    again, given = (setup.prompts[f"{s}.{language}"] for s in ("again", f"given_{chosen['input']}"))
    main = _find_main(setup)
    keys = _keys(name, language) if chosen["parser"] == "strict" else None
    reasons = chosen.get("reasons", "none")

    def parse(text: str, form: records.Form) -> JsonValue:
        return _parse(name, find_conclusion(text, reasons), form, keys)

    items = partial(_items, setup)
    return label_task(
        setup, items, parse=parse, score=SCORERS[name], prompts=Prompts(main, again, given)
    )


def _find_main(setup: TaskSetup) -> Prompt:
    """Return the instruction: the short one, or that of the paper, which may ask for reasons."""
    name, language = setup.card.name, setup.options["language"]
    reasons = setup.options.get("reasons", "none")
    if reasons == "none" and setup.options.get("wording", "short") == "short":
        return setup.prompts[f"{name}.{language}"]
    main = setup.prompts[f"{name}_full.{language}"]
    if reasons == "none":
        return main
    step = setup.prompts[f"reasons_{reasons}.{language}"]
    return replace(main, name=f"{main.name}+{step.name}", text=f"{main.text}\n{step.text}")


def pick_split(source: Source) -> str:
    """Return the default split: test, or train in a copy without it."""
    parts = open_once(open_release, source).parts
    return "test" if any(split == "test" for _, split in parts) else "train"


def _keys(name: str, language: str) -> dict[str, str]:
    """Return the expected reply text for each class."""
    if name == "type":
        return dict(LETTERS)
    words = VERDICTS if name == "detection" else TARGET_NAMES
    return {word: label for label, word in words[language].items()}


def _items(setup: TaskSetup) -> Iterator[records.Item]:
    name, chosen = setup.card.name, setup.options
    release = open_once(open_release, setup.need_source())
    memes = release.memes(chosen.get("labels", "v2"), setup.split)
    shown = chosen["input"] == "image_text"
    skipped = shown and chosen["images"] == "present"
    pairs = [
        (meme, gold)
        for meme in memes
        if (gold := _gold(name, meme, chosen)) is not None and not (skipped and not meme.image)
    ]
    field = _field(name, chosen, most_frequent(gold for _, gold in pairs))
    hint = "add the images, or use --set input=text or --set images=present"
    for meme, gold in pairs:
        picture = setup.picture(meme.image, meme.id, hint) if shown else None
        yield _item(meme, gold, field, setup, (picture,) if picture else ())


def _gold(name: str, meme: HarmMeme, chosen: Mapping[str, str]) -> str | None:
    """Return the class of a meme; None if the task does not include the meme."""
    if name == "detection":
        return HARMFUL if meme.harmful else HARMLESS
    if name == "type":
        # One meme of label version 2.0 is harmful without a type, so no answer could be correct.
        return None if meme.harmful and meme.type == "none" else meme.type
    if meme.target is None:
        return NOBODY if chosen["memes"] == "all" else None
    return meme.target


def _field(name: str, chosen: Mapping[str, str], majority: str | None) -> records.Field:
    language = chosen["language"]
    keys = _keys(name, language)
    if name == "target" and chosen["memes"] == "targeted":
        keys = {key: label for key, label in keys.items() if label in TARGETS}
    texts = TYPES[language] if name == "type" else {label: key for key, label in keys.items()}
    replied = {label: key for key, label in keys.items()}
    return records.Field(
        name=name,
        kind="choice",
        options=tuple(records.Option(key, texts[label]) for key, label in keys.items()),
        majority=replied[majority] if majority else None,
        positive=replied.get(HARMFUL),
    )


def _item(
    meme: HarmMeme,
    gold: str,
    field: records.Field,
    setup: TaskSetup,
    images: tuple[records.Image, ...],
) -> records.Item:
    context = {"text": meme.text}
    if setup.options["input"] == "captions":
        context |= {"text_caption": meme.text_caption, "image_caption": meme.image_caption}
    tags = {"modality": meme.modality or HARMLESS, "type": meme.type, "split": meme.split}
    if meme.target is not None:
        tags["target"] = meme.target
    language = setup.options["language"]
    question = QUESTIONS[language][setup.card.name]
    form = records.Form(question, (field,), language=language, context=context)
    return records.Item(meme.id, meme.id, gold, form, images, tags)


def _parse(name: str, text: str, form: records.Form, keys: Mapping[str, str] | None) -> JsonValue:
    if keys is not None:
        offered = {option.key for option in form.fields[0].options}
        return parse_strictly(text, {k: v for k, v in keys.items() if k in offered})
    if name == "detection":
        return parse_verdict(text)
    return parse_type(text, form) if name == "type" else parse_target(text, form)


# Labels for classifiers; features are the texts and both captions.


def _read(
    label_of: Callable[[HarmMeme], str | None], version: str = ""
) -> Callable[[HarmRelease], Iterator[LabelledMeme]]:
    """Return memes with a label; label version 1 by default, if available."""

    def read(release: HarmRelease) -> Iterator[LabelledMeme]:
        for meme in release.memes(version or release.versions[0]):
            label = label_of(meme)
            if label is not None:
                yield LabelledMeme(
                    meme.id,
                    meme.text,
                    (label,),
                    text_caption=meme.text_caption,
                    image_caption=meme.image_caption,
                    image=meme.image,
                    split=meme.split,
                )

    return read


def _name_type(meme: HarmMeme) -> str | None:
    # One row of label version 2.0 is harmful without a type.
    return None if meme.harmful and meme.type == "none" else meme.type


LABELS: Mapping[str, LabelSource[HarmRelease]] = {
    "harm": LabelSource(
        "harmful or harmless",
        _read(lambda meme: "harmful" if meme.harmful else "harmless"),
        topic="harm",
    ),
    "type": LabelSource("type of harm, or none", _read(_name_type), topic="harm type"),
    "modality": LabelSource(
        "modality of the harm of a harmful meme: text, image, both, or only their "
        "combination (fusion)",
        _read(lambda meme: meme.modality),
        topic="harm modality",
    ),
    "target": LabelSource(
        "target of memes that have one (label version 2.0)",
        _read(lambda meme: meme.target, "v2"),
        topic="target",
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    pick_split=pick_split,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, narrow=audit.narrow, across=audit.across
    ),
)
