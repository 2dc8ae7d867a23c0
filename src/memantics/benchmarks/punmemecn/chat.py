"""Task 3: choose, out of four memes, the pun meme that fits a chat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic import JsonValue

from memantics.benchmarks.factories import (
    LETTERS,
    accuracies_by,
    accuracy_score,
    list_options,
    most_frequent,
)
from memantics.benchmarks.parsing import parse_letter
from memantics.benchmarks.punmemecn import examples
from memantics.benchmarks.punmemecn import wording as words
from memantics.benchmarks.punmemecn.load import CHATS, LEVELS, TOPICS, ChatRecord, PunMeme
from memantics.core import records
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt
from memantics.core.task import Task, Unparsed

QUESTION = {
    "zh": "哪一张表情包最适合回复这段聊天？",
    "en": "Which meme answers this chat best?",
}
REPLY_MARK = "（表情包回复）"
CORRECT = "correct"
_MARKERS = {"zh": "正确答案：", "en": "Correct answer:"}


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """The prompts of the chat task; ``hashes`` are recorded in ``run.json``.

    ``official`` is the authors' prompt, if requested.
    """

    wording: words.PunWording
    style: words.PromptStyle
    shots: tuple[words.Shot, ...]
    layout: str
    hashes: Mapping[str, str]
    official: Prompt | None = None

    def ask(self, item: records.Item) -> records.Request:
        """Return the request for an item: its four images in the order of its options."""
        if self.official is not None:
            values = {**item.form.context}
            for shot in self.shots:
                values |= {**shot.context, "answer1": shot.answer}
            messages = words.ask_officially(self.official, item.images, self.shots, values)
            return records.Request(messages, item.form, records.Sampling(temperature=0.0))
        options = list_options(item.form.fields[0].options)
        context = {"history": item.form.context["history"], "options": options}
        messages = words.lay_out(item.images, context, self.shots, self._text, self.layout)
        return records.Request(messages, item.form, records.Sampling(temperature=0.0))

    def _text(self, context: Mapping[str, str], told: bool) -> str:
        say = self.wording.say
        rule = "reasons" if self.style.reasons else "reply"
        shown = ""
        if told:
            shot = self.shots[0]
            shown = say("chat_example", answer=shot.answer, **shot.context)
        return say(
            "chat",
            examples=shown,
            memes=say("chat_memes_last" if told else "chat_memes"),
            reply=say(f"chat_{rule}"),
            **context,
        )


@dataclass(frozen=True, slots=True)
class Laid:
    """The four memes of a chat in option order; ``kinds`` gives the type of each distractor."""

    memes: tuple[PunMeme, ...]
    kinds: tuple[str, ...]

    @property
    def letter(self) -> str:
        """The letter of the correct option."""
        return LETTERS[self.kinds.index(CORRECT)]


def make(brief: words.Brief) -> Task:
    """Build the task ``chat``."""
    prompt = _prepare(brief)
    _read_seed(brief)
    task = brief.make(
        items=lambda: _items(brief),
        ask=lambda item, _complaint: prompt.ask(item),
        parse=partial(_parse, brief),
        score=score,
        used=prompt.hashes,
    )
    return replace(task, kinds=("topic",))


def _read_seed(brief: words.Brief) -> int:
    return brief.read_whole("seed", 1, 2**31)


def _prepare(brief: words.Brief) -> ChatPrompt:
    wording, style = words.read_wording(brief), brief.style
    rule = "reasons" if style.reasons else "reply"
    hashes = wording.hashes(
        "chat", f"chat_{rule}", "chat_option", "chat_memes", *words.name_facts(style)
    )
    shots: tuple[words.Shot, ...] = ()
    official = brief.read_official("chat")
    if official is not None:
        hashes = {official.name: official.hash}
        if style.shots:
            picked = examples.pick_chat(brief, brief.options["level"])
            shots = (_show_officially(style, picked),)
            hashes[picked.name] = words.hash_shots(shots)
    elif style.shots:
        hashes |= wording.hashes("chat_example", "chat_memes_last")
        if style.reasons:
            hashes |= wording.hashes("chat_worked", "chat_reason")
        if brief.source is not None:
            picked = examples.pick_chat(brief, brief.options["level"])
            shots = (_work(brief, wording, picked),)
            hashes[picked.name] = words.hash_shots(shots)
    return ChatPrompt(wording, style, shots, brief.options["layout"], hashes, official)


def _show_officially(style: words.PromptStyle, picked: examples.PickedChat) -> words.Shot:
    """Return the few-shot example in the authors' format: numbered captions and correct letter."""
    known = {meme.id: meme for meme in picked.memes}
    laid = _lay(picked.chat, known, examples.authors_orders()[picked.chat.id])
    images = tuple(records.Image(meme.image) for meme in laid.memes if meme.image is not None)
    context = {"history1": write_history(picked.chat), **_number_facts(style, laid, first=1)}
    return words.Shot(images, context, laid.letter)


def _number_facts(style: words.PromptStyle, laid: Laid, *, first: int) -> dict[str, str]:
    """Return the texts about each meme in the prompt (set by the prompt style), by its number."""
    return {
        f"{name}{number}": text
        for number, meme in enumerate(laid.memes, first)
        for name, text in words.describe(meme, style).items()
    }


def _work(brief: words.Brief, wording: words.PunWording, picked: examples.PickedChat) -> words.Shot:
    chat, known = picked.chat, {meme.id: meme for meme in picked.memes}
    # The options of the authors' example are in their own order, independent of other chats.
    order = examples.authors_orders()[chat.id] if picked.who == "authors" else _order(brief, chat)
    laid = _lay(chat, known, order)
    options = _write_options(wording, brief.style, laid, first=1)
    answer = laid.letter
    if brief.style.reasons:
        told = [
            wording.say("chat_reason", letter=letter, explanation=words.one_line(meme.explanation))
            for letter, meme in zip(LETTERS, laid.memes, strict=False)
        ]
        answer = wording.say("chat_worked", reason="\n".join(told), label=answer)
    images = tuple(records.Image(meme.image) for meme in laid.memes if meme.image is not None)
    context = {"history": write_history(chat), "options": list_options(options)}
    return words.Shot(images, context, answer)


def write_history(chat: ChatRecord) -> str:
    """Return the turns of a chat as text; the last turn marks the position of the meme."""
    return "\n".join((*chat.turns, f"{chat.speaker}：{REPLY_MARK}"))


def _order(brief: words.Brief, chat: ChatRecord) -> examples.ChatOptionOrder:
    if brief.options["order"] == "seeded":
        return examples.seeded_order(chat.id, _read_seed(brief))
    order = examples.authors_orders().get(chat.id)
    if order is None:
        raise DataError(
            chat.id, "the authors' order exists only for their own chats", hint="order=seeded"
        )
    return order


def _lay(chat: ChatRecord, known: Mapping[str, PunMeme], order: examples.ChatOptionOrder) -> Laid:
    offered = {CORRECT: chat.correct, **dict(chat.distractors)}
    kinds = examples.place(order, list(offered))
    return Laid(tuple(known[offered[kind]] for kind in kinds), tuple(kinds))


def _write_options(
    wording: words.PunWording, style: words.PromptStyle, laid: Laid, *, first: int
) -> tuple[records.Option, ...]:
    return tuple(
        records.Option(
            LETTERS[number],
            wording.say(
                "chat_option",
                place=wording.ordinal(first + number),
                facts=wording.tell(words.describe(meme, style)),
            ),
            records.Image(meme.image) if meme.image is not None else None,
        )
        for number, meme in enumerate(laid.memes)
    )


def _items(brief: words.Brief) -> Iterator[records.Item]:
    level = brief.options["level"]
    known = brief.release.by_id()
    chats = brief.release.chats(level)
    if not chats:
        raise DataError(
            next(name for known_level, name in CHATS.items() if known_level == level),
            f"this copy has no {level} chats with all four memes",
            hint=f"add the file, or use --set level={next(o for o in LEVELS if o != level)}",
        )
    wording = words.read_wording(brief)
    first = 5 if brief.style.shots and brief.options["layout"] == "message" else 1
    skipped = _find_examples(chats) if brief.excludes else frozenset()
    kept = []
    for chat in chats:
        laid = _lay(chat, known, _order(brief, chat))
        images = tuple(image for meme in laid.memes if (image := brief.show(meme)))
        if chat.id not in skipped and len(images) == len(laid.memes):
            kept.append((chat, laid, images))
    majority = most_frequent(laid.letter for _, laid, _ in kept)
    for chat, laid, images in kept:
        options = _write_options(wording, brief.style, laid, first=first)
        field = records.Field("answer", "choice", options, majority=majority)
        item = _item(brief, chat, laid, field, images)
        if brief.options.get("wording") == "official":
            told = {**item.form.context, **_number_facts(brief.style, laid, first=first)}
            item = replace(item, form=replace(item.form, context=told))
        yield item


def _find_examples(chats: Sequence[ChatRecord]) -> frozenset[str]:
    """Return the example chats: the authors', and the first suitable chat of this copy."""
    ours = [chat.id for chat in chats if examples.is_example(chat, "ours")][:1]
    return frozenset([*ours, *(chat.id for chat in chats if examples.is_example(chat, "authors"))])


def _item(
    brief: words.Brief,
    chat: ChatRecord,
    laid: Laid,
    field: records.Field,
    images: tuple[records.Image, ...],
) -> records.Item:
    return records.Item(
        id=chat.id,
        group=chat.correct,
        gold=laid.letter,
        form=records.Form(
            QUESTION[brief.language],
            (field,),
            language=brief.language,
            context={"history": write_history(chat)},
        ),
        images=images,
        tags={"topic": chat.topic, "level": chat.level, "kinds": " ".join(laid.kinds)},
    )


def _parse(brief: words.Brief, text: str, form: records.Form) -> JsonValue:
    if brief.options["parser"] == "paper":
        return parse_as_published(text, form.language, reasons=brief.style.reasons)
    options = {option.key: option.text for option in form.fields[0].options}
    return parse_letter(text, options)


def parse_as_published(text: str, language: str, *, reasons: bool = False) -> str:
    """Apply the official parsing rule: a letter, alone or before an ASCII colon.

    >>> parse_as_published("B: 第二张表情包", "zh")
    'B'
    """
    body = re.split(_MARKERS[language], text, flags=re.IGNORECASE)[-1] if reasons else text
    letter = body.strip().partition(":")[0].strip()
    if letter not in ("A", "B", "C", "D"):
        raise Unparsed("reply must be a letter from A to D, alone or followed by a colon")
    return letter


def score(outcomes: Sequence[records.Outcome]) -> tuple[records.Score, ...]:
    """Return accuracy overall, by topic and by correct letter, and the chosen distractors."""
    return (
        accuracy_score("accuracy", outcomes),
        *accuracies_by(outcomes, "topic", TOPICS, lambda outcome: outcome.item.tags["topic"]),
        *accuracies_by(outcomes, "position", LETTERS[:4], lambda outcome: str(outcome.item.gold)),
        *_chosen(outcomes),
    )


def _chosen(outcomes: Sequence[records.Outcome]) -> Iterator[records.Score]:
    """Return how often each type of option was chosen, among valid answers."""
    taken = [
        outcome.item.tags["kinds"].split()[LETTERS.index(str(outcome.value))]
        for outcome in outcomes
        if outcome.status == "answered"
    ]
    counts = Counter(taken)
    kinds = dict.fromkeys(k for o in outcomes for k in sorted(o.item.tags["kinds"].split()))
    for kind in kinds:
        share = counts[kind] / len(taken) if taken else None
        yield records.Score("proportion", share, len(taken), by="chosen", label=kind)
