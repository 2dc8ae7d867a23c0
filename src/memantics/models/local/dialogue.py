"""Requests to what a model reads: the chat template's text, and the images beside it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from PIL import Image as Pillow

from memantics.core.errors import Rejected, Unavailable
from memantics.core.images import load
from memantics.core.records import Image, Message, Request
from memantics.models.local.settings import LocalSettings


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request is to the model."""

    text: str
    images: tuple[Pillow.Image, ...] = ()


class Dialogue:
    """The tokenizer of a text model, or the processor of one that also sees."""

    def __init__(self, processor: Any, sees: bool, settings: LocalSettings) -> None:
        self.sees = sees
        self.tokenizer: Any = processor.tokenizer if sees else processor
        self._processor = processor
        self._settings = settings
        # Prompts of a batch end together: what is generated must follow each directly.
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        if _find_template(processor) is None and _find_template(self.tokenizer) is None:
            raise Unavailable(
                "this model has no chat template, so it cannot be asked questions",
                hint="use its instruction-tuned version",
            )
        self._marks = find_marks(processor, self.tokenizer)

    def render(self, request: Request) -> Prompt:
        """The text that the chat template makes of a request, and its images, decoded."""
        parts = [part for message in request.messages for part in message.parts]
        images = [part for part in parts if isinstance(part, Image)]
        if images and not self.sees:
            raise Rejected(
                "this model reads no images", hint="choose a task or option without images"
            )
        shown = [self._lay_out(message) for message in request.messages]
        holder = self._processor if _find_template(self._processor) else self.tokenizer
        try:
            text: str = holder.apply_chat_template(
                shown, tokenize=False, add_generation_prompt=True, **self._settings.template
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise Rejected(f"the model's chat template refuses the request: {error}") from error
        decoded = (shrink(load(image.path), self._settings.max_pixels) for image in images)
        return Prompt(text, tuple(decoded))

    def _lay_out(self, message: Message) -> dict[str, Any]:
        texts = [self._defuse(p) if isinstance(p, str) else p for p in message.parts]
        if not self.sees:
            return {"role": message.role, "content": "\n".join(map(str, texts))}
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in texts
        ]
        return {"role": message.role, "content": content}

    def _defuse(self, text: str) -> str:
        """Break up control marks in a text: a caption must not end a turn or promise an image."""
        for mark in self._marks:
            if mark in text:
                text = text.replace(mark, mark[0] + " " + mark[1:])
        return text

    def encode(self, prompts: Sequence[Prompt]) -> Any:
        """The tensors of a batch, padded on the left."""
        texts = [prompt.text for prompt in prompts]
        # A template that writes the opening mark itself must not get a second one.
        start = self.tokenizer.bos_token
        doubled = start is not None and texts[0].startswith(start)
        arguments: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        if not self.sees:
            batch = self.tokenizer(texts, add_special_tokens=False, **arguments)
            return {name: batch[name] for name in ("input_ids", "attention_mask")}
        if doubled:
            arguments["add_special_tokens"] = False
        if prompts[0].images:
            arguments["images"] = [list(prompt.images) for prompt in prompts]
        return self._processor(text=texts, **arguments)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True)).strip()


def find_marks(processor: Any, tokenizer: Any) -> tuple[str, ...]:
    """The texts that steer a model instead of being read by it, the longest first."""
    marks = {str(mark) for mark in tokenizer.all_special_tokens}
    marks |= {
        str(token)
        for token in tokenizer.added_tokens_decoder.values()
        if str(token).strip()
        if getattr(token, "special", False)
    }
    for name in ("image_token", "video_token", "audio_token"):
        mark = getattr(processor, name, None)
        if isinstance(mark, str):
            marks.add(mark)
    return tuple(sorted((m for m in marks if len(m) > 1), key=lambda m: (-len(m), m)))


def _find_template(holder: Any) -> Any:
    return getattr(holder, "chat_template", None) or None


def shrink(image: Pillow.Image, pixels: int) -> Pillow.Image:
    """An image of at most so many pixels, in its own proportions; 0 leaves it as it is.

    >>> shrink(Pillow.new("RGB", (400, 100)), 10_000).size
    (200, 50)
    """
    width, height = image.size
    if not pixels or width * height <= pixels:
        return image
    factor = (pixels / (width * height)) ** 0.5
    size = max(1, int(width * factor)), max(1, int(height * factor))
    return image.resize(size, Pillow.Resampling.LANCZOS)


def open_processor(folder: Path, config: Any, trust: bool) -> Any:
    """The processor of a model that sees.

    Many processors also carry a part for videos, which needs torchvision. Memes do not: without
    that package the processor is put together from its other parts.
    """
    transformers: Any = importlib.import_module("transformers")
    arguments = {"local_files_only": True, "trust_remote_code": trust}
    if importlib.util.find_spec("torchvision") is not None:
        return transformers.AutoProcessor.from_pretrained(str(folder), **arguments)
    mapping: Any = importlib.import_module("transformers.models.auto.processing_auto")
    kind = mapping.PROCESSOR_MAPPING.get(type(config), None)
    names = kind.get_attributes() if kind is not None else []
    if "video_processor" not in names:
        return transformers.AutoProcessor.from_pretrained(str(folder), **arguments)
    openers = {
        "image_processor": transformers.AutoImageProcessor,
        "tokenizer": transformers.AutoTokenizer,
        "feature_extractor": transformers.AutoFeatureExtractor,
    }
    parts = [
        openers[name].from_pretrained(str(folder), **arguments) if name in openers else None
        for name in names
    ]
    values, _ = kind.get_processor_dict(str(folder), local_files_only=True)
    return _without_videos(kind).from_args_and_dict(parts, values)


def _without_videos(kind: Any) -> Any:
    """The same kind of processor, bearing with an absent part for videos."""

    def check(self: Any, name: str, part: Any) -> Any:
        if name == "video_processor" and part is None:
            return None
        return kind.check_argument_for_proper_class(self, name, part)

    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})
