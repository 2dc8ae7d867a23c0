"""Captions of the metadata against what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from memantics.benchmarks.punmemecn.load import PunMeme, open_release
from memantics.benchmarks.punmemecn.matching import plain
from memantics.core.data import Source
from memantics.models.embedded.ocr import open_reader
from memantics.understanding.phonetics.caption import simplify
from tests.places import SHARED_DATA, needs_shared_data

IMAGE = Path("CN00001.png")


def find_misread(
    memes: Iterable[PunMeme], read: Callable[[Path], str]
) -> Iterator[tuple[PunMeme, str]]:
    """Memes whose caption differs from what is printed, and what is printed.

    ``read`` gives the text of an image in simplified characters, empty where it is unsure. Only
    captions of the same length with a character or two exchanged count: a reader that skips a line
    or takes captions in another order says nothing about the metadata.
    """
    for meme in memes:
        printed = plain(read(meme.image)) if meme.image else ""
        caption = plain(meme.caption)
        wrong = sum(a != b for a, b in zip(caption, printed, strict=False))
        if len(printed) == len(caption) and 0 < wrong <= max(1, len(caption) // 6):
            yield meme, printed


def meme(caption: str) -> PunMeme:
    return PunMeme("CN00001", "CN00001", "pun", caption, None, "self", "neutral", (), "", IMAGE)


@pytest.mark.parametrize(
    ("caption", "printed", "found"),
    [
        ("就你马邪门", "就你马斜门", True),
        ("就你马斜门", "就你马斜门", False),
        ("熊猫点外卖笋到家了", "笋到家了熊猫点外卖", False),
        ("把你们豆沙了", "了把你们", False),
        ("这像画吗", "", False),
        ("就你，马斜门！", "就你马斜门", False),
        ("真是陈年水龙头真是太锈了", "真是陈年水龙头真的太锈了", True),
        ("真是陈年水龙头真是太锈了", "真是陈年水龙真的的的锈了", False),
    ],
)
def test_a_character_or_two_exchanged_is_a_misread_caption(
    caption: str, printed: str, found: bool
) -> None:
    assert bool(list(find_misread([meme(caption)], lambda _: printed))) is found


@pytest.mark.slow
@needs_shared_data
def test_the_release_has_two_such_captions_among_its_first_groups() -> None:
    release = open_release(Source("release", SHARED_DATA / "punmemecn"))
    looked = {"CN00001", "CN00002", "CN00027", "CN00040", "CN00094"}
    with open_reader() as ocr:

        def read(path: Path) -> str:
            lines = ocr.read(path.read_bytes(), path.name).lines
            sure = all(line.score >= 0.95 for line in lines)
            return "".join(map(simplify, "".join(line.text for line in lines))) if sure else ""

        found = {
            own.id: printed
            for own, printed in find_misread(
                [own for own in release.memes if own.id in looked], read
            )
        }
    assert found == {"CN00001": "真是陈年水龙头真的太锈了", "CN00040": "就你马斜门"}
