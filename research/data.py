"""Readers of the releases as rows of the protocol, with groups and tags."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm.load import open_release
from memantics.core.data import Source, read_jsonl
from memantics.core.errors import InputError
from memantics.core.labels import name_group
from memantics.core.language import guess_language
from memantics.moderation.examples import Example, Modality, Type
from memantics.understanding.phonetics.evaluation import CaptionSample, read_samples
from research.protocol import DATA, Row


def tag_length(text: str) -> str:
    """Tag a text as short, medium or long; a Chinese character counts 1, another word 1.5.

    >>> tag_length("你好"), tag_length("one two three four five six seven eight nine")
    ('short', 'medium')
    """
    han = sum("\u3400" <= one <= "\u9fff" for one in text)
    size = han if han else 1.5 * len(text.split())
    return "short" if size <= 8 else "medium" if size <= 24 else "long"


@cache
def read_puns() -> list[Row[CaptionSample]]:
    """Read PunMemeCN; a group is a pun with the two memes that were made from it."""
    return [
        Row(
            sample.name,
            sample.group,
            sample,
            {"kind": _name_kind(sample), "length": tag_length(sample.caption)},
        )
        for sample in read_samples(_folder("punmemecn"))
    ]


def _name_kind(own: CaptionSample) -> str:
    if own.intended is None:
        return "no pun"
    return "homophone" if own.homophone else "polysemy"


@cache
def read_harm(labels: str = "v1") -> list[Row[Example]]:
    """Read ToxiCN MM; a group is all memes with the same text, targets are those of labels 2.0."""
    release = open_release(Source("release", _folder("toxicn_mm")))
    targets = {meme.id: meme.target for meme in release.memes("v2", "train")}
    rows = []
    for meme in release.memes(labels, "train"):
        kind: Type | None = None if meme.harmful and meme.type == "none" else _type(meme.type)
        modality: Modality | None = _modality(meme.modality)
        example = Example(
            meme.id, meme.text, meme.text_caption, meme.image_caption, meme.image,
            int(meme.harmful), kind, modality,
        )  # fmt: skip
        tags = {
            "type": meme.type,
            "modality": meme.modality or "none",
            "length": tag_length(meme.text),
            "target": targets.get(meme.id) or "none",
        }
        rows.append(Row(meme.id, name_group(meme.text), example, tags))
    return rows


@cache
def read_hateful() -> list[Row[dict[str, JsonValue]]]:
    """Read fine-grained Hateful Memes; a group is all memes with the same text."""
    path = _folder("hateful_memes") / "train.json"
    rows = []
    for _, line in read_jsonl(path):
        assert isinstance(line, dict)
        text = str(line["text"])
        hate = "hateful" if line["gold_hate"] == ["hateful"] else "not hateful"
        tags = {"length": tag_length(text), "label": hate}
        rows.append(Row(str(line["id"]), name_group(text), dict(line), tags))
    return rows


@cache
def read_emotions() -> list[Row[dict[str, str]]]:
    """Read MER-Bench; a group is all memes with the same text."""
    rows = json.loads((_folder("mer_bench") / "index_final.json").read_bytes())
    listed = rows if isinstance(rows, list) else list(rows.values())
    return [
        Row(
            str(one["id"]),
            name_group(str(one["text"])) or str(one["id"]),
            one,
            {"length": tag_length(str(one["text"])), "language": _language(str(one["text"]))},
        )
        for one in listed
    ]


def _language(text: str) -> str:
    return guess_language(text).language if text.strip() else "none"


def _type(name: str) -> Type:
    from memantics.moderation.examples import TYPES

    return next(one for one in TYPES if one == name)


def _modality(name: str | None) -> Modality | None:
    from memantics.moderation.examples import MODALITIES

    return next((modality for modality in MODALITIES if modality == name), None)


def _folder(name: str) -> Path:
    if not (DATA / name).is_dir():
        raise InputError(
            f"{DATA / name} does not exist",
            hint="put the release of the benchmark into this folder",
        )
    return DATA / name
