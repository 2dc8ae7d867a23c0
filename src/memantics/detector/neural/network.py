"""The network: encoders, how captions join the inline text, and one linear layer.

Classes are made inside functions: without PyTorch they cannot even be named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from memantics.detector.neural.backbone import Encoders
from memantics.detector.neural.encoding import classes_of
from memantics.detector.neural.packages import check_packages, get_torch
from memantics.detector.neural.settings import Shape

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
