"""``analyze``: text, image content, meaning, intent, puns and harm of memes in one result.

An analysis can be saved as a self-contained page with a knowledge graph. For a terminal, a chat or
an e-mail it is a list of short lines, each with a title and a tone.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from memantics.benchmarks.registry import find_warning
from memantics.core.errors import ImageError, InputError
from memantics.core.files import write_text
from memantics.core.labels import ClassifierPrediction, Judges
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.lines import ImageReading
from memantics.core.memes import Meme, name_apart
from memantics.core.parameters import Argument, Flag, ImagePath, ImagePaths, TextTaken
from memantics.core.result import Result
from memantics.core.retrieval import BY_MEANING, BY_PICTURE, NearMeme, TemplateClusterUse
from memantics.core.waiting import run_sync
from memantics.models.client import (
    SAMPLE,
    CallSettings,
    ModelClient,
    ProgressWatch,
    Trial,
    foresee,
    open_client,
)
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.moderation.classifiers import open_judges
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.subjects import Subject
from memantics.moderation.training import find_detector
from memantics.moderation.verdict import HARMFUL, judge
from memantics.understanding.analysis.gather import VERDICTS, Tools, ask_all, look
from memantics.understanding.analysis.records import (
    Feeling,
    Findings,
    Harm,
    HomophoneFinding,
    Missing,
    find_homophones,
)
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.kb import KnownMemes, open_known, outline
from memantics.understanding.knowledge.drawing import read_style
from memantics.understanding.knowledge.layout import make_legend
from memantics.understanding.knowledge.page import draw_graphs, make_entries
from memantics.understanding.knowledge.records import Individual
from memantics.understanding.knowledge.retrieval import Pool
from memantics.understanding.vision.appearance import YuNet
from memantics.understanding.vision.roles import read_image_text
from memantics.web.page import TemplateValues, fill_page, make_thumbnail
from memantics.web.phrases import PageLanguage

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "Analyses",
    "Analysis",
    "AnalyzeSettings",
    "Feeling",
    "Harm",
    "LocalParts",
    "Missing",
    "analyze",
    "analyze_async",
]

_SIDE = 640


Warn = Callable[[Path], str]
_LISTED = 3
Tone = Literal["", "dim", "red", "yellow", "green"]
Line = tuple[str, str, Tone]


def render_page(
    analyses: Sequence[Findings], warn: Warn = lambda _: "", language: PageLanguage = "en"
) -> str:
    """Render analyses as HTML text; ``warn`` returns the content warning of an image's dataset."""
    return fill_page(
        "analysis.html",
        (read_style(), "knowledge.css", "analysis.css"),
        "analysis.js",
        language=language,
        sheets=[_make_sheet(each, warn(each.meme.image), language) for each in analyses],
        by_meaning=BY_MEANING,
        by_picture=BY_PICTURE,
    )


def _make_sheet(findings: Findings, warning: str, language: PageLanguage) -> TemplateValues:
    """Build the page section of one meme."""
    known = findings.knowledge
    entries = tuple(make_entries(known)) if known else ()
    return {
        "findings": findings,
        "picture": make_thumbnail(findings.meme.image, _SIDE),
        "blurred": any(harm.harmful and not harm.baseline for harm in findings.verdicts)
        or bool(warning)
        or bool(known and known.of("Toxicity")),
        "warning": warning,
        **draw_graphs(known, language),
        "legend": make_legend(known) if known else (),
        "entries": entries,
        "unlisted": len(known.individuals) - len(entries) if known else 0,
    }


CALL_LOG = Path("builds/analyze")


@dataclass(frozen=True, slots=True)
class Analysis(Findings):
    """The analysis of one meme; a notebook shows it as the page that :meth:`save` writes."""

    @property
    def harm(self) -> Harm | None:
        """The first verdict: a model's, else the detector's; None if there is no verdict."""
        return self.harms[0] if self.harms else None

    @property
    def readings(self) -> tuple[HomophoneFinding, ...]:
        """The homophone readings of the text."""
        return self.homophones

    def save(self, page: ImagePath, language: PageLanguage = "en") -> Path:
        """Write the analysis as one self-contained HTML page."""
        return write_text(page, render_page([self], find_warning, language))

    def _repr_html_(self) -> str:
        shown = html.escape(render_page([self], find_warning), quote=True)
        return f'<iframe srcdoc="{shown}" style="width:100%;height:40em;border:0"></iframe>'


@dataclass(frozen=True, slots=True)
class Analyses(Result):
    """Analyses of several memes; ``refused`` are the images that could not be read.

    ``tokens`` counts input and output tokens.
    """

    analyses: tuple[Analysis, ...]
    refused: tuple[ImageError, ...] = ()
    tokens: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        return len(self.analyses)

    def __iter__(self) -> Iterator[Analysis]:
        return iter(self.analyses)

    def __getitem__(self, place: int) -> Analysis:
        return self.analyses[place]

    def save(self, page: ImagePath, language: PageLanguage = "en") -> Path:
        """Write one self-contained page for all memes."""
        return write_text(page, render_page(self.analyses, find_warning, language))

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the analyses and the unreadable images as plain data."""
        return {
            "analyses": [one.to_dict() for one in self],
            "refused": [str(error) for error in self.refused],
        }


class LocalParts:
    """Local tools for analyses, loaded once for many calls."""

    def __init__(
        self,
        detector: Detector,
        ocr: RememberingOcr,
        judges: Judges | None = None,
        known: Pool | None = None,
        faces: Path | None = None,
    ) -> None:
        self.tools = Tools(
            read=partial(read_image_text, ocr),
            tell_language=lambda text: guess_language(text).language,
            find_homophones=find_homophones,
            screen=_open_screen(detector),
            judges=open_judges() if judges is None else judges,
            retrieve=None if known is None else partial(_find_near, known),
            faces=None if faces is None else YuNet(faces),
        )


_NEAR = 3  # maximum number of similar memes shown


def _find_near(known: Pool, meme: Meme) -> tuple[tuple[NearMeme, ...], TemplateClusterUse | None]:
    """Find known memes with the same image or a similar meaning, and the template cluster."""
    found = known.find_memes(meme.text, meme.image, _NEAR, without={meme.id})
    near = tuple(near_meme for near_meme in found if near_meme.shown)
    return near, known.find_template_cluster(meme.image, without={meme.id})


@dataclass(frozen=True, slots=True)
class AnalyzeSettings:
    """Settings of :func:`analyze`.

    Attributes:
        language: Language of the model's output. Default: the meme's language.
        known: Sources of known memes: knowledge stores, builds, collections, or ``sample``.
        faces: ONNX file of the YuNet face detector, to count faces.
        text: Which text of an image is its caption: lines with that role (``"caption"``), or
            ``"all"``.
        call_log: Folder of the log of model calls; a logged call is not sent again.
    """

    language: Annotated[
        str | None, Flag("Language of the model's output. Default: the meme's language.")
    ] = None
    known: Annotated[
        KnownMemes | None,
        Flag(
            "Known memes to compare: knowledge stores, builds, collections, 'sample'; repeatable.",
            metavar="PATH",
            kind=list[str],
        ),
    ] = None
    faces: Annotated[
        ImagePath | None, Flag("ONNX file of the YuNet face detector, to count faces.")
    ] = None
    text: TextTaken = "caption"
    call_log: Annotated[
        ImagePath,
        Flag("Folder of the log of model calls; a logged call is not sent again.", "--calls"),
    ] = CALL_LOG


@overload
async def analyze_async(
    image: ImagePath,
    *,
    model: str | None = ...,
    detector: ImagePath | None = ...,
    parts: LocalParts | None = ...,
    settings: AnalyzeSettings | None = ...,
    calls: CallSettings | None = ...,
    progress: ProgressWatch | None = ...,
) -> Analysis: ...


@overload
async def analyze_async(
    image: ImagePaths,
    *,
    model: str | None = ...,
    detector: ImagePath | None = ...,
    parts: LocalParts | None = ...,
    settings: AnalyzeSettings | None = ...,
    calls: CallSettings | None = ...,
    progress: ProgressWatch | None = ...,
) -> Analyses: ...


async def analyze_async(
    image: ImagePath | ImagePaths,
    *,
    model: str | None = None,
    detector: ImagePath | None = None,
    parts: LocalParts | None = None,
    settings: AnalyzeSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Analysis | Analyses:
    """Analyse one meme or several, as :func:`analyze` does; both have the same documentation."""
    alone = isinstance(image, Path | str)
    paths = [Path(image)] if isinstance(image, Path | str) else [Path(one) for one in image]
    memes, settings = _name_memes(paths), settings or AnalyzeSettings()
    if parts is None:
        made = await analyze_memes(memes, model, detector, settings, calls, progress)
    else:
        made = await analyze_with(parts, memes, model, settings, calls, progress)
    if alone and made.refused:
        raise made.refused[0]
    return made[0] if alone else made


@overload
def analyze(
    image: ImagePath,
    *,
    model: str | None = ...,
    detector: ImagePath | None = ...,
    parts: LocalParts | None = ...,
    settings: AnalyzeSettings | None = ...,
    calls: CallSettings | None = ...,
    progress: ProgressWatch | None = ...,
) -> Analysis: ...


@overload
def analyze(
    image: ImagePaths,
    *,
    model: str | None = ...,
    detector: ImagePath | None = ...,
    parts: LocalParts | None = ...,
    settings: AnalyzeSettings | None = ...,
    calls: CallSettings | None = ...,
    progress: ProgressWatch | None = ...,
) -> Analyses: ...


def analyze(
    image: Annotated[ImagePath | ImagePaths, Argument("Image files.", "images", kind=list[Path])],
    *,
    model: Annotated[
        str | None,
        Flag(
            "Vision-language model, KIND/NAME. Default: none; only OCR, homophone readings and "
            "the local detector run.",
            "--model -m",
        ),
    ] = None,
    detector: Annotated[
        ImagePath | None,
        Flag("Detector file. Default: the one in use, else the sample detector."),
    ] = None,
    parts: LocalParts | None = None,
    settings: AnalyzeSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Analysis | Analyses:
    """Analyse memes: text, homophone readings, harm, and with a model what they show and mean.

    Without ``model`` only OCR, homophone readings and the local detector run. In a list, an
    unreadable image does not stop the analysis of the others.

    Args:
        image: One image file, or a list of them.
        model: Vision-language model, ``KIND/NAME``, such as ``openai/NAME``.
        detector: A detector file. Default: the one in use, else the sample detector.
        parts: Detector and OCR loaded before, for many calls; replaces ``detector``.
        settings: Language, known memes, faces and call log; see :class:`AnalyzeSettings`.
        calls: Settings of the model calls; see :class:`CallSettings`.
        progress: Called with the counts so far.

    Returns:
        An :class:`Analysis` for one image; ``Analyses`` for a list, with the images that could
        not be read in ``refused``.

    Raises:
        ImageError: The single image cannot be read.
        InputError: A folder is given, or the model or the detector cannot be opened.

    Example:
        >>> mm.analyze("meme.png").readings[0].reading
        '你是来找茬的吧'
    """
    given: Any = image  # each overload of the async version accepts only one type of argument
    waiting: Coroutine[Any, Any, Analysis | Analyses] = analyze_async(
        given,
        model=model,
        detector=detector,
        parts=parts,
        settings=settings,
        calls=calls,
        progress=progress,
    )
    return run_sync(waiting)


analyze_async.__doc__ = analyze.__doc__


def _name_memes(images: Sequence[Path]) -> list[Meme]:
    for path in images:
        if path.is_dir():
            raise InputError(
                f"{path} is a folder", hint="give image files, for example memes/*.png"
            )
    return name_apart(Meme(path.stem, path) for path in images)


async def analyze_memes(
    memes: Sequence[Meme],
    model: str | None = None,
    detector: ImagePath | None = None,
    settings: AnalyzeSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Analyses:
    """Analyse memes whose text and language are already known."""
    settings = settings or AnalyzeSettings()
    seen, refused = await asyncio.to_thread(_look_all, memes, detector, settings)
    return await _complete(seen, refused, model, settings, calls, progress)


async def analyze_with(
    parts: LocalParts,
    memes: Sequence[Meme],
    model: str | None,
    settings: AnalyzeSettings,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Analyses:
    """Analyse memes with local tools that are already loaded."""
    seen, refused = await asyncio.to_thread(_look_each, memes, parts.tools)
    return await _complete(seen, refused, model, settings, calls, progress)


async def _complete(
    seen: list[Findings],
    refused: Sequence[ImageError],
    model: str | None,
    settings: AnalyzeSettings,
    calls: CallSettings | None,
    progress: ProgressWatch | None,
) -> Analyses:
    """Add the model's answers, if a model is named."""
    tokens = (0, 0)
    if model is not None and seen:
        async with open_client(
            model, calls or CallSettings(), Path(settings.call_log), progress
        ) as client:
            seen = await _ask_all(client, seen, settings.language)
            tokens = (client.progress.tokens_in, client.progress.tokens_out)
    return Analyses(tuple(map(_publish, seen)), tuple(refused), tokens)


def _look_all(
    memes: Sequence[Meme], detector: ImagePath | None, settings: AnalyzeSettings
) -> tuple[list[Findings], list[ImageError]]:
    """Analyse memes with local tools; an unreadable image does not stop the others."""
    file = find_detector(detector)
    with open_reader(text=settings.text) as ocr:
        opened = Detector.load(file) if file is not None else Detector.load_sample()
        known = None if settings.known is None else open_known(settings.known)
        faces = None if settings.faces is None else Path(settings.faces)
        return _look_each(memes, LocalParts(opened, ocr, None, known, faces).tools)


def _look_each(memes: Sequence[Meme], tools: Tools) -> tuple[list[Findings], list[ImageError]]:
    seen, refused = [], []
    for meme in memes:
        try:
            seen.append(look(meme, tools))
        except ImageError as error:
            refused.append(error)
    return seen, refused


async def _ask_all(
    client: ModelClient, seen: Sequence[Findings], language: str | None
) -> list[Findings]:
    """Ask the model about each meme."""

    async def ask(found: Findings, asker: ModelClient | Trial = client) -> Findings:
        known = found.language if found.language != UNKNOWN else "en"
        settings = ExtractSettings(language=language or known, toxicity="reviewer")
        asker.expect(settings.steps + VERDICTS)
        return await ask_all(asker, found, settings)

    async def ask_few(trial: Trial) -> None:
        await asyncio.gather(*(ask(found, trial) for found in seen[:SAMPLE]))

    await foresee(client, len(seen), ask_few)
    return list(await asyncio.gather(*map(ask, seen)))


def _publish(found: Findings) -> Analysis:
    return Analysis(**{field.name: getattr(found, field.name) for field in fields(found)})


def _open_screen(detector: Detector) -> Callable[[Meme, ImageReading], Harm | str]:
    def screen(meme: Meme, read: ImageReading) -> Harm | str:
        subject = Subject(
            Example(meme.id, meme.text, image=meme.image), meme.language or "", image=True
        )
        if read.lines or read.unread:
            subject = subject.read(read)
        (verdict,) = judge(detector, [subject], explain=True)
        if verdict.status != "scored":
            return verdict.reason
        harmful = verdict.label == HARMFUL
        moved = tuple(one.feature for one in verdict.attributions if one.contribution > 0)
        more = "" if verdict.review in verdict.note else verdict.review
        return Harm(
            harmful,
            f"detector ({detector.name})",
            verdict.probability,
            verdict.type or "" if harmful else "",
            elements=moved if harmful else (),
            reason="; ".join(filter(None, (verdict.note, more))),
            baseline=detector.sample,
        )

    return screen


def describe(found: Analysis) -> Iterator[Line]:
    """Describe an analysis in short lines, the most important first."""
    yield "text", found.text or "no readable text", ""
    if found.beside:
        told = " · ".join(f"{line.text} ({line.role})" for line in found.beside)
        yield "other text", told, "dim"
    yield "", found.form, "dim"
    yield from _list(
        "image", (f"{sight.part}: {sight.says} (by {sight.by})" for sight in found.shows), 9
    )
    for homophone in found.homophones:
        yield "homophone", f"{homophone.reading} (confidence {homophone.confidence:.0%})", ""
    if found.pun is not None and found.pun.is_pun:
        yield "pun", f"{found.pun.word}: {found.pun.other} (by {found.pun.by})", ""
        yield "", found.pun.reason, "dim"
    yield from _list("intent", found.intents)
    yield from _list("background", found.background)
    yield from _judge(found)
    yield from _compare(found)
    for contradiction in found.contradictions:
        yield "contradiction", f"{contradiction.about}: {contradiction.text}", "red"
    for line in found.baselines:
        yield "baseline", line, "dim"
    if found.knowledge is not None:
        for title, members in outline(found.knowledge):
            yield from _list(title, (_tell(individual) for individual, _ in members))
    if found.gaps:
        yield "missing", found.gaps, "yellow"
    if found.statuses:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
        yield "model calls", f"{found.model}: {counts}", "dim"


def _judge(found: Analysis) -> Iterator[Line]:
    """Describe harm, emotions and classifier predictions, each with its source."""
    for harm in found.verdicts:
        yield ("harm (baseline)" if harm.baseline else "harm", *tell_harm(harm))
        yield "", f"by {harm.by}" + (f"; {harm.reason}" if harm.reason else ""), "dim"
    for feeling in found.moods:
        yield ("emotion (baseline)" if feeling.baseline else "emotion"), feeling.emotion, ""
        yield "", f"by {feeling.by}; {feeling.reason}".rstrip("; "), "dim"
    for prediction in found.predictions:
        if prediction.known:
            yield (
                f"{prediction.topic}{' (baseline)' if prediction.sample else ''}",
                _chance(prediction),
                "",
            )
        unsaid = f"{prediction.topic}: unknown; {prediction.why}"
        yield "", f"by {prediction.source}" if prediction.known else unsaid, "dim"


def _compare(found: Analysis) -> Iterator[Line]:
    """Describe known memes with the same image or a similar meaning."""
    if found.template_cluster is not None:
        yield "template", found.template_cluster.summary, ""
        yield "", f"by {BY_PICTURE}", "dim"
    yield from _list("similar", (meme.summary for meme in found.near))
    if any(not meme.same_picture for meme in found.near):
        yield "", f"by {BY_MEANING}", "dim"


def _chance(said: ClassifierPrediction) -> str:
    sure = said.probability
    return said.label if sure is None else f"{said.label} (probability {sure:.0%})"


def _list(title: str, lines: Iterable[str], most: int = _LISTED) -> Iterator[Line]:
    """Show the first lines below a title; the HTML page and --json contain all lines."""
    found = list(lines)
    for place, line in enumerate(found[:most]):
        yield (title if not place else ""), line, ""
    if len(found) > most:
        yield "", f"… and {len(found) - most} more", "dim"


def _tell(one: Individual) -> str:
    told = f"{one.label}: {one.description}" if one.description else one.label
    return f"{told} [{one.kind}]" if one.kind else told


def tell_harm(harm: Harm) -> tuple[str, Tone]:
    """Describe a verdict in one line, with its tone."""
    parts = ["harmful" if harm.harmful else "not harmful"]
    parts += [] if harm.score is None else [f"probability {harm.score:.0%}"]
    parts += [harm.type, f"against {harm.target}" if harm.target else ""]
    if harm.elements:
        parts.append("based on " + ", ".join(f"“{part}”" for part in harm.elements[:4]))
    colour: Tone = "dim" if harm.baseline else "red" if harm.harmful else "green"
    return "; ".join(part for part in parts if part), colour
