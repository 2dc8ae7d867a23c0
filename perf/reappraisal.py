"""Results of reappraisal with a model as planner.

``python -m perf.reappraisal --model KIND/NAME [--base-url URL] [--limit N] [--pictures FOLDER]``
goes over the sample data and, where they lie beside the checkout, over the PunMemeCN images: what
is done, declined and failed, whether results read back, keep their layout and sound kinder to a
classifier that the planner does not know (perf/kindness.py). It ends with what is wanted of each
language, and exits with 1 where that is missed. Without a model, every meme is declined, and only
the round trip of captions is measured. ``--sheet FOLDER`` also writes fifty pairs to rate blind;
``--rated`` prints what raters said (perf/reappraisal_ratings.py). ``--limit`` draws N memes of
each corpus by a fixed seed; ``--limit 0`` takes all. ``--cost`` times two memes with given
captions. Readings are cached below $MEMANTICS_HOME.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from PIL import Image

from memantics.core.errors import InputError
from memantics.core.images import decode, encode_png
from memantics.core.memes import Meme
from memantics.core.samples import IMAGES, read_samples
from memantics.models.client import CallSettings
from memantics.models.embedded.ocr import RapidReader, RememberingOcr, open_reader
from memantics.understanding.editing import DraftSettings, line_reader, open_planner
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.kindness import rate_kindness, read_caption
from memantics.understanding.reappraisal.rendering import LEGIBLE
from memantics.understanding.reappraisal.rules import only_adds
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.reappraisal.stages import NO_MODEL
from memantics.understanding.reappraisal.whole import EditWish, WishPlanner
from memantics.understanding.reappraisal.workshop import Reappraisal, Workshop
from memantics.understanding.vision.hashes import measure_change
from memantics.understanding.vision.page import (
    MemeStructure,
    erase_captions,
    mask_captions,
    read_page,
    set_caption,
)
from perf import kindness
from perf.reading import read_as_before
from perf.reappraisal_ratings import show_ratings, write_sheet
from research.protocol import is_in_test_set

PUNS = kindness.DATA / "punmemecn"
MER = kindness.DATA / "mer_bench" / "index_final.json"
Judge = Callable[[str], float]
LIMIT, SEED = 100, 2026
PAIRS_RATED = 50
COST = {
    "en-012.png": "People who hit reply all\nWe miss you, and so does everyone",
    "zh-012.png": "早上五点晨跑的人\n是精力充沛的吧",
}
KINDER = 0.7  # of the negative memes done: so many must sound kinder


@dataclass(frozen=True, slots=True)
class Source:
    """A meme to measure; ``negative`` is what its annotators say, None where nobody did."""

    path: Path
    negative: bool | None
    emotion: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The model that plans, and the URL of its server."""

    model: str
    base_url: str | None


@dataclass
class Measurements:
    """The results on one corpus."""

    results: list[tuple[Source, Reappraisal]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    particles: list[str] = field(default_factory=list)
    moved: list[tuple[str, float, float]] = field(default_factory=list)
    again: list[tuple[float, float]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


async def measure(
    source: Source, shop: Workshop, judge: Judge | None, measurements: Measurements
) -> None:
    data = source.path.read_bytes()
    image = decode(data, source.path.name)
    page = read_page(image, shop.read_lines(data, source.path.name))
    with suppress(InputError):  # no font of the machine has a traditional character
        measurements.again += [set_again(image, page)] if page.captions else []
    result = await reappraise(Meme(source.path.stem, source.path), shop)
    measurements.results.append((source, result))
    measurements.texts[result.meme] = " / ".join(caption.text for caption in page.captions)
    if result.status != "done" or result.plan is None:
        return
    old = [caption.text for caption in page.captions]
    new = [result.plan.captions[str(number)] for number in range(1, len(old) + 1)]
    changed = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    if all(only_adds(*pair) for pair in changed):
        measurements.particles.append(source.path.stem)
    if judge is not None and source.negative:
        before = " ".join(line.intended for line in understand(old).lines)
        measurements.moved.append(
            (source.path.stem, judge(before), judge(" ".join(read_caption(text) for text in new)))
        )


def set_again(image: Image.Image, page: MemeStructure) -> tuple[float, float]:
    """Return the round trip: every caption taken out and set again as it was."""
    made = erase_captions(image, page.captions)
    for caption in page.captions:
        made, _ = set_caption(made, caption, caption.text)
    inside = mask_captions(page.size, page.captions)
    return measure_change(image, made, ~inside), measure_change(image, made, inside)


async def measure_all(
    sources: Sequence[Source], ocr: RememberingOcr, judge: Judge | None, place: Path, asked: Asked
) -> Measurements:
    measurements = Measurements()
    start, settings = time.monotonic(), DraftSettings(mood=False)
    calls = CallSettings(base_url=asked.base_url)
    async with open_planner(asked.model, settings, calls, place, len(sources)) as planner:
        shop = Workshop(planner, line_reader(ocr), place, kindness=rate_kindness)
        for number, source in enumerate(sources, 1):
            spent = time.monotonic() - start
            print(f"\r{number} of {len(sources)} memes, {spent:.0f} s", end="", file=sys.stderr)
            try:
                await measure(source, shop, judge, measurements)
            except Exception as error:  # noqa: BLE001 - a crash is what is counted
                measurements.crashes.append(f"{source.path.stem}: {error!r}")
    print(file=sys.stderr)
    return measurements


def show(title: str, measurements: Measurements) -> None:
    done = [(source, result) for source, result in measurements.results if result.status == "done"]
    negative = [pair for pair in measurements.results if pair[0].negative]
    flawed = [result for _, result in measurements.results if result.status == "flawed"]
    reasons = Counter(
        flaw.check for result in flawed if result.checks for flaw in result.checks.flaws
    )
    checks = [result.checks for _, result in done if result.checks is not None]
    captions = [each for check in checks for each in check.captions]
    up = [after > before for _, before, after in measurements.moved]
    told = [
        (source, result) for source, result in done if source.emotion and result.feeling is not None
    ]
    right = sum(r.feeling is not None and r.feeling.emotion == s.emotion for s, r in told)
    print(
        f"\n{title}: {len(measurements.results)} memes, "
        f"{len(negative)} negative by their annotators"
    )
    rows: list[tuple[str, object]] = [
        ("crashes", len(measurements.crashes)),
        ("done", len(done)),
        ("  of the negative ones", sum(r.status == "done" for _, r in negative)),
        ("flawed", len(flawed)),
        ("  of the negative ones", sum(r.status == "flawed" for _, r in negative)),
        ("  of the others", sum(s.negative is False for s, _ in done)),
        ("plans that only add a particle", len(measurements.particles)),
        ("sounds kinder, of negative memes done", f"{sum(up)} of {len(up)} ({show_share(up)})"),
        ("emotion as annotated, of those done", f"{right} of {len(told)}"),
        ("read back, least of a done one", min((c.read for c in captions), default="–")),
        ("captions on a background box", sum(c.background_box for c in captions)),
        ("caption-region IoU (OCR boxes), median", show_median([c.overlap for c in captions])),
        ("caption-region IoU (ink), median", show_median([c.ink_overlap for c in captions])),
        ("panel count changed", sum(not one.panels_kept for one in checks)),
        ("pixels changed outside masks, most", max((c.changed_outside for c in checks), default=0)),
        ("pixels changed inside masks, median", show_median([c.changed_inside for c in checks])),
        ("round trip, memes", len(measurements.again)),
        ("round trip: changed outside, most", max((a for a, _ in measurements.again), default=0)),
        ("round trip: changed inside, median", show_median([b for _, b in measurements.again])),
    ]
    rows += [(f"flawed: {name}", count) for name, count in reasons.most_common()]
    for name, value in rows:
        print(f"  {name:<42} {value}")
    for status in ("declined", "failed"):
        show_reasons(status, [pair for pair in measurements.results if pair[1].status == status])
    for label, names in (
        ("crashed", measurements.crashes),
        ("only a particle", measurements.particles),
        ("not kinder", [name for name, before, after in measurements.moved if after <= before]),
    ):
        if names:
            print(f"  {label}: {', '.join(names[:20])}")


def summarise(language: str, corpora: Sequence[Measurements]) -> bool:
    """Print what is wanted of a language beside what was found; whether all of it is met."""
    results = [pair for one in corpora for pair in one.results]
    done = [result for _, result in results if result.status == "done"]
    read = [c.read for result in done if result.checks for c in result.checks.captions]
    up = [after > before for each in corpora for _, before, after in each.moved]
    particles = sum(len(own.particles) for own in corpora)
    crashes = sum(len(own.crashes) for own in corpora)
    print(f"\n{language}, all corpora: {len(results)} memes, {len(done)} done")
    least, kinder = min(read, default=1.0), mean(up) if up else None
    told = "not measured: no data to fit a classifier" if kinder is None else f"{kinder:.0%}"
    rows = [
        ("plans that only add a particle", str(particles), "0", particles == 0),
        ("read back, least of a done one", f"{least:.2f}", f"{LEGIBLE}", least >= LEGIBLE),
        ("sounds kinder, of negative memes done", told, f"{KINDER:.0%}", (kinder or 0) >= KINDER),
        ("crashes", str(crashes), "0", crashes == 0),
    ]
    for name, found, wanted, met in rows:
        print(f"  {name:<42} {found:<8} wanted {wanted:<6} {'met' if met else 'MISSED'}")
    for status in ("declined", "failed"):
        show_reasons(status, [pair for pair in results if pair[1].status == status])
    return all(met for *_, met in rows)


def show_reasons(status: str, pairs: Sequence[tuple[Source, Reappraisal]]) -> None:
    kinds = Counter(re.split(r"[;:,]", result.reason)[0] for _, result in pairs)
    negative = Counter(
        re.split(r"[;:,]", result.reason)[0] for source, result in pairs if source.negative
    )
    for reason, count in kinds.most_common():
        print(f"  {status}: {reason:<60} {count} ({negative[reason]} of them negative)")


def show_share(values: Sequence[bool]) -> str:
    return f"{mean(values):.0%}" if values else "–"


def show_median(values: Sequence[float]) -> str:
    return f"{median(values):.3f} (mean {mean(values):.3f})" if values else "–"


def list_samples(language: str) -> Iterator[Source]:
    for meme in read_samples():
        if meme.language == language:
            emotion = meme.emotion.source if meme.emotion else ""
            yield Source(IMAGES / meme.file, bool(emotion), emotion)


def list_puns(*, locked: bool) -> Iterator[Source]:
    notes = kindness.read_release(PUNS / "_Meta.json") if (PUNS / "_Meta.json").is_file() else {}
    for path in sorted((PUNS / "images").glob("*.png")):
        said = notes.get(path.name, {}).get("meme_sentiment", "")
        if is_in_test_set("punmemecn", path.name[:7]) == locked:
            yield Source(path, said.endswith("negative") if said else None)


@dataclass(frozen=True, slots=True)
class Judges:
    """The classifiers of both languages; None where their data are not at hand."""

    english: Judge | None = None
    chinese: Judge | None = None


def open_judges() -> Judges:
    english = list(kindness.read_english()) if MER.is_file() else []
    chinese = list(kindness.read_chinese()) if (PUNS / "_Meta.json").is_file() else []
    for name, samples in (("English", english), ("Chinese", chinese)):
        if samples:
            area = kindness.cross_validate(samples)
            print(f"classifier, {name}: {len(samples)} captions, AUC on held-out groups {area:.3f}")
    return Judges(
        kindness.fit(english) if english else None, kindness.fit(chinese) if chinese else None
    )


def time_one(path: Path, words: str) -> None:
    """Reappraisal with given captions and all checks and files, against reading the meme once.

    The reference is the OCR package as it comes: it stays the same when our readers get faster.
    """
    picture = Image.open(path).convert("RGB").resize((1000, 1000), Image.Resampling.LANCZOS)
    data, reference = encode_png(picture), read_as_before()
    wish = EditWish("large", "sad", "happy", "", words, "", "Cartoon_Anime", "Negative")
    reference(data, path.name)  # weights are loaded once, whatever follows
    line_reader(RememberingOcr(RapidReader(), None))(data, path.name)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "large.png"
        source.write_bytes(data)
        alone, whole = [], []
        for turn in range(3):
            start = time.process_time()
            reference(data, source.name)
            alone.append(time.process_time() - start)
            fresh = line_reader(RememberingOcr(RapidReader(), None))
            shop = Workshop(WishPlanner(wish), fresh, Path(place) / str(turn))
            start = time.process_time()
            result = asyncio.run(reappraise(Meme("large", source), shop))
            whole.append(time.process_time() - start)
    ratio = min(whole) / min(alone)
    print(
        f"\n{path.stem} at 1000 x 1000, {result.status}, CPU seconds: OCR {min(alone):.2f}, "
        f"reappraisal {min(whole):.2f}, ratio {ratio:.2f} (at most 3)"
    )


def write_pairs(sheet: Path, titled: Mapping[str, Measurements]) -> None:
    """Write fifty pairs to rate, and how the memes of each corpus ended."""
    made = [
        (title, one.texts[result.meme], result)
        for title, one in titled.items()
        for _, result in one.results
        if result.drawn
    ]
    endings = {
        title: Counter(str(result.status) for _, result in each.results)
        for title, each in titled.items()
    }
    write_sheet(sheet, made, PAIRS_RATED, endings)


def choose(sources: Iterable[Source], limit: int) -> list[Source]:
    """Return all of them, or so many drawn by a fixed seed, in their order."""
    found = list(sources)
    if not limit or len(found) <= limit:
        return found
    drawn = set(random.Random(SEED).sample(range(len(found)), limit))
    return [source for place, source in enumerate(found) if place in drawn]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what reappraisal does.")
    parser.add_argument("--limit", type=int, default=LIMIT, help="memes of a corpus; 0: all")
    parser.add_argument("--pictures", type=Path, help="keep the folders of all memes there")
    parser.add_argument("--model", default=NO_MODEL, help="the model that plans, KIND/NAME")
    parser.add_argument("--base-url", help="URL of its server")
    parser.add_argument("--sheet", type=Path, help="folder of fifty pairs to rate")
    parser.add_argument("--rated", type=Path, nargs="+", help="files of raters; with --sheet")
    parser.add_argument("--cost", action="store_true", help="time two memes, nothing else")
    chosen = parser.parse_args(arguments)
    if chosen.cost:
        for name, words in COST.items():
            time_one(IMAGES / name, words)
        return 0
    if chosen.rated:
        show_ratings(chosen.sheet, chosen.rated)
        return 0
    judges = open_judges()
    corpora: list[tuple[str, str, Iterable[Source], Judge | None]] = [
        ("English", "sample data, English", list_samples("en"), judges.english),
        ("Chinese", "sample data, Chinese", list_samples("zh"), judges.chinese),
        ("Chinese", "PunMemeCN, development", list_puns(locked=False), judges.chinese),
        ("Chinese", "PunMemeCN, locked test set", list_puns(locked=True), judges.chinese),
    ]
    found: dict[str, list[Measurements]] = {}
    titled: dict[str, Measurements] = {}
    with open_reader() as ocr, tempfile.TemporaryDirectory() as temporary:
        for language, title, sources, judge in corpora:
            taken = choose(sources, chosen.limit)
            if taken:
                place = chosen.pictures or Path(temporary)
                asked = Asked(chosen.model, chosen.base_url)
                measurements = asyncio.run(measure_all(taken, ocr, judge, place, asked))
                show(title, measurements)
                titled[title] = measurements
                found.setdefault(language, []).append(measurements)
    if chosen.sheet:
        write_pairs(chosen.sheet, titled)
    met = [summarise(language, one) for language, one in found.items()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
