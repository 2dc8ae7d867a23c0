"""The network: text and image encoders, fusion with captions, and one linear layer.

Encoders are loaded from folders (BERT-like texts, ViT-like images, CLIP for both) or created small,
with random weights. A trained detector's folder holds each encoder's config, tokenizer and image
preprocessing beside its own weights, so it does not need the folders that the encoders were loaded
from. Network classes are defined inside functions, because their base classes do not exist without
PyTorch.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from memantics.core.errors import DataError, InputError
from memantics.core.files import read_regular
from memantics.metrics.classification import count_classes, f1, macro_metrics
from memantics.metrics.rounding import Ints
from memantics.moderation.neural.encoding import (
    Encoded,
    Reader,
    classes_of,
    cut,
    read_preparation,
    read_splitter,
)
from memantics.moderation.neural.machine import check_packages, get_torch, get_transformers
from memantics.moderation.neural.settings import SCRATCH, Backbones, NetworkShape

CONFIG, TOKENIZER, PREPARATION = "config.json", "tokenizer.json", "preprocessor_config.json"
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SCRATCH_SIZE = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}


@dataclass(frozen=True, slots=True)
class Encoders:
    """Loaded encoders and their preprocessing.

    ``clip`` has both encoders; ``text`` and ``image`` are then None.
    """

    reader: Reader
    text: Any = None
    image: Any = None
    clip: Any = None


def open_encoders(backbones: Backbones, length: int) -> Encoders:
    """Load the encoders; weights are read from safetensors, never unpickled."""
    if backbones.clip is not None:
        clip = _load(backbones.clip, backbones.from_scratch)
        if not hasattr(clip, "text_model") or not hasattr(clip, "vision_model"):
            raise InputError(
                f"{backbones.clip} is not a CLIP model", hint="use a model of texts and images"
            )
        return Encoders(_read(backbones.clip, backbones.clip, clip, length), clip=clip)
    text = image = None
    if backbones.text is not None:
        text = _load(Path(backbones.text), backbones.from_scratch)
    if backbones.image is not None:
        image = _load(backbones.image, backbones.from_scratch)
    place = None if backbones.text is None else Path(backbones.text)
    return Encoders(_read(place, backbones.image, text, length), text=text, image=image)


def keep_encoders(backbones: Backbones, folder: Path) -> Backbones:
    """Copy the configuration of the encoders, without weights, into a detector folder."""
    kept: dict[str, Path | None] = {"text": None, "image": None, "clip": None}
    named = {"text": backbones.text, "image": backbones.image, "clip": backbones.clip}
    for kind, source in named.items():
        if source is None:
            continue
        target = kept[kind] = folder / kind
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(source) / CONFIG, target / CONFIG)
        if kind != "image":
            (target / TOKENIZER).write_bytes(_tokenizer_of(Path(source)))
        if kind != "text":
            shutil.copyfile(_find(Path(source), PREPARATION), target / PREPARATION)
    text = None if kept["text"] is None else str(kept["text"])
    return Backbones(text, kept["image"], kept["clip"], from_scratch=True)


def kept_encoders(folder: Path) -> Backbones:
    """Return the encoder configurations in a detector folder."""
    found = {kind: folder / kind for kind in ("text", "image", "clip")}
    here = {kind: place if place.is_dir() else None for kind, place in found.items()}
    text = None if here["text"] is None else str(here["text"])
    return Backbones(text, here["image"], here["clip"], from_scratch=True)


def make_scratch(texts: Iterable[str], folder: Path) -> Path:
    """Write the config of a small BERT and a character vocabulary of the given texts.

    ``texts`` must be training texts only. Characters that occur only once map to
    the unknown token.
    """
    letters = Counter(letter for text in texts for letter in text.lower() if not letter.isspace())
    known = sorted(letter for letter, count in letters.items() if count > 1)
    words = [*MARKS, *known, *(f"##{letter}" for letter in known)]
    vocabulary = {word: place for place, word in enumerate(words)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TOKENIZER).write_bytes(describe_word_pieces(vocabulary))
    transformers = get_transformers()
    config = transformers.BertConfig(
        vocab_size=len(words), pad_token_id=vocabulary["[PAD]"], **SCRATCH_SIZE
    )
    config.architectures = ["BertModel"]
    config.save_pretrained(folder)
    return folder


def describe_word_pieces(vocabulary: dict[str, int]) -> bytes:
    """Make a BERT-style ``tokenizer.json`` for a vocabulary with the five special tokens."""
    single = [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]
    specials = {
        mark: {"id": mark, "ids": [vocabulary[mark]], "tokens": [mark]} for mark in MARKS[2:4]
    }
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return orjson.dumps(
        {
            "version": "1.0",
            "added_tokens": [
                {"id": vocabulary[mark], "content": mark, "special": True, **plain}
                for mark in MARKS
            ],
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": single,
                "pair": [*single, *single[1:]],
                "special_tokens": specials,
            },
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": vocabulary,
            },
        }
    )


def check_folder(place: Path, from_scratch: bool) -> None:
    """Raise InputError if a folder is not an encoder."""
    hint = "give a folder in transformers format, with config.json and *.safetensors"
    if not place.is_dir():
        raise InputError(f"no such folder: {place}", hint=hint)
    if not (place / CONFIG).is_file():
        raise InputError(f"{place} is not an encoder folder: {CONFIG} is missing", hint=hint)
    weights = any(place.glob("*.safetensors")) or any(place.glob("pytorch_model*.bin"))
    if not weights and not from_scratch:
        raise InputError(
            f"{place} has no weights",
            hint="download them, or train from random weights with --from-scratch",
        )


def _load(place: Path, from_scratch: bool) -> Any:
    if str(place) == SCRATCH:
        raise InputError("the encoder 'scratch' was not created", hint="report this error")
    check_folder(place, from_scratch)
    transformers = get_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(str(place), local_files_only=True)
        if from_scratch:
            return transformers.AutoModel.from_config(config)
        return transformers.AutoModel.from_pretrained(
            str(place), local_files_only=True, weights_only=True, dtype="float32"
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{place} cannot be loaded: {words}", hint="download it again") from error


def _read(text: Path | None, image: Path | None, model: Any, length: int) -> Reader:
    splitter = preparation = None
    if text is not None:
        config = getattr(model.config, "text_config", None) or model.config
        longest = int(getattr(config, "max_position_embeddings", length))
        # RoBERTa position ids start after the padding id.
        if config.model_type in ("roberta", "xlm-roberta", "camembert"):
            longest -= int(config.pad_token_id or 0) + 1
        length = min(length, longest)
        splitter = read_splitter(_tokenizer_of(text), _pad_of(config), str(text / TOKENIZER))
    if image is not None:
        place = _find(image, PREPARATION)
        preparation = read_preparation(read_regular(place), str(place))
    return Reader(splitter, preparation, length)


def _pad_of(config: Any) -> int:
    # Padding is masked, so any id works if the config has no padding id.
    found = getattr(config, "pad_token_id", None)
    return int(found) if isinstance(found, int) and found >= 0 else 0


def _tokenizer_of(place: Path) -> bytes:
    """Read ``tokenizer.json`` of a folder, or convert its older tokenizer files."""
    if (place / TOKENIZER).is_file():
        return read_regular(place / TOKENIZER)
    transformers = get_transformers()
    try:
        found = transformers.AutoTokenizer.from_pretrained(str(place), local_files_only=True)
        with tempfile.TemporaryDirectory() as made:
            found.save_pretrained(made)
            return (Path(made) / TOKENIZER).read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            place, "has no readable tokenizer", hint="download tokenizer.json"
        ) from error


def _find(place: Path, name: str) -> Path:
    if not (place / name).is_file():
        raise DataError(place, f"has no {name}", hint="download it beside the weights")
    return place / name


Join = Callable[[Any, Sequence[Any], NetworkShape], Any]


def build_network(encoders: Encoders, shape: NetworkShape) -> Any:
    """Build the network as a ``torch.nn.Module``: ``(ids, mask, pixels) -> logits``."""
    texts = images = None
    vector = find_vector(shape)
    if encoders.clip is not None:
        clip = encoders.clip
        project = getattr(clip, "text_projection", None)
        texts = _text_class()(clip.text_model, project, vector)
        images = _image_class()(
            clip.vision_model,
            getattr(clip, "visual_projection", None),
            encoders.reader.preparation,
        )
    if encoders.text is not None:
        texts = _text_class()(encoders.text, None, vector)
    if encoders.image is not None:
        images = _image_class()(encoders.image, None, encoders.reader.preparation)
    return _network_class()(texts, images, shape)


def find_vector(shape: NetworkShape) -> str:
    """Return which text vectors are used: ``tokens`` (all), ``first``, or ``own`` (the encoder's).

    >>> find_vector(NetworkShape()), find_vector(NetworkShape(integration="none")), find_vector(
    ...     NetworkShape(integration="none", pooling="mean"))
    ('tokens', 'own', 'tokens')
    """
    if shape.integration == "attention" or shape.pooling == "mean":
        return "tokens"
    return "first" if shape.pooling == "first" else "own"


@cache
def _text_class() -> Any:
    check_packages()
    import torch

    class TextEncoder(torch.nn.Module):  # type: ignore[misc]
        """Encodes texts as token states or one vector each; for CLIP, in the shared space."""

        def __init__(self, model: Any, projection: Any, vector: str) -> None:
            super().__init__()
            self.model = model
            self.projection = projection if isinstance(projection, torch.nn.Module) else None
            self.vector = vector
            if vector != "own" and getattr(model, "pooler", None) is not None:
                # Unused parameters would make distributed training wait for their gradient.
                model.pooler = None
            inner = self.projection
            self.width = int(inner.out_features if inner is not None else model.config.hidden_size)

        def forward(self, ids: Any, mask: Any) -> Any:
            """Return token states (texts × tokens × width) or one vector per text."""
            found = self.model(input_ids=ids, attention_mask=mask.to(ids.dtype))
            states = found.last_hidden_state
            if self.vector != "tokens":
                pooled = None if self.vector == "first" else getattr(found, "pooler_output", None)
                states = states[:, 0] if pooled is None else pooled
            return states if self.projection is None else self.projection(states)

    return TextEncoder


@cache
def _image_class() -> Any:
    check_packages()
    import torch

    class ImageEncoder(torch.nn.Module):  # type: ignore[misc]
        """Encodes images from bytes as one vector each."""

        def __init__(self, model: Any, projection: Any, preparation: Any) -> None:
            super().__init__()
            self.model = model
            self.projection = projection if isinstance(projection, torch.nn.Module) else None
            for name in ("mean", "std"):
                values = torch.tensor(getattr(preparation, name)).view(1, 3, 1, 1)
                self.register_buffer(name, values, persistent=False)
            inner = self.projection
            self.width = inner.out_features if inner is not None else find_width(model.config)

        def forward(self, pixels: Any) -> Any:
            """Return images × width; ``pixels`` are images × rows × columns × RGB, 0 to 255."""
            scaled = pixels.permute(0, 3, 1, 2).to(self.mean.dtype) / 255
            found = self.model(pixel_values=(scaled - self.mean) / self.std)
            pooled = getattr(found, "pooler_output", None)
            vector = found.last_hidden_state[:, 0] if pooled is None else pooled
            vector = vector.flatten(1)  # ResNet pools to 1 × 1 maps
            return vector if self.projection is None else self.projection(vector)

    return ImageEncoder


def find_width(config: Any) -> int:
    """Return the width of image vectors; for a ResNet, that of its last stage."""
    sizes = getattr(config, "hidden_sizes", None)
    width = getattr(config, "hidden_size", None) or (sizes[-1] if sizes else None)
    if not isinstance(width, int):
        raise InputError(
            f"image encoders of the type {config.model_type} are not supported",
            hint="use a ViT, a ResNet, a ConvNeXt or a CLIP model",
        )
    return width


@cache
def _network_class() -> Any:
    check_packages()
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]
        """Maps texts and images to one logit per class."""

        def __init__(self, texts: Any, images: Any, shape: NetworkShape) -> None:
            super().__init__()
            self.texts, self.images, self.shape = texts, images, shape
            width = sum(part.width for part in (texts, images) if part is not None)
            self.vectors = None  # vectors of the last batch, for the contrastive loss
            if shape.fusion == "align":
                width = texts.width
                sides = (torch.nn.Linear(part.width, width) for part in (texts, images))
                self.sides = torch.nn.ModuleList(sides)
                self.inner = torch.nn.Linear(width, width)
            self.dropout = torch.nn.Dropout(shape.dropout)
            self.head = torch.nn.Linear(width, len(classes_of(shape.target)))

        def forward(self, ids: Any = None, mask: Any = None, pixels: Any = None) -> Any:
            """Compute logits; ``ids`` and ``mask`` are memes × texts × tokens."""
            vectors = []
            if self.texts is not None:
                vectors.append(self._read(ids, mask))
            if self.images is not None:
                vectors.append(self.images(pixels))
            joined = (
                self._align(vectors) if self.shape.fusion == "align" else torch.cat(vectors, -1)
            )
            self.vectors = joined if self.shape.contrast else None
            return self.head(self.dropout(joined))

        def _align(self, vectors: list[Any]) -> Any:
            """Multiply the projected text and image vectors, and apply one more layer."""
            text, image = (side(vector) for side, vector in zip(self.sides, vectors, strict=True))
            return torch.relu(self.inner(text * image))

        def _read(self, ids: Any, mask: Any) -> Any:
            """Encode all texts of each meme in one pass, and combine them to one vector."""
            fields = self.shape.fields
            found = self.texts(ids.flatten(0, 1), mask.flatten(0, 1))
            found = found.unflatten(0, (-1, fields))
            if self.shape.integration == "attention":
                return attend(found, mask, self.shape)
            if self.texts.vector == "tokens":
                found = pool(found, mask)
            first, *captions = found.unbind(1)
            join = _JOINS.get(self.shape.integration)
            return join(first, captions, self.shape) if join and captions else first

    return Network


def pool(states: Any, mask: Any) -> Any:
    """Average over the tokens of each text; the last two axes are tokens and width."""
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(-2) / weights.sum(-2)


def attend(states: Any, mask: Any, shape: NetworkShape) -> Any:
    """Apply cross-attention from text tokens to caption tokens, as the ToxiCN MM paper describes.

    The tokens S of the printed text are queries, the tokens K of a caption are keys and values:
    softmax(S Kᵀ / √d) K, once per caption. The result is averaged with S per token, then over
    tokens. The formula as printed in the paper (``values`` of the text) uses S for the values too,
    so that a caption can only reweight the tokens of the text.
    """
    torch = get_torch()
    inline = states[:, 0]
    found = inline
    for place in range(1, states.shape[1]):
        caption, real = states[:, place], mask[:, place, None, :].bool()
        values = caption
        if shape.values == "text":
            values, real = inline, real & mask[:, 0, None, :].bool()
        scores = inline @ caption.transpose(-1, -2) / caption.shape[-1] ** 0.5
        scores = scores.masked_fill(~real, float("-inf"))
        found = found + torch.softmax(scores.float(), -1).to(caption.dtype) @ values
    found = found / states.shape[1]
    return found[:, 0] if shape.pooling == "first" else pool(found, mask[:, 0])


def join_as_printed(inline: Any, captions: Sequence[Any], shape: NetworkShape) -> Any:
    """Apply the printed formula softmax(S Kᵀ/√d) S to one vector per text, within each meme.

    With one vector per text, the attention score is a single number whose softmax is 1, so captions
    have no effect. An unused function of the official code attends across the memes of a batch;
    this function does not.
    """
    torch = get_torch()
    del shape
    found = inline
    for caption in captions:
        score = (inline * caption).sum(-1, keepdim=True) / inline.shape[-1] ** 0.5
        found = found + torch.softmax(score[..., None], -1)[..., 0] * inline
    return found / (1 + len(captions))


def join_by_sum(inline: Any, captions: Sequence[Any], shape: NetworkShape) -> Any:
    """Combine vectors as the official code does: S + K_text + weight · K_image."""
    weights = {"text": 1.0, "image": shape.image_caption_weight}
    for kind, caption in zip(shape.joined, captions, strict=True):
        inline = inline + weights[kind] * caption
    return inline


_JOINS: dict[str, Join] = {"pooled": join_as_printed, "sum": join_by_sum}


Chances = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MacroScores:
    """Macro precision, recall and F1 (means over the classes) and the F1 of each class."""

    precision: float
    recall: float
    f1: float
    by_class: dict[str, float]
    examples: int


def measure(gold: Ints, predicted: Ints, classes: Sequence[str]) -> MacroScores:
    """Compute metrics from gold and predicted class indices.

    >>> measure(np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), ["no", "yes"]).precision
    0.6666666666666666
    """
    counts = count_classes(
        [classes[place] for place in gold], [classes[place] for place in predicted], classes
    )
    macro = macro_metrics(counts)
    return MacroScores(
        macro.precision or 0.0,
        macro.recall or 0.0,
        macro.f1 or 0.0,
        {name: f1(cells) or 0.0 for name, cells in counts.items()},
        len(gold),
    )


def ask_network(
    network: Any, encoded: Encoded, rows: Sequence[int], device: Any, batch: int = 128
) -> Chances:
    """Compute class probabilities of some rows, in float32 and without dropout.

    Rows are sorted by length, to reduce padding.
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


def to_tensors(encoded: Encoded, rows: Ints, device: Any) -> tuple[Any, Any, Any]:
    """Move a batch to a device: ids, mask, pixels."""
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
