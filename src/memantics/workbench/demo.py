"""``demo``: run all parts of Memantics on the sample data, offline, and write a start page.

The page shows analysed memes, puns, kinder versions and benchmarks, in English and in Chinese.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import toml_beside
from memantics.core.errors import need_offline
from memantics.core.files import read_regular_text, write_text
from memantics.core.lines import TextLine
from memantics.core.parameters import Flag
from memantics.core.result import Result
from memantics.core.samples import SampleMeme, image_path, read_samples
from memantics.core.samples import copy as copy_samples
from memantics.evaluation.audits.published import is_certain, is_checkable, violations
from memantics.evaluation.evaluate import EvaluationSettings, evaluate_suite
from memantics.evaluation.report import report
from memantics.evaluation.reports.standings import Standings, Trivial, make_standings
from memantics.moderation.detect import Detector
from memantics.moderation.explanation import Explanation
from memantics.moderation.pages import colour_letters
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.drawing import draw, draw_narrow, read_style
from memantics.understanding.knowledge.page import translate_drawing
from memantics.understanding.knowledge.records import Knowledge
from memantics.understanding.phonetics.reading import HomophoneReadings
from memantics.understanding.puns import read_homophones
from memantics.understanding.reappraisal.messages import translate
from memantics.understanding.reappraisal.records import MEME
from memantics.understanding.reappraise import (
    Reappraisal,
    ReappraiseSettings,
    reappraise,
)
from memantics.web.page import Thumbnail, fill_page, make_thumbnail
from memantics.web.phrases import PageLanguage
from memantics.workbench.analyze import analyze

__all__ = ["Tour", "copy_samples", "demo"]

_CERTAIN = 0.99
_SIDE = 480
_NAMES = {"en": "English", "zh": "中文"}
_OTHER: dict[PageLanguage, PageLanguage] = {"en": "zh", "zh": "en"}


# Texts of the start page in one language, and translations of English sentences.


class TourWords(NamedTuple):
    """Texts of the start page in one language.

    ``t`` has texts by key. The other fields translate sentences and descriptions of impossible
    table values.
    """

    language: PageLanguage
    t: dict[str, Markup]
    said: dict[str, str]
    faults: tuple[tuple[re.Pattern[str], str], ...]

    def say(self, text: str) -> str:
        """Translate a sentence; English if there is no translation."""
        return self.said.get(text, text) if self.language == "zh" else text

    def sure(self, confidence: float) -> str:
        """Format a probability; values above 99 % are written as "over 99 %"."""
        if confidence > _CERTAIN:
            return self.t["over"]
        return f"{confidence * 100:.0f}{'%' if self.language == 'zh' else ' %'}"

    def reason(self, reason: str) -> str:
        """Translate the reason why a meme was not rewritten."""
        return translate(reason, self.language)

    def fault(self, reason: str) -> str:
        """Explain why a value printed in a paper cannot be true."""
        for pattern, told in self.faults:
            if found := pattern.fullmatch(reason):
                return told.format(*(self.say(part.replace("_", " ")) for part in found.groups()))
        return reason

    def tell_faults(self, checked: int, certain: int, more: int) -> str:
        """Report how many rows of a paper's table cannot be true.

        Rows that are impossible only for the stated number of items are counted separately.
        """
        told = self.t["faulty"].format(certain=certain, n=checked)
        gap = " " if self.language == "en" else ""
        return told + gap + self.t["faulty_stated"].format(more) if more else told

    def standing(self, board: Standings) -> Markup:
        """Report how many systems score above the trivial baseline, and how this was tested."""
        above = board.count("above")
        return self.t["all_above" if above == len(board.rows) else "some_above"].format(
            n=len(board.rows),
            above=above,
            level=board.count("level"),
            below=board.count("below"),
            name=self.say(board.trivial.name),
            value=f"{board.trivial.value:.3f}",
            basis=self.t["by_interval" if board.by_interval else "by_value"],
        )


def read_words(language: PageLanguage) -> TourWords:
    """Read the texts of one language from ``tour.toml``."""
    source = Path(__file__).with_name("tour.toml")
    read = tomllib.loads(read_regular_text(source))
    said, faults = read.pop("said"), read.pop("fault")
    return TourWords(
        language,
        {key: Markup(texts[language]) for key, texts in read.items()},  # noqa: S704 - ours
        said,
        tuple((re.compile(one["pattern"]), one[language]) for one in faults),
    )


@dataclass(frozen=True, slots=True)
class TourMeme:
    """One analysed meme; ``why`` and ``homophones`` come from local programs.

    ``gloss`` and ``background`` explain a Chinese caption in English. ``printed`` are its text
    lines with their roles, in an image of that ``size``.
    """

    image: Path
    language: str
    text: str
    read: str
    meaning: str
    intents: tuple[str, ...]
    harm: str
    knowledge: Knowledge
    gloss: str = ""
    background: str = ""
    homophones: HomophoneReadings | None = None
    why: Explanation | None = None
    printed: tuple[TextLine, ...] = ()
    size: tuple[int, int] = (0, 0)

    @property
    def beside(self) -> list[str]:
        """Text in the image that is not a caption."""
        others = [line.text for line in self.printed if line.role != "caption"]
        return [text for text in others if any(map(str.isalnum, text))]

    @property
    def picture(self) -> Thumbnail:
        """A small copy of the image for the page."""
        return make_thumbnail(self.image, _SIDE)

    @property
    def wide(self) -> Markup:
        """The knowledge graph for wide screens."""
        return draw(self.knowledge, linked=False)

    @property
    def narrow(self) -> Markup:
        """The knowledge graph for phones."""
        return draw_narrow(self.knowledge, linked=False)

    @property
    def misread(self) -> bool:
        """Whether OCR read other words than printed, ignoring capitals, breaks and order."""
        said = " ".join((self.read, *self.beside))
        return bool(self.read) and sorted(said.casefold().split()) != sorted(
            self.text.casefold().split()
        )

    @property
    def letters(self) -> list[tuple[str, str, str]]:
        """The characters of the text, coloured by their influence on the verdict."""
        return colour_letters(self.why)[0][1] if self.why else []


@dataclass(frozen=True, slots=True)
class TourPun:
    """A caption with its homophone readings and the intended reading in both languages."""

    image: Path
    readings: HomophoneReadings
    intended: str
    note: str
    gloss: str = ""
    background: str = ""

    @property
    def found(self) -> bool:
        """Whether the intended reading was found."""
        return self.readings.intended is not None and self.readings.intended.text == self.intended

    @property
    def picture(self) -> Thumbnail:
        """A small copy of the image for the page."""
        return make_thumbnail(self.image, _SIDE)


@dataclass(frozen=True, slots=True)
class TourVersion:
    """Kinder captions and their image, or the reason why there are none."""

    text: str
    target: str
    image: Path | None
    reason: str = ""

    @property
    def picture(self) -> Thumbnail | None:
        """A small copy of the image for the page."""
        return make_thumbnail(self.image, _SIDE) if self.image else None


@dataclass(frozen=True, slots=True)
class TourPair:
    """A meme and its version by recorded replies of a model."""

    image: Path
    before: str
    recorded: TourVersion

    @property
    def picture(self) -> Thumbnail:
        """A small copy of the original."""
        return make_thumbnail(self.image, _SIDE)


@dataclass(frozen=True, slots=True)
class TableFault:
    """A row of a paper's table that cannot be true; ``certain``: for any number of items."""

    source: str
    system: str
    reasons: tuple[str, ...]
    certain: bool


@dataclass(frozen=True, slots=True)
class TourTable:
    """Arithmetic checks of one paper's tables; the clearest fault comes first."""

    title: str
    paper: str
    checked: int
    faults: tuple[TableFault, ...] = ()

    @property
    def certain(self) -> int:
        """The number of rows that cannot be true for any number of items."""
        return sum(fault.certain for fault in self.faults)

    @property
    def more(self) -> int:
        """The number of further rows that cannot be true with the stated number of items."""
        return len(self.faults) - self.certain


@dataclass(frozen=True, slots=True)
class NextStep:
    """A suggested command, its guide, and the extra that it needs."""

    goal: str
    chinese: str
    command: str
    guide: str
    extra: str = ""


@dataclass(frozen=True, slots=True)
class TourContent:
    """All content of the demo's start page."""

    memes: Sequence[TourMeme]
    puns: Sequence[TourPun]
    pairs: Sequence[TourPair]
    tables: Sequence[TourTable]
    standings: Sequence[Standings]
    steps: Sequence[NextStep]
    report: str = ""
    highlights: Sequence[str] = field(default_factory=tuple)


def write_tour(content: TourContent, out: Path) -> None:
    """Write the start page in English and in Chinese, each atomically."""
    styles = ("page.css", read_style(), "detector.css", "tour.css")
    pages = {language: _name_page(out, language) for language in _OTHER}
    for language, other in _OTHER.items():
        words = read_words(language)
        page = fill_page(
            "tour.html",
            styles,
            tour=content,
            report=_name_page(Path(content.report), language).name if content.report else "",
            memes=put_first(content.memes, language),
            language=language,
            other={"page": pages[other].name, "language": other, "name": _NAMES[other]},
            guides=find_guides(content.steps, out.parent),
            words=words,
            t=words.t,
            translated=partial(translate_drawing, language=language),
        )
        write_text(pages[language], page)


def _name_page(page: Path, language: PageLanguage) -> Path:
    """Return the file of a page in a language; the English one has the plain name."""
    return page if language == "en" else page.with_suffix(f".{language}{page.suffix}")


def put_first(memes: Sequence[TourMeme], language: PageLanguage) -> list[TourMeme]:
    """Order each pair of memes so that the one in the reader's language comes first."""
    placed = sorted(enumerate(memes), key=lambda one: (one[0] // 2, one[1].language != language))
    return [meme for _, meme in placed]


def find_guides(steps: Sequence[NextStep], folder: Path) -> dict[str, str]:
    """Find the URLs of guides in the folder ``docs`` beside the page; empty if there is none."""
    return {
        step.guide: f"../docs/{quote(step.guide)}"
        for step in steps
        if (folder.resolve().parent / "docs" / step.guide).is_file()
    }


TAKEN_APART = ("en-016", "CN90002", "en-012", "CN90008", "en-001", "zh-004")
PUNS = ("CN90001", "CN90003", "CN90006", "CN90007", "CN90002", "CN90009")
KINDER = ("CN90008", "en-035", "CN90001", "zh-003")
REPLIES = Path(__file__).with_name("kinder.jsonl")
FAMILIES = ("mquest", "memeintent", "toxicn_mm", "mer_bench", "punmemecn")
TASKS = ("mquest/qa", "punmemecn/detection", "toxicn_mm/detection")
MODELS = ("embedded/reader", "baseline/longest", "baseline/positive")
_TYPES = {
    "none": "not harmful",
    "targeted": "mildly harmful: teases a group",
    "offence": "mildly harmful: general offence",
    "dispirited": "mildly harmful: dispirited",
}
STEPS = tuple(NextStep(**told) for told in toml_beside(__file__, "demo.toml")["steps"])


@dataclass(frozen=True, slots=True)
class Tour(Result):
    """Paths of the pages, and highlights of their content."""

    page: Path
    report: Path
    highlights: tuple[str, ...]


def demo(
    out: Annotated[str | Path, Flag("Output folder of the pages.")] = "demo",
    progress: Callable[[str], None] | None = None,
) -> Tour:
    """Run all parts of Memantics on the sample data, offline, and write one page.

    Args:
        out: Folder of the pages.
        progress: Called with the name of each step.

    Returns:
        The page, the report of the baselines, and the highlights.

    Raises:
        MemanticsError: A part that the demo needs is not installed.

    Example:
        >>> mm.demo("demo").page
        PosixPath('demo/index.html')
    """
    need_offline("rapidocr", "onnxruntime", "jieba", "pyoxigraph", what="demonstrations")
    tell, folder = progress or (lambda _: None), Path(out)
    memes = {meme.id: meme for meme in read_samples()}
    tell("analysing memes")
    apart = list(_take_apart([memes[name] for name in TAKEN_APART]))
    tell("finding homophone puns")
    puns = [_read_pun(memes[name]) for name in PUNS]
    tell("rewriting negative memes")
    pairs = list(_make_kinder([memes[name] for name in KINDER], folder / "kinder"))
    tell("checking published tables")
    tables = list(check_published())
    standings = list(rank_published())
    tell("evaluating the embedded baseline")
    page = _evaluate(folder)
    highlights = tuple(_find_highlights(puns, pairs, tables, standings))[:5]
    content = TourContent(
        apart, puns, pairs, tables, standings, STEPS, page.name, highlights=highlights
    )
    write_tour(content, folder / "index.html")
    return Tour(folder / "index.html", page, highlights)


def _take_apart(memes: Sequence[SampleMeme]) -> Iterator[TourMeme]:
    """Combine the sample data's annotations with the results of local programs, per meme."""
    known = {one.meme: one for one in read_sample_knowledge()}
    found = analyze([image_path(meme.id) for meme in memes])
    detector = Detector.load_sample()
    for meme, seen in zip(memes, found, strict=True):
        chinese = meme.language == "zh"
        caption = meme.pun.caption if meme.pun else ""
        yield TourMeme(
            image_path(meme.id),
            meme.language,
            meme.text,
            seen.text,
            meme.meaning,
            meme.intents,
            _TYPES[meme.harm.type],
            known[meme.id],
            _gloss(meme),
            _explain(meme) if chinese else "",
            read_homophones(caption) if caption and chinese else None,
            detector.explain(seen.text) if seen.text else None,
            seen.printed,
            seen.size,
        )


def _gloss(meme: SampleMeme) -> str:
    """Return the English translation of a Chinese caption from the annotations."""
    texts = [
        individual.description
        for individual in meme.knowledge
        if individual.dimension == "TextualMaterial"
    ]
    pairs = [text.partition(", ") for text in texts if meme.language == "zh"]
    return ", ".join(english for chinese, _, english in pairs if chinese in meme.text)


def _explain(meme: SampleMeme) -> str:
    """Return the first piece of background knowledge, in English."""
    known = [
        individual for individual in meme.knowledge if individual.dimension == "BackgroundKnowledge"
    ]
    return f"{known[0].label}: {known[0].description}" if known else ""


def _read_pun(meme: SampleMeme) -> TourPun:
    pun = meme.pun
    if pun is None:
        raise AssertionError(f"{meme.id} is not a pun")
    readings = read_homophones(pun.caption, description=meme.description)
    return TourPun(
        image_path(meme.id),
        readings,
        pun.reading or pun.caption,
        pun.note,
        _gloss(meme),
        _explain(meme),
    )


def _make_kinder(memes: Sequence[SampleMeme], out: Path) -> Iterator[TourPair]:
    """Rewrite memes with recorded replies in place of a model."""
    images = [image_path(meme.id) for meme in memes]
    # A reply about the drawn image is not recorded, since its bytes differ between processors.
    asked = ReappraiseSettings(mood=False)
    recorded = reappraise(images, model=f"recorded/{REPLIES}", out=out, settings=asked)
    for meme, made in zip(memes, recorded, strict=True):
        yield TourPair(image_path(meme.id), meme.text, _show_version(made))


def _show_version(made: Reappraisal) -> TourVersion:
    if made.status != "done":
        return TourVersion("", "", None, made.reason)
    target = made.plan.target if made.plan else ""
    return TourVersion(made.caption, target, made.folder / MEME)


def check_published() -> Iterator[TourTable]:
    """Check tables of published papers by arithmetic, without their data."""
    for name in FAMILIES:
        card = find_benchmark(name).card
        rows = [row for row in _read_rows(name) if is_checkable(row)]
        faults = [
            TableFault(row.source, row.system, found, is_certain(row))
            for row in rows
            if (found := violations(row))
        ]
        faults.sort(key=lambda fault: (not fault.certain, len(fault.reasons)))
        yield TourTable(card.title, card.citation, len(rows), tuple(faults))


def _read_rows(name: str) -> tuple[PublishedRow, ...]:
    return read_published(find_benchmark(name).folder / "expected" / "published.json")


def rank_published() -> Iterator[Standings]:
    """Build leaderboards of published tables with trivial baselines."""
    puns = [row for row in _read_rows("punmemecn") if row.options.get("prompt") == "1"]
    detection = [row for row in puns if row.task == "detection" and row.source == "Table 2"]
    positives, negatives = detection[0].classes or (1, 1)
    always = Trivial("always answering “pun”", 2 * positives / (2 * positives + negatives))
    yield make_standings("PunMemeCN: is it a pun?", "f1", detection, always)
    hard = [row for row in puns if row.task == "chat" and row.options["level"] == "hard"]
    guess = Trivial("guessing one of four", 0.25)
    yield make_standings("PunMemeCN: which meme answers the chat?", "accuracy", hard, guess)
    toxic = [row for row in _read_rows("toxicn_mm") if row.task == "detection"]
    table = [row for row in toxic if row.source == "Table 5"]
    share = 765 / 2400  # number of harmful memes in the test set, from Table 3 of the paper
    never = Trivial("always answering “harmless”", (1 - share) / (2 - share))
    note = "The paper gives no confusion matrix, so macro-F1 has no confidence interval here."
    yield make_standings("ToxiCN MM: is it harmful?", "macro_f1", table, never, note)
    rows = _read_rows("mquest")
    third = Trivial("guessing among the three options that are ever correct", 1 / 3)
    pooled = (
        "The option “None of the others” is correct in 1 of the 13,141 released questions. "
        "Guessing among the other three options scores 1/3, among all four 1/4. The intervals "
        "assume that accuracy covers all 609 questions."
    )
    yield make_standings("M-QUEST: questions about meaning", "accuracy", rows, third, pooled)


def _evaluate(folder: Path) -> Path:
    """Run the embedded reader (a small offline model) and two baselines on sample tasks.

    Their report is written in both languages, too.
    """
    settings = EvaluationSettings(data="sample", limit=12)
    made = evaluate_suite(TASKS, MODELS, settings=settings, out=folder / "runs")
    page = folder / "report.html"
    for language in _OTHER:
        report(list(made), _name_page(page, language), language=language)
    return page


def _find_highlights(
    puns: Sequence[TourPun],
    pairs: Sequence[TourPair],
    tables: Sequence[TourTable],
    standings: Sequence[Standings],
) -> Iterator[str]:
    words = read_words("en")
    found = [one for one in puns if one.found]
    if found:
        best = max(found, key=lambda one: one.readings.confidence)
        sure = words.sure(best.readings.confidence)
        yield f"{best.readings.caption} is a homophone pun on {best.intended} (confidence {sure})"
    done = [one.recorded.text for one in pairs if one.recorded.image]
    if done:
        first = " / ".join(done[0].split("\n"))
        yield f"A meme rewritten more kindly with recorded replies of a model: {first}"
    for table in tables:
        if table.faults:
            yield f"{table.title}: {words.tell_faults(table.checked, table.certain, table.more)}"
    for board in standings:
        if board.count("above") < len(board.rows):
            yield f"{board.title} {words.standing(board)}"
