"""ToxiCN MM: is a Chinese meme harmful, in which way, and whom is it aimed at?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm import figures, replies, wording
from memantics.benchmarks.toxicn_mm.load import open_release
from memantics.benchmarks.toxicn_mm.rows import TARGETS, HarmMeme
from memantics.core import records
from memantics.core.data import Source, open_once
from memantics.core.prompt import Prompt
from memantics.core.task import Task
from memantics.tasks.choices import commonest
from memantics.tasks.factories import Prompts, label_task
from memantics.tasks.plugin import TaskSetup

SCORERS: Mapping[str, Callable[[Sequence[records.Outcome]], tuple[records.Score, ...]]] = {
    "detection": figures.score_detection,
    "type": figures.score_type,
    "target": figures.score_target,
}


def make(setup: TaskSetup) -> Task:
    """The task ``detection``, ``type`` or ``target``."""
    name, chosen = setup.card.name, setup.options
    language = chosen["language"]
    again, given = (setup.prompts[f"{s}.{language}"] for s in ("again", f"given_{chosen['input']}"))
    main = _find_main(setup)
    keys = _keys(name, language) if chosen["parser"] == "strict" else None
    reasons = chosen.get("reasons", "none")

    def parse(text: str, form: records.Form) -> JsonValue:
        return _parse(name, replies.find_conclusion(text, reasons), form, keys)

    items = partial(_items, setup)
    return label_task(
        setup, items, parse=parse, score=SCORERS[name], prompts=Prompts(main, again, given)
    )


def _find_main(setup: TaskSetup) -> Prompt:
    """The instruction: short, or as the paper prints it; reasons are a step of the latter."""
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
    """The split to run on where the user names none: test, or train in a copy without it."""
    parts = open_once(open_release, source).parts
    return "test" if any(split == "test" for _, split in parts) else "train"


def _keys(name: str, language: str) -> dict[str, str]:
    """What is replied for each class."""
    if name == "type":
        return dict(wording.LETTERS)
    words = wording.VERDICTS if name == "detection" else wording.TARGET_NAMES
    return {word: label for label, word in words[language].items()}


def _items(setup: TaskSetup) -> Iterator[records.Item]:
    name, chosen = setup.card.name, setup.options
    release = open_once(open_release, setup.need_source())
    memes = release.memes(chosen.get("labels", "v2"), setup.split)
    shown = chosen["input"] == "image_text"
    left_out = shown and chosen["images"] == "present"
    pairs = [
        (meme, gold)
        for meme in memes
        if (gold := _gold(name, meme, chosen)) is not None and not (left_out and not meme.image)
    ]
    field = _field(name, chosen, commonest(gold for _, gold in pairs))
    hint = "add the images, or --set input=text, or --set images=present"
    for meme, gold in pairs:
        picture = setup.picture(meme.image, meme.id, hint) if shown else None
        yield _item(meme, gold, field, setup, (picture,) if picture else ())


def _gold(name: str, meme: HarmMeme, chosen: Mapping[str, str]) -> str | None:
    """The class of a meme, or None where the task does not ask about it."""
    if name == "detection":
        return wording.HARMFUL if meme.harmful else wording.HARMLESS
    if name == "type":
        # One meme of version 2.0 is harmful but has no type: nothing could be right there.
        return None if meme.harmful and meme.type == "none" else meme.type
    if meme.target is None:
        return wording.NOBODY if chosen["memes"] == "all" else None
    return meme.target


def _field(name: str, chosen: Mapping[str, str], majority: str | None) -> records.Field:
    language = chosen["language"]
    keys = _keys(name, language)
    if name == "target" and chosen["memes"] == "targeted":
        keys = {key: label for key, label in keys.items() if label in TARGETS}
    texts = (
        wording.TYPES[language] if name == "type" else {label: key for key, label in keys.items()}
    )
    replied = {label: key for key, label in keys.items()}
    return records.Field(
        name=name,
        kind="choice",
        options=tuple(records.Option(key, texts[label]) for key, label in keys.items()),
        majority=replied[majority] if majority else None,
        positive=replied.get(wording.HARMFUL),
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
    tags = {"modality": meme.modality or wording.HARMLESS, "type": meme.type, "split": meme.split}
    if meme.target is not None:
        tags["target"] = meme.target
    language = setup.options["language"]
    question = wording.QUESTIONS[language][setup.card.name]
    form = records.Form(question, (field,), language=language, context=context)
    return records.Item(meme.id, meme.id, gold, form, images, tags)


def _parse(name: str, text: str, form: records.Form, keys: Mapping[str, str] | None) -> JsonValue:
    if keys is not None:
        offered = {option.key for option in form.fields[0].options}
        return replies.parse_strictly(text, {k: v for k, v in keys.items() if k in offered})
    if name == "detection":
        return replies.parse_verdict(text)
    return replies.parse_type(text, form) if name == "type" else replies.parse_target(text, form)
