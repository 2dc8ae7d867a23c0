"""Requests and replies of the two writing steps: what to ask, then wrong options.

One request covers several questions about one meme. The image and everything that is known come
first, in whole sentences, so that all requests of a meme share a prefix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import Field, JsonValue

from memantics.construction.questions.asking import (
    QuestionSubject,
    define,
    even_out,
    guide,
    list_near,
    tell_focus,
)
from memantics.construction.questions.critic import alike, fold
from memantics.construction.questions.records import (
    Evidence,
    PromptVersion,
    QuestionDraft,
    QuestionSettings,
    Slot,
    draw,
)
from memantics.core.data import toml_beside
from memantics.core.memes import NOTED
from memantics.core.prompt import Prompt, enclose, read_prompts
from memantics.core.records import Closed, Form, Image, Message, Request
from memantics.core.reply import find_values, take_one
from memantics.core.task import Unparsed
from memantics.core.text import clean_line, cut_short
from memantics.models.drafts import array, name_language, record, show_material
from memantics.understanding.extraction.reading import Directory
from memantics.understanding.knowledge.records import Individual, Knowledge

_PROMPTS = Path(__file__).parent / "prompts"
_MOST_KNOWN, _LONGEST, _POINT = 80, 600, 300
WRONG = 4
_LEAST, _WIDE = 0.75, 1.3  # the range of lengths around the key


class SaidKey(Closed):
    """Schema of one question and its key, as the first step returns it."""

    about: str = ""
    question: str = Field(min_length=1)
    key: str = Field(min_length=1)
    evidence: list[SaidEvidence] = Field(default=[], max_length=20)
    trap: str = ""
    why: str = ""


class SaidEvidence(Closed):
    """Schema of the words of a known fact."""

    fact: str
    words: str


class SaidWrong(Closed):
    """Schema of the wrong options of one question, as the second step returns them."""

    wrong: list[str] = Field(min_length=1, max_length=12)


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """Store a worked example: a question about a meme that does not exist."""

    meme: str
    question: str
    key: str
    trap: str
    wrong: tuple[str, ...]
    why: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that a draft must not repeat."""
        return (self.question, self.key, *self.wrong)


@cache
def find_step_prompts(version: PromptVersion) -> Mapping[str, Prompt]:
    """Return the prompts of a version; those that it did not change are of an earlier one."""
    prompts: dict[str, Prompt] = {}
    for earlier in _list_versions(version):
        prompts |= read_prompts(_PROMPTS / earlier)
    return prompts


def _list_versions(version: PromptVersion) -> list[str]:
    """Return the versions on which a version builds, the oldest first."""
    return [earlier for earlier in ("2", "3", "4") if earlier <= version]


@cache
def read_examples(language: str, version: PromptVersion) -> Mapping[str, WorkedExample]:
    """Return the worked examples by dimension, in Chinese for Chinese questions."""
    end = "_zh.toml" if language == "zh" else ".toml"
    entries = toml_beside(__file__, f"examples{end}")
    for earlier in _list_versions(version)[1:]:
        changed = toml_beside(__file__, f"examples_{earlier}{end}")
        entries |= {name: entries[name] | entry for name, entry in changed.items()}
    return {
        dimension: WorkedExample(**{**entry, "wrong": tuple(entry["wrong"])})
        for dimension, entry in entries.items()
    }


def guide_step(dimension: str, settings: QuestionSettings) -> str:
    """Return what a question tests; since version 3 they say which form of question does that."""
    spec, prompts = settings.specs.get(dimension), find_step_prompts(settings.version)
    if dimension in prompts and not (spec is not None and spec.question):
        return prompts[dimension].text
    return guide(dimension, settings)


def find_example(dimension: str, settings: QuestionSettings) -> WorkedExample:
    """Return the worked example of a dimension; dimensions of users share one."""
    examples = read_examples(settings.language, settings.version)
    return examples.get(dimension, examples["own"])


def is_copied(draft: QuestionDraft, settings: QuestionSettings) -> bool:
    """Return whether a draft repeats the question or the key of a worked example."""
    return any(
        alike(draft.question, example.question) or alike(draft.correct, example.key)
        for example in read_examples(settings.language, settings.version).values()
    )


def list_known(individuals: Sequence[Individual]) -> str:
    """List facts in whole: label, kind and full description, one per line."""
    lines = []
    for one in individuals[:_MOST_KNOWN]:
        told = "; ".join(part for part in (one.kind, cut_short(one.description, _LONGEST)) if part)
        lines.append(f"{one.key}: {one.label}" + (f" ({told})" if told else ""))
    return enclose("known about the meme", "\n".join(lines))


def show_meme(subject: QuestionSubject) -> str:
    """Show the printed text, the notes (homophones, template) and everything that is known."""
    notes = {name: subject.meme.notes.get(name, "") for name in NOTED}
    material = show_material({"printed text": subject.meme.text, **notes}, nothing="")
    known = subject.knowledge.individuals
    return f"{material}\n\n{list_known(known) if known else ''}".strip()


def pose(
    subject: QuestionSubject,
    system: str,
    text: str,
    schema: dict[str, JsonValue],
    settings: QuestionSettings,
) -> Request:
    """Return a request: the role, then the image and what is known, then the task."""
    form = Form("", (), settings.language, "json")
    parts = (Image(subject.meme.image), show_meme(subject), text)
    messages = (Message("system", (system,)), Message("user", parts))
    return Request(messages, form, settings.sampling, schema)


def ask_keys(
    subject: QuestionSubject,
    slots: Sequence[Slot],
    settings: QuestionSettings,
    earlier: Sequence[str] = (),
) -> Request:
    """Return the request of step 1: the questions and keys of some planned questions of a meme."""
    prompts = find_step_prompts(settings.version)
    told = [_tell_slot(n, slot, subject.knowledge, settings) for n, slot in enumerate(slots, 1)]
    entry: dict[str, JsonValue] = dict.fromkeys(SaidKey.model_fields, "…")
    entry["evidence"] = [{"fact": "…", "words": "…"}]
    text = prompts["ask"].fill(
        slots="\n\n".join(told),
        examples="\n\n".join(_show_examples(slots, settings, wrong=False)),
        language=name_language(settings.language),
        words=str(settings.words),
        reply=_dump({str(n): entry if n == 1 else "…" for n in range(1, len(slots) + 1)}),
    )
    if earlier:
        shown = enclose("earlier", "\n".join(clean_line(one, 600) for one in earlier))
        text = f"{text}\n\n{prompts['again'].fill(earlier=shown)}"
    keys: list[JsonValue] = [one.key for one in subject.knowledge.individuals[:_MOST_KNOWN]]
    fact: JsonValue = {"type": "string", **({"enum": keys} if keys else {})}
    words: JsonValue = {"type": "string", "minLength": 1}
    fields = {
        str(n): record(
            about={"type": "string", "enum": [slot.focus]},
            question=words,
            key={"type": "string", "minLength": 1, "maxLength": 2 * settings.letters},
            evidence=array(record(fact=fact, words=words), 0 if not keys else 1, 3),
            trap=words,
            why={"type": "string"},
        )
        for n, slot in enumerate(slots, 1)
    }
    return pose(subject, prompts["system"].text, text, record(**fields), settings)


def _tell_slot(number: int, slot: Slot, knowledge: Knowledge, settings: QuestionSettings) -> str:
    low, high = find_range(slot, settings)
    focus = knowledge.by_key.get(slot.focus)
    lines = [f"{number}. {define(slot.dimension, settings)} {guide_step(slot.dimension, settings)}"]
    if focus is None:
        lines.append("Nothing is known of it: decide from the meme itself.")
    else:
        lines.append(enclose("element", tell_focus(focus, slot, knowledge)))
        near = ", ".join(one.key for one in list_near(knowledge, focus)[:6])
        lines += [f"Linked with it: {near}."] if near else []
    lines.append(f"Key: {low} to {high} characters.")
    return "\n".join(lines)


def find_range(slot: Slot, settings: QuestionSettings) -> tuple[int, int]:
    """Return the range of characters of a key, drawn per question so that lengths vary."""
    middle = settings.letters * (14 + draw(9, settings.seed, "length", slot.id)) // 24
    return max(4, int(0.6 * middle)), max(10, int(1.25 * middle))


def _show_examples(slots: Sequence[Slot], settings: QuestionSettings, *, wrong: bool) -> list[str]:
    shown = {}
    for slot in slots:
        example = find_example(slot.dimension, settings)
        lines = [
            f"Made-up meme: {example.meme}",
            f"question: {example.question}",
            f"key: {example.key}",
            f"trap: {example.trap}",
        ]
        lines += [f"wrong: {'; '.join(example.wrong)}"] if wrong else [f"why: {example.why}"]
        shown[example.question] = "\n".join(lines)
    return list(shown.values())


def ask_options(
    subject: QuestionSubject,
    asked: Sequence[tuple[Slot, QuestionDraft]],
    settings: QuestionSettings,
    faults: Mapping[str, str] | None = None,
    others: Mapping[str, Sequence[str]] | None = None,
) -> Request:
    """Return the request of step 2: the wrong options of questions whose keys exist.

    ``faults`` are faults of earlier options, and ``others`` points of other memes, by id of the
    planned question.
    """
    prompts, told = find_step_prompts(settings.version), []
    for number, (slot, draft) in enumerate(asked, 1):
        low, high = find_option_range(draft)
        told.append(
            f"{number}. {draft.question}\nkey: {draft.correct}\nwhy: {draft.explanation}\n"
            f"trap: {draft.trap}\nWrong options: {low} to {high} characters. "
            + _tell_lengths(slot, draft, settings)
        )
        if settings.full_rubric and others and others.get(slot.id):
            shown = " | ".join(clean_line(one, _POINT) for one in others[slot.id])
            told[-1] += "\n" + prompts["others"].fill(others=shown)
    text = prompts["options"].fill(
        asked=enclose("questions", "\n\n".join(told)),
        examples="\n\n".join(_show_examples([slot for slot, _ in asked], settings, wrong=True)),
        language=name_language(settings.language),
        reply=_dump({str(n): {"wrong": ["…"] * WRONG} for n in range(1, len(asked) + 1)}),
    )
    noted = [
        f"{number}. {faults[slot.id]}"
        for number, (slot, _) in enumerate(asked, 1)
        if faults and slot.id in faults
    ]
    if noted:
        shown = enclose("faults", "\n".join(clean_line(note, 900) for note in noted))
        text = f"{text}\n\n{prompts['repair'].fill(faults=shown)}"
    option: JsonValue = {"type": "string", "minLength": 1, "maxLength": 2 * settings.letters}
    wrong = array(option, WRONG, WRONG + 2)
    fields = {str(n): record(wrong=wrong) for n in range(1, len(asked) + 1)}
    return pose(subject, prompts["system"].text, text, record(**fields), settings)


def _tell_lengths(slot: Slot, draft: QuestionDraft, settings: QuestionSettings) -> str:
    if settings.full_rubric:
        return f"The key has {len(draft.correct)}: two of them longer, two shorter."
    if slot.longest == "wrong":
        return "Make at least two wrong options a few characters longer than the key."
    return "Make the key the longest by a few characters."


def find_option_range(draft: QuestionDraft) -> tuple[int, int]:
    """Return the range of characters of the wrong options around the key's length."""
    size = len(draft.correct)
    return max(2, min(int(_LEAST * size), size - 2)), max(int(_WIDE * size), size + 3)


def read_entries(text: str, count: int) -> dict[int, dict[str, JsonValue]]:
    """Read a reply with one entry per question, as an object with numbers or as a list."""
    said = take_one(find_values(text))
    if isinstance(said, dict) and len(said) == 1:
        (inner,) = said.values()
        whole = isinstance(inner, list) or (isinstance(inner, dict) and "1" in inner)
        said = inner if whole else said
    if isinstance(said, list):
        said = {str(n): entry for n, entry in enumerate(said, 1)}
    if not isinstance(said, dict):
        raise Unparsed("the reply must be one JSON object with one entry per question")
    return {n: e for n in range(1, count + 1) if isinstance(e := said.get(str(n)), dict)}


def make_draft(said: SaidKey, slot: Slot, knowledge: Knowledge) -> QuestionDraft:
    """Return a draft without options; its citations are its subject and its evidence."""
    directory = Directory(knowledge.individuals)

    def resolve(name: str) -> str:
        return name if name in knowledge.by_key else directory.resolve(name)

    evidence = tuple(
        Evidence(resolve(one.fact), clean_line(one.words, _LONGEST)) for one in said.evidence
    )
    cites = [slot.focus] if slot.focus else []
    cites += [one.fact for one in evidence] if slot.focus else []
    return QuestionDraft(
        clean_line(said.question, 600),
        even_out(clean_line(said.key, 300)),
        (),
        (),
        clean_line(said.why, 1000),
        tuple(dict.fromkeys(cites)),
        evidence if slot.focus else (),
        clean_line(said.trap, 300),
    )


def add_options(draft: QuestionDraft, said: SaidWrong) -> QuestionDraft:
    """Return a draft with wrong options; empty and repeated ones are left out."""
    texts = {fold(text): even_out(clean_line(text, 300)) for text in said.wrong if text.strip()}
    return replace(draft, plausible=tuple(texts.values()))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
