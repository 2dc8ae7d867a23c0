"""``build pairs`` and ``detector check``: minimal pairs of memes, and who is consistent on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from PIL import Image

from memantics.actions.detect import Detector
from memantics.build.pairs import wording
from memantics.build.pairs.drawing import CLEAR, Read, draw_pair, open_canvas
from memantics.core.closed import Closed
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import InputError
from memantics.core.images import encode_png, load
from memantics.core.journal import replace_file, write_lines
from memantics.core.lines import TextLine
from memantics.core.memes import Meme, read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result
from memantics.core.rundir import read_facts
from memantics.detector.examples import Example
from memantics.models.embedded.ocr import open_reader
from memantics.registry import open_task_of_run
from memantics.report.pages.pairs import FailingPair, PairCheck
from memantics.run.score import read_outcomes
from memantics.tasks.factories import share
from memantics.vision.roles import read_image_text

__all__ = ["BuiltPairs", "PairCheck", "build_pairs", "check_pairs"]

PAIRS, MEMES = "pairs.jsonl", "memes.jsonl"


class MinimalPair(Closed):
    """A pair as it is written: two memes on one picture, what they say, and what is read back."""

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
    """Pairs that were drawn; ``failed`` says by meme why it carries none."""

    folder: Path
    pairs: int
    kinds: Mapping[str, int]
    read: float
    clear: float
    failed: Mapping[str, str]


def build_pairs(
    memes: Annotated[Path | str, Argument("A folder of memes, such as 'collect' reads.")],
    *,
    out: Annotated[Path | str, Flag("The folder of the pairs.")] = "pairs",
    count: Annotated[int, Flag("How many pairs a language.", min=1, max=10_000)] = 60,
    language: Annotated[
        Literal["en", "zh"] | None, Flag("Only this language. Default: both.")
    ] = None,
    words: Annotated[
        Path | None, Flag("Words to fill templates with (TOML). Default: mild ones.")
    ] = None,
) -> BuiltPairs:
    """Draw minimal pairs on memes: two captions that differ in one thing, layout kept, read back.

    The folder is a data set, too: ``data add pairs FOLDER``, then ``run pairs``.
    """
    known, place = wording.read_words(words), Path(out)
    languages: tuple[wording.Language, ...] = (language,) if language else ("en", "zh")
    wanted = [
        texts
        for name in languages
        if name in known
        for texts in wording.fill_templates(name, known[name], count)
    ]
    if not wanted:
        raise InputError(f"no words for {' and '.join(languages)}", hint="add them to --words")
    found = read_memes(Path(memes))
    failed: dict[str, str] = {}
    (place / "images").mkdir(parents=True, exist_ok=True)
    with open_reader() as ocr, open_reader("fast") as quick:

        def read(image: Image.Image) -> Sequence[TextLine]:
            return read_image_text(ocr, encode_png(image), "meme", image=image).lines

        def read_back(image: Image.Image) -> Sequence[TextLine]:
            return quick.read(encode_png(image), "pair").lines

        rows = list(_draw_all(found, wanted, (read, read_back), place, failed))
    if not rows:
        raise InputError(f"no meme of {memes} can carry a pair", hint="give memes with captions")
    write_lines(place / PAIRS, (row.model_dump() for row in rows))
    write_lines(place / MEMES, (line for row in rows for line in _list_memes(row)))
    marks = [share for row in rows for share in row.read]
    clear = [min(row.read) >= CLEAR for row in rows]
    kinds: dict[str, int] = {
        kind: sum(row.kind == kind for row in rows) for kind in wording.PAIR_KINDS
    }
    mean, share = sum(marks) / len(marks), sum(clear) / len(clear)
    return BuiltPairs(place, len(rows), kinds, mean, share, failed)


def _draw_all(
    memes: Sequence[Meme],
    wanted: Sequence[wording.PairTexts],
    readers: tuple[Read, Read],
    place: Path,
    failed: dict[str, str],
) -> Iterator[MinimalPair]:
    """Every meme carries its share of the pairs, so that one picture is never all of a kind."""
    queue = list(wanted)
    reasons: dict[str, str] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for number, meme in enumerate(memes):
        left = len(memes) - number
        texts, queue = queue[: -(-len(queue) // left)], queue[-(-len(queue) // left) :]
        if not texts:
            break
        try:
            canvas = open_canvas(load(meme.image).convert("RGB"), readers[0])
        except InputError as error:
            failed[meme.id] = str(error)
            queue = [*texts, *queue]
            continue
        for pair in texts:
            # With few memes a template comes to one picture again, with other words.
            seen[meme.id, pair.template] += 1
            name = f"{meme.id}-{pair.template}-{seen[meme.id, pair.template]}"
            try:
                drawn, shares = draw_pair(canvas, (pair.first, pair.second), readers[1])
            except InputError as error:
                reasons[pair.template] = str(error)
                queue.append(pair)  # another meme may have more room
                continue
            for side, image in zip("ab", drawn, strict=True):
                replace_file(place / "images" / f"{name}-{side}.png", encode_png(image), "pair")
            yield MinimalPair(
                id=name,
                meme=meme.id,
                **pair.model_dump(),
                labels=list(pair.labels),
                read=[round(share, 4) for share in shares],
            )
    failed.update({pair.template: reasons.get(pair.template, "no meme is left") for pair in queue})


def _list_memes(row: MinimalPair) -> Iterator[dict[str, str]]:
    """Both sides as rows of a data set."""
    for side, text, label in zip("ab", (row.first, row.second), row.labels, strict=True):
        name = f"{row.id}-{side}"
        yield {"id": name, "image": f"images/{name}.png", "text": text, "label": label}


def check_pairs(
    pairs: Annotated[Path | str, Argument("A folder that 'build pairs' wrote.")],
    *,
    model: Annotated[Path | None, Flag("A detector file.", "--model -m")] = None,
    run: Annotated[Path | None, Flag("A run of pairs/harm.")] = None,
) -> PairCheck:
    """Say how consistent a detector or a run is on minimal pairs, kind by kind."""
    folder = Path(pairs)
    if (model is None) == (run is None):
        raise InputError("give a detector or a run", hint="--model FILE or --run DIR")
    if not (folder / PAIRS).is_file():
        raise InputError(f"{folder} holds no pairs", hint="memantics build pairs MEMES")
    rows = [
        conform(MinimalPair, line, folder / PAIRS, number)
        for number, line in read_jsonl(folder / PAIRS)
    ]
    said = _ask_detector(model, rows) if model else _read_run(run or Path())
    asked = [row for row in rows if f"{row.id}-a" in said and f"{row.id}-b" in said]
    if not asked:
        raise InputError("none of the pairs was judged", hint="run pairs/harm on these pairs")
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
        for label, marks in (("both are right", right), (what, turned)):
            if places and not (kind == "all" and marks is turned):
                scores.append(share("share", [marks[n] for n in places], memes, kind, label))
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
    """What a detector says to the words of each side."""
    examples = [
        Example(f"{row.id}-{side}", text)
        for row in rows
        for side, text in (("a", row.first), ("b", row.second))
    ]
    found = Detector.load(model).predict(examples)
    return {said.id: said.name for said in found if not said.unjudged}


def _read_run(run: Path) -> dict[str, str]:
    _, task = open_task_of_run(read_facts(run), None)
    said = {}
    for outcome in read_outcomes(run, task):
        if outcome.status == "answered":
            texts = {option.key: option.text for option in outcome.item.form.fields[0].options}
            said[outcome.item.group] = texts.get(str(outcome.value), str(outcome.value))
    return said
