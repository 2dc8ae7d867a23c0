"""PunMemeCN: is this Chinese meme a pun?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from memantics.benchmarks.punmemecn.load import Meme, open_release
from memantics.core.card import read_card, resolve_options
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt, read_prompts
from memantics.core.records import (
    Field,
    Form,
    Image,
    Item,
    Message,
    Option,
    Outcome,
    Request,
    Sampling,
    Score,
)
from memantics.core.task import InvalidPolicy, Task, Unparsed
from memantics.metrics import classification as figures
from memantics.metrics.choice import accuracy
from memantics.metrics.interval import clustered_wilson
from memantics.tasks.choices import commonest, hits
from memantics.tasks.parse import parse_label

FOLDER = Path(__file__).parent
PUN, NON_PUN = "pun", "non-pun"
# The triple the authors show as few-shot examples is left out of every evaluation of theirs.
EXAMPLE_GROUP = "CN00601"
WORDS = {"zh": {PUN: "双关", NON_PUN: "非双关"}, "en": {PUN: "pun", NON_PUN: "non-pun"}}
ALIASES = {
    PUN: ("双关", "是双关", "属于双关", "pun", "a pun"),
    NON_PUN: (
        *("非双关", "不是双关", "不属于双关", "并非双关", "没有双关", "不含双关", "无双关"),
        *("non-pun", "non pun", "nonpun", "not a pun", "not pun", "no pun"),
    ),
}
QUESTION = {"zh": "这张表情包是不是双关表情包？", "en": "Is this meme a pun meme?"}


def make(
    name: str,
    options: Mapping[str, str],
    split: str,  # noqa: ARG001 - one split only, which the card names
    source: Source | None,
    invalid: InvalidPolicy,
) -> Task:
    """The task ``detection``. Without a source it can parse and score, not ask."""
    card = read_card(FOLDER / "card.toml").find_task(name)
    chosen = resolve_options(card, options)
    with_caption = chosen["prompt"] == "2"
    language = chosen["language"]
    stem = "detection_caption" if with_caption else "detection"
    prompt = read_prompts(FOLDER / "prompts")[f"{stem}.{language}"]
    return Task(
        name=f"punmemecn/{name}",
        items=lambda: _items(source, chosen),
        ask=lambda item, _complaint: _ask(prompt, item),
        parse=lambda text, form: _parse(text, form, chosen),
        score=score,
        main=card.main,
        invalid=invalid,
        options=chosen,
        prompts={prompt.name: prompt.hash},
    )


def _items(source: Source | None, chosen: Mapping[str, str]) -> Iterator[Item]:
    if source is None:
        raise DataError(
            "punmemecn", "no data to ask about", hint="memantics data add punmemecn DIR"
        )
    memes = [
        meme
        for meme in open_release(source).memes
        if not (chosen["examples"] == "exclude" and meme.group == EXAMPLE_GROUP)
    ]
    language = chosen["language"]
    words = WORDS[language]
    majority = words[commonest(_gold(meme) for meme in memes) or NON_PUN]
    field = Field(
        name="label",
        kind="choice",
        options=tuple(Option(word, word) for word in words.values()),
        majority=majority,
        positive=words[PUN],
    )
    for meme in memes:
        if meme.image is not None or chosen["images"] == "all":
            yield _item(meme, field, language, with_caption=chosen["prompt"] == "2")


def _gold(meme: Meme) -> str:
    return PUN if meme.role == "pun" else NON_PUN


def _item(meme: Meme, field: Field, language: str, *, with_caption: bool) -> Item:
    if meme.image is None:
        raise DataError(
            f"meme {meme.id}",
            "its image is not in this copy of the release",
            hint="add the images, or leave such memes out with --set images=present",
        )
    context = {"caption": meme.caption} if with_caption else {}
    return Item(
        id=meme.id,
        group=meme.group,
        gold=_gold(meme),
        form=Form(QUESTION[language], (field,), language=language, context=context),
        images=(Image(meme.image),),
        tags={"role": meme.role},
    )


def _ask(prompt: Prompt, item: Item) -> Request:
    return Request(
        messages=(Message("user", (*item.images, prompt.fill(**item.form.context))),),
        form=item.form,
        sampling=Sampling(temperature=0.0),
    )


def _parse(text: str, form: Form, options: Mapping[str, str]) -> JsonValue:
    if options["parser"] == "paper":
        return parse_as_published(text, form.language)
    return parse_label(text, ALIASES)


def parse_as_published(text: str, language: str) -> str:
    """The official rule: the reply begins with the Chinese word, or is exactly the English one.

    >>> parse_as_published("非双关。", "zh"), parse_as_published("Pun", "en")
    ('non-pun', 'pun')
    """
    body = text.strip()
    for label, word in sorted(WORDS[language].items(), key=lambda pair: -len(pair[1])):
        if body.startswith(word) if language == "zh" else body.lower() == word:
            return label
    raise Unparsed(f"reply is not one of {', '.join(WORDS[language].values())}")


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """TPR, TNR, F1 of the pun class, and what a constant answer cannot inflate."""
    gold = [str(o.item.gold) for o in outcomes]
    guesses = [cast("str | None", o.value) if o.status == "answered" else None for o in outcomes]
    groups = [o.item.group for o in outcomes]
    counts = figures.count_binary(gold, guesses, PUN)
    spans = figures.binary_intervals(gold, guesses, PUN, groups)
    n, puns = len(outcomes), gold.count(PUN)

    def row(key: str, value: float | None, span: tuple[float, float] | None, size: int) -> Score:
        return Score(key, value, size, *(span or (None, None)))

    return (
        row("f1", figures.f1(counts), spans.f1, n),
        row("tpr", figures.tpr(counts), spans.tpr, puns),
        row("tnr", figures.tnr(counts), spans.tnr, n - puns),
        row("precision", figures.precision(counts), spans.precision, counts.tp + counts.fp),
        row(
            "balanced_accuracy",
            figures.balanced_accuracy(counts),
            spans.balanced_accuracy,
            n,
        ),
        row("macro_f1", figures.macro_f1(counts), spans.macro_f1, n),
        *_by_role(outcomes),
    )


def _by_role(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    right = hits(outcomes)
    for role in ("pun", "similar_image", "similar_text"):
        kept = [i for i, o in enumerate(outcomes) if o.item.tags["role"] == role]
        rows = [right[i] for i in kept]
        low, high = clustered_wilson(rows, [outcomes[i].item.group for i in kept]) or (None, None)
        yield Score("accuracy", accuracy(rows), len(rows), low, high, by="role", label=role)
