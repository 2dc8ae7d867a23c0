"""Items and requests of MemeIntent tasks: options, prompts, context and few-shot examples.

Few-shot examples (demonstrations) come from the package or from the user's TOML file, with images.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from memantics.benchmarks.memeintent.load import IntentMeme, open_release
from memantics.benchmarks.plugin import TaskSetup
from memantics.core.data import Source, inside, load_toml, open_once
from memantics.core.errors import DataError, InputError, MissingExtra, first_fault
from memantics.core.files import read_regular
from memantics.core.images import read_bytes
from memantics.core.language import read_script
from memantics.core.prompt import Prompt
from memantics.core.records import Field, Form, Image, Item, Message, Request, Sampling
from memantics.core.retrieval import Library, Passage, make_library, read_library
from memantics.core.task import BertSettings, Direction, Need, NliSettings, Services
from memantics.metrics.text import Smoothing, Tokenizer, find_constant_text

_SHAPE = (
    "expected [[demonstration]] with text, image_caption, background, intent, and optionally image"
)
FOLDER = Path(__file__).parent
QUESTIONS = {
    "intent": "What does the author of this meme do with it?",
    "background": "What must one know to understand this meme?",
    "caption": "What does the picture of this meme show?",
}
# Texts about a meme that a prompt may contain, in this order.
GIVEN = ("text", "image_caption", "background")
FedAnswers = Mapping[str, Mapping[str, str]]
_HINT = "add the images (data add --images DIR), or use --set images=present or --set role=text"


class Demonstration(BaseModel):
    """One few-shot example of the few-shot settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    image_caption: str
    background: tuple[str, ...]
    intent: str
    image: str = ""


class _Demonstrations(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    demonstration: tuple[Demonstration, ...]


def read_demonstrations(path: Path) -> tuple[tuple[Demonstration, ...], str]:
    """Read few-shot examples from a TOML file, with a hash that covers their images."""
    try:
        body = read_regular(path)
        shown = _Demonstrations.model_validate(load_toml(body.decode())).demonstration
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, f"cannot be read: {error}", hint=_SHAPE) from error
    except ValidationError as error:
        raise DataError(path, first_fault(error), hint=_SHAPE) from error
    total = hashlib.sha256(body)
    for demonstration in shown:
        if demonstration.image:
            total.update(read_bytes(inside(path.parent, demonstration.image)))
    placed = (
        demonstration.model_copy(update={"image": str(path.parent / demonstration.image)})
        if demonstration.image
        else demonstration
        for demonstration in shown
    )
    return tuple(placed), total.hexdigest()[:16]


_OFF, _OURS, _DATA = "off", "ours", "data"


@dataclass(frozen=True, slots=True)
class IntentAsking:
    """The options of a task that affect its requests."""

    task: Literal["intent", "background", "caption"]
    role: str
    few: bool
    background: str
    captions: str
    only_present: bool
    greedy: bool
    max_tokens: int | None
    demonstrations: Path | None = None
    knowledge: Path | None = None
    passages: int = 3

    @property
    def needs_picture(self) -> bool:
        """Whether the task needs an image, so that a meme without one cannot be used."""
        return self.role == "vlm" or self.captions == "model"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The tasks whose answers are needed first."""
        shared = {
            "images": "present" if self.only_present else "all",
            "decoding": "greedy" if self.greedy else "server",
        }
        own_options = {
            "role": self.role,
            "shots": "few" if self.few else "zero",
            "captions": self.captions,
        }
        if self.demonstrations is not None:
            own_options["demonstrations"] = str(self.demonstrations)
        needs = []
        if self.background == "auto":
            needs.append(Need("background", "memeintent/background", shared | own_options))
        if self.captions == "model":
            needs.append(Need("image_caption", "memeintent/caption", shared, captioner=True))
        return tuple(needs)


@dataclass(frozen=True, slots=True)
class Scoring:
    """The options of a task that affect its scores."""

    strip_prefix: bool
    by_fact: bool
    smoothing: Smoothing
    tokenizer: Tokenizer
    lower: bool
    stem: bool
    with_bleu: bool
    neural_known: bool
    bert: BertSettings | None
    nli: NliSettings | None
    services: Services


def read_asking(setup: TaskSetup) -> IntentAsking:
    """Return the options that affect requests, with defaults for those that a task lacks."""
    chosen = setup.options
    shown, facts = chosen.get("demonstrations", _OURS), chosen.get("knowledge", _DATA)
    if shown != _OURS and chosen.get("shots") != "few":
        raise InputError("demonstrations need shots=few", hint="add --set shots=few")
    if facts != _DATA and chosen.get("background") != "retrieved":
        raise InputError(
            "knowledge sources need background=retrieved",
            hint="add --set background=retrieved",
        )
    return IntentAsking(
        task=cast("Literal['intent', 'background', 'caption']", setup.card.name),
        role=chosen.get("role", "vlm"),
        few=chosen.get("shots") == "few",
        background=chosen.get("background", "none"),
        captions=chosen.get("captions", "none"),
        only_present=chosen["images"] == "present",
        greedy=chosen["decoding"] == "greedy",
        max_tokens=None
        if chosen["max_tokens"] == "server"
        else _number("max_tokens", chosen["max_tokens"], 1, 131_072),
        demonstrations=None if shown == _OURS else Path(shown).expanduser(),
        knowledge=None if facts == _DATA else Path(facts).expanduser(),
        passages=_number("passages", chosen.get("passages", "3"), 1, 50),
    )


def read_scoring(chosen: Mapping[str, str], services: Services) -> Scoring:
    """Return the options of a task that affect scores."""
    return Scoring(
        strip_prefix=chosen.get("strip_prefix") == "yes",
        by_fact=chosen.get("against") == "facts",
        smoothing=cast("Smoothing", chosen.get("bleu_smoothing", "none")),
        tokenizer=cast("Tokenizer", chosen.get("bleu_tokenizer", "words")),
        lower=chosen.get("bleu_case", "lower") == "lower",
        stem=chosen["stemmer"] == "porter",
        with_bleu="bleu_smoothing" in chosen,
        neural_known="bertscore" in chosen,
        bert=_read_bert(chosen),
        nli=_read_nli(chosen),
        services=services,
    )


def check_scoring(scoring: Scoring) -> None:
    """Raise an error before the first model call if a metric cannot be computed."""
    for settings in (scoring.bert, scoring.nli):
        if settings is not None:
            scoring.services.check_text_model(settings.path)
    wanted = ["nltk"] if scoring.stem else []
    wanted += ["torch", "transformers"] if scoring.bert or scoring.nli else []
    if not all(importlib.util.find_spec(name) for name in wanted):
        raise MissingExtra("neural metrics and stemming", "text")


def _read_bert(chosen: Mapping[str, str]) -> BertSettings | None:
    path = chosen.get("bertscore", _OFF)
    if path == _OFF:
        return None
    layer, table = chosen["bertscore_layer"], chosen["bertscore_rescale"]
    return BertSettings(
        Path(path).expanduser(),
        None if layer == "auto" else _number("bertscore_layer", layer, 0, 1000),
        None if table == _OFF else Path(table).expanduser(),
    )


def _read_nli(chosen: Mapping[str, str]) -> NliSettings | None:
    path = chosen.get("nli", _OFF)
    if path == _OFF:
        return None
    labels = None
    if chosen["nli_labels"] != "auto":
        first, _, second = chosen["nli_labels"].partition("-")
        labels = (_number("nli_labels", first, 0, 99), _number("nli_labels", second, 0, 99))
    return NliSettings(
        Path(path).expanduser(),
        cast("Direction", chosen["nli_direction"]),
        labels,
        by_sentence=chosen["nli_unit"] == "sentences",
    )


def _number(option: str, text: str, low: int, high: int) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 9 and low <= int(text) <= high:
        return int(text)
    raise InputError(
        f"option {option}: {text!r} is not an integer from {low} to {high:,}",
        hint=f"for example --set {option}={max(low, min(high, 100))}",
    )


class IntentPrompts(NamedTuple):
    """The prompts and few-shot examples of one task."""

    asking: IntentAsking
    prompts: Mapping[str, Prompt]
    demonstrations: tuple[Demonstration, ...]
    hashes: Mapping[str, str]

    @property
    def main(self) -> Prompt:
        """The prompt of the last turn."""
        return self.prompts[_name(self.asking.task, self.asking.role)]


def read_wording(asking: IntentAsking, known: Mapping[str, Prompt]) -> IntentPrompts:
    """Return the prompts that a run with these options uses, with their hashes."""
    names = {_name(asking.task, asking.role), "again"}
    if asking.task != "caption":
        names |= {f"given_{name}" for name in GIVEN}
    shown: tuple[Demonstration, ...] = ()
    hashes: dict[str, str] = {}
    if asking.few:
        names.add(_name(asking.task, "text"))
        shown, hashes["demonstrations"] = read_demonstrations(
            asking.demonstrations or FOLDER / "demonstrations.toml"
        )
    prompts = {name: known[name] for name in sorted(names)}
    return IntentPrompts(asking, prompts, shown, {n: p.hash for n, p in prompts.items()} | hashes)


def _name(task: str, role: str) -> str:
    return "caption" if task == "caption" else f"{task}_{role}"


def make_items(setup: TaskSetup, asking: IntentAsking, fed: FedAnswers) -> Iterator[Item]:
    """Yield the items of a split; answers of other tasks become a part of their context."""
    memes, constant = _read(setup.need_source(), setup.split)
    library = None
    if asking.background == "retrieved":
        library = read_library(asking.knowledge) if asking.knowledge else _list_facts(memes)
    field = Field(asking.task, "text", majority=constant if asking.task == "intent" else None)
    for meme in memes:
        if asking.needs_picture and setup.picture(meme.image, meme.id, _HINT) is None:
            continue
        yield _make_item(meme, field, asking, _look_up(meme, asking, library, fed))


def _list_facts(memes: Sequence[IntentMeme]) -> Library:
    """Return the background facts that annotators wrote about all memes."""
    return make_library([Passage(f, f"meme {meme.id}") for meme in memes for f in meme.background])


def _look_up(
    meme: IntentMeme, asking: IntentAsking, library: Library | None, fed: FedAnswers
) -> FedAnswers:
    """Return answers of other tasks and retrieved passages, never the meme's own annotations."""
    if library is None:
        return fed
    question = f"{meme.text} {meme.image_caption if asking.captions == 'data' else ''}"
    this_meme = f"meme {meme.id}"
    most = asking.passages + len(meme.background)
    found = [p for p in library.find(question, most) if p.source != this_meme][: asking.passages]
    facts = {meme.id: list_facts([passage.text for passage in found])}
    return {**fed, "retrieved": facts, "sources": {meme.id: "; ".join(p.source for p in found)}}


@cache
def _read(source: Source, split: str) -> tuple[tuple[IntentMeme, ...], str | None]:
    """Return the memes and the best constant intent; cached for repeated iteration of items."""
    memes = tuple(open_once(open_release, source).memes(split))
    return memes, find_constant_text([meme.intents for meme in memes])


def _make_item(meme: IntentMeme, field: Field, asking: IntentAsking, fed: FedAnswers) -> Item:
    context, tags = _find_context(meme, asking, fed)
    gold: Mapping[str, list[str]] = {
        "intent": list(meme.intents),
        "background": ["\n".join(meme.background)] if meme.background else [],
        "caption": [meme.image_caption],
    }
    return Item(
        id=meme.id,
        group=meme.id,
        gold=[*gold[asking.task]],
        form=Form(QUESTIONS[asking.task], (field,), reply="text", context=context),
        images=(Image(meme.image),) if meme.image else (),
        tags={"split": meme.split, **_find_language(meme), **tags},
    )


def _find_language(meme: IntentMeme) -> Mapping[str, str]:
    """Return the language of a meme; all tasks get the same one, even those without its text."""
    language = read_script(meme.text)
    return {"language": language} if language else {}


def _find_context(
    meme: IntentMeme, asking: IntentAsking, fed: FedAnswers
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the context texts of a question, and tags that mark missing texts."""
    if asking.task == "caption":
        return {}, {}
    found = {"text": meme.text}
    tags: dict[str, str] = {}
    if asking.captions == "data":
        found["image_caption"] = meme.image_caption
    if asking.background == "human":
        found["background"] = list_facts(meme.background)
    if asking.background == "retrieved":
        found["background"] = fed["retrieved"][meme.id]
        tags["sources"] = fed["sources"][meme.id]
    for name in (need.name for need in asking.needs):
        answer = fed.get(name, {}).get(meme.id)
        if name == "background" and answer is not None:
            answer = list_facts(split_facts(answer))
        found[name] = answer or ""
        if answer is None:
            tags[name] = "missing"
    for name in ("image_caption", "background"):
        if name in found:
            tags.setdefault(name, "given" if found[name] else "empty")
    return {name: text for name, text in found.items() if text}, tags


def split_facts(text: str) -> tuple[str, ...]:
    r"""Return the facts of a reply without bullets; the word "none" alone means no facts.

    >>> split_facts("* cats sleep\n\n- 2. dogs bark"), split_facts("None.")
    (('cats sleep', '2. dogs bark'), ())
    """
    lines = (line.strip().lstrip("*-•–").strip() for line in text.splitlines())
    facts = tuple(line for line in lines if line)
    return () if [fact.strip(" .").casefold() for fact in facts] == ["none"] else facts


def list_facts(facts: Sequence[str]) -> str:
    """Return background facts as text, one fact per line."""
    return "\n".join(f"* {fact}" for fact in facts)


def make_request(
    wording: IntentPrompts, item: Item, complaint: str | None, fed: FedAnswers | None
) -> Request:
    """Return the request of an item: few-shot examples, then the meme."""
    asking = wording.asking
    if fed is None and asking.needs:
        first = " and ".join(need.task for need in asking.needs)
        raise InputError(
            f"memeintent/{asking.task} needs the answers of {first}",
            hint="use 'memantics run', which collects them first",
        )
    text = _fill(wording, wording.main, item.form.context)
    if complaint is not None:
        text += "\n\n" + wording.prompts["again"].fill(complaint=complaint)
    images = item.images if asking.role == "vlm" else ()
    return Request(
        messages=(*_demonstrate(wording), Message("user", (*images, text))),
        form=item.form,
        sampling=Sampling(0.0 if asking.greedy else None, asking.max_tokens),
    )


def _demonstrate(wording: IntentPrompts) -> Iterator[Message]:
    """Return few-shot examples as chat turns, with text only unless they have an image.

    Many models accept only one image.
    """
    asking = wording.asking
    for example in wording.demonstrations:
        facts = list_facts(example.background)
        given = {"text": example.text}
        if asking.captions != "none":
            given["image_caption"] = example.image_caption
        if asking.background != "none":
            given["background"] = facts
        seen = asking.role == "vlm" and bool(example.image)
        prompt = wording.prompts[_name(asking.task, "vlm" if seen else "text")]
        images = (Image(Path(example.image)),) if seen else ()
        yield Message("user", (*images, _fill(wording, prompt, given)))
        yield Message("assistant", (example.intent if asking.task == "intent" else facts,))


def _fill(wording: IntentPrompts, prompt: Prompt, given: Mapping[str, str]) -> str:
    if wording.asking.task == "caption":
        return prompt.text
    parts = [
        wording.prompts[f"given_{name}"].fill(**{name: given[name]})
        for name in GIVEN
        if given.get(name)
    ]
    return prompt.fill(given="\n".join(parts))
