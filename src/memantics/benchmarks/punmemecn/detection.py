"""Task 1: decide whether a Chinese meme is a pun."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from pydantic import JsonValue

from memantics.benchmarks.factories import accuracies_by, most_frequent, spanned
from memantics.benchmarks.parsing import clean, parse_label
from memantics.benchmarks.punmemecn.examples import DETECTION, MemePrompt, prepare
from memantics.benchmarks.punmemecn.load import ROLES, PunMeme
from memantics.benchmarks.punmemecn.matching import find_objects, read_choice
from memantics.benchmarks.punmemecn.wording import Brief, describe
from memantics.core import records
from memantics.core.errors import InputError
from memantics.core.reply import describe_object
from memantics.core.task import Task, Unparsed
from memantics.metrics import classification as metrics

PUN, NON_PUN = "pun", "non-pun"
WORDS = {"zh": {PUN: "双关", NON_PUN: "非双关"}, "en": {PUN: "pun", NON_PUN: "non-pun"}}
ALIASES = {
    PUN: ("双关", "是双关", "属于双关", "pun", "a pun"),
    NON_PUN: (
        *("非双关", "不是双关", "不属于双关", "并非双关", "没有双关", "不含双关", "无双关"),
        *("non-pun", "non pun", "nonpun", "not a pun", "not pun", "no pun"),
    ),
}
QUESTION = {"zh": "这张表情包是不是双关表情包？", "en": "Is this meme a pun meme?"}
# Fields of the structured question, in the order of reasoning.
PARTS = {
    "zh": ("词语", "字面意思", "另一层意思", "画面所示", "判断"),
    "en": ("word", "written", "other", "seen", "judgment"),
}
SEEN = {"zh": ("字面", "另一层", "两者", "都没有"), "en": ("written", "other", "both", "neither")}
_LEFT_OUT = frozenset(name for ids in DETECTION.values() for name in ids)


def make(brief: Brief) -> Task:
    """Build the task ``detection``."""
    words = WORDS[brief.language]
    _check(brief)
    prompt = prepare("detection", brief, DETECTION, lambda meme: words[_gold(meme)])
    return brief.make(
        items=lambda: _items(brief),
        ask=lambda item, _complaint: _ask(prompt, item, brief),
        parse=partial(_parse, brief),
        score=score,
        used=prompt.hashes,
    )


def _check(brief: Brief) -> None:
    """Raise an error for options that question=structured does not support."""
    style = brief.style
    if style.structured and (style.shots or brief.options["parser"] == "paper"):
        clash = f"prompt={brief.options['prompt']}" if style.shots else "parser=paper"
        raise InputError(
            f"question=structured cannot be combined with {clash}",
            hint="use prompt=1 or prompt=2 and parser=tolerant, or omit question",
        )


def _gold(meme: PunMeme) -> str:
    return PUN if meme.is_pun else NON_PUN


def _items(brief: Brief) -> Iterator[records.Item]:
    memes = [m for m in brief.release.memes if not (brief.excludes and m.id in _LEFT_OUT)]
    words = WORDS[brief.language]
    field = records.Field(
        name="label",
        kind="choice",
        options=tuple(records.Option(word, word) for word in words.values()),
        majority=words[most_frequent(map(_gold, memes)) or NON_PUN],
        positive=words[PUN],
    )
    for meme in memes:
        image = brief.show(meme)
        if image is not None:
            context = describe(meme, brief.style)
            yield records.Item(
                id=meme.id,
                group=meme.group,
                gold=_gold(meme),
                form=records.Form(
                    QUESTION[brief.language], (field,), language=brief.language, context=context
                ),
                images=(image,),
                tags={"role": meme.role},
            )


def _ask(prompt: MemePrompt, item: records.Item, brief: Brief) -> records.Request:
    schema = _make_schema(brief.language) if brief.style.structured else None
    return records.Request(prompt.write(item), item.form, records.Sampling(temperature=0.0), schema)


def _make_schema(language: str) -> dict[str, JsonValue]:
    *texts, seen, judgment = PARTS[language]
    fields: dict[str, JsonValue] = {
        **{name: {"type": "string"} for name in texts},
        seen: {"type": "string", "enum": list(SEEN[language])},
        judgment: {"type": "string", "enum": list(WORDS[language].values())},
    }
    return describe_object(**fields)


def _parse(brief: Brief, text: str, _form: records.Form) -> JsonValue:
    if brief.options["parser"] == "paper":
        return parse_as_published(text, reasons=brief.style.reasons)
    if brief.style.structured:
        return parse_structured(text, PARTS[brief.language][-1])
    return parse_label(text, ALIASES, _OPPOSITES)


_OPPOSITES = {PUN: NON_PUN, NON_PUN: PUN}


def parse_structured(text: str, judgment: str) -> str:
    """Return the judgment in the reply's JSON object; a reply without an object may be a label.

    >>> parse_structured('{"word": "鱼", "seen": "written", "judgment": "pun"}', "judgment")
    'pun'
    >>> parse_structured("non-pun", "judgment")
    'non-pun'
    """
    held = [reply[judgment] for reply in find_objects(clean(text)) if judgment in reply]
    said = {read_choice(value, ALIASES, judgment, _OPPOSITES) for value in held}
    if len(said) > 1:
        raise Unparsed("several judgments that differ")
    return said.pop() if said else parse_label(text, ALIASES, _OPPOSITES)


def parse_as_published(text: str, *, reasons: bool = False) -> str:
    """Apply the official rule: the reply begins with the Chinese label or is the English one.

    If reasons were requested, only the text after the last 判断： (full-width colon) or judgment:
    counts.

    >>> parse_as_published("非双关。"), parse_as_published("Pun")
    ('non-pun', 'pun')
    """
    body = text.lower()
    if reasons:
        *before, body = re.split("判断：|judgment:", body)
        if not before:
            raise Unparsed("no judgment behind its marker")
    body = body.strip()
    if body.startswith("非双关") or body == NON_PUN:
        return NON_PUN
    if body.startswith("双关") or body == PUN:
        return PUN
    raise Unparsed("reply does not begin with 双关 or 非双关, nor is it pun or non-pun")


def score(outcomes: Sequence[records.Outcome]) -> tuple[records.Score, ...]:
    """Return TPR, TNR, F1 of the pun class, and scores that a constant answer cannot increase."""
    gold = [str(o.item.gold) for o in outcomes]
    guesses = [cast("str | None", o.value) if o.status == "answered" else None for o in outcomes]
    groups = [o.item.group for o in outcomes]
    counts = metrics.count_binary(gold, guesses, PUN)
    spans = metrics.binary_intervals(gold, guesses, PUN, groups)
    n, puns = len(outcomes), gold.count(PUN)

    return (
        spanned(records.Score("f1", metrics.f1(counts), n), spans.f1),
        spanned(records.Score("tpr", metrics.tpr(counts), puns), spans.tpr),
        spanned(records.Score("tnr", metrics.tnr(counts), n - puns), spans.tnr),
        spanned(
            records.Score("precision", metrics.precision(counts), counts.tp + counts.fp),
            spans.precision,
        ),
        spanned(
            records.Score("balanced_accuracy", metrics.balanced_accuracy(counts), n),
            spans.balanced_accuracy,
        ),
        spanned(records.Score("macro_f1", metrics.binary_macro_f1(counts), n), spans.macro_f1),
        *accuracies_by(outcomes, "role", ROLES, lambda outcome: outcome.item.tags["role"]),
    )
