"""A classifier in a folder of this machine, as transformers saves it: a meme to its logits.

Texts (``…ForSequenceClassification``), pictures (``…ForImageClassification``), or both: a model of
two encoders such as CLIP, which compares a picture with prompts. Weights are safetensors alone, no
code from such a folder is run, and nothing is downloaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL.Image import Image

from memantics.core.errors import InputError, StoreError, need_packages
from memantics.models.embedders import open_part
from memantics.models.local.settings import check_folder

ClassifierKind = Literal["text", "image", "image-text"]
TEXT_HOLE = "{text}"
_ENDINGS: dict[str, ClassifierKind] = {
    "ForSequenceClassification": "text",
    "ForImageClassification": "image",
}
_MAKERS = {
    "text": "AutoModelForSequenceClassification",
    "image": "AutoModelForImageClassification",
    "image-text": "AutoModel",
}
_LONGEST = 512
_OFFSET = ("roberta", "xlm-roberta", "camembert")  # positions are counted from behind the padding


class LocalClassifier:
    """A classifier that stays loaded. Memes are asked one by one: batches move the last digits.

    ``labels`` are its classes in order, or the prompts. ``several`` tells that any number of labels
    can hold, so that each logit stands for itself.
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
            if backend is not None:  # a caption that spells a control mark is text like any other
                backend.encode_special_tokens = True
            self._room = _find_room(config, self._tokenizer)
        if self.kind != "text":
            self._processor = open_part(folder, transformers.AutoImageProcessor.from_pretrained)
        named = config.id2label if self.kind != "image-text" else dict(enumerate(self._prompts))
        self.labels = tuple(str(named[place]) for place in range(len(named)))
        problem = getattr(config, "problem_type", None)
        if problem == "regression":
            raise InputError(f"{folder} gives a number, not labels", hint="use a classifier")
        self.several = problem == "multi_label_classification" or len(self.labels) == 1

    def score(self, text: str, picture: Image | None = None) -> NDArray[np.float64]:
        """The logit of each label."""
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
            raise StoreError("the classifier's weights give no number", hint="download it again")
        return row

    def _split(self, text: str) -> dict[str, Any]:
        clean = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates are no text
        texts = [prompt.replace(TEXT_HOLE, clean) for prompt in self._prompts] or [clean or " "]
        # SigLIP was trained on rows that are filled up, and reads others wrongly.
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
    """The architecture that a folder's config names, and what such a classifier looks at."""
    place = folder / "config.json"  # an adapter has none
    config = orjson.loads(place.read_bytes()) if place.is_file() else {}
    architecture = str((config.get("architectures") or [""])[0])
    for ending, kind in _ENDINGS.items():
        if architecture.endswith(ending):
            return architecture, kind
    both = "text_config" in config and "vision_config" in config
    if both and prompts:
        return architecture, "image-text"
    hint = "give a folder of …ForSequenceClassification or …ForImageClassification, or CLIP"
    if both:
        hint = "it compares pictures with texts: write these as [prompts] into the map"
    raise InputError(
        f"{folder} is no classifier ({architecture or 'of no architecture'})", hint=hint
    )


def _find_room(config: Any, tokenizer: Any) -> int:
    """How many tokens a text may have."""
    config = getattr(config, "text_config", None) or config
    places = int(getattr(config, "max_position_embeddings", 0) or _LONGEST)
    if config.model_type in _OFFSET:
        places -= int(config.pad_token_id or 0) + 1
    return max(4, min(_LONGEST, places, int(tokenizer.model_max_length)))
