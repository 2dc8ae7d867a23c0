"""Verdicts on texts and images by a detector that stays loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memantics.actions.detect import Detector
from memantics.actions.unjudged import MOST_TEXT, explain_unjudged
from memantics.core.errors import MemanticsError
from memantics.core.images import decode
from memantics.core.language import guess_language
from memantics.core.result import Result
from memantics.detector.examples import Example
from memantics.detector.novelty import OUTSIDE_NOTE
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.vision.captions import choose_captions

__all__ = [
    "MOST_TEXT",
    "OUTSIDE_NOTE",
    "ImageText",
    "Moderator",
    "RememberingOcr",
    "TypeChance",
    "Verdict",
]
VerdictStatus = Literal["judged", "unjudged", "failed"]
TextSource = Literal["given", "ocr", "none"]


@dataclass(frozen=True, slots=True)
class TypeChance:
    """How likely a meme is of one type."""

    type: str
    probability: float


@dataclass(frozen=True, slots=True)
class Verdict(Result):
    """What a detector says of one text or image, or why it says nothing.

    ``label``, ``probability`` and ``type`` are empty unless ``status`` is ``judged``. ``detector``
    is its name and checksum; ``note`` says where its verdicts are only samples, and where the text
    is unlike the training texts (``out_of_domain``; None where the detector's file does not know).
    ``sha256`` and ``phash`` are those of an image.
    """

    status: VerdictStatus
    detector: str
    reason: str = ""
    text: str = ""
    text_source: TextSource = "none"
    language: str = ""
    label: Literal["harmless", "harmful"] | None = None
    probability: float | None = None
    type: str | None = None
    types: tuple[TypeChance, ...] = ()
    note: str = ""
    sha256: str | None = None
    phash: str | None = None
    out_of_domain: bool | None = None


@dataclass(frozen=True, slots=True)
class ImageText:
    """What is printed on an image, and how the image is recognised."""

    text: str
    sha256: str
    phash: str
    unread: int = 0


class Moderator:
    """A detector and an OCR that stay loaded. Readings of images are kept in memory only."""

    def __init__(self, detector: Detector, ocr: RememberingOcr | None = None) -> None:
        self.detector = detector
        self.ocr = ocr or RememberingOcr(RapidReader(), None)
        self.name = f"{detector.name}@{detector.checksum[:12]}"
        detector.predict([Example("start", "开始")])  # a detector of images alone is refused here

    def read(self, images: Sequence[bytes]) -> list[ImageText | MemanticsError]:
        """Read images; one that cannot be read is an error in its place."""
        return [self._read(data) for data in images]

    def _read(self, data: bytes) -> ImageText | MemanticsError:
        from memantics.vision.hashes import hash_image

        try:
            seen = hash_image(decode(data, "upload"))
            found = self.ocr.read(data, "upload")
        except MemanticsError as error:
            return error
        digest = hashlib.sha256(data).hexdigest()
        text = "\n".join(choose_captions(found.lines))[: MOST_TEXT + 1]
        return ImageText(text, digest, f"{seen:016x}", found.unread)

    def judge(self, items: Sequence[str | ImageText]) -> list[Verdict]:
        """One verdict for each text, or for what is printed on an image."""
        found = [self._look(item) for item in items]
        ready = [at for at, verdict in enumerate(found) if verdict.status == "judged"]
        said = self.detector.judge.predict([Example(str(at), found[at].text) for at in ready])
        for at, one in zip(ready, said, strict=True):
            harmful = one.label == 1
            known = found[at]
            outside = self.detector.is_outside(known.text)
            found[at] = Verdict(
                "judged",
                self.name,
                "",
                known.text,
                known.text_source,
                known.language,
                "harmful" if harmful else "harmless",
                one.probability,
                one.type if harmful and one.type != "none" else None,
                tuple(TypeChance(*names) for names in (one.types or {}).items()),
                self.detector.note_on(outside),
                known.sha256,
                known.phash,
                outside,
            )
        return found

    def _look(self, item: str | ImageText) -> Verdict:
        image = item if isinstance(item, ImageText) else None
        text = image.text if image else str(item)
        marks = (image.sha256, image.phash) if image else (None, None)
        source: TextSource = "ocr" if image else "given"
        language = guess_language(text).language if text.strip() else ""
        why = explain_unjudged(
            text,
            language,
            self.detector.languages,
            image=image is not None,
            unread=image.unread if image else 0,
        )
        return Verdict(
            "unjudged" if why else "judged",
            self.name,
            why,
            text,
            source if text.strip() else "none",
            language,
            note=self.detector.note,
            sha256=marks[0],
            phash=marks[1],
        )

    def refuse(self, error: MemanticsError) -> Verdict:
        """The verdict on an image that could not be read."""
        return Verdict("failed", self.name, str(error), note=self.detector.note)
