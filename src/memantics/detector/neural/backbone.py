"""Encoders from folders: BERT-like texts, ViT-like images, CLIP for both; or small, from nothing.

A trained detector's folder keeps each encoder's config, tokenizer and image preparation beside
its own weights, so it is opened with the same functions and needs the first folder no more.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from memantics.core.errors import DataError, InputError
from memantics.detector.neural.encoding import Reader, read_preparation, read_splitter
from memantics.detector.neural.machine import get_transformers
from memantics.detector.neural.settings import SCRATCH, Backbones

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
    """Encoders as transformers made them, and how memes are read for them.

    ``clip`` holds both kinds; ``text`` and ``image`` are None then.
    """

    reader: Reader
    text: Any = None
    image: Any = None
    clip: Any = None


def open_encoders(backbones: Backbones, length: int) -> Encoders:
    """Load the encoders that are named; their weights are read as tensors, never unpickled."""
    if backbones.clip is not None:
        clip = _load(backbones.clip, backbones.from_scratch)
        if not hasattr(clip, "text_model") or not hasattr(clip, "vision_model"):
            raise InputError(
                f"{backbones.clip} is no CLIP model", hint="it must encode texts and images"
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
    """Copy what describes the encoders, without their weights, into a detector's folder."""
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
    """The encoders that a detector's folder describes."""
    found = {kind: folder / kind for kind in ("text", "image", "clip")}
    here = {kind: place if place.is_dir() else None for kind, place in found.items()}
    text = None if here["text"] is None else str(here["text"])
    return Backbones(text, here["image"], here["clip"], from_scratch=True)


def make_scratch(texts: Iterable[str], folder: Path, least: int = 2) -> Path:
    """A small BERT's config and a vocabulary of the characters of some texts.

    ``texts`` must be the training part's only. Characters seen less than ``least`` times share
    one unknown mark, as every character of a new text that was never seen.
    """
    letters = Counter(letter for text in texts for letter in text.lower() if not letter.isspace())
    known = sorted(letter for letter, count in letters.items() if count >= least)
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
    """A ``tokenizer.json`` of BERT's kind over a vocabulary that has the five marks."""
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
    """Refuse a folder that is no encoder's, before anything is loaded."""
    hint = "give a folder as transformers saves it, with config.json and *.safetensors"
    if not place.is_dir():
        raise InputError(f"no such folder: {place}", hint=hint)
    if not (place / CONFIG).is_file():
        raise InputError(f"{place} is not an encoder's folder: no {CONFIG}", hint=hint)
    weights = any(place.glob("*.safetensors")) or any(place.glob("pytorch_model*.bin"))
    if not weights and not from_scratch:
        raise InputError(
            f"{place} holds no weights",
            hint="download them, or train from random weights with --from-scratch",
        )


def _load(place: Path, from_scratch: bool) -> Any:
    if str(place) == SCRATCH:
        raise InputError("the encoder from scratch has not been made", hint="report this")
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
        # RoBERTa counts positions from behind its padding mark.
        if config.model_type in ("roberta", "xlm-roberta", "camembert"):
            longest -= int(config.pad_token_id or 0) + 1
        length = min(length, longest)
        splitter = read_splitter(_tokenizer_of(text), _pad_of(config), str(text / TOKENIZER))
    if image is not None:
        place = _find(image, PREPARATION)
        preparation = read_preparation(place.read_bytes(), str(place))
    return Reader(splitter, preparation, length)


def _pad_of(config: Any) -> int:
    # Rows are masked behind their end, so any id serves where a config names none.
    found = getattr(config, "pad_token_id", None)
    return int(found) if isinstance(found, int) and found >= 0 else 0


def _tokenizer_of(place: Path) -> bytes:
    """A folder's ``tokenizer.json``; made from its older files where it has none."""
    if (place / TOKENIZER).is_file():
        return (place / TOKENIZER).read_bytes()
    transformers = get_transformers()
    try:
        found = transformers.AutoTokenizer.from_pretrained(str(place), local_files_only=True)
        with tempfile.TemporaryDirectory() as made:
            found.save_pretrained(made)
            return (Path(made) / TOKENIZER).read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            place, "holds no tokenizer that can be read", hint="download tokenizer.json too"
        ) from error


def _find(place: Path, name: str) -> Path:
    if not (place / name).is_file():
        raise DataError(place, f"holds no {name}", hint="download it beside the weights")
    return place / name
