"""Tiny classifiers with random weights, in folders as transformers saves them; none is fetched."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from memantics.moderation.neural.network import MARKS, describe_word_pieces
from tests.moderation.neural.tiny import IMAGE, SIDE

WORDS = ("good", "nice", "cat", "day", "you", "are", "bad", "ugly", "go", "away", "a", "meme")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROMPTS = {"a bad meme: {text}": "harmful", "ugly": "targeted", "a nice meme": "harmless"}
MAPS = {
    "text": '[labels]\nnice = "harmless"\nrude = "offence"\nlewd = "sexual"\nodd = "ignore"\n',
    "image": '[labels]\nplain = "harmless"\ngore = "harmful"\n',
    "image-text": "[prompts]\n" + "".join(f'"{k}" = "{v}"\n' for k, v in PROMPTS.items()),
}


def make_classifier(kind: str, folder: Path, **options: object) -> Path:
    """A DistilBERT for texts, a ViT for images, or a CLIP that compares images with prompts."""
    for name in ("torch", "transformers", "scipy"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (extra detector)")
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    torch.manual_seed(21)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [*MARKS, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    if kind != "image":
        described = describe_word_pieces({word: at for at, word in enumerate(vocabulary)})
        (folder / "tokenizer.json").write_bytes(described)
        named = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
        (folder / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")
    if kind == "text":
        names = {"id2label": dict(enumerate(("nice", "rude", "lewd", "odd")))} | options
        config = transformers.DistilBertConfig(
            vocab_size=len(vocabulary), dim=32, n_layers=2, n_heads=2, hidden_dim=64,
            max_position_embeddings=64, initializer_range=0.6, **names,
        )  # fmt: skip
        transformers.DistilBertForSequenceClassification(config).save_pretrained(folder)
        return folder
    if kind == "image":
        names = {"id2label": {0: "plain", 1: "gore"}} | options
        config = transformers.ViTConfig(**IMAGE, initializer_range=0.6, **names)
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    else:
        text = {
            "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 40,
            "pad_token_id": 0, "eos_token_id": MARKS.index("[SEP]"),
        }  # fmt: skip
        config = transformers.CLIPConfig(text_config=text, vision_config=IMAGE, projection_dim=24)
        transformers.CLIPModel(config).save_pretrained(folder)
    square = {"height": SIDE, "width": SIDE}
    facts = {
        "image_processor_type": "ViTImageProcessor" if kind == "image" else "CLIPImageProcessor",
        "size": square if kind == "image" else {"shortest_edge": SIDE},
        "crop_size": square,
        "do_center_crop": kind != "image",
        "image_mean": [0.48, 0.45, 0.4],
        "image_std": [0.27, 0.26, 0.28],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder
