"""Homophone readings, pun detection and their evaluation, for Python and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memantics.core.memes import Meme
from memantics.core.parameters import ImagePath
from memantics.core.waiting import make_sync, run_sync
from memantics.models.client import CallSettings, open_client
from memantics.understanding.phonetics.detector import PunVerdict, judge_pun
from memantics.understanding.phonetics.evaluation import ReadingScores, evaluate, format_metrics
from memantics.understanding.phonetics.evidence import clean_description
from memantics.understanding.phonetics.homophones import read_homophones as read_caption
from memantics.understanding.phonetics.homophones import read_many
from memantics.understanding.phonetics.reading import (
    CaptionLanguage,
    HomophoneReadings,
    ModelName,
    Settings,
    explain,
    hint,
)

if TYPE_CHECKING:
    from memantics.understanding.analysis.records import PunSeen

__all__ = [
    "CaptionLanguage",
    "HomophoneReadings",
    "ModelName",
    "PunVerdict",
    "Settings",
    "detect_pun",
    "detect_pun_async",
    "explain",
    "format_metrics",
    "read_captions",
    "read_homophones",
    "score_readings",
]


DescribedBy = Literal["person", "model", "tags"]
CALL_LOG = Path("builds/puns")


def read_homophones(
    caption: str,
    image: ImagePath | None = None,
    *,
    model: str | None = None,
    description: str | None = None,
    language: CaptionLanguage = "auto",
    language_model: ModelName = "auto",
    limit: int = 5,
    threshold: float = 0.5,
    calls: CallSettings | None = None,
    call_log: ImagePath = CALL_LOG,
) -> HomophoneReadings:
    """List the homophone readings of a caption, the most probable first.

    Args:
        caption: The caption as printed on the image.
        image: Path of the image; ``model`` describes it unless ``description`` is given.
        model: Vision-language model for the image, ``KIND/NAME``.
        description: Description of the image, used as evidence for the literal reading.
        language: Language of the caption.
        language_model: Chinese language model; ``auto`` uses the best one installed.
        limit: Maximum number of readings.
        threshold: Minimum confidence of an intended reading (``intended``).
        calls: Settings of the model calls; see :class:`CallSettings`.
        call_log: Folder of the model's calls; logged calls are reused.

    Returns:
        The caption with its pronunciation, its readings and the evidence for them.

    Raises:
        InputError: The caption is not a string, or the model cannot be opened.

    Example:
        >>> readings = read_homophones("压力山大", language_model="dictionary")
        >>> readings.pronunciation, readings.readings[0].text
        ('yā lì shān dà', '亚历山大')
    """
    settings = Settings(language, language_model, limit=limit, threshold=threshold)
    described, note = description, ""
    if image is not None and described is None:
        readings = read_caption(caption, settings=settings)
        seen, note = run_sync(_ask(Path(image), readings, model, calls, Path(call_log)))
        described = seen.picture if seen else None
    readings = read_caption(caption, description=described, settings=settings)
    return replace(readings, notes=(*readings.notes, note)) if note else readings


async def detect_pun_async(
    caption: str,
    image: ImagePath | None = None,
    *,
    model: str | None = None,
    description: str | None = None,
    described_by: DescribedBy = "model",
    language: CaptionLanguage = "auto",
    language_model: ModelName = "auto",
    limit: int = 5,
    threshold: float = 0.5,
    calls: CallSettings | None = None,
    call_log: ImagePath = CALL_LOG,
) -> PunVerdict:
    """Decide whether a caption is a pun.

    With ``model``, the prompt contains the homophone readings and asks one structured question
    about the image: what it shows, which word has two readings, and which of them is visible. The
    model's description of the image is used unless ``description`` is given.

    Args:
        caption: The caption as printed on the image.
        image: Path of the image; used only with ``model``.
        model: Vision-language model for the image, ``KIND/NAME``.
        description: Description of the image, used as evidence for the literal reading.
        described_by: Source of the description. Things that a ``person`` who saw the image does not
            mention count as absent.
        language: Language of the caption.
        language_model: Chinese language model; ``auto`` uses the best one installed.
        limit: Maximum number of readings.
        threshold: Minimum confidence of an intended reading (``intended``).
        calls: Settings of the model calls; see :class:`CallSettings`.
        call_log: Folder of the model's calls; logged calls are reused.

    Returns:
        ``is_pun``, ``probability``, ``kind``, ``readings`` and the reasons (``why``).

    Raises:
        InputError: The caption is not a string, or the model cannot be opened.

    Example:
        >>> verdict = detect_pun("年年有鱼", language_model="dictionary")
        >>> verdict.is_pun, verdict.kind, verdict.readings[0].text
        (True, 'homophone', '年年有余')
    """
    settings = Settings(language, language_model, limit=limit, threshold=threshold)
    described = description
    readings = read_caption(caption, description=described, settings=settings)
    trusted = described_by == "person"
    if image is None:
        return _judge(readings, described, trusted=trusted)
    taken, note = await _ask(Path(image), readings, model, calls, Path(call_log))
    if taken is None:
        verdict = _judge(readings, described, trusted=trusted)
        return replace(verdict, notes=(*verdict.notes, note))
    if described is None and taken.picture:
        described = taken.picture
        readings = read_caption(caption, description=described, settings=settings)
    verdict = _judge(readings, described, taken.is_pun, trusted=trusted)
    line = f"{taken.by}: {taken.reason}"
    if taken.word:
        line = f"{taken.by} sees {taken.word} as {taken.seen}: {taken.written} / {taken.other}"
    return replace(verdict, why=(line, *verdict.why), seen_by=taken.by)


def _judge(
    readings: HomophoneReadings,
    described: str | None,
    seen: bool | None = None,
    *,
    trusted: bool = False,
) -> PunVerdict:
    if readings.language != "zh":
        return judge_pun(readings, seen=seen)
    picture = _embed(clean_description(described, readings.caption)) if described else None
    return judge_pun(readings, _embed(readings.caption), seen, picture, trusted=trusted)


detect_pun = make_sync(detect_pun_async)
_UNSEEN = "the image was not used: name a vision-language model (model) or pass a description"


def _embed(caption: str) -> Sequence[float]:
    from memantics.models.embedded.encoder import open_encoder

    vector: list[float] = open_encoder().encode([caption])[0].tolist()
    return vector


async def _ask(
    image: Path,
    readings: HomophoneReadings,
    model: str | None,
    calls: CallSettings | None,
    call_log: Path,
) -> tuple[PunSeen | None, str]:
    """Ask a vision-language model about the image; return its answer, or None and the reason."""
    from memantics.understanding.analysis.asking import ask_pun

    if model is None:
        return None, _UNSEEN
    meme = Meme(image.stem, image, readings.caption, readings.language)
    async with open_client(model, calls or CallSettings(), call_log) as client:
        taken = await client.take(ask_pun(meme, readings.language, client.model, hint(readings)))
    return taken.value, "" if taken.value else f"{model} returned no usable answer: {taken.reason}"


def read_captions(
    captions: Iterable[str], description: str | None, settings: Settings
) -> Sequence[HomophoneReadings]:
    """Read several captions of one image."""
    return tuple(read_many(((caption, description) for caption in captions), settings=settings))


def score_readings(folder: Path, model: ModelName = "auto", groups: str = "") -> ReadingScores:
    """Evaluate homophone readings and pun detection on a PunMemeCN release.

    All scores are measured on held-out groups of memes. ``groups`` selects the groups: ``train``,
    ``test``, or group numbers such as ``1-100,205``.
    """
    from memantics.models.embedded.encoder import open_encoder

    return evaluate(folder, model, groups=groups, embed=open_encoder().encode)
