"""Chat templates, control tokens and tensors of local chat models, for inference and fine-tuning.

The caller checks that torch and transformers are installed; they are imported only on use.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from PIL import Image as Pillow


class ChatTemplate:
    """The tokenizer of a text model, or the processor of a vision-language model.

    ``template`` is the tokenizer or processor that has a chat template; None if neither has one.
    """

    def __init__(self, processor: Any, sees: bool) -> None:
        self.sees, self._processor = sees, processor
        self.tokenizer: Any = processor.tokenizer if sees else processor
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        holders = (processor, self.tokenizer)
        self.template: Any = next(
            (holder for holder in holders if getattr(holder, "chat_template", None)), None
        )
        self._marks = find_marks(processor, self.tokenizer)

    def defuse(self, text: str) -> str:
        """Break up control tokens in a text, so that a caption cannot end a chat turn."""
        for mark in self._marks:
            if mark in text:
                text = text.replace(mark, mark[0] + " " + mark[1:])
        return text

    def encode(
        self,
        texts: Sequence[str],
        images: Sequence[Sequence[Pillow.Image]],
        side: Literal["left", "right"] = "left",
    ) -> dict[str, Any]:
        """Return the padded tensors of a batch; either all or none of its texts have images."""
        self.tokenizer.padding_side = side
        arguments: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        if not self.sees:
            batch = self.tokenizer(list(texts), add_special_tokens=False, **arguments)
            return {name: batch[name] for name in ("input_ids", "attention_mask")}
        start = self.tokenizer.bos_token
        # If the chat template writes the beginning-of-text token itself, the tokenizer must not add
        # a second one.
        if start is not None and texts[0].startswith(start):
            arguments["add_special_tokens"] = False
        if images[0]:
            arguments["images"] = [list(row) for row in images]
        return dict(self._processor(text=list(texts), **arguments))

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert generated token ids to text."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True)).strip()


def find_marks(processor: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the control tokens of a model as texts, longest first."""
    marks = {str(mark) for mark in tokenizer.all_special_tokens}
    marks |= {
        str(token)
        for token in tokenizer.added_tokens_decoder.values()
        if getattr(token, "special", False)
    }
    for name in ("image_token", "video_token", "audio_token"):
        mark = getattr(processor, name, None)
        if isinstance(mark, str):
            marks.add(mark)
    kept = (mark for mark in marks if len(mark.strip()) > 1)
    return tuple(sorted(kept, key=lambda mark: (-len(mark), mark)))


def move(inputs: dict[str, Any], model: Any) -> dict[str, Any]:
    """Move tensors to the model's device and convert pixels to the model's dtype."""
    return {
        name: value.to(model.device, model.dtype)
        if value.is_floating_point()
        else value.to(model.device)
        for name, value in inputs.items()
    }


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Suppress the log and progress bars of transformers during loading."""
    from transformers.utils import logging

    loud = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(loud)
        logging.enable_progress_bar()


def open_processor(folder: Path, config: Any, trust: bool = False) -> Any:
    """Load the processor of a vision-language model.

    Many processors include a component for videos that needs torchvision. Without that package the
    processor is built from its other components.
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
    """Return the same processor class with an optional video component."""

    def check(self: Any, name: str, part: Any) -> Any:
        if name == "video_processor" and part is None:
            return None
        return kind.check_argument_for_proper_class(self, name, part)

    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})
