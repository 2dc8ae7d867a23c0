"""Which item an answer from elsewhere belongs to: by id, or by its image and question."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from memantics.core.records import Image, Item


def image_key(name: str) -> str:
    """What names of one image have in common: no folder, no ending, no leading zeros.

    Spreadsheets take ``01235`` for a number and drop its zero.

    >>> image_key("img/01235.png"), image_key("1235"), image_key("CN90001.PNG")
    ('1235', '1235', 'cn90001')
    """
    last = PurePosixPath(name.strip().replace("\\", "/")).name
    head, dot, ending = last.rpartition(".")
    stem = head if dot and ending.isalnum() and len(ending) <= 4 and head else last
    stem = stem.casefold()
    return stem.lstrip("0") or "0" if stem.isdecimal() else stem


def question_key(text: str) -> str:
    r"""A question without what may differ between two copies of it.

    >>> question_key("What  does\nit SHOW? ")
    'what does it show?'
    """
    return " ".join(text.casefold().split())


def item_images(item: Item) -> tuple[str, ...]:
    """The keys of an item's images, and of its meme."""
    return tuple(dict.fromkeys([*image_keys(item.images), image_key(item.group)]))


def image_keys(images: Iterable[Image]) -> list[str]:
    """The keys of images."""
    return [image_key(image.path.name) for image in images]
