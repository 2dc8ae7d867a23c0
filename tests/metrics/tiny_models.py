"""Tiny models of random weights, made here and saved to a folder: no hub, no download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = ("the", "meme", "mocks", "updates", "that", "take", "all", "night", "a", "cat", "sleeps")
MARKS = ("on", "keyboard", ".", "?", "!")
SIZE = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


def make_tokenizer() -> Any:
    import transformers

    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *MARKS, "##s", "##ing"]
    return transformers.BertTokenizer(vocab={word: place for place, word in enumerate(known)})


def make_encoder(folder: Path, seed: int = 1) -> Path:
    import torch
    import transformers

    tokenizer = make_tokenizer()
    torch.manual_seed(seed)
    config = transformers.BertConfig(vocab_size=len(tokenizer), initializer_range=0.6, **SIZE)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_masked(folder: Path) -> Path:
    """A masked language model, which is also an encoder."""
    import torch
    import transformers

    tokenizer = make_tokenizer()
    torch.manual_seed(4)
    config = transformers.BertConfig(vocab_size=len(tokenizer), initializer_range=0.6, **SIZE)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_judge(folder: Path, labels: tuple[str, ...]) -> Path:
    import torch
    import transformers

    tokenizer = make_tokenizer()
    torch.manual_seed(2)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), initializer_range=0.6, id2label=dict(enumerate(labels)), **SIZE
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_roberta(folder: Path) -> Path:
    """An encoder whose tokens differ with a space in front, and whose first places are taken."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    folder.mkdir(exist_ok=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        [" ".join(WORDS)] * 3,
        vocab_size=300,
        min_frequency=1,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        show_progress=False,
    )
    names = trained.save_model(str(folder))
    tokenizer = transformers.RobertaTokenizer(*names)
    torch.manual_seed(3)
    size = SIZE | {"max_position_embeddings": 34}
    config = transformers.RobertaConfig(vocab_size=len(tokenizer), initializer_range=0.6, **size)
    transformers.RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_image_encoder(folder: Path, family: str = "CLIP") -> Path:
    """A CLIP, Siglip or ChineseCLIP of random weights."""
    import torch
    import transformers

    torch.manual_seed(1)
    small = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    texts, pictures = {**small, "vocab_size": 30}, {**small, "image_size": 32, "patch_size": 16}
    more: dict[str, Any] = {} if family == "Siglip" else {"projection_dim": 8}
    make_config = getattr(transformers, f"{family}Config")
    config = make_config(text_config=texts, vision_config=pictures, **more)
    getattr(transformers, f"{family}Model")(config).save_pretrained(folder)
    sides = {"height": 32, "width": 32}
    size: Any = sides if family == "Siglip" else {"shortest_edge": 32}
    cut: dict[str, Any] = {} if family == "Siglip" else {"crop_size": sides}
    make_processor = getattr(transformers, f"{family}ImageProcessor")
    make_processor(size=size, **cut).save_pretrained(folder)
    return folder
