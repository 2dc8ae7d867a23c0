"""``build pairs`` and ``detector check``: write minimal pairs and measure consistency on them.

Minimal pairs are two memes that differ in one thing. The result page has a table by kind of
difference and shows failing pairs, blurred.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from PIL import Image

from memantics.benchmarks.factories import proportion_score
from memantics.construction.pairs import pairs as wording
from memantics.construction.pairs.pairs import (
    CLEAR,
    SAME,
    ReadImage,
    draw_pair,
    open_canvas,
    read_meanings,
)
from memantics.core.credentials import EditStep, Original
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import InputError
from memantics.core.files import replace_file, write_lines, write_text
from memantics.core.images import decode, encode_png, read_bytes
from memantics.core.lines import TextLine
from memantics.core.memes import Meme, read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.records import Closed, Score, format_value, show_span
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.core.stamping import ImageStamp, Making, MarkSettings, open_stamp
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.understanding.vision.roles import read_image_text
from memantics.web.page import TemplateValues, fill_page, make_thumbnails
from memantics.web.phrases import PageLanguage
from memantics.web.plot import Mark, draw_axis, draw_strip, fit_scale

__all__ = ["BuiltPairs", "PairCheck", "build_pairs", "check_pairs"]

_MOST_BYTES = 40 * 1024 * 1024
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class FailingPair:
    """Store a pair with a wrong prediction: the required and the predicted labels of both sides."""

    id: str
    kind: str
    texts: tuple[str, str]
    labels: tuple[str, str]
    said: tuple[str, str]
    images: tuple[Path, Path]

    @property
    def fault(self) -> str:
        """Describe the error: which label should have changed, or stayed."""
        if self.said[0] == self.said[1]:
            both = "both sides are labelled " + self.said[0]
            return both if self.kind in SAME else f"the label does not change: {both}"
        stays = "the label changes, but must not" if self.kind in SAME else "both labels are wrong"
        return f"{stays}: {self.said[0]}, then {self.said[1]}"


@dataclass(frozen=True, slots=True)
class PairCheck(Result):
    """Store the consistency of predictions on minimal pairs, by kind of difference.

    ``judge`` is the detector or the run. ``not_scored`` counts pairs in which at least one meme has
    no answer.
    """

    judge: str
    kinds: tuple[Score, ...]
    failing: tuple[FailingPair, ...]
    not_scored: int = 0

    def table(self) -> Table:
        """Return a table with one row per kind of difference."""
        rows = tuple(
            (score.by, score.label, format_value(score.value), show_span(score), str(score.n))
            for score in self.kinds
        )
        return Table(("kind", "requirement", ">share", ">95 %", ">pairs"), rows, self.judge)

    def save(self, out: str | Path, language: PageLanguage = "en") -> Path:
        """Write the page atomically and return its path."""
        return write_text(out, render_page(self, language))


def render_page(check: PairCheck, language: PageLanguage = "en") -> str:
    """Render the page as HTML."""
    shown = check.failing[:_MOST_PAIRS]
    pictures = make_thumbnails([path for pair in shown for path in pair.images], _MOST_BYTES)
    groups: defaultdict[str, list[TemplateValues]] = defaultdict(list)
    for pair in shown:
        sides = [
            {"picture": next(pictures), "label": label, "said": said, "text": text}
            for label, said, text in zip(pair.labels, pair.said, pair.texts, strict=True)
        ]
        groups[pair.kind].append({"pair": pair, "sides": sides})
    scale = fit_scale([Score("proportion", 0.0, 0), Score("proportion", 1.0, 0)])
    return fill_page(
        "pairs.html",
        ("page.css", "collect.css"),
        language=language,
        check=check,
        axis=draw_axis(scale),
        rows=[(row, draw_strip([Mark(row.by, row, 2)], scale)) for row in check.kinds],
        groups=groups,
        meanings=read_meanings(),
        same=SAME,
        skipped=len(check.failing) - len(shown),
    )


PAIRS, MEMES = "pairs.jsonl", "memes.jsonl"
_STEPS = (EditStep("c2pa.drawing", "caption of a template drawn in place of the old one"),)


class MinimalPair(Closed):
    """Store a written pair: two memes on one image, their texts, and the texts read back by OCR."""

    id: str
    meme: str
    template: str
    kind: str
    language: str
    first: str
    second: str
    labels: list[str]
    read: list[float]


@dataclass(frozen=True, slots=True)
class BuiltPairs(Result):
    """Store the written pairs; ``failed`` gives, by meme, why no pair was drawn on it."""

    folder: Path
    pairs: int
    kinds: Mapping[str, int]
    read: float
    clear: float
    failed: Mapping[str, str]


def build_pairs(
    memes: Annotated[Path | str, Argument("Folder of memes, such as one that 'collect' wrote.")],
    *,
    out: Annotated[Path | str, Flag("Output folder of the pairs.")] = "pairs",
    count: Annotated[int, Flag("Number of pairs per language.", min=1, max=10_000)] = 60,
    language: Annotated[
        Literal["en", "zh"] | None, Flag("Language of the pairs. Default: both.")
    ] = None,
    words: Annotated[
        Path | None, Flag("TOML file of words that fill the templates. Default: mild words.")
    ] = None,
    marks: MarkSettings | None = None,
) -> BuiltPairs:
    """Draw minimal pairs on memes: two captions that differ in one thing, with the same layout.

    Each caption is read back by OCR. The folder is also a data set: ``data add pairs FOLDER``, then
    ``run pairs``.
    """
    stamp = open_stamp(marks or MarkSettings())
    known, place = wording.read_words(words), Path(out)
    languages: tuple[wording.CaptionLanguage, ...] = (language,) if language else ("en", "zh")
    wanted = [
        texts
        for name in languages
        if name in known
        for texts in wording.fill_templates(name, known[name], count)
    ]
    if not wanted:
        raise InputError(
            f"the word file has no words for {' and '.join(languages)}",
            hint="add them to the file given with --words",
        )
    found = read_memes(Path(memes))
    failed: dict[str, str] = {}
    (place / "images").mkdir(parents=True, exist_ok=True)
    with open_reader() as ocr, open_reader("fast") as quick:

        def read(image: Image.Image) -> Sequence[TextLine]:
            return read_image_text(ocr, encode_png(image), "meme", image=image).lines

        def read_back(image: Image.Image) -> Sequence[TextLine]:
            return quick.read(encode_png(image), "pair").lines

        rows = list(_draw_all(found, wanted, (read, read_back), (place, stamp), failed))
    if not rows:
        raise InputError(
            f"no meme in {memes} has a caption that can be replaced",
            hint="give memes with captions",
        )
    write_lines(place / PAIRS, (row.model_dump() for row in rows))
    write_lines(place / MEMES, (line for row in rows for line in _list_memes(row)))
    shares = [share for row in rows for share in row.read]
    clear = [min(row.read) >= CLEAR for row in rows]
    kinds: dict[str, int] = {
        kind: sum(row.kind == kind for row in rows) for kind in wording.PAIR_KINDS
    }
    mean, share = sum(shares) / len(shares), sum(clear) / len(clear)
    return BuiltPairs(place, len(rows), kinds, mean, share, failed)


def _draw_all(
    memes: Sequence[Meme],
    wanted: Sequence[wording.PairTexts],
    readers: tuple[ReadImage, ReadImage],
    target: tuple[Path, ImageStamp],
    failed: dict[str, str],
) -> Iterator[MinimalPair]:
    """Draw as many pairs on each meme, so that no image has pairs of one kind only."""
    (place, stamp), queue = target, list(wanted)
    reasons: dict[str, str] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for number, meme in enumerate(memes):
        left = len(memes) - number
        texts, queue = queue[: -(-len(queue) // left)], queue[-(-len(queue) // left) :]
        if not texts:
            break
        try:
            data = read_bytes(meme.image)
            canvas = open_canvas(decode(data, meme.image.name), readers[0])
        except InputError as error:
            failed[meme.id] = str(error)
            queue = [*texts, *queue]
            continue
        making = Making("composite", _STEPS, original=Original(meme.image.name, data))
        for pair in texts:
            # With few memes, a template is drawn on an image again, with other words.
            seen[meme.id, pair.template] += 1
            name = f"{meme.id}-{pair.template}-{seen[meme.id, pair.template]}"
            try:
                drawn, shares = draw_pair(canvas, (pair.first, pair.second), readers[1])
            except InputError as error:
                reasons[pair.template] = str(error)
                queue.append(pair)  # another meme may have more room for the text
                continue
            for side, image in zip("ab", drawn, strict=True):
                made = stamp.apply(encode_png(image), making)
                replace_file(place / "images" / f"{name}-{side}.png", made, "pair")
            yield MinimalPair(
                id=name,
                meme=meme.id,
                **pair.model_dump(),
                labels=list(pair.labels),
                read=[round(share, 4) for share in shares],
            )
    failed.update({pair.template: reasons.get(pair.template, "no meme is left") for pair in queue})


def _list_memes(row: MinimalPair) -> Iterator[dict[str, str]]:
    """Return both memes of each pair as rows of a data set."""
    for side, text, label in zip("ab", (row.first, row.second), row.labels, strict=True):
        name = f"{row.id}-{side}"
        yield {"id": name, "image": f"images/{name}.png", "text": text, "label": label}


def check_pairs(
    pairs: Annotated[Path | str, Argument("Folder written by 'build pairs'.")],
    *,
    model: Annotated[Path | None, Flag("Detector file.", "--model -m")] = None,
    run: Annotated[Path | None, Flag("Folder of a run on the pairs (task pairs/harm).")] = None,
) -> PairCheck:
    """Measure how consistent a detector or a run is on minimal pairs, by kind of difference."""
    folder = Path(pairs)
    if (model is None) == (run is None):
        raise InputError("no detector and no run was given", hint="give --model FILE or --run DIR")
    if not (folder / PAIRS).is_file():
        raise InputError(
            f"{folder} contains no pairs", hint="create them with 'memantics build pairs MEMES'"
        )
    rows = [
        conform(MinimalPair, line, folder / PAIRS, number)
        for number, line in read_jsonl(folder / PAIRS)
    ]
    said = _ask_detector(model, rows) if model else _read_run(run or Path())
    asked = [row for row in rows if f"{row.id}-a" in said and f"{row.id}-b" in said]
    if not asked:
        raise InputError(
            "none of the pairs has an answer for both sides",
            hint="evaluate the model on the task pairs/harm with these pairs",
        )
    names = [(said[f"{row.id}-a"], said[f"{row.id}-b"]) for row in asked]
    right = [given == tuple(row.labels) for row, given in zip(asked, names, strict=True)]
    turned = [
        (given[0] == given[1]) == (row.labels[0] == row.labels[1])
        for row, given in zip(asked, names, strict=True)
    ]
    scores = []
    for kind in (*wording.PAIR_KINDS, "all"):
        places = [n for n, row in enumerate(asked) if kind in (row.kind, "all")]
        memes = [asked[n].meme for n in places]
        what = "the label stays" if kind in wording.SAME else "the label changes"
        for label, marks in (("both labels are correct", right), (what, turned)):
            if places and not (kind == "all" and marks is turned):
                scores.append(
                    proportion_score("proportion", [marks[n] for n in places], memes, kind, label)
                )
    failing = tuple(
        FailingPair(
            row.id,
            row.kind,
            (row.first, row.second),
            (row.labels[0], row.labels[1]),
            given,
            (folder / "images" / f"{row.id}-a.png", folder / "images" / f"{row.id}-b.png"),
        )
        for row, given, fine in zip(asked, names, right, strict=True)
        if not fine
    )
    return PairCheck(str(model or run), tuple(scores), failing, len(rows) - len(asked))


def _ask_detector(model: Path, rows: Sequence[MinimalPair]) -> dict[str, str]:
    """Return a detector's verdicts for both texts of each pair."""
    examples = [
        Example(f"{row.id}-{side}", text)
        for row in rows
        for side, text in (("a", row.first), ("b", row.second))
    ]
    found = Detector.load(model).predict(examples)
    return {said.id: said.name for said in found if not said.not_scored}


def _read_run(run: Path) -> dict[str, str]:
    _, task = open_task_of_run(read_facts(run), None)
    said = {}
    for outcome in read_outcomes(run, task):
        if outcome.status == "answered":
            texts = {option.key: option.text for option in outcome.item.form.fields[0].options}
            said[outcome.item.group] = texts.get(str(outcome.value), str(outcome.value))
    return said
