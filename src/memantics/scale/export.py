"""Memes and what was found about them as files that other tools read."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import orjson

from memantics.core.images import probe
from memantics.core.journal import whole_file
from memantics.core.masking import hide_bytes
from memantics.scale.records import Row

Format = Literal["webdataset", "imagefolder"]
_IN_ONE_FILE = 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """One meme with its facts; ``image`` is None where it is a text alone."""

    facts: Row
    image: bytes | None = None

    @property
    def ending(self) -> str:
        """The ending of the image's file, by what its bytes are."""
        return probe(self.image or b"", str(self.facts["id"])).format.lower().replace("jpeg", "jpg")


def write_samples(folder: Path, samples: Iterable[Sample], form: Format) -> int:
    """Write samples in place of what the folder held; return how many.

    ``webdataset``: tar shards in which ``NUMBER.png``, ``NUMBER.txt`` and ``NUMBER.json`` are one
    sample. ``imagefolder``: images and ``metadata.jsonl``, as Hugging Face ``datasets`` reads it;
    a text without an image has no place there.
    """
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return (_write_shards if form == "webdataset" else _write_images)(folder, iter(samples))


def _write_shards(folder: Path, samples: Iterator[Sample]) -> int:
    number = 0
    while block := list(islice(samples, _IN_ONE_FILE)):
        path = folder / f"shard-{number // _IN_ONE_FILE:06d}.tar"
        opened = whole_file(path, masked=False)
        with opened as file, tarfile.open(fileobj=file, mode="w") as archive:
            for sample in block:
                for ending, body in _list_members(sample):
                    member = tarfile.TarInfo(f"{number:08d}.{ending}")
                    member.size = len(body)
                    archive.addfile(member, io.BytesIO(body))
                number += 1
    return number


def _list_members(sample: Sample) -> Iterator[tuple[str, bytes]]:
    if sample.image is not None:
        yield sample.ending, sample.image
    if sample.facts.get("text"):
        yield "txt", hide_bytes(str(sample.facts["text"]).encode())
    yield "json", hide_bytes(orjson.dumps(sample.facts))


def _write_images(folder: Path, samples: Iterator[Sample]) -> int:
    number = 0
    (folder / "images").mkdir()
    with whole_file(folder / "metadata.jsonl") as lines:
        for sample in samples:
            if sample.image is None:
                continue
            name = f"images/{number:08d}.{sample.ending}"
            (folder / name).write_bytes(sample.image)
            line = {"file_name": name, **sample.facts}
            lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            number += 1
    return number
