"""Requests to what a model reads: the chat template's text, and the images beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError
from PIL import Image as Pillow

from memantics.core.errors import Rejected, Unavailable
from memantics.core.images import load, shrink
from memantics.core.records import Image, Message, Request
from memantics.models.chat import ChatTemplate
from memantics.models.local.settings import LocalSettings


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request is to the model."""

    text: str
    images: tuple[Pillow.Image, ...] = ()


class Dialogue:
    """The tokenizer of a text model, or the processor of one that also sees."""

    def __init__(self, processor: Any, sees: bool, settings: LocalSettings) -> None:
        self._chat = ChatTemplate(processor, sees)
        self._settings = settings
        self.tokenizer = self._chat.tokenizer
        if self._chat.template is None:
            raise Unavailable(
                "this model has no chat template, so it cannot be asked questions",
                hint="use its instruction-tuned version",
            )

    def render(self, request: Request) -> Prompt:
        """The text that the chat template makes of a request, and its images, decoded."""
        parts = [part for message in request.messages for part in message.parts]
        images = [part for part in parts if isinstance(part, Image)]
        if images and not self._chat.sees:
            raise Rejected(
                "this model reads no images", hint="choose a task or option without images"
            )
        shown = [self._lay_out(message) for message in request.messages]
        try:
            text: str = self._chat.template.apply_chat_template(
                shown, tokenize=False, add_generation_prompt=True, **self._settings.template
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise Rejected(f"the model's chat template refuses the request: {error}") from error
        decoded = (shrink(load(image.path), self._settings.max_pixels) for image in images)
        return Prompt(text, tuple(decoded))

    def _lay_out(self, message: Message) -> dict[str, Any]:
        texts = [self._chat.defuse(p) if isinstance(p, str) else p for p in message.parts]
        if not self._chat.sees:
            return {"role": message.role, "content": "\n".join(map(str, texts))}
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in texts
        ]
        return {"role": message.role, "content": content}

    def encode(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """The tensors of a batch; what is generated follows each prompt directly."""
        texts = [prompt.text for prompt in prompts]
        return self._chat.encode(texts, [prompt.images for prompt in prompts], "left")

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""
        return self._chat.decode(tokens)
