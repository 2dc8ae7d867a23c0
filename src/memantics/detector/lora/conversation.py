"""A local model with its chat template: questions and answers to tensors, and back."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from PIL import Image as Pillow

from memantics.core.errors import InputError
from memantics.core.images import load, shrink
from memantics.detector.lora.cases import Case
from memantics.detector.lora.wording import Wording
from memantics.detector.neural.packages import check_packages, get_torch, get_transformers
from memantics.models.chat import ChatTemplate, open_processor

_IGNORED = -100
_NEEDED = ("torch", "transformers", "safetensors", "peft")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A case as text before and behind the point where the model takes over, and its image."""

    prompt: str
    answer: str
    image: Pillow.Image | None


class Conversation:
    """The processor of a model that sees, or the tokenizer of one that only reads."""

    def __init__(self, processor: Any, sees: bool, wording: Wording, max_pixels: int = 0) -> None:
        self._chat = ChatTemplate(processor, sees)
        self._wording, self._max_pixels = wording, max_pixels
        self.tokenizer = self._chat.tokenizer
        if self._chat.template is None:
            raise InputError(
                "this model has no chat template", hint="use its instruction-tuned version"
            )

    def render(self, case: Case) -> Rendered:
        """One meme as the chat template shows it; a missing or broken image is an error."""
        question = self._chat.defuse(self._wording.ask(case))
        content: Any = question
        image = None
        if self._chat.sees:
            content = [{"type": "text", "text": question}]
            if case.image is None:
                raise InputError(f"meme {case.id} has no image", hint="leave it out")
            image = shrink(load(case.image), self._max_pixels)
            content.insert(0, {"type": "image"})
        turns = [{"role": "user", "content": content}]
        prompt = self._chat.template.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True
        )
        answer = self._chat.defuse(self._wording.answer(case)) + (self.tokenizer.eos_token or "")
        return Rendered(str(prompt), answer, image)

    def encode_prompts(self, rows: Sequence[Rendered]) -> Any:
        """Questions alone, padded on the left: what is generated follows each directly."""
        return self._encode([row.prompt for row in rows], rows, "left")

    def encode_lessons(self, rows: Sequence[Rendered]) -> Any:
        """Questions with answers, padded on the right; only the answers have labels."""
        batch = self._encode([row.prompt + row.answer for row in rows], rows, "right")
        labels = get_torch().full_like(batch["input_ids"], _IGNORED)
        ends = batch["attention_mask"].sum(-1).tolist()
        for place, (row, end) in enumerate(zip(rows, ends, strict=True)):
            start = self._find_answer(row, batch["input_ids"][place, :end].tolist())
            labels[place, start:end] = batch["input_ids"][place, start:end]
        batch["labels"] = labels
        return batch

    def _find_answer(self, row: Rendered, tokens: list[int]) -> int:
        """Where the answer's tokens begin."""
        own = self.tokenizer(row.answer, add_special_tokens=False)["input_ids"]
        if tokens[len(tokens) - len(own) :] == own:
            return len(tokens) - len(own)
        # A tokenizer may join letters across the seam: then what the prompt alone shares counts.
        alone = self._encode([row.prompt], [row], "right")["input_ids"][0].tolist()
        shared = next((n for n, (a, b) in enumerate(zip(alone, tokens, strict=False)) if a != b), 0)
        return shared or min(len(alone), len(tokens) - 1)

    def _encode(
        self, texts: list[str], rows: Sequence[Rendered], side: Literal["left", "right"]
    ) -> dict[str, Any]:
        images = [[] if row.image is None else [row.image] for row in rows]
        return self._chat.encode(texts, images, side)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""
        return self._chat.decode(tokens)


def check_model(folder: Path) -> None:
    """Refuse a folder that is no model's, or a machine without the packages."""
    check_packages("LoRA detectors", _NEEDED)
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} is not a model's folder: no config.json",
            hint="give the folder with config.json and *.safetensors",
        )
    if not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder} holds no *.safetensors", hint="pickled weights are not loaded")


def open_model(folder: Path, device: Any, precision: str) -> tuple[Any, Any, bool]:
    """A local checkpoint: the model, its processor or tokenizer, and whether it sees."""
    check_model(folder)
    transformers = get_transformers()
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


def _seeing_kinds() -> Any:
    auto: Any = importlib.import_module("transformers.models.auto.modeling_auto")
    return auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
