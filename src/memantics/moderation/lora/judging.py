"""Prompts, splits and verdicts of a LoRA-tuned model, and the tuned model as a detector.

A LoRA-tuned model is a local language model with trained adapter weights. Its verdict is the more
probable of two answer words, or is parsed from the generated text.
"""

from __future__ import annotations

import importlib
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args

import orjson
from PIL import Image as Pillow
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.files import read_regular
from memantics.core.prompt import Prompt, read_prompts
from memantics.core.records import Form, Image, Message, MessagePart, Request
from memantics.metrics.classification import binary_macro_f1, count_binary, f1, tnr, tpr
from memantics.models.chat import ChatTemplate, move, open_processor
from memantics.models.local.settings import LocalSettings
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.neural import machine

# The PunMemeCN paper holds out 153 of its 653 groups; other data are split in the same proportion.
TRAIN_GROUPS, ALL_GROUPS = 500, 653
Question = Literal["pun", "harm"]
QuestionStyle = Literal["image", "caption", "reasons"]
PromptLanguage = Literal["zh", "en"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
STYLES: tuple[QuestionStyle, ...] = get_args(QuestionStyle)
LANGUAGES: tuple[PromptLanguage, ...] = get_args(PromptLanguage)
WORDS: dict[PromptLanguage, tuple[str, str]] = {"zh": ("否", "是"), "en": ("No", "Yes")}
_MARKS: dict[PromptLanguage, tuple[str, str]] = {"zh": ("", "判断："), "en": ("", "Verdict: ")}


@dataclass(frozen=True, slots=True)
class TuningCase:
    """One meme with its label; ``reason`` is the reference explanation before the verdict.

    A pun and its two hard negatives share a ``group``. They share words, so they must stay in the
    same split.
    """

    id: str
    group: str
    label: bool
    caption: str = ""
    reason: str = ""
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """A training example: a request and its reference reply."""

    request: Request
    answer: str = ""


class HasGroup(Protocol):
    """An item of a group of memes that must stay in one split."""

    @property
    def group(self) -> str:
        """Name of the group."""
        ...


G = TypeVar("G", bound=HasGroup)


@dataclass(frozen=True, slots=True)
class TuningSplit:
    """Training and held-out cases."""

    train: tuple[TuningCase, ...]
    valid: tuple[TuningCase, ...]


def part_groups(
    cases: Sequence[G], seed: int = 0, train_groups: int | None = None
) -> tuple[tuple[G, ...], tuple[G, ...]]:
    """Hold out whole groups of memes at random: 153 of 653, or the same proportion."""
    groups = sorted({case.group for case in cases})
    count = train_groups or round(len(groups) * TRAIN_GROUPS / ALL_GROUPS)
    if not 0 < count < len(groups):
        raise InputError(
            f"{len(groups)} groups are too few for {count} training groups and a test set",
            hint="give more memes, or another --train-groups",
        )
    random.Random(seed).shuffle(groups)
    chosen = set(groups[:count])
    return (
        tuple(case for case in cases if case.group in chosen),
        tuple(case for case in cases if case.group not in chosen),
    )


def split_groups(
    cases: Sequence[TuningCase], seed: int = 0, train_groups: int | None = None
) -> TuningSplit:
    """Split cases by whole groups; raise InputError if training or test has only one class.

    >>> pairs = [(n, part) for n in range(653) for part in "abc"]
    >>> cases = [TuningCase(f"{n}{part}", str(n), part == "a") for n, part in pairs]
    >>> split = split_groups(cases)
    >>> len(split.train), len(split.valid)
    (1500, 459)
    """
    split = TuningSplit(*part_groups(cases, seed, train_groups))
    for name, part in (("training", split.train), ("validation", split.valid)):
        if len({case.label for case in part}) < 2:
            raise InputError(
                f"the {name} set of {len(part)} memes has only one class",
                hint="give more memes of both classes, or another seed",
            )
    return split


@dataclass(frozen=True, slots=True)
class Wording:
    """The prompt for a meme, and how the reply is parsed.

    ``text`` is a custom prompt, ``said`` its words for no and yes, ``marks`` the prefixes of its
    reasons and verdict, ``shown`` the images of its few-shot examples.
    """

    question: Question = "pun"
    style: QuestionStyle = "caption"
    language: PromptLanguage = "zh"
    text: str = ""
    said: tuple[str, str] | None = None
    marks: tuple[str, str] | None = None
    shown: tuple[Path, ...] = ()

    @property
    def prompt(self) -> Prompt:
        """The prompt with its placeholder for the caption."""
        if self.text:
            return Prompt("own", self.text)
        return _prompts()[f"{self.question}.{self.style}.{self.language}"]

    @property
    def words(self) -> tuple[str, str]:
        """The answer words for no and yes."""
        return self.said or WORDS[self.language]

    def describe(self) -> dict[str, Any]:
        """Describe the prompt for cards and fingerprints; unset fields are omitted."""
        told = asdict(self) | {"shown": [path.name for path in self.shown]}
        return {name: value for name, value in told.items() if value}

    def ask(self, case: TuningCase) -> str:
        """Fill the prompt with one meme.

        >>> "蒸多鱼" in Wording().ask(TuningCase("1", "1", True, caption="蒸多鱼"))
        True
        """
        prompt = self.prompt
        return prompt.fill(caption=case.caption) if prompt.placeholders else prompt.fill()

    def pose(self, case: TuningCase, sees: bool) -> Lesson:
        """Make a request: images if the model uses them (the meme's own last), then the prompt."""
        parts: tuple[MessagePart, ...] = (self.ask(case),)
        if sees:
            if case.image is None:
                raise InputError(f"meme {case.id} has no image", hint="leave it out")
            parts = (*map(Image, self.shown), Image(case.image), *parts)
        return Lesson(Request((Message("user", parts),), Form("", ())), self.answer(case))

    def answer(self, case: TuningCase) -> str:
        r"""Return the reply that the model is trained to give for a case.

        >>> case = TuningCase("1", "1", True, reason="鱼和余同音。")
        >>> Wording().answer(case), Wording(style="reasons").answer(case)
        ('是', '鱼和余同音。\n判断：是')
        """
        word = self.words[case.label]
        if self.style != "reasons":
            return word
        before, verdict = self.marks or _MARKS[self.language]
        return f"{before}{' '.join(case.reason.split())}\n{verdict}{word}".strip()

    def read(self, reply: str) -> bool | None:
        r"""Parse the verdict of a reply; None if there is none or more than one.

        >>> Wording(style="reasons").read("同音。\n判断: 否"), Wording().read("也许")
        (False, None)
        >>> marked = Wording(style="reasons", said=("非双关", "双关"), marks=("分析：", "判断："))
        >>> marked.read("分析：同音。\n判断:非双关"), marked.read("判断：双关\n判断：非双关")
        (False, None)
        """
        # The longer word comes first, since one may be a prefix of the other.
        ends = {word: re.escape(word) + r"\b" * word.isascii() for word in self.words}
        either = "|".join(ends[word] for word in sorted(ends, key=len, reverse=True))
        if self.style == "reasons":
            mark = re.escape((self.marks or _MARKS[self.language])[1].rstrip(" ：:"))
            # Models use both full-width and ASCII colons.
            said = re.finditer(rf"{mark}\s*[：:]\s*[“\"]?({either})", reply, re.IGNORECASE)
            found = {str(verdict[1]).lower() for verdict in said}
        else:
            first = re.match(rf"[\s“\"]*({either})", reply, re.IGNORECASE)
            found = {str(first[1]).lower()} if first else set()
        if len(found) != 1:
            return None
        return found.pop() == self.words[1].lower()


@cache
def _prompts() -> dict[str, Prompt]:
    return dict(read_prompts(Path(__file__).parent / "prompts"))


ADAPTER, FACTS = "adapter", "tuning.json"
_IGNORED = -100
_NEEDED = ("torch", "transformers", "safetensors", "peft")
_DEFAULT = Wording()


@dataclass(frozen=True, slots=True)
class Rendered:
    """A training example as prompt text, reply text and images."""

    prompt: str
    answer: str
    images: tuple[Pillow.Image, ...]


class ChatProcessor:
    """The processor of a vision-language model, or the tokenizer of a language model."""

    def __init__(
        self, processor: Any, sees: bool, wording: Wording = _DEFAULT, max_pixels: int = 0
    ) -> None:
        from memantics.models.local.runtime import Dialogue

        self._chat = ChatTemplate(processor, sees)
        if self._chat.template is None:
            raise InputError(
                "this model has no chat template", hint="use its instruction-tuned version"
            )
        # Inference uses the same chat template as training.
        self._dialogue = Dialogue(processor, sees, LocalSettings(max_pixels=max_pixels), None)
        self._wording = wording
        self.tokenizer = self._chat.tokenizer

    def render(self, case: TuningCase | Lesson) -> Rendered:
        """Render an example by the chat template; raise an error if an image is missing."""
        lesson = case if isinstance(case, Lesson) else self._wording.pose(case, self._chat.sees)
        prompt = self._dialogue.render(lesson.request)
        answer = self._chat.defuse(lesson.answer) + (self.tokenizer.eos_token or "")
        return Rendered(prompt.text, answer, prompt.images)

    def encode_prompts(self, rows: Sequence[Rendered]) -> Any:
        """Encode prompts for generation, padded on the left."""
        return self._encode([row.prompt for row in rows], rows, "left")

    def encode_lessons(self, rows: Sequence[Rendered]) -> Any:
        """Encode prompts with replies, padded on the right; only replies have labels."""
        batch = self._encode([row.prompt + row.answer for row in rows], rows, "right")
        labels = machine.get_torch().full_like(batch["input_ids"], _IGNORED)
        ends = batch["attention_mask"].sum(-1).tolist()
        for place, (row, end) in enumerate(zip(rows, ends, strict=True)):
            start = self._find_answer(row, batch["input_ids"][place, :end].tolist())
            labels[place, start:end] = batch["input_ids"][place, start:end]
        batch["labels"] = labels
        return batch

    def _find_answer(self, row: Rendered, tokens: list[int]) -> int:
        """Find the index of the first reply token."""
        answer_tokens = self.tokenizer(row.answer, add_special_tokens=False)["input_ids"]
        if tokens[len(tokens) - len(answer_tokens) :] == answer_tokens:
            return len(tokens) - len(answer_tokens)
        # A tokenizer may merge characters across the boundary; then the common prefix counts.
        alone = self._encode([row.prompt], [row], "right")["input_ids"][0].tolist()
        shared = next((n for n, (a, b) in enumerate(zip(alone, tokens, strict=False)) if a != b), 0)
        return shared or min(len(alone), len(tokens) - 1)

    def _encode(
        self, texts: list[str], rows: Sequence[Rendered], side: Literal["left", "right"]
    ) -> dict[str, Any]:
        return self._chat.encode(texts, [row.images for row in rows], side)

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode generated tokens to text."""
        return self._chat.decode(tokens)


def check_model(folder: Path) -> None:
    """Raise an error if the folder is not a model, or packages are missing."""
    machine.check_packages("LoRA detectors", _NEEDED)
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} is not a model folder: config.json is missing",
            hint="give the folder with config.json and *.safetensors",
        )
    if not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder} has no *.safetensors", hint="pickled weights are not supported")


def open_model(folder: Path, device: Any, precision: str) -> tuple[Any, Any, bool]:
    """Open a local model: the model, its processor or tokenizer, and whether it uses images."""
    check_model(folder)
    transformers = machine.get_transformers()
    plain: dict[str, Any] = {"local_files_only": True}
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), **plain)
        sees = type(config) in _seeing_kinds()
        processor = (
            open_processor(folder, config)
            if sees
            else transformers.AutoTokenizer.from_pretrained(str(folder), **plain)
        )
        kind = "AutoModelForImageTextToText" if sees else "AutoModelForCausalLM"
        model = getattr(transformers, kind).from_pretrained(
            str(folder), dtype=precision, use_safetensors=True, **plain
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{folder} cannot be loaded: {words}", hint="download it again") from error
    return model.to(device), processor, sees


def open_adapter(model: Path, adapter: Path, wording: Wording, max_pixels: int = 0) -> TunedJudge:
    """Open a base model with its LoRA adapter."""
    device = machine.resolve_device("auto", machine.Ranks())
    precision = "bfloat16" if device.type == "cuda" else "float32"
    base, processor, sees = open_model(model, device, precision)
    peft: Any = importlib.import_module("peft")
    try:
        network = peft.PeftModel.from_pretrained(base, str(adapter), local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        words = " ".join(str(error).split())[:200]
        raise StoreError(
            f"the adapter {adapter} does not match {model}: {words}", hint="tune again"
        ) from error
    return TunedJudge(network.eval(), ChatProcessor(processor, sees, wording, max_pixels), wording)


def _seeing_kinds() -> Any:
    auto: Any = importlib.import_module("transformers.models.auto.modeling_auto")
    return auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


@dataclass(frozen=True, slots=True)
class LoraVerdict:
    """The verdict on one meme; None if the reply had none. ``score`` is the probability of yes."""

    id: str
    gold: bool
    said: bool | None
    score: float | None = None
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Recall of both classes, F1 of the positive class, and macro-F1; None where undefined.

    A reply without a verdict counts as an error; no answer is guessed.
    """

    tpr: float | None
    tnr: float | None
    f1: float | None
    macro_f1: float | None
    memes: int
    unparsed: int


class TunedJudge:
    """A tuned model that classifies memes in batches, deterministically."""

    def __init__(self, model: Any, conversation: ChatProcessor, wording: Wording) -> None:
        self._model, self._conversation, self._wording = model, conversation, wording

    def judge(
        self, cases: Sequence[TuningCase], batch: int = 8, longest: int = 160
    ) -> list[LoraVerdict]:
        """Return one verdict per case, in order."""
        was_training = self._model.training
        self._model.eval()
        found: list[LoraVerdict] = []
        with machine.get_torch().inference_mode():
            for start in range(0, len(cases), batch):
                part = cases[start : start + batch]
                found += self._write(part, longest) if self._writes else self._weigh(part)
        self._model.train(was_training)
        return found

    @property
    def _writes(self) -> bool:
        return self._wording.style == "reasons"

    def _weigh(self, cases: Sequence[TuningCase]) -> list[LoraVerdict]:
        """Choose the more probable of the two answer words; always gives a verdict and a score."""
        torch = machine.get_torch()
        rows = [self._conversation.render(case) for case in cases]
        columns = [
            self._log_chances([replace(row, answer=word) for row in rows])
            for word in self._wording.words
        ]
        chances = torch.softmax(torch.stack(columns, -1), -1)[:, 1].tolist()
        if not all(map(math.isfinite, chances)):
            raise StoreError("the model returned values that are not numbers", hint="tune it again")
        return [
            LoraVerdict(case.id, case.label, chance > 0.5, chance)
            for case, chance in zip(cases, chances, strict=True)
        ]

    def _log_chances(self, rows: Sequence[Rendered]) -> Any:
        """Return the log-probability of each answer after its question, summed over its tokens."""
        batch = move(self._conversation.encode_lessons(rows), self._model)
        losses, places = token_losses(self._model, batch)
        return losses.new_zeros(len(rows)).index_add(0, places, -losses)

    def _write(self, cases: Sequence[TuningCase], longest: int) -> list[LoraVerdict]:
        rows = [self._conversation.render(case) for case in cases]
        replies = write_replies(self._model, self._conversation, rows, longest)
        return [
            LoraVerdict(case.id, case.label, self._wording.read(reply), None, reply)
            for case, reply in zip(cases, replies, strict=True)
        ]


def write_replies(
    model: Any, conversation: ChatProcessor, rows: Sequence[Rendered], longest: int
) -> list[str]:
    """Generate a reply to each prompt by greedy decoding."""
    inputs = move(conversation.encode_prompts(rows), model)
    tokenizer = conversation.tokenizer
    found = model.generate(
        **inputs,
        max_new_tokens=longest,
        do_sample=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    length = inputs["input_ids"].shape[1]
    return [conversation.decode(row) for row in found[:, length:].tolist()]


def token_losses(network: Any, batch: dict[str, Any]) -> tuple[Any, Any]:
    """Compute the loss of every reply token, and the row that each belongs to.

    Only logits of reply tokens are converted to full precision, to save memory.
    """
    torch = machine.get_torch()
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    wanted = batch["labels"][:, 1:]
    kept = wanted != -100
    logits = network(**inputs).logits[:, :-1][kept].float()
    losses = torch.nn.functional.cross_entropy(logits, wanted[kept], reduction="none")
    return losses, kept.nonzero()[:, 0]


def rate(verdicts: Sequence[LoraVerdict]) -> Rates:
    """Compute rates of verdicts; without positives only the true negative rate is defined.

    >>> rate([LoraVerdict("a", False, False), LoraVerdict("b", False, None)]).tnr
    0.5
    """
    gold = [verdict.gold for verdict in verdicts]
    counts = count_binary(gold, [verdict.said for verdict in verdicts], positive=True)
    both = len(set(gold)) == 2
    return Rates(
        tpr(counts),
        tnr(counts),
        f1(counts) if both else None,
        binary_macro_f1(counts) if both else None,
        len(verdicts),
        sum(verdict.said is None for verdict in verdicts),
    )


# A tuned vision-language model as a detector.


@dataclass(frozen=True, slots=True)
class LoraJudge:
    """A vision-language model with an adapter from ``detector tune --question harm``."""

    model: Any
    card: Mapping[str, Any]
    sees_images: ClassVar[bool] = True
    reads_texts: ClassVar[bool] = True

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict harm per example; raise InputError for a reply without a verdict."""
        cases = [TuningCase(e.id, e.id, False, e.text, "", e.image) for e in examples]
        verdicts = self.model.judge(cases)
        silent = [verdict.id for verdict in verdicts if verdict.said is None]
        if silent:
            raise InputError(
                f"{len(silent)} replies have no verdict; the first is for meme {silent[0]}",
                hint="leave these memes out, or tune with --style caption",
            )
        return [
            Prediction(v.id, int(v.said), float(v.said) if v.score is None else v.score, None, {})
            for v in verdicts
        ]


def open_lora(folder: Path, base: Path | None) -> LoraJudge:
    """Open a model tuned with ``--question harm``; ``base`` is its base model, if moved."""
    try:
        facts = orjson.loads(read_regular(folder / FACTS))
        if "task" in facts["wording"]:
            raise InputError(
                f"{folder} was tuned for {facts['wording']['task']}, not for harm",
                hint=f"use 'memantics run {facts['wording']['task']} --model detector/{folder}'",
            )
        said = {name: facts["wording"][name] for name in ("question", "style", "language")}
        said |= {n: facts["wording"][n] for n in ("text", "said") if n in facts["wording"]}
        wording = TypeAdapter(Wording).validate_python(said)
        settings = orjson.loads(read_regular(folder / ADAPTER / "adapter_config.json"))
        model = base or Path(settings["base_model_name_or_path"])
        pixels = int(facts["tuning"]["max_pixels"])
    except ValidationError as error:
        raise StoreError(f"{folder / FACTS} cannot be read: {first_fault(error)}") from error
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{folder} is not a complete fine-tuned model: {error!r}"[:200],
            hint="fine-tune it again",
        ) from error
    if wording.question != "harm":
        raise InputError(
            f"{folder} was tuned to detect puns, not harm", hint="tune with --question harm"
        )
    return LoraJudge(open_adapter(model, folder / ADAPTER, wording, pixels), facts)
