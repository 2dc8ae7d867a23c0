"""Text and image encoders and classifiers from local folders, through transformers.

Nothing is downloaded, and no code from a model folder runs. ``1_Pooling/config.json`` of a sentence
model defines the pooling; other models use the mean over tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

from memantics.core.errors import InputError, StoreError, need_packages
from memantics.core.files import read_regular
from memantics.core.images import load
from memantics.models.chat import quiet_transformers
from memantics.models.embedded.encoder import SentenceEncoder, Vectors
from memantics.models.local.settings import check_folder, digest

_BATCH = 16
_LONGEST = 512
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
LOCAL = "local/"


class LocalTextEncoder:
    """A text encoder such as BGE-M3, loaded immediately so that errors appear early.

    ``version`` is a hash of the weights and settings; it does not depend on the folder's name
    alone.
    """

    def __init__(self, folder: Path) -> None:
        transformers = _check(folder)
        self._tokenizer = open_part(folder, transformers.AutoTokenizer.from_pretrained)
        self._model = open_part(folder, transformers.AutoModel.from_pretrained).eval()
        self._first = _pools_first(folder)
        self.version = _name(folder) + ("-first" if self._first else "")
        places = int(getattr(self._model.config, "max_position_embeddings", 0) or _LONGEST)
        self._room = min(_LONGEST, max(4, places - 2))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        import torch

        rows = []
        for start in range(0, len(texts), _BATCH):
            inputs = self._tokenizer(
                [text or " " for text in texts[start : start + _BATCH]],
                padding=True,
                truncation=True,
                max_length=self._room,
                return_tensors="pt",
            )
            with torch.inference_mode():
                states = self._model(**inputs).last_hidden_state
            if self._first:
                pooled = states[:, 0]
            else:
                mask = inputs["attention_mask"].unsqueeze(-1)
                pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            rows.append(pooled.float().numpy())
        return _unit(rows)


class OneByOneEncoder:
    """A local encoder that encodes texts one by one, because batches change the last digits."""

    def __init__(self, folder: Path) -> None:
        self._encoder = LocalTextEncoder(folder)
        self.version = self._encoder.version

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        known = {text: self._encoder.encode([text])[0] for text in dict.fromkeys(texts)}
        return np.stack([known[text] for text in texts])


def open_text_encoder(folder: Path | None = None) -> SentenceEncoder | OneByOneEncoder:
    """Open the sentence encoder in a folder, or the built-in one."""
    return SentenceEncoder() if folder is None else OneByOneEncoder(folder)


class LocalImageEncoder:
    """An image encoder such as CLIP or SigLIP."""

    def __init__(self, folder: Path) -> None:
        transformers = _check(folder)
        self.version = _name(folder)
        self._processor = open_part(folder, transformers.AutoImageProcessor.from_pretrained)
        self._model = open_part(folder, transformers.AutoModel.from_pretrained).eval()

    @cached_property
    def width(self) -> int:
        """The dimension of an image vector."""
        return int(self._encode([Image.new("RGB", (32, 32))]).shape[1])

    def encode_files(self, paths: Sequence[Path]) -> Vectors:
        """Return one row of length 1 per image file; images are decoded within size limits."""
        parts = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
        return _unit([self._encode([load(path) for path in part]) for part in parts])

    def _encode(self, images: Sequence[Image.Image]) -> Vectors:
        import torch

        inputs = self._processor(images=list(images), return_tensors="pt")
        features = getattr(self._model, "get_image_features", self._model)
        with torch.inference_mode():
            found: Any = features(pixel_values=inputs["pixel_values"])
        rows: Vectors = _pool(found).float().numpy()
        return rows


def _pool(found: Any) -> Any:
    """Return the vectors of a batch from any output type of transformers."""
    if hasattr(found, "shape"):
        return found
    pooled = getattr(found, "pooler_output", None)
    return found.last_hidden_state.mean(dim=1) if pooled is None else pooled


def _unit(rows: Sequence[Any]) -> Vectors:
    vectors = np.concatenate(rows).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def _check(folder: Path) -> Any:
    need_packages("local embedders", "local", "transformers", "torch")
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} is not a model folder: config.json is missing",
            hint="give a model folder in the transformers format",
        )
    import transformers

    return transformers


def _name(folder: Path) -> str:
    return f"{LOCAL}{folder.resolve().name}-{digest(folder)}"


def open_part(folder: Path, maker: Callable[..., Any], **options: object) -> Any:
    """Load a model, tokenizer or image processor offline, without running code of its folder."""
    try:
        with quiet_transformers():
            return maker(folder, **_LOCAL, **options)
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, ImportError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise InputError(f"{folder} cannot be loaded: {reason}"[:300]) from error


def _pools_first(folder: Path) -> bool:
    """Return whether the pooling configuration of a model folder selects the first token."""
    place = folder / "1_Pooling" / "config.json"
    if not place.is_file():
        return False
    try:
        return bool(orjson.loads(read_regular(place)).get("pooling_mode_cls_token"))
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(
            f"{place} is not a valid JSON object", hint="download the model again"
        ) from error


# A local classifier in the format of transformers, which maps a meme to logits. It classifies texts
# (``…ForSequenceClassification``), images (``…ForImageClassification``), or both (a model with two
# encoders such as CLIP, which compares an image with prompts). Only safetensors weights are loaded,
# no code from the folder runs, and nothing is downloaded.

ClassifierKind = Literal["text", "image", "image-text"]
TEXT_PLACEHOLDER = "{text}"
_ENDINGS: dict[str, ClassifierKind] = {
    "ForSequenceClassification": "text",
    "ForImageClassification": "image",
}
_MAKERS = {
    "text": "AutoModelForSequenceClassification",
    "image": "AutoModelForImageClassification",
    "image-text": "AutoModel",
}
_OFFSET = ("roberta", "xlm-roberta", "camembert")  # Position numbers start after the padding index.


class LocalClassifier:
    """A loaded classifier. It classifies memes one by one, because batches change the last digits.

    ``labels`` are the classes in order, or the prompts. ``several`` marks a multi-label model,
    whose logits are independent.
    """

    def __init__(self, folder: Path, prompts: Sequence[str] = ()) -> None:
        check_folder(folder)
        need_packages("classifiers of others", "local", "torch", "transformers")
        import transformers

        self.architecture, self.kind = find_kind(folder, bool(prompts))
        self._prompts = tuple(prompts)
        maker = getattr(transformers, _MAKERS[self.kind]).from_pretrained
        self._model = open_part(folder, maker, use_safetensors=True, dtype="float32").eval()
        self._takes = set(inspect.signature(self._model.forward).parameters)
        config = self._model.config
        self._tokenizer = self._processor = None
        if self.kind != "image":
            self._tokenizer = open_part(folder, transformers.AutoTokenizer.from_pretrained)
            backend = getattr(self._tokenizer, "backend_tokenizer", None)
            # Control tokens spelled out in a caption are treated as ordinary text.
            if backend is not None:
                backend.encode_special_tokens = True
            self._room = _find_room(config, self._tokenizer)
        if self.kind != "text":
            self._processor = open_part(folder, transformers.AutoImageProcessor.from_pretrained)
        named = config.id2label if self.kind != "image-text" else dict(enumerate(self._prompts))
        self.labels = tuple(str(named[place]) for place in range(len(named)))
        problem = getattr(config, "problem_type", None)
        if problem == "regression":
            raise InputError(
                f"{folder} is a regression model without labels", hint="use a classifier"
            )
        self.several = problem == "multi_label_classification" or len(self.labels) == 1

    def score(self, text: str, picture: Image.Image | None = None) -> NDArray[np.float64]:
        """Return the logit of each label for a meme."""
        import torch

        inputs: dict[str, Any] = {}
        if self._tokenizer is not None:
            inputs |= self._split(text)
        if self._processor is not None:
            inputs["pixel_values"] = self._processor(images=[picture], return_tensors="pt")[
                "pixel_values"
            ]
        with torch.inference_mode():
            made = self._model(**inputs)
        found = made.logits_per_image if self.kind == "image-text" else made.logits
        row: NDArray[np.float64] = found[0].double().numpy()
        if not np.isfinite(row).all():
            raise StoreError("the classifier returns NaN", hint="download it again")
        return row

    def _split(self, text: str) -> dict[str, Any]:
        clean = text.encode("utf-8", "ignore").decode("utf-8")  # Tokenizers reject lone surrogates.
        texts = [prompt.replace(TEXT_PLACEHOLDER, clean) for prompt in self._prompts] or [
            clean or " "
        ]
        # SigLIP was trained on padded inputs and gives wrong results for others.
        full = str(self._model.config.model_type).startswith("siglip")
        assert self._tokenizer is not None
        found = self._tokenizer(
            texts,
            padding="max_length" if full else True,
            truncation=True,
            max_length=self._room,
            return_tensors="pt",
        )
        return {name: value for name, value in found.items() if name in self._takes}


def find_kind(folder: Path, prompts: bool = False) -> tuple[str, ClassifierKind]:
    """Return the architecture in a model's config, and whether it uses text, image or both."""
    place = folder / "config.json"  # A LoRA adapter has no config.json.
    config = orjson.loads(read_regular(place)) if place.is_file() else {}
    architecture = str((config.get("architectures") or [""])[0])
    for ending, kind in _ENDINGS.items():
        if architecture.endswith(ending):
            return architecture, kind
    both = "text_config" in config and "vision_config" in config
    if both and prompts:
        return architecture, "image-text"
    hint = "give a folder of …ForSequenceClassification or …ForImageClassification, or CLIP"
    if both:
        hint = "a CLIP model needs texts to compare with: add [prompts] to the label map"
    raise InputError(
        f"{folder} is not a classifier ({architecture or 'unknown architecture'})", hint=hint
    )


def _find_room(config: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens that a text classifier accepts."""
    config = getattr(config, "text_config", None) or config
    places = int(getattr(config, "max_position_embeddings", 0) or _LONGEST)
    if config.model_type in _OFFSET:
        places -= int(config.pad_token_id or 0) + 1
    return max(4, min(_LONGEST, places, int(tokenizer.model_max_length)))
