"""Models without a chat template (BLIP-2, InstructBLIP): one picture and one plain prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memantics.core.errors import Rejected
from memantics.core.images import load, shrink
from memantics.core.records import Image, Request
from memantics.models.chat import ChatTemplate
from memantics.models.local.settings import LocalSettings

# How a kind of model was taught to be asked; the others take an instruction as it is.
_FORMS = {"blip-2": "Question: {} Answer:"}


def encodes(config: Any) -> bool:
    """Whether one half of the model reads and the other writes."""
    return bool(getattr(config.get_text_config(), "is_encoder_decoder", False))


class PlainDialogue:
    """The processor of a model that sees and has no chat template.

    Roles and turns mean nothing to such a model: the texts of a request follow each other. It sees
    exactly one picture.
    """

    def __init__(
        self, chat: ChatTemplate, processor: Any, config: Any, settings: LocalSettings
    ) -> None:
        self.tokenizer = chat.tokenizer
        self._chat = chat
        self._processor = processor
        self._form = _FORMS.get(str(config.model_type), "{}")
        # On the left it stands between picture and text, which an encoder counts as distance.
        self.tokenizer.padding_side = "right" if encodes(config) else "left"
        asking = getattr(processor, "qformer_tokenizer", None)
        if asking is not None:
            asking.padding_side = "right"
        self._pixels = settings.max_pixels

    def render(self, request: Request) -> tuple[str, tuple[Any, ...]]:
        """The text of a request, and its one picture, decoded."""
        parts = [part for message in request.messages for part in message.parts]
        images = [part for part in parts if isinstance(part, Image)]
        if len(images) != 1:
            raise Rejected(
                f"this model takes one image, and the request has {len(images)}",
                hint="choose a task or option with one image, or a model with a chat template",
            )
        texts = [self._chat.defuse(part) for part in parts if isinstance(part, str)]
        text = self._form.format("\n\n".join(texts))
        return text, (shrink(load(images[0].path), self._pixels).convert("RGB"),)

    def encode(self, texts: Sequence[str], images: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The tensors of a batch."""
        pictures = [group[0] for group in images]
        arguments = {"padding": True, "return_tensors": "pt"}
        return dict(self._processor(images=pictures, text=list(texts), **arguments))
