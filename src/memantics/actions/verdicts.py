"""Verdicts on texts and images by a detector that stays loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memantics.actions.detect import Detector
from memantics.core.errors import MemanticsError
from memantics.core.images import decode
from memantics.core.lines import TextChoice
from memantics.detector.examples import Example
from memantics.detector.novelty import OUTSIDE_NOTE
from memantics.detector.subjects import Subject
from memantics.detector.unjudged import MOST_TEXT
from memantics.detector.verdict import (
    HARMFUL,
    Verdict,
    fail,
    judge_by_all,
)
from memantics.models.embedded.ocr import RememberingOcr
from memantics.models.embedded.rapid import RapidReader

__all__ = [
    "HARMFUL",
    "MOST_TEXT",
    "OUTSIDE_NOTE",
    "Moderator",
    "RememberingOcr",
    "Subject",
    "Verdict",
]


class Moderator:
    """A detector and an OCR that stay loaded. Readings of images are kept in memory only.

    ``language`` is what all texts are said to be in, where their letters allow that; ``others`` are
    further detectors, which judge what they know of a text beside the first; ``text`` is which text
    of an image is its caption, where no ``ocr`` is given that knows.
    """

    def __init__(
        self,
        detector: Detector,
        ocr: RememberingOcr | None = None,
        language: str = "",
        others: Sequence[Detector] = (),
        text: TextChoice = "caption",
    ) -> None:
        self.detector, self._language = detector, language
        self.detectors = (detector, *others)
        self.ocr = ocr or RememberingOcr(RapidReader(), None, text)
        self.name = detector.version
        for one in self.detectors:  # what cannot judge is refused here
            one.predict([Example("start", "开始")])

    def read(self, images: Sequence[bytes]) -> list[Subject | MemanticsError]:
        """Read images; one that cannot be read is an error in its place."""
        return [self._read(data) for data in images]

    def _read(self, data: bytes) -> Subject | MemanticsError:
        from memantics.vision.hashes import hash_image
        from memantics.vision.roles import read_image_text

        try:
            image = decode(data, "upload")
            found = read_image_text(self.ocr, data, "upload", image=image)
        except MemanticsError as error:
            return error
        digest = hashlib.sha256(data).hexdigest()
        look = f"{hash_image(image):016x}"
        known = Subject(Example("", ""), self._language, sha256=digest, phash=look, data=data)
        return known.read(found)

    def judge(self, items: Sequence[str | Subject]) -> list[Verdict]:
        """One verdict for each text, or for what is printed on an image."""
        subjects = [
            Subject(Example("", item), self._language) if isinstance(item, str) else item
            for item in items
        ]
        return judge_by_all(self.detectors, subjects)

    def refuse(self, error: MemanticsError) -> Verdict:
        """The verdict on an image that could not be read."""
        return fail(self.name, str(error), self.detector.note)
