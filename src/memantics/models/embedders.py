"""Any embedder in a folder of this machine: texts or images to unit vectors, through transformers.

Nothing is downloaded, and no code from such a folder is run. Sentence models say in
``1_Pooling/config.json`` how a sentence becomes one vector; others are averaged over tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

from memantics.core.errors import InputError, need_packages
from memantics.core.images import load
from memantics.models.chat import quiet_transformers
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.models.local.settings import digest

Vectors = NDArray[np.float32]
_BATCH = 16
_LONGEST = 512
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
LOCAL = "local/"


class LocalTextEncoder:
    """A text encoder such as BGE-M3, loaded at once so that faults show early.

    ``version`` pins the weights and how they are used, not only the folder's name.
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
        """One row of length 1 per text."""
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
    """A local encoder asked text by text: in a batch the last digits depend on the neighbours."""

    def __init__(self, folder: Path) -> None:
        self._encoder = LocalTextEncoder(folder)
        self.version = self._encoder.version

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text."""
        known = {text: self._encoder.encode([text])[0] for text in dict.fromkeys(texts)}
        return np.stack([known[text] for text in texts])


def open_text_encoder(folder: Path | None = None) -> SentenceEncoder | OneByOneEncoder:
    """The sentence encoder of a folder, or without one that which ships."""
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
        """How many numbers an image becomes."""
        return int(self._encode([Image.new("RGB", (32, 32))]).shape[1])

    def encode_files(self, paths: Sequence[Path]) -> Vectors:
        """One row of length 1 per image file, each decoded within bounds."""
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
    """The vectors of a batch, whatever the model wraps them in."""
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
            f"{folder} is no model folder: it has no config.json",
            hint="give a folder in the format of transformers",
        )
    import transformers

    return transformers


def _name(folder: Path) -> str:
    return f"{LOCAL}{folder.resolve().name}-{digest(folder)}"


def open_part(folder: Path, maker: Callable[..., Any], **options: object) -> Any:
    """A model, tokenizer or image processor of a folder, offline and without its code."""
    try:
        with quiet_transformers():
            return maker(folder, **_LOCAL, **options)
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, ImportError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise InputError(f"{folder} cannot be loaded: {reason}"[:300]) from error


def _pools_first(folder: Path) -> bool:
    """Whether a sentence is its first token's vector, as the folder of a sentence model says."""
    place = folder / "1_Pooling" / "config.json"
    if not place.is_file():
        return False
    try:
        return bool(orjson.loads(place.read_bytes()).get("pooling_mode_cls_token"))
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(f"{place} is no JSON object", hint="download the model again") from error
