"""The final check: a reader judges each question in the form in which it will be published.

The reader sees the image, the cited facts and the options, and is not told which option is the key.
It says which options can be defended as right, which say the same, which answer another question,
and whether form or length tells the key. Since version 3 it covers the whole rubric of ratings: it
also says which option can be chosen without the meme or without understanding it, and whether the
wording is natural.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from memantics.construction.questions.asking import LETTERS, QuestionSubject
from memantics.construction.questions.assembly import AssembledQuestion
from memantics.construction.questions.critic import content
from memantics.construction.questions.form import find_form_faults, find_suspects
from memantics.construction.questions.records import Defect, QuestionSettings
from memantics.construction.questions.solver import draw_orders
from memantics.construction.questions.writing import find_step_prompts, list_known, read_entries
from memantics.core.memes import NOTED
from memantics.core.model import Asker, Step
from memantics.core.prompt import enclose
from memantics.core.records import Closed, Form, Image, Message, Request
from memantics.core.reply import conform_value
from memantics.core.task import Unparsed
from memantics.models.drafts import array, choice, record, show_material
from memantics.models.embedded.encoder import Encoder
from memantics.understanding.extraction.chain import in_order

_WINDOW = 64
_LETTER = re.compile(r"\W*([A-D])(?![A-Z])", re.IGNORECASE)
_LETTERS, _ONE = array(choice(*LETTERS), 0, 4), choice(*LETTERS, "")
# What a reader is asked about each question: an example of the reply, and its schema.
_POINTS: Mapping[str, tuple[JsonValue, JsonValue]] = {
    "right": (["…"], _LETTERS),
    "follows": (["…"], _LETTERS),
    "same": ([], _LETTERS),
    "off": ([], _LETTERS),
    "told": ("", _ONE),
    "unseen": ("…", _ONE),
    "glance": ("…", _ONE),
    "awkward": (False, {"type": "boolean"}),
    "none": (False, {"type": "boolean"}),
}
_SINCE_3, _SINCE_4 = frozenset({"unseen", "glance", "awkward"}), frozenset({"none"})
_REPEATED = Defect(
    "asked before", "another meme has the same question: point at a detail that only this meme has"
)


def _take_letter(said: object) -> object:
    """Return the letter of an option as models write it: "a", "(B)", "C. A cat"; "" for none."""
    if not isinstance(said, str) or not said.strip():
        return "" if said is None or isinstance(said, str) else said
    if (found := _LETTER.match(said)) is None:
        raise ValueError(f"{said[:20]!r} is not a letter of an option")
    return found[1].upper()


_Letter = Annotated[str, BeforeValidator(_take_letter)]
_Letters = Annotated[list[_Letter], Field(max_length=4)]


class SaidCheck(Closed):
    """Schema of the judgement of one question.

    ``unseen``, ``glance`` and ``awkward`` are asked since version 3, ``none`` since version 4.
    """

    right: _Letters = Field(default=[])
    follows: _Letters = Field(default=[])
    same: _Letters = Field(default=[])
    off: _Letters = Field(default=[])
    told: _Letter = ""
    unseen: _Letter = ""
    glance: _Letter = ""
    awkward: bool = False
    none: bool = False


@dataclass(frozen=True, slots=True)
class FinalCheck:
    """Store the faults of one question in its final form.

    ``silent`` says why there is no readable judgement of a model.
    """

    faults: tuple[Defect, ...] = ()
    silent: str = ""


@dataclass(slots=True)
class Examiner:
    """Check questions with rules, vectors and a reader; without a reader, with rules alone."""

    asker: Asker | None
    subjects: Mapping[str, QuestionSubject]
    settings: QuestionSettings
    encoder: Encoder
    done: dict[str, tuple[AssembledQuestion, FinalCheck]] = field(default_factory=dict)

    def find_faults(self, item: AssembledQuestion) -> list[Defect]:
        """Return what the rules find in the options as shown."""
        wrong = [option.text for option in item.wrong]
        key = item.correct.text if item.correct is not None else None
        faults = list(find_form_faults(item.draft.question, key, wrong))
        if key is None and not self.settings.may_deny(item.slot.dimension):
            faults.append(Defect("none", "'None of the others' takes the point away here"))
        return faults

    async def check(self, items: Sequence[AssembledQuestion]) -> dict[str, FinalCheck]:
        """Check questions; one that has not changed since its last check is not asked again."""
        new = [item for item in items if self.done.get(item.id, (None,))[0] != item]
        ruled = {item.id: tuple(self.find_faults(item)) for item in new}
        if self.settings.full_rubric:
            for repeated in list_repeated(items):
                if repeated.id in ruled:
                    ruled[repeated.id] += (_REPEATED,)
        sound = [item for item in new if not ruled[item.id]]
        judged: dict[str, FinalCheck] = {}
        if self.asker is not None:
            jobs = (self._ask(self.asker, few) for few in self._group(sound))
            async for found in in_order(jobs, _WINDOW):
                judged |= found
        for item in new:
            result = judged.get(item.id, FinalCheck())
            if ruled[item.id]:
                result = FinalCheck(ruled[item.id])
            self.done[item.id] = item, result
        return {item.id: self.done[item.id][1] for item in items}

    def _group(self, items: Sequence[AssembledQuestion]) -> Iterator[list[AssembledQuestion]]:
        memes: dict[str, list[AssembledQuestion]] = {}
        for item in items:
            memes.setdefault(item.slot.meme, []).append(item)
        most = self.settings.at_once
        for few in memes.values():
            yield from (few[place : place + most] for place in range(0, len(few), most))

    async def _ask(self, asker: Asker, items: Sequence[AssembledQuestion]) -> dict[str, FinalCheck]:
        orders = {item.id: draw_orders(item, self.settings)[0] for item in items}
        asked = list_points(self.settings)

        def read(text: str) -> dict[str, FinalCheck]:
            entries = read_entries(text, len(items))
            if len(entries) < len(items):
                raise Unparsed(f"{len(items)} judgements are needed, one for each question")
            for number, entry in entries.items():
                if missing := [name for name in asked if name not in entry]:
                    raise Unparsed(f"{number} lacks {', '.join(missing)}")
            return {
                item.id: FinalCheck(
                    tuple(list_faults(item, conform_value(SaidCheck, entries[n]), orders[item.id]))
                )
                for n, item in enumerate(items, 1)
            }

        request = self._pose(items, orders)
        taken = await asker.take(Step(f"{items[0].id}/check", request, read, 2))
        if taken.value is not None:
            return taken.value
        if len(items) > 1:  # a question that a model refuses must not spoil the others
            alone = [await self._ask(asker, [item]) for item in items]
            return {name: check for found in alone for name, check in found.items()}
        return {items[0].id: FinalCheck(silent=f"{taken.status}: {taken.reason}")}

    def _pose(
        self, items: Sequence[AssembledQuestion], orders: Mapping[str, tuple[int, ...]]
    ) -> Request:
        settings = self.settings
        prompts = find_step_prompts(settings.version)
        subject = self.subjects[items[0].slot.meme]
        shown = []
        for number, item in enumerate(items, 1):
            texts = list_options(item, orders[item.id], settings)
            lines = [f"{number}. {item.draft.question}"]
            lines += [f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=True)]
            if item.draft.cites:
                lines.append(f"Cited facts: {', '.join(item.draft.cites)}")
            for one, other in find_suspects([o.text for o in item.shown], self.encoder):
                pair = " and ".join(LETTERS[texts.index(text)] for text in (one, other))
                lines.append(f"Look closely whether {pair} say the same or can both be right.")
            shown.append("\n".join(lines))
        points = list_points(settings)
        entry = {name: _POINTS[name][0] for name in points}
        text = prompts["check"].fill(
            count=str(len(items)),
            asked=enclose("questions", "\n\n".join(shown)),
            reply=json.dumps(
                {str(n): entry if n == 1 else "…" for n in range(1, len(items) + 1)},
                ensure_ascii=False,
            ),
        )
        cited = {key for item in items for key in item.draft.cites}
        known = [one for one in subject.knowledge.individuals if one.key in cited]
        notes = {name: subject.meme.notes.get(name, "") for name in NOTED}
        material = show_material({"printed text": subject.meme.text, **notes}, "")
        facts = list_known(known) if known else ""
        judgement = record(**{name: _POINTS[name][1] for name in points})
        schema = record(**{str(n): judgement for n in range(1, len(items) + 1)})
        parts = (Image(subject.meme.image), f"{material}\n\n{facts}".strip(), text)
        messages = (
            Message("system", (prompts["critic_system"].text,)),
            Message("user", tuple(part for part in parts if part)),
        )
        return Request(messages, Form("", (), settings.language, "json"), settings.sampling, schema)


def list_points(settings: QuestionSettings) -> tuple[str, ...]:
    """Return what a version asks a reader about each question."""
    late = _SINCE_4 if settings.version != "4" else frozenset()
    late |= _SINCE_3 if not settings.full_rubric else frozenset()
    return tuple(name for name in _POINTS if name not in late)


def list_repeated(items: Sequence[AssembledQuestion]) -> list[AssembledQuestion]:
    """Return the items whose question an earlier item asks about another meme."""
    first: dict[frozenset[str], str] = {}
    repeated = []
    for item in items:
        words = content(item.draft.question) or frozenset({item.draft.question})
        if first.setdefault(words, item.slot.meme) != item.slot.meme:
            repeated.append(item)
    return repeated


def list_options(
    item: AssembledQuestion, order: Sequence[int], settings: QuestionSettings
) -> list[str]:
    """Return the four options of a question in an order."""
    texts = [*(option.text for option in item.shown), settings.none_text]
    return [texts[place] for place in order]


def list_faults(item: AssembledQuestion, said: SaidCheck, order: Sequence[int]) -> Iterator[Defect]:
    """Yield the faults that a judgement names; option texts tell the writer what to replace."""
    texts = [*(option.text for option in item.shown), ""]
    key = LETTERS[list(order).index(0 if item.correct is not None else 3)]

    def tell(letter: str) -> str:
        return texts[order[LETTERS.index(letter)]] if letter in LETTERS else ""

    right, off = set(said.right), set(said.off)
    if key not in right:
        yield Defect("key wrong", "a reader does not find the key among the right answers")
    elif item.draft.cites and item.correct is not None and key not in said.follows:
        yield Defect("key unsupported", "the key does not follow from the cited facts")
    for letter in sorted(right - {key}):
        if tell(letter):
            message = f"{tell(letter)!r} can be defended as right, too"
            yield Defect("two right", message, tell(letter))
    if len(set(said.same)) > 1:
        pair = [tell(letter) for letter in sorted(set(said.same)) if tell(letter)]
        wrong = next((text for text in pair if text != tell(key)), "")
        if wrong:
            yield Defect(
                "options equivalent", f"{' and '.join(map(repr, pair))} say the same", wrong
            )
    for letter in sorted(off):
        if tell(letter):
            fault = "" if letter == key else tell(letter)
            yield Defect("no answer", f"{tell(letter)!r} does not answer the question", fault)
    denied = said.none and item.correct is not None
    for at_fault, code, message in (
        (said.unseen == key, "meme not needed", "a reader chooses the key from the question alone"),
        (said.glance == key, "no point", "a reader who misses the point chooses the key, too"),
        (said.awkward, "wording", "the question or an option is unclear or stilted"),
        (denied, "none defensible", "'None of the others' can be defended: the key is inexact"),
    ):
        if at_fault:
            yield Defect(code, message)
    if said.told == key:
        yield Defect("form tells", "form, length or wording sets the key apart", texts[-2])
