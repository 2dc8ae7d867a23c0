"""A trained model that stays loaded: what its card and its file say, whatever its labels are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

from memantics.detector.card import SAMPLE_NOTE


class Pinned(Protocol):
    """Data whose files are known by their checksum."""

    @property
    def checksum(self) -> str:
        """Of the files and the part of them."""
        ...


class OpenModel:
    """A detector or an expert. ``card`` is its model card, ``path`` its file or folder."""

    # Languages of files that do not name any.
    unnamed: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, card: Mapping[str, Any], path: Path | None = None) -> None:
        self.name, self.card, self.path = name, card, path

    @property
    def sample(self) -> bool:
        """Whether it was trained on the starter pack, whose verdicts mean nothing."""
        return bool(self.card.get("sample", False))

    @property
    def note(self) -> str:
        """What belongs beside each of its verdicts; empty where nothing does."""
        return SAMPLE_NOTE if self.sample else ""

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of its training texts."""
        return tuple(map(str, self.card.get("languages") or self.unnamed))

    @property
    def checksum(self) -> str:
        """Digest of its file; of its card where it is a folder or was not saved."""
        if self.path is not None and self.path.is_file():
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        return hashlib.sha256(repr(sorted(self.card.items())).encode()).hexdigest()

    @cached_property
    def version(self) -> str:
        """Its name and checksum, as verdicts cite it."""
        return f"{self.name}@{self.checksum[:12]}"

    def has_seen(self, data: Pinned) -> bool:
        """Whether it was trained on these very files."""
        return bool(data.checksum) and self.card.get("checksum", "") == data.checksum
