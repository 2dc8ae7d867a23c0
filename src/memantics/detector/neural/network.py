"""The network: encoders, how captions join the inline text, and one linear layer.

Classes are made inside functions: without PyTorch they cannot even be named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.detector.neural.backbone import Encoders
from memantics.detector.neural.encoding import Encoded, Places, classes_of, cut
from memantics.detector.neural.machine import check_packages, get_torch
from memantics.detector.neural.settings import Shape
from memantics.metrics.classification import count_classes, f1, macro_figures

Join = Callable[[Any, Any, Any, Shape], Any]


def build_network(encoders: Encoders, shape: Shape) -> Any:
    """The network as a ``torch.nn.Module``: ``(ids, mask, pixels) -> logits``."""
    texts = images = None
    needs_tokens = shape.integration == "attention"
    if encoders.clip is not None:
        clip = encoders.clip
        project = getattr(clip, "text_projection", None)
        texts = _text_class()(clip.text_model, project, needs_tokens)
        images = _image_class()(
            clip.vision_model,
            getattr(clip, "visual_projection", None),
            encoders.reader.preparation,
        )
    if encoders.text is not None:
        texts = _text_class()(encoders.text, None, needs_tokens)
    if encoders.image is not None:
        images = _image_class()(encoders.image, None, encoders.reader.preparation)
    return _network_class()(texts, images, shape)


@cache
def _text_class() -> Any:
    check_packages()
    import torch

    class TextEncoder(torch.nn.Module):  # type: ignore[misc]
        """Token states and one vector of each text, in the space that CLIP shares if it is one."""

        def __init__(self, model: Any, projection: Any, needs_tokens: bool) -> None:
            super().__init__()
            self.model = model
            self.projection = projection if isinstance(projection, torch.nn.Module) else None
            self.needs_tokens = needs_tokens
            if needs_tokens and getattr(model, "pooler", None) is not None:
                # Never used, and several machines would wait for its gradient.
                model.pooler = None
            inner = self.projection
            self.width = int(inner.out_features if inner is not None else model.config.hidden_size)

        def forward(self, ids: Any, mask: Any) -> Any:
            """States (texts × tokens × width) where tokens are needed, else one vector each."""
            found = self.model(input_ids=ids, attention_mask=mask.to(ids.dtype))
            states = found.last_hidden_state
            if not self.needs_tokens:
                pooled = getattr(found, "pooler_output", None)
                states = states[:, 0] if pooled is None else pooled
            return states if self.projection is None else self.projection(states)

    return TextEncoder


@cache
def _image_class() -> Any:
    check_packages()
    import torch

    class ImageEncoder(torch.nn.Module):  # type: ignore[misc]
        """One vector of each image, from bytes."""

        def __init__(self, model: Any, projection: Any, preparation: Any) -> None:
            super().__init__()
            self.model = model
            self.projection = projection if isinstance(projection, torch.nn.Module) else None
            for name in ("mean", "std"):
                values = torch.tensor(getattr(preparation, name)).view(1, 3, 1, 1)
                self.register_buffer(name, values, persistent=False)
            inner = self.projection
            self.width = int(inner.out_features if inner is not None else model.config.hidden_size)

        def forward(self, pixels: Any) -> Any:
            """Images × width; ``pixels`` are images × rows × columns × RGB, 0 to 255."""
            scaled = pixels.permute(0, 3, 1, 2).to(self.mean.dtype) / 255
            found = self.model(pixel_values=(scaled - self.mean) / self.std)
            pooled = getattr(found, "pooler_output", None)
            vector = found.last_hidden_state[:, 0] if pooled is None else pooled
            vector = vector.flatten(1)
            return vector if self.projection is None else self.projection(vector)

    return ImageEncoder


@cache
def _network_class() -> Any:
    check_packages()
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]
        """Texts and images to one logit per class."""

        def __init__(self, texts: Any, images: Any, shape: Shape) -> None:
            super().__init__()
            self.texts, self.images, self.shape = texts, images, shape
            width = sum(part.width for part in (texts, images) if part is not None)
            self.dropout = torch.nn.Dropout(shape.dropout)
            self.head = torch.nn.Linear(width, len(classes_of(shape.target)))

        def forward(self, ids: Any = None, mask: Any = None, pixels: Any = None) -> Any:
            """Logits; ``ids`` and ``mask`` are memes × texts × tokens."""
            vectors = []
            if self.texts is not None:
                vectors.append(self._read(ids, mask))
            if self.images is not None:
                vectors.append(self.images(pixels))
            return self.head(self.dropout(torch.cat(vectors, -1)))

        def _read(self, ids: Any, mask: Any) -> Any:
            """One vector of a meme's texts. All its texts pass the shared encoder at once."""
            fields = self.shape.fields
            found = self.texts(ids.flatten(0, 1), mask.flatten(0, 1))
            found = found.unflatten(0, (-1, fields))
            if self.shape.integration == "attention":
                return attend(found, mask)
            if self.shape.integration == "none":
                return found[:, 0]
            first, *captions = found.unbind(1)
            return _JOINS[self.shape.integration](first, captions[0], captions[1], self.shape)

    return Network


def attend(states: Any, mask: Any) -> Any:
    """Knowledge at the level of tokens: what the paper's cross-attention means.

    The inline text's tokens ask, a caption's tokens answer: softmax(S Kᵀ / √d) K, once for each
    caption. The mean with S itself is taken token by token, then over the inline text's tokens.
    As printed, S stands behind the softmax, too: then a caption could only reorder the text.
    """
    torch = get_torch()
    inline = states[:, 0]
    found = inline
    for place in (1, 2):
        caption = states[:, place]
        scores = inline @ caption.transpose(-1, -2) / caption.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, place, None, :].bool(), float("-inf"))
        found = found + torch.softmax(scores.float(), -1).to(caption.dtype) @ caption
    weights = mask[:, 0, :, None].to(found.dtype)
    return (found / 3 * weights).sum(1) / weights.sum(1)


def join_as_printed(inline: Any, text_caption: Any, image_caption: Any, shape: Shape) -> Any:
    """The formula over one vector each, softmax(S Kᵀ/√d) S, within each meme.

    The score is a single number and its softmax is 1: the captions cancel out. The official
    code's unused version of it attends from meme to meme of a batch; this one never does.
    """
    torch = get_torch()
    del shape
    found = inline
    for caption in (text_caption, image_caption):
        score = (inline * caption).sum(-1, keepdim=True) / inline.shape[-1] ** 0.5
        found = found + torch.softmax(score[..., None], -1)[..., 0] * inline
    return found / 3


def join_by_sum(inline: Any, text_caption: Any, image_caption: Any, shape: Shape) -> Any:
    """What the official code does instead of attention: S + K_text + weight · K_image."""
    return inline + text_caption + shape.image_caption_weight * image_caption


_JOINS: dict[str, Join] = {"pooled": join_as_printed, "sum": join_by_sum}


Chances = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figures:
    """Macro precision, recall and F1 (means over the classes) and the F1 of each class."""

    precision: float
    recall: float
    f1: float
    by_class: dict[str, float]
    examples: int


def measure(gold: Places, predicted: Places, classes: Sequence[str]) -> Figures:
    """Figures from gold and predicted places, in this order.

    >>> measure(np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), ["no", "yes"]).precision
    0.6666666666666666
    """
    counts = count_classes(
        [classes[place] for place in gold], [classes[place] for place in predicted], classes
    )
    macro = macro_figures(counts)
    return Figures(
        macro.precision or 0.0,
        macro.recall or 0.0,
        macro.f1 or 0.0,
        {name: f1(own) or 0.0 for name, own in counts.items()},
        len(gold),
    )


def ask_network(
    network: Any, encoded: Encoded, rows: Sequence[int], device: Any, batch: int = 128
) -> Chances:
    """Chances of the classes for some rows, in float32 and without dropout.

    Rows are asked in the order of their length, so that short texts are not padded to long ones.
    """
    torch = get_torch()
    order = np.array(rows, np.int64)
    if encoded.lengths is not None:
        longest = encoded.lengths[order].max(-1)
        order = order[np.argsort(longest, kind="stable")]
    was_training = network.training
    network.eval()
    found: list[Any] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch):
            logits = network(*to_tensors(encoded, order[start : start + batch], device))
            found.append(torch.softmax(logits.double(), -1))
        chances: Chances = torch.cat(found).cpu().numpy()
    network.train(was_training)
    back = {row: place for place, row in enumerate(order.tolist())}
    return chances[[back[row] for row in rows]]


def to_tensors(encoded: Encoded, rows: Places, device: Any) -> tuple[Any, Any, Any]:
    """A batch on a device: ids, mask, pixels."""
    torch = get_torch()
    part = cut(encoded, rows)
    arrays = (
        None if part.ids is None else part.ids.astype(np.int64),
        part.mask,
        part.pixels,
    )
    return tuple(
        None if array is None else torch.from_numpy(np.ascontiguousarray(array)).to(device)
        for array in arrays
    )  # type: ignore[return-value]
