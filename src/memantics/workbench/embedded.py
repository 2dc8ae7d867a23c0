"""Homophone readings for the embedded reader, the small offline model of the package."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property, lru_cache
from importlib.resources import files

from memantics.core.errors import UnknownName
from memantics.core.labels import SURE
from memantics.core.model import Model
from memantics.models.embedded.encoder import Encoder, SentenceEncoder
from memantics.models.embedded.lexicon import NOTHING, PunReading, has_chinese
from memantics.models.kinds import ModelKind, ModelSettings

# OCR output for lines and dots in drawings; it differs between processors and is not text.
_SHAPES = re.compile(r"[\u2500-\u25ff]+\s*")


class PhoneticReader:
    """Detect puns in Chinese captions like ``mm.detect_pun``, with a probability threshold of 0.5.

    ``detect_pun`` uses a stricter threshold to avoid false positives. This reader always uses
    jieba's word list, so that results of the embedded reader, a baseline, do not depend on
    installed packages.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder if isinstance(encoder, SentenceEncoder) else None
        self.read = lru_cache(maxsize=8192)(self._read)

    @cached_property
    def version(self) -> str:
        """A hash of the weights, and the version of the text cleaning."""
        weights = (files("memantics.understanding.phonetics") / "weights.json").read_bytes()
        return f"phonetics-{hashlib.sha256(weights).hexdigest()[:8]}-3"

    def _read(self, text: str) -> PunReading:
        """Find the intended reading of a Chinese text; other texts have none."""
        from memantics.understanding.phonetics.detector import judge_pun
        from memantics.understanding.phonetics.homophones import read_homophones
        from memantics.understanding.phonetics.reading import Settings

        if not has_chinese(text):
            return NOTHING
        text = _SHAPES.sub("", text)
        found = read_homophones(text, settings=Settings("zh", "dictionary", limit=1))
        vector = None if self._encoder is None else self._encoder.encode([text])[0].tolist()
        verdict = judge_pun(found, vector)
        is_pun = verdict.probability >= SURE
        if not found.readings or not (verdict.is_pun or found.intended):
            return PunReading(is_pun)
        reading = found.readings[0]
        written = "…".join(change.written for change in reading.changes)
        homophone = "…".join(change.homophone for change in reading.changes)
        return PunReading(is_pun, reading.text, written, homophone)


def _open(name: str, _: ModelSettings) -> Model:
    """Open the embedded reader with homophone readings and the classifiers in use."""
    from memantics.models.embedded.reader import EmbeddedReader, open_senses
    from memantics.moderation.classifiers import open_judges
    from memantics.understanding.vision.roles import read_image_text

    if name != EmbeddedReader.name:
        raise UnknownName("model", name, [EmbeddedReader.name])
    return EmbeddedReader(open_senses(open_judges(), PhoneticReader, read_image_text))


KIND = ModelKind(
    "embedded", "embedded/reader", "offline baseline, not a vision-language model", _open
)
