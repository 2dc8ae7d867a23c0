"""Tiny encoders with random weights, and memes whose label can be learnt from one of their parts.

Nothing is downloaded: each folder is made from a config, with a tokenizer and an image preparation
as a real checkpoint has them.
"""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memantics.moderation.examples import TYPES, Example, Loaded
from memantics.moderation.neural.network import MARKS, describe_word_pieces
from memantics.moderation.neural.settings import Training

LETTERS = "天地人你我他上下左右大小多少来去好坏红黄蓝绿春夏秋冬abcdefghijklmnopqrstuvwxyz"
# Words that say which class a meme belongs to; harmless in themselves.
SIGNS = {"none": "春", "targeted": "夏", "offence": "秋", "sexual": "冬", "dispirited": "蓝"}
BERT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
SIDE = 16
IMAGE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": SIDE,
    "patch_size": 8,
}
QUICK = Training(
    seeds=(0,), epochs=4, batch=16, rate=3e-3, patience=4, share=0.2, device="cpu", workers=1
)


def make_text(folder: Path) -> Path:
    transformers, torch = _packages()
    words = [*MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    folder.mkdir(parents=True, exist_ok=True)
    described = describe_word_pieces({word: place for place, word in enumerate(words)})
    (folder / "tokenizer.json").write_bytes(described)
    torch.manual_seed(11)
    config = transformers.BertConfig(vocab_size=len(words), pad_token_id=0, **BERT)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def make_image(folder: Path) -> Path:
    transformers, torch = _packages()
    torch.manual_seed(12)
    transformers.ViTModel(transformers.ViTConfig(**IMAGE)).save_pretrained(folder)
    _prepare(folder, {"size": {"height": SIDE, "width": SIDE}, "resample": 2})
    return folder


def make_resnet(folder: Path) -> Path:
    """As microsoft/resnet-101 lies on the hub: a preparation with ``crop_pct``, maps of 1 × 1."""
    transformers, torch = _packages()
    torch.manual_seed(14)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    transformers.ResNetModel(config).save_pretrained(folder)
    _prepare(folder, {"size": {"shortest_edge": SIDE}, "crop_pct": 0.875, "resample": 3})
    return folder


def make_clip(folder: Path, chinese: bool = True) -> Path:
    transformers, torch = _packages()
    make_text(folder)
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    size = len(MARKS) + 2 * len(LETTERS)
    # A CLIP of the English kind takes the vector of the closing mark.
    text = BERT | {"vocab_size": size, "pad_token_id": 0, "eos_token_id": MARKS.index("[SEP]")}
    kind = "ChineseCLIP" if chinese else "CLIP"
    config = getattr(transformers, f"{kind}Config")(
        text_config=text, vision_config=IMAGE, projection_dim=24
    )
    torch.manual_seed(13)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    square = {"height": SIDE, "width": SIDE}
    _prepare(folder, {"size": {"shortest_edge": SIDE}, "crop_size": square, "resample": 3})
    return folder


def _prepare(folder: Path, facts: dict[str, Any]) -> None:
    facts |= {"image_mean": [0.48, 0.45, 0.4], "image_std": [0.27, 0.26, 0.28]}
    facts |= {"do_resize": True, "do_rescale": True, "do_normalize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(facts), encoding="utf-8")


def draw_memes(count: int, folder: Path | None = None, sign: str = "text", seed: int = 5) -> Loaded:
    """Memes whose type shows in ``sign`` alone: text, text_caption, image_caption or image."""
    chance = random.Random(seed)
    made = []
    for number in range(1, count + 1):
        kind = TYPES[chance.randrange(5)] if chance.random() < 0.5 else "none"
        words = {name: _words(chance) for name in ("text", "text_caption", "image_caption")}
        if sign in words:
            place = chance.randrange(len(words[sign]) + 1)
            words[sign] = words[sign][:place] + SIGNS[kind] + words[sign][place:]
        image = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            image = folder / f"{number}.png"
            shade = 40 * TYPES.index(kind) if sign == "image" else chance.randrange(256)
            Pillow.new("RGB", (20 + number % 7, 18), (shade, 255 - shade, 90)).save(image)
        label = int(kind != "none")
        texts = words["text"], words["text_caption"], words["image_caption"]
        made.append(Example(str(number), *texts, image=image, label=label, type=kind))
    return Loaded("synthetic", tuple(made), licence="ours", checksum="none")


def _words(chance: random.Random) -> str:
    plain = [letter for letter in LETTERS if letter not in SIGNS.values()]
    return "".join(chance.choice(plain) for _ in range(chance.randrange(3, 12)))


def _packages() -> tuple[Any, Any]:
    return importlib.import_module("transformers"), importlib.import_module("torch")
