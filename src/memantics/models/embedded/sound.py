"""What a caption may be heard as: the protocol of the reader's ear."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

_CHINESE = re.compile(r"[一-鿿]")


@dataclass(frozen=True, slots=True)
class Hearing:
    """Whether a caption is a pun, what it means as a whole, and the words that change."""

    is_pun: bool = False
    meant: str = ""
    written: str = ""
    heard: str = ""


NOTHING = Hearing()


class Ear(Protocol):
    """Anything that hears puns. ``version`` changes whenever hearings may change."""

    @property
    def version(self) -> str:
        """What hearings depend on."""
        ...

    def hear(self, text: str, /) -> Hearing:
        """What a text probably means by its sound."""
        ...


class DeafEar:
    """Hears nothing: for a reader without the phonetic engine."""

    version = "none"

    def hear(self, text: str, /) -> Hearing:  # noqa: ARG002
        """No pun."""
        return NOTHING


def has_chinese(text: str) -> bool:
    """Whether any Chinese character is in a text.

    >>> has_chinese("ok 好"), has_chinese("ok")
    (True, False)
    """
    return _CHINESE.search(text) is not None
