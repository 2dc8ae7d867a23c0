"""Read captions aloud: what they may mean by their sound, and how well that works."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memantics.phonetics.evaluation import Figures, evaluate, format_figures
from memantics.phonetics.reading import (
    DEFAULT_THRESHOLD,
    DoubleMeaning,
    Heard,
    Language,
    ModelName,
    Reading,
    Settings,
    Spoken,
    explain,
)
from memantics.phonetics.speech import read_aloud as read_caption
from memantics.phonetics.speech import read_many

__all__ = [
    "DoubleMeaning",
    "Figures",
    "Heard",
    "Language",
    "ModelName",
    "Reading",
    "Settings",
    "Spoken",
    "explain",
    "format_figures",
    "read_aloud",
    "read_captions",
    "score_readings",
]


def read_aloud(
    caption: str,
    description: str | None = None,
    *,
    language: Spoken = "auto",
    model: ModelName = "auto",
    limit: int = 5,
    threshold: float = DEFAULT_THRESHOLD,
) -> Heard:
    """What a caption may mean when it is read aloud.

    ``description`` says what the picture shows: evidence for the literal reading. ``model`` is
    the Chinese language model, ``threshold`` the confidence from which a reading is ``meant``.

    >>> heard = read_aloud("压力山大", model="dictionary")
    >>> heard.sound, heard.readings[0].text
    ('yā lì shān dà', '亚历山大')
    """
    settings = Settings(language=language, model=model, limit=limit, threshold=threshold)
    return read_caption(caption, description=description, settings=settings)


def read_captions(
    captions: Iterable[str], description: str | None, settings: Settings
) -> Sequence[Heard]:
    """Read several captions of one picture."""
    return tuple(read_many(((caption, description) for caption in captions), settings=settings))


def score_readings(folder: Path, model: ModelName = "auto", groups: str = "") -> Figures:
    """Figures on a PunMemeCN release, on groups that were held out of every fitted part.

    ``groups`` restricts them: ``train``, ``test``, or numbers such as ``1-100,205``.
    """
    return evaluate(folder, model, groups=groups)
