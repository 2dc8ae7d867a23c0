"""Read captions aloud: what they may mean by their sound, and how well that works."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, Unpack

from memantics.core.memes import Meme
from memantics.core.waiting import make_sync, run_sync
from memantics.understanding.phonetics.detector import PunVerdict, judge_pun
from memantics.understanding.phonetics.evaluation import Figures, evaluate, format_figures
from memantics.understanding.phonetics.evidence import clean_description
from memantics.understanding.phonetics.reading import (
    Heard,
    ModelName,
    Settings,
    Spoken,
    explain,
    hint,
)
from memantics.understanding.phonetics.speech import read_aloud as read_caption
from memantics.understanding.phonetics.speech import read_many

if TYPE_CHECKING:
    from memantics.models.embedded.encoder import SentenceEncoder
    from memantics.understanding.analysis.records import PunSeen

__all__ = [
    "Heard",
    "ModelName",
    "PunVerdict",
    "Settings",
    "Spoken",
    "detect_pun",
    "detect_pun_async",
    "explain",
    "format_figures",
    "read_aloud",
    "read_captions",
    "score_readings",
]


ImagePath: TypeAlias = Path | str
DescribedBy = Literal["person", "model", "tags"]
CALL_LOG = Path("builds/puns")


class ListenOptions(TypedDict, total=False):
    """How captions are read, and who looks at the picture.

    ``description`` says what the picture shows: evidence for the literal reading; where
    ``described_by`` is a person who saw the picture, silence is evidence, too. ``model`` is the
    Chinese language model, ``language`` that of the caption, ``limit`` how many readings to give,
    ``threshold`` the confidence
    from which a reading is ``meant``. ``vlm`` names a vision-language model that is asked about
    the image (``openai/NAME`` with its server ``base_url``, ``local/PATH``, …), ``call_log`` the
    folder of its calls, which are not asked twice.
    """

    description: str | None
    described_by: DescribedBy
    language: Spoken
    model: ModelName
    limit: int
    threshold: float
    vlm: str | None
    base_url: str | None
    call_log: ImagePath


def read_aloud(
    caption: str, image: ImagePath | None = None, **options: Unpack[ListenOptions]
) -> Heard:
    """What a caption may mean when it is read aloud.

    ``caption`` is the text as it is written. The ``image`` counts through what ``vlm`` says that it
    shows, or ``description``.

    >>> heard = read_aloud("压力山大", model="dictionary")
    >>> heard.sound, heard.readings[0].text
    ('yā lì shān dà', '亚历山大')
    """
    described, note = options.get("description"), ""
    if image is not None and described is None:
        described, note = run_sync(_describe(caption, Path(image), options))
    heard = read_caption(caption, description=described, settings=_settings(options))
    return replace(heard, notes=(*heard.notes, note)) if note else heard


async def detect_pun_async(
    caption: str, image: ImagePath | None = None, **options: Unpack[ListenOptions]
) -> PunVerdict:
    """Whether a caption is a pun: ``is_pun``, ``probability``, ``readings`` and ``why``.

    Without ``vlm`` the ``caption`` is judged, with a ``description`` of the picture where there is
    one. With it the model is told what the caption sounds like and asked one structured question
    about the ``image``: what it shows, which word has two readings, and which of them is seen. What
    it says is seen counts as a description, unless one is given.

    >>> verdict = detect_pun("年年有鱼", model="dictionary")
    >>> verdict.is_pun, verdict.kind, verdict.readings[0].text
    (True, 'sound', '年年有余')
    """
    described, settings = options.get("description"), _settings(options)
    heard = read_caption(caption, description=described, settings=settings)
    trusted = options.get("described_by") == "person"
    if image is None:
        return _judge(heard, described, trusted=trusted)
    taken, note = await _ask(Path(image), heard, options)
    if taken is None:
        verdict = _judge(heard, described, trusted=trusted)
        return replace(verdict, notes=(*verdict.notes, note))
    if described is None and taken.picture:
        described = taken.picture
        heard = read_caption(caption, description=described, settings=settings)
    verdict = _judge(heard, described, taken.is_pun, trusted=trusted)
    line = f"{taken.by}: {taken.reason}"
    if taken.word:
        line = f"{taken.by} sees {taken.word} as {taken.seen}: {taken.written} / {taken.other}"
    return replace(verdict, why=(line, *verdict.why), seen_by=taken.by)


def _judge(
    heard: Heard, described: str | None, seen: bool | None = None, *, trusted: bool = False
) -> PunVerdict:
    if heard.language != "zh":
        return judge_pun(heard, seen=seen)
    picture = _embed(clean_description(described, heard.caption)) if described else None
    return judge_pun(heard, _embed(heard.caption), seen, picture, trusted=trusted)


detect_pun = make_sync(detect_pun_async)
_UNSEEN = "the picture was not looked at: name a model that sees it (vlm), or give a description"


def _settings(options: ListenOptions) -> Settings:
    names = ("language", "model", "limit", "threshold")
    return Settings(**{name: options[name] for name in names if name in options})  # type: ignore[literal-required]  # names of Settings


@cache
def _open_embedder() -> SentenceEncoder | None:
    from memantics.models.embedded.encoder import SentenceEncoder, open_encoder

    encoder = open_encoder()
    return encoder if isinstance(encoder, SentenceEncoder) else None


def _embed(caption: str) -> Sequence[float] | None:
    encoder = _open_embedder()
    return None if encoder is None else encoder.encode([caption])[0].tolist()


async def _ask(image: Path, heard: Heard, options: ListenOptions) -> tuple[PunSeen | None, str]:
    """What a model that sees the picture says, or why nothing was said."""
    from memantics.models.client import find_asking, open_client
    from memantics.understanding.analysis.asking import ask_pun

    name = options.get("vlm")
    if name is None:
        return None, _UNSEEN
    meme = Meme(image.stem, image, heard.caption, heard.language)
    folder = Path(options.get("call_log", CALL_LOG))
    asking = find_asking(base_url=options.get("base_url"))
    async with open_client(name, asking, folder) as client:
        taken = await client.take(ask_pun(meme, heard.language, client.model, hint(heard)))
    return taken.value, "" if taken.value else f"{name} gave no answer: {taken.reason}"


async def _describe(caption: str, image: Path, options: ListenOptions) -> tuple[str | None, str]:
    heard = read_caption(caption, settings=_settings(options))
    said, note = await _ask(image, heard, options)
    return (said.picture if said else None), note


def read_captions(
    captions: Iterable[str], description: str | None, settings: Settings
) -> Sequence[Heard]:
    """Read several captions of one picture."""
    return tuple(read_many(((caption, description) for caption in captions), settings=settings))


def score_readings(folder: Path, model: ModelName = "auto", groups: str = "") -> Figures:
    """Figures on a PunMemeCN release, on groups that were held out of every fitted part.

    ``groups`` restricts them: ``train``, ``test``, or numbers such as ``1-100,205``.
    """
    encoder = _open_embedder()
    return evaluate(folder, model, groups=groups, embed=encoder.encode if encoder else None)
