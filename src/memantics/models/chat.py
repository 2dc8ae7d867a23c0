"""A local chat model's way of reading: its template, its control marks, its tensors.

Shared by what asks such models and what tunes them. The packages (torch, transformers) are the
caller's to check; nothing here imports them before it is called.
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
    """The tokenizer of a model that reads, or the processor of one that also sees.

    ``template`` is the one of them that has a chat template; None where neither has.
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
        """Break up control marks in a text: a caption must not end a turn or promise an image."""
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
        """The tensors of a batch that is all with images or all without, padded on a side."""
        self.tokenizer.padding_side = side
        arguments: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        if not self.sees:
            batch = self.tokenizer(list(texts), add_special_tokens=False, **arguments)
            return {name: batch[name] for name in ("input_ids", "attention_mask")}
        start = self.tokenizer.bos_token
        # A template that writes the opening mark itself must not get a second one.
        if start is not None and texts[0].startswith(start):
            arguments["add_special_tokens"] = False
        if images[0]:
            arguments["images"] = [list(row) for row in images]
        return dict(self._processor(text=list(texts), **arguments))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True)).strip()


def find_marks(processor: Any, tokenizer: Any) -> tuple[str, ...]:
    """The texts that steer a model instead of being read by it, the longest first."""
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
    """Onto the model's device; pixels in the model's number format, counts as they are."""
    return {
        name: value.to(model.device, model.dtype)
        if value.is_floating_point()
        else value.to(model.device)
        for name, value in inputs.items()
    }


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without the log and the progress bars of transformers while something is loaded."""
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
