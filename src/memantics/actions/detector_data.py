"""Where detectors get their examples and embedders from: releases, the starter pack, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from memantics.benchmarks.toxicn_mm import load as toxicn
from memantics.core.data import checksum
from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.core.registry import read_registry
from memantics.detector.examples import Example, Loaded, Modality, Type
from memantics.detector.features import Embedder, Singles
from memantics.detector.presets import FastSettings
from memantics.detector.sources import read_examples
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.models.embedded.ocr import open_reader
from memantics.models.embedders import LocalTextEncoder
from memantics.registry import find_benchmark, find_source
from memantics.starter import MEMES_FILE, image_path, read_starter

RELEASE = "toxicn_mm"
STARTER = "starter"


def load_examples(data: str | None, split: str = "train", labels: str = "v1") -> Loaded:
    """Examples by name: ``starter``, ``toxicn_mm`` (the registered release), or a path."""
    chosen = data or (RELEASE if RELEASE in read_registry() else STARTER)
    if chosen == STARTER:
        return read_starter_examples()
    if chosen == RELEASE:
        return read_release(split, labels)
    path = Path(chosen)
    if not path.exists():
        raise InputError(
            f"no data at {chosen}", hint=f"give {STARTER}, {RELEASE}, a .csv, a .jsonl or a folder"
        )
    return read_examples(path)


def read_starter_examples() -> Loaded:
    """The starter pack with its own labels; descriptions and meanings stand in for captions."""
    examples = tuple(
        Example(
            id=meme.id,
            text=meme.text,
            text_caption=meme.meaning,
            image_caption=meme.description,
            image=image_path(meme.id),
            label=int(meme.harm.harmful),
            type=meme.harm.type,
            modality=_name_modality(meme.harm.text, meme.harm.image) if meme.harm.harmful else None,
        )
        for meme in read_starter()
    )
    return Loaded(
        name="starter pack (a sample, not a benchmark)",
        examples=examples,
        licence="CC0-1.0",
        checksum=checksum([MEMES_FILE], MEMES_FILE.parent),
        sample=True,
    )


def _name_modality(text: bool, image: bool) -> Modality:
    if text:
        return "both" if image else "text"
    return "image" if image else "fusion"


def read_release(split: str, labels: str) -> Loaded:
    """The registered release of ToxiCN MM."""
    benchmark = find_benchmark(RELEASE)
    release = toxicn.open_release(find_source(benchmark, "release"))
    memes = release.memes(labels, split)
    card = benchmark.card.release
    examples = tuple(
        Example(
            id=meme.id,
            text=meme.text,
            text_caption=meme.text_caption,
            image_caption=meme.image_caption,
            image=meme.image,
            label=int(meme.harmful),
            # One row of version 2.0 is harmful without a type: it trains no type head.
            type=None if meme.harmful and meme.type == "none" else cast("Type", meme.type),
            modality=cast("Modality | None", meme.modality),
        )
        for meme in memes
    )
    return Loaded(
        name=f"ToxiCN MM, labels {labels}, split {split}",
        examples=examples,
        notes=tuple(f"{what}: {count}" for what, count in release.repairs.items()),
        licence=card.licence if card is not None else "not said",
        checksum=f"{checksum(release.files, release.folder)}/{labels}/{split}",
    )


class _OneByOne:
    """A local encoder asked text by text: in a batch the last digits depend on the neighbours."""

    def __init__(self, folder: Path) -> None:
        self._encoder = LocalTextEncoder(folder)
        self.version = self._encoder.version

    def encode(self, texts: Sequence[str]) -> Singles:
        """One row of length 1 per text."""
        known = {text: self._encoder.encode([text])[0] for text in dict.fromkeys(texts)}
        return np.stack([known[text] for text in texts])


def open_embedder(settings: FastSettings, folder: Path | None = None) -> Embedder | None:
    """The encoder of a folder, or the one that ships, where the settings ask for meanings."""
    if not any(block.source != "image" for block in settings.dense):
        return None
    return SentenceEncoder() if folder is None else _OneByOne(folder)


def read_images(examples: Sequence[Example]) -> tuple[tuple[Example, ...], int]:
    """Examples with what OCR reads in their images, and how many images it could not read."""
    found, missed = [], 0
    with open_reader() as reader:
        for example in examples:
            text = ""
            if example.image is not None:
                try:
                    text = reader.read(read_bytes(example.image), example.image.name).text
                except ImageError:
                    missed += 1
            found.append(replace(example, ocr=text))
    return tuple(found), missed
