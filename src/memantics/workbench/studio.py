"""One meme, part by part, for a page that shows each part when it is known. Nothing is kept.

Images are bytes: what must lie in a file lies in a temporary folder while a part is made. Readings
of images stay in memory only, and models are asked without a cache.

Kinder versions of one meme for a page: ours, a model's, or in a person's words. None is kept.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from memantics.core.errors import InputError, MissingExtra, ModelError, UnknownName
from memantics.core.images import MIME, decode, probe, read_bytes
from memantics.core.labels import OfferedVersion, Preference, append_preference
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.lines import TextLine
from memantics.core.memes import Meme
from memantics.core.result import Result
from memantics.core.samples import SampleMeme, image_path, read_samples
from memantics.models.client import CallSettings, ProgressWatch, open_client
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.models.engine import Progress
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.explanation import Explanation
from memantics.moderation.subjects import Subject
from memantics.moderation.verdict import HARMFUL
from memantics.moderation.verdict import judge as judge_subjects
from memantics.understanding.analysis.gather import VERDICTS, ask_all
from memantics.understanding.analysis.records import Feeling, Findings, Harm, Missing
from memantics.understanding.editing import DraftSettings, line_reader, open_planner
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.drawing import draw, draw_narrow, read_style
from memantics.understanding.knowledge.layout import Legend, make_legend
from memantics.understanding.knowledge.records import Knowledge
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import HomophoneSpan, Settings
from memantics.understanding.reappraisal.chain import reappraise as take_through
from memantics.understanding.reappraisal.kindness import rate_kindness
from memantics.understanding.reappraisal.messages import MessageLanguage, translate
from memantics.understanding.reappraisal.planner import EMBEDDED, choose_emotion
from memantics.understanding.reappraisal.records import MEME, PAIRS, Flaw, KinderVersion
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.reappraisal.stages import Planner
from memantics.understanding.reappraisal.whole import EditWish, WishPlanner
from memantics.understanding.reappraisal.workshop import Reappraisal, Workshop
from memantics.understanding.versions import offer_version
from memantics.understanding.vision.appearance import (
    PictureKind,
    list_notes,
    tell_kind,
    tell_medium,
)
from memantics.understanding.vision.panels import count_panels
from memantics.understanding.vision.roles import read_image_text

__all__ = [
    "EMBEDDED",
    "KinderFound",
    "Preference",
    "Progress",
    "Studio",
    "append_preference",
    "image_path",
    "read_style",
    "redraw",
    "soften",
]
PHONETICS = "phonetic engine"
AUTHORS = "sample data"


@dataclass(frozen=True, slots=True)
class Studio:
    """What looks at memes, loaded once: OCR, a detector, and the models that may be asked."""

    detector: Detector
    models: tuple[str, ...] = ()
    calls: CallSettings = field(default_factory=CallSettings)
    ocr: RememberingOcr = field(default_factory=lambda: RememberingOcr(RapidReader(), None))

    def find_model(self, name: str) -> str:
        """A model by its name, if it was named when the service was started."""
        if name not in self.models:
            if not self.models:
                raise InputError("no model is connected", hint="start the service with --model")
            raise UnknownName("model", name, self.models)
        return name


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that somebody brought, and what they call it."""

    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class TextFound(Result):
    """The lines of a meme with roles and boxes in pixels; ``score`` of a line is how sure OCR is.

    ``text`` are the captions, ``other_text`` is all other text; ``unread`` is how many regions of
    text were left out because the image has too many. ``kind`` says how the picture was made,
    ``notes`` what models are told beside the captions.
    """

    lines: tuple[TextLine, ...]
    text: str
    language: str
    panels: int
    width: int
    height: int
    by: str
    unread: int = 0
    other_text: str = ""
    kind: PictureKind = ""
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HomophoneFound(Result):
    """What a caption may be heard as. ``reading`` is the nearest other reading, ``intended`` or not.

    ``status`` is ``unsupported`` where no sound model speaks the language, ``silent`` without text.
    """

    status: Literal["found", "empty", "unsupported"]
    caption: str
    pronunciation: str = ""
    reading: str = ""
    reading_pronunciation: str = ""
    confidence: float = 0.0
    intended: bool = False
    changes: tuple[HomophoneSpan, ...] = ()
    others: tuple[str, ...] = ()
    by: str = PHONETICS


@dataclass(frozen=True, slots=True)
class CharacterAttribution:
    """A character and how far it moved the verdict: towards harm up to 1, against it down to -1."""

    char: str
    share: float


@dataclass(frozen=True, slots=True)
class HarmFound(Result):
    """A detector's verdict and the characters behind it; ``threshold``: harmful from there on.

    ``foreign``: not judged, since the detector was not trained on texts in this language.
    ``outside``: the text is unlike the training texts. ``reason`` says why it was not judged, or
    why a person should decide.
    """

    status: str
    by: str
    sample: bool
    harmful: bool = False
    probability: float = 0.0
    threshold: float = 0.5
    type: str = ""
    characters: tuple[CharacterAttribution, ...] = ()
    foreign: bool = False
    outside: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MeaningFound(Result):
    """What a meme may mean, by one model or by the people who drew it."""

    by: str
    intents: tuple[str, ...]
    background: tuple[str, ...]
    harm: Harm | None
    feeling: Feeling | None
    missing: tuple[Missing, ...]
    knowledge: Knowledge
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Drawings:
    """The graph of a meaning for wide screens and for phones, and its legend."""

    wide: Markup
    narrow: Markup
    legend: tuple[Legend, ...]


def read_text(studio: Studio, picture: Picture) -> TextFound:
    """Find the captions of a meme."""
    image = decode(picture.data, picture.name)
    found = read_image_text(studio.ocr, picture.data, picture.name, image=image)
    text = " ".join(line.text for line in found.captions)
    language = guess_language(text).language if text else UNKNOWN
    form = (count_panels(image), *image.size, "RapidOCR", found.unread, found.other_text)
    kind = tell_kind(image, found.lines) or tell_medium(image)
    return TextFound(found.lines, text, language, *form, kind, list_notes(image, found))


def find_homophones(text: str, language: str) -> HomophoneFound:
    """What a caption may be heard as."""
    if not text.strip():
        return HomophoneFound("empty", "")
    if language not in ("en", "zh"):
        return HomophoneFound("unsupported", text)
    try:
        found = read_homophones(
            text, settings=Settings(language="zh" if language == "zh" else "en")
        )
    except MissingExtra:
        return HomophoneFound("unsupported", text)
    if not found.readings:
        return HomophoneFound("found", found.caption, found.pronunciation)
    first, *others = found.readings
    return HomophoneFound(
        "found",
        found.caption,
        found.pronunciation,
        first.text,
        first.pronunciation,
        found.confidence,
        found.intended is not None,
        first.changes,
        tuple(other.text for other in others[:2]),
    )


def judge(
    studio: Studio, text: str, language: str, unread: int = 0, other_text: str = ""
) -> HarmFound:
    """A detector's verdict on a caption and on all text, with the characters that moved it."""
    detector, example = studio.detector, Example("meme", text)
    subject = Subject(example, language, image=True, given=False, unread=unread)
    if other_text:
        subject = replace(subject, text=f"{text}\n{other_text}", other_text=other_text)
    (verdict,) = judge_subjects(detector, [subject])
    if verdict.probability is None:
        known = not text.strip() or unread or verdict.language in detector.languages
        return HarmFound(
            "not_scored", detector.name, detector.sample, foreign=not known, reason=verdict.reason
        )
    harmful, reasons = verdict.label == HARMFUL, detector.find_reasons(example)
    return HarmFound(
        "scored",
        detector.name,
        detector.sample,
        harmful,
        verdict.probability,
        detector.point.threshold,
        verdict.type or "" if harmful else "",
        tuple(_share_characters(reasons)) if reasons else (),
        outside=bool(verdict.out_of_domain),
        reason=verdict.review,
    )


def _share_characters(explained: Explanation) -> Iterator[CharacterAttribution]:
    for shared in explained.fields:
        if shared.field == "text":
            most = max(map(abs, shared.characters), default=0.0) or 1.0
            for char, value in zip(shared.text, shared.characters, strict=True):
                yield CharacterAttribution(char, round(value / most, 3))


async def ask_meaning(
    studio: Studio, picture: Picture, model: str, language: str, watch: ProgressWatch | None = None
) -> MeaningFound:
    """What one model says about a meme, in the language of the person who asks."""
    name = studio.find_model(model)
    read = await asyncio.to_thread(read_text, studio, picture)
    with lay_out(picture) as (meme, folder):
        known = replace(meme, text=read.text, language=read.language, notes=read.notes)
        lines = tuple(line.text for line in read.lines if line.role == "caption")
        seen = Findings(known, lines, read.language, read.panels)
        settings = ExtractSettings(language=language, toxicity="reviewer")
        calls = replace(studio.calls, use_cache=False)
        async with open_client(name, calls, folder / "call_log", watch) as client:
            client.expect(settings.steps + VERDICTS)
            found = await ask_all(client, seen, settings)
            tokens = client.progress.tokens_in + client.progress.tokens_out
    if not found.statuses.get("answered"):
        raise ModelError(f"{name} answered nothing: {found.missing[0].reason}")
    return MeaningFound(
        name,
        found.intents,
        found.background,
        found.harms[0] if found.harms else None,
        found.feelings[0] if found.feelings else None,
        found.missing,
        found.knowledge or Knowledge("meme", ()),
        tokens,
    )


async def follow_meaning(
    studio: Studio, picture: Picture, model: str, language: str
) -> AsyncIterator[Progress | MeaningFound]:
    """How far a model is, again and again, and last what it said.

    Whoever stops listening stops the asking: no further call is paid.
    """
    steps: asyncio.Queue[Progress | None] = asyncio.Queue()
    work = asyncio.create_task(ask_meaning(studio, picture, model, language, steps.put_nowait))
    work.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield step
        yield work.result()
    finally:
        work.cancel()


def tell_sample_meaning(meme: str) -> MeaningFound:
    """What the people who drew a meme of the sample data wrote down about it."""
    image_path(meme)  # an unknown name is refused
    (sample_meme,) = (one for one in read_samples() if one.id == meme)
    (known,) = (one for one in read_sample_knowledge() if one.meme == sample_meme.id)
    return MeaningFound(AUTHORS, sample_meme.intents, sample_meme.background, None, None, (), known)


def list_samples(language: str, first: Sequence[str] = ()) -> list[SampleMeme]:
    """The sample data: chosen memes first, then those of a language, then the others."""
    chosen = {name: place for place, name in enumerate(first)}

    def rank(meme: SampleMeme) -> tuple[int, bool, str]:
        return chosen.get(meme.id, len(chosen)), meme.language != language, meme.id

    return sorted(read_samples(), key=rank)


def draw_meaning(found: MeaningFound) -> Drawings:
    """The graph of what a meme may mean; empty where nothing is said."""
    known = found.knowledge
    if not known.individuals:
        return Drawings(Markup(), Markup(), ())
    return Drawings(draw(known), draw_narrow(known), tuple(make_legend(known)))


@contextmanager
def lay_out(picture: Picture) -> Iterator[tuple[Meme, Path]]:
    """The image as a file of a folder that is gone afterwards; its name is ours, not the user's."""
    kind = probe(picture.data, picture.name).format
    with tempfile.TemporaryDirectory(prefix="memantics-") as place:
        path = Path(place) / f"meme.{MIME[kind].partition('/')[2]}"
        path.write_bytes(picture.data)
        yield Meme("meme", path), Path(place)


PERSON = "a person"


class ShownVersion(OfferedVersion):
    """A version with its picture as a PNG in a data URL, and what is wrong with it."""

    picture: str
    flaws: list[str]


@dataclass(frozen=True, slots=True)
class KinderFound(Result):
    """A kinder version as a PNG in a data URL, or why there is none.

    ``flaws`` say why it is not called done and what a person may do; ``notes`` what did not change.
    ``versions`` are all that were drawn, that one first; ``meme`` begins the hash of the picture.
    """

    status: str
    reason: str
    before: str
    after: str
    emotion: str
    target: str
    picture: str
    by: str
    baseline: bool
    flaws: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: tuple[ShownVersion, ...] = ()
    meme: str = ""


async def soften(
    studio: Studio,
    picture: Picture,
    model: str = EMBEDDED,
    versions: int = 1,
    language: MessageLanguage = "en",
) -> KinderFound:
    """Kinder versions, planned from a lexicon (a baseline) or by a model; the best comes first."""
    name = model if model == EMBEDDED else studio.find_model(model)
    calls = replace(studio.calls, use_cache=False)
    settings = DraftSettings(mood=False)
    with lay_out(picture) as (meme, folder):
        async with open_planner(name, settings, calls, folder / "plan", 1) as planner:
            made = await take_through(meme, _open_shop(studio, planner, folder, versions))
        return await _show(studio, picture, made, name, language)


async def redraw(
    studio: Studio, picture: Picture, words: str, language: MessageLanguage = "en"
) -> KinderFound:
    """A version in a person's words, a line for each caption, drawn and checked as all are."""
    before = (await asyncio.to_thread(read_text, studio, picture)).text
    emotion = await asyncio.to_thread(lambda: choose_emotion(understand([before])))
    target = PAIRS[emotion]
    wish = EditWish("meme", emotion, target, before, words, "", "Template_StylizedMeme", "Negative")
    with lay_out(picture) as (meme, folder):
        shop = _open_shop(studio, WishPlanner(wish, PERSON), folder, 1)
        return await _show(studio, picture, await take_through(meme, shop), PERSON, language)


def _open_shop(studio: Studio, planner: Planner, folder: Path, versions: int) -> Workshop:
    shop = Workshop(planner, line_reader(studio.ocr), folder / "made")
    return replace(shop, kindness=rate_kindness, versions=versions)


def _tell_flaw(flaw: Flaw, language: MessageLanguage) -> str:
    what, advice = translate(flaw.what, language), translate(flaw.advice, language)
    return f"{what}。{advice}。" if language == "zh" else f"{what}. {advice}."


async def _show(
    studio: Studio, picture: Picture, made: Reappraisal, by: str, language: MessageLanguage
) -> KinderFound:
    before = (await asyncio.to_thread(read_text, studio, picture)).text
    paths = [version.path(made.folder) for version in made.versions]
    drawn: Sequence[KinderVersion] = made.versions
    if not drawn and made.plan and made.checks:
        drawn = [KinderVersion(number=1, plan=made.plan, checks=made.checks)]
        paths = [made.folder / MEME]
    shown = tuple(
        ShownVersion(
            **offer_version(version, by).model_dump(),
            picture=f"data:image/png;base64,{base64.b64encode(read_bytes(path)).decode()}",
            flaws=[_tell_flaw(flaw, language) for flaw in version.checks.flaws],
        )
        for version, path in zip(drawn, paths, strict=True)
    )
    return KinderFound(
        made.status,
        translate(made.reason, language).partition("; --force")[0],  # a page has no flags
        before,
        made.caption,
        made.feeling.emotion if made.feeling else "",
        made.plan.target if made.plan else "",
        shown[0].picture if shown else "",
        by,
        baseline=by == EMBEDDED,
        flaws=tuple(shown[0].flaws) if shown else (),
        notes=tuple(translate(note, language) for note in made.checks.notes) if made.checks else (),
        versions=shown,
        meme=hashlib.sha256(picture.data).hexdigest()[:16],
    )
