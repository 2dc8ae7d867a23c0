"""Results about one meme for the studio page: text, homophones, harm, meaning, kinder versions.

Nothing is stored. Images are kept as bytes, and temporary files exist only during a computation.
OCR results stay in memory, and models are called without a cache. New captions of kinder versions
come from a model or from the user.
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

from memantics.core.credentials import CredentialState, read_credentials
from memantics.core.errors import InputError, MissingExtra, ModelError, UnknownName
from memantics.core.images import MIME, decode, probe, read_bytes
from memantics.core.labels import PERSON, OfferedVersion, Preference, append_preference
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.lines import TextLine
from memantics.core.marks import ImageMark, read_mark
from memantics.core.memes import Meme
from memantics.core.result import Result
from memantics.core.samples import SampleMeme, image_path, read_samples
from memantics.core.stamping import ImageStamp
from memantics.models.client import CallSettings, ProgressWatch, open_client
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.models.engine import Progress
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.explanation import Explanation, Outcome
from memantics.moderation.review_reasons import translate_reasons
from memantics.moderation.subjects import Subject
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.moderation.verdict import HARMFUL
from memantics.moderation.verdict import judge as judge_subjects
from memantics.understanding.analysis.gather import VERDICTS, ask_all
from memantics.understanding.analysis.records import Feeling, Findings, Harm, Missing
from memantics.understanding.editing import DraftSettings, line_reader, open_planner
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.drawing import read_style
from memantics.understanding.knowledge.layout import Legend, make_legend
from memantics.understanding.knowledge.page import draw_graphs
from memantics.understanding.knowledge.records import Knowledge
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import HomophoneSpan, Settings
from memantics.understanding.reappraisal.chain import reappraise as take_through
from memantics.understanding.reappraisal.kindness import rate_kindness
from memantics.understanding.reappraisal.messages import MessageLanguage, say, translate
from memantics.understanding.reappraisal.records import MEME, Flaw, KinderVersion
from memantics.understanding.reappraisal.stages import NO_MODEL, Planner
from memantics.understanding.reappraisal.topics import decline_topic
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
from memantics.web.phrases import PageLanguage

__all__ = [
    "NO_MODEL",
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
    """Components of the studio page, loaded once: OCR, a detector, and the available models."""

    detector: Detector
    models: tuple[str, ...] = ()
    calls: CallSettings = field(default_factory=CallSettings)
    ocr: RememberingOcr = field(default_factory=lambda: RememberingOcr(RapidReader(), None))

    def find_model(self, name: str) -> str:
        """Find a model that was named when the service was started."""
        if name not in self.models:
            if not self.models:
                raise InputError(
                    "no model is connected", hint="restart the service with --model KIND/NAME"
                )
            raise UnknownName("model", name, self.models)
        return name


@dataclass(frozen=True, slots=True)
class Picture:
    """An uploaded image and its name."""

    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class MarksFound(Result):
    """Marks and content credentials in the file of an image; anybody can write the marks.

    ``state`` is the state of the credentials, empty if there are none; see :class:`Credentials`.
    """

    source: str = ""
    tool: str = ""
    system: str = ""
    state: CredentialState | Literal[""] = ""
    reason: str = ""
    signer: str = ""


@dataclass(frozen=True, slots=True)
class TextFound(Result):
    """Text lines of a meme with roles and boxes in pixels; ``score`` is the OCR confidence.

    ``text`` has the captions, ``other_text`` all other text. ``unread`` is the number of text
    regions that were skipped because the image has too many. ``kind`` is the image type; ``notes``
    are given in prompts with the captions. ``marks`` are those of the file, if it has any.
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
    marks: MarksFound | None = None


@dataclass(frozen=True, slots=True)
class HomophoneFound(Result):
    """Homophone readings of a caption.

    ``reading`` is the nearest other reading; ``intended`` tells whether it is probably the intended
    one. ``status`` is ``unsupported`` for other languages than Chinese and English, and ``empty``
    without text.
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
    """A character and its influence on the verdict, from -1 (harmless) to 1 (harmful)."""

    char: str
    share: float


@dataclass(frozen=True, slots=True)
class HarmFound(Result):
    """A detector's verdict with attributions; scores from ``threshold`` on count as harmful.

    ``outcome`` is what happens to the meme at the operating point; a meme that was not scored needs
    human review. ``reason`` explains why it was not scored or needs human review. The parts of the
    reason are ``foreign`` (not scored, since the detector was not trained on this language),
    ``outside`` (the text is unlike the training texts), ``review_band`` (the two probabilities
    between which memes need review) and ``other_reason``.
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
    outcome: Outcome = "review"
    review_band: tuple[float, float] | None = None
    other_reason: str = ""


@dataclass(frozen=True, slots=True)
class MeaningFound(Result):
    """The meaning of a meme, by one model or by the authors of the sample data."""

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
    """The knowledge graph for wide screens and for phones, and its legend."""

    wide: Markup
    narrow: Markup
    legend: tuple[Legend, ...]


def read_text(studio: Studio, picture: Picture) -> TextFound:
    """Read the captions and other text of a meme."""
    image = decode(picture.data, picture.name)
    found = read_image_text(studio.ocr, picture.data, picture.name, image=image)
    text = " ".join(line.text for line in found.captions)
    language = guess_language(text).language if text else UNKNOWN
    form = (count_panels(image), *image.size, "RapidOCR", found.unread, found.other_text)
    kind = tell_kind(image, found.lines) or tell_medium(image)
    notes, marks = list_notes(image, found), find_marks(picture.data)
    return TextFound(found.lines, text, language, *form, kind, notes, marks)


def find_marks(data: bytes) -> MarksFound | None:
    """Read the marks and content credentials of an image; None if it has none."""
    mark, signed = read_mark(data) or ImageMark(""), read_credentials(data)
    if signed is None:
        return MarksFound(mark.source, mark.tool, mark.system) if mark.describe() else None
    source, tool = mark.source or signed.source, mark.tool or signed.tool
    return MarksFound(source, tool, mark.system, signed.state, signed.reason, signed.signer)


def find_homophones(text: str, language: str) -> HomophoneFound:
    """Find the homophone readings of a caption."""
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
    studio: Studio,
    text: str,
    language: str,
    unread: int = 0,
    other_text: str = "",
    page_language: str = "en",
) -> HarmFound:
    """Classify a caption and all text with the detector, with attributions per character.

    ``page_language`` is the language of ``other_reason``, which the page shows as it is.
    """
    detector, example = studio.detector, Example("meme", text)
    subject = Subject(example, language, image=True, given=False, unread=unread)
    if other_text:
        subject = replace(subject, text=f"{text}\n{other_text}", other_text=other_text)
    (verdict,) = judge_subjects(detector, [subject])
    if verdict.probability is None:
        said = text.strip() and not detector.needs_image
        return HarmFound(
            "not_scored",
            detector.name,
            detector.sample,
            foreign=bool(said) and verdict.language not in detector.languages,
            reason=verdict.reason,
            other_reason=(
                translate_reasons(verdict.reason, page_language) if detector.needs_image else ""
            ),
        )
    harmful, reasons = verdict.label == HARMFUL, detector.find_reasons(example)
    in_band = detector.point.explain_review(verdict.probability) if verdict.review else ""
    outcome: Outcome = "review" if verdict.review else "harmful" if harmful else "harmless"
    others = _remove_reasons(verdict.review, OUTSIDE_NOTE, in_band)
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
        outcome=outcome,
        review_band=detector.point.review_band if in_band else None,
        other_reason=translate_reasons(others, page_language),
    )


def _remove_reasons(review: str, *known: str) -> str:
    """Remove known parts of the reason for human review; parts are separated by semicolons.

    >>> _remove_reasons("far; part of the text is in de; near", "far", "near", "")
    'part of the text is in de'
    """
    text = f"; {review}; "
    for part in filter(None, known):
        text = text.replace(f"; {part}; ", "; ")
    return text.strip("; ")


def _share_characters(explained: Explanation) -> Iterator[CharacterAttribution]:
    for shared in explained.fields:
        if shared.field == "text":
            most = max(map(abs, shared.characters), default=0.0) or 1.0
            for char, value in zip(shared.text, shared.characters, strict=True):
                yield CharacterAttribution(char, round(value / most, 3))


async def ask_meaning(
    studio: Studio, picture: Picture, model: str, language: str, watch: ProgressWatch | None = None
) -> MeaningFound:
    """Ask one model about a meme, in the language of the page."""
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
        raise ModelError(f"{name} returned no answer: {found.missing[0].reason}")
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
    """Yield the progress of a model, and finally its answer.

    Closing the iterator cancels further model calls.
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
    """Return the authors' annotations of a sample meme."""
    image_path(meme)  # raises an error for an unknown name
    (sample_meme,) = (one for one in read_samples() if one.id == meme)
    (known,) = (one for one in read_sample_knowledge() if one.meme == sample_meme.id)
    return MeaningFound(AUTHORS, sample_meme.intents, sample_meme.background, None, None, (), known)


def list_samples(language: str, first: Sequence[str] = ()) -> list[SampleMeme]:
    """List the sample memes: chosen ones first, then those of a language, then the others."""
    chosen = {name: place for place, name in enumerate(first)}

    def rank(meme: SampleMeme) -> tuple[int, bool, str]:
        return chosen.get(meme.id, len(chosen)), meme.language != language, meme.id

    return sorted(read_samples(), key=rank)


def draw_meaning(found: MeaningFound, language: PageLanguage = "en") -> Drawings:
    """Draw the knowledge graph of a meaning; empty if there is no knowledge."""
    known = found.knowledge
    legend = tuple(make_legend(known)) if known.individuals else ()
    return Drawings(**draw_graphs(known, language), legend=legend)


@contextmanager
def lay_out(picture: Picture) -> Iterator[tuple[Meme, Path]]:
    """Write the image to a temporary folder; the file name is fixed, not the user's."""
    kind = probe(picture.data, picture.name).format
    with tempfile.TemporaryDirectory(prefix="memantics-") as place:
        path = Path(place) / f"meme.{MIME[kind].partition('/')[2]}"
        path.write_bytes(picture.data)
        yield Meme("meme", path), Path(place)


class ShownVersion(OfferedVersion):
    """A version with its image as a PNG data URL, and its flaws."""

    picture: str
    flaws: list[str]


@dataclass(frozen=True, slots=True)
class KinderFound(Result):
    """A kinder version as a PNG data URL, or the reason why there is none.

    ``flaws`` list failed checks with advice, ``notes`` what did not change. ``versions`` are all
    drawn versions, the best first; ``meme`` is the start of the image hash. ``emotion`` and
    ``target`` are empty if a person wrote the captions.
    """

    status: str
    reason: str
    before: str
    after: str
    emotion: str
    target: str
    picture: str
    by: str
    flaws: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: tuple[ShownVersion, ...] = ()
    meme: str = ""


async def soften(
    studio: Studio,
    picture: Picture,
    model: str = NO_MODEL,
    versions: int = 1,
    language: MessageLanguage = "en",
    *,
    label: bool = True,
) -> KinderFound:
    """Make kinder versions of a meme with a model, best first; without one, decline it.

    ``language`` is the language of reasons, flaws, notes and the visible label.
    """
    if model == NO_MODEL:
        return await asyncio.to_thread(_decline, studio, picture, language)
    stamp = ImageStamp(label=label, language=language)
    name, settings = studio.find_model(model), DraftSettings(mood=False)
    calls = replace(studio.calls, use_cache=False)
    with lay_out(picture) as (meme, folder):
        async with open_planner(name, settings, calls, folder / "plan", 1) as planner:
            made = await take_through(meme, _open_shop(studio, planner, folder, versions, stamp))
        return await _show(studio, picture, made, name, language)


def _decline(studio: Studio, picture: Picture, language: MessageLanguage) -> KinderFound:
    """Decline a meme for its topic, or because no model was chosen; nothing is drawn."""
    found = read_text(studio, picture)
    texts = [line for text in (found.text, found.other_text) for line in text.splitlines()]
    reason = decline_topic(texts) or say("choose_model" if studio.models else "no_service_model")
    before, key = found.text, hashlib.sha256(picture.data).hexdigest()[:16]
    said = translate(reason, language)
    return KinderFound("declined", said, before, "", "", "", "", NO_MODEL, meme=key)


async def redraw(
    studio: Studio,
    picture: Picture,
    words: str,
    language: MessageLanguage = "en",
    *,
    label: bool = True,
) -> KinderFound:
    """Draw a version with the user's captions, one line per caption, with all checks.

    ``language`` is the language of reasons, flaws, notes and the visible label.
    """
    stamp = ImageStamp(label=label, language=language)
    before = (await asyncio.to_thread(read_text, studio, picture)).text
    # Nobody says which emotion the meme has; only captions change, so any pair gives this image.
    wish = EditWish("meme", "sad", "happy", before, words, "", "Template_StylizedMeme", "Negative")
    with lay_out(picture) as (meme, folder):
        shop = _open_shop(studio, WishPlanner(wish, PERSON), folder, 1, stamp)
        made = await take_through(meme, shop)
        found = await _show(studio, picture, made, PERSON, language)
    return replace(found, emotion="", target="")


def _open_shop(
    studio: Studio, planner: Planner, folder: Path, versions: int, stamp: ImageStamp
) -> Workshop:
    shop = Workshop(planner, line_reader(studio.ocr), folder / "made")
    return replace(shop, kindness=rate_kindness, versions=versions, stamp=stamp)


def _tell_flaw(flaw: Flaw, language: MessageLanguage) -> str:
    what = translate(flaw.what, language)
    advice = translate(flaw.advice, language, page=True)
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
        # The number of lines that a person wrote is not a matter of a model's reply.
        translate(
            made.reason.removeprefix("unparsed: ") if by == PERSON else made.reason, language
        ),
        before,
        made.caption,
        made.feeling.emotion if made.feeling else "",
        made.plan.target if made.plan else "",
        shown[0].picture if shown else "",
        by,
        flaws=tuple(shown[0].flaws) if shown else (),
        notes=tuple(translate(note, language) for note in made.checks.notes) if made.checks else (),
        versions=shown,
        meme=hashlib.sha256(picture.data).hexdigest()[:16],
    )
