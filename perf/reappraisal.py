"""What reappraisal keeps by construction, measured with the embedded planner and no grading.

``python -m perf.reappraisal [--every N] [--pictures FOLDER]`` goes over the starter pack and, where
they lie beside the checkout, over the PunMemeCN images. Readings are cached below $MEMANTICS_HOME.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from PIL import Image

from memantics.core.images import decode, encode_png
from memantics.models.embedded.ocr import Ocr, RapidReader, open_reader
from memantics.reappraise.grading import EmbeddedEditor
from memantics.reappraise.planner import EmbeddedPlanner
from memantics.reappraise.records import Checks, Feeling, ReappraisalPlan
from memantics.reappraise.rendering import Made, check_result, draw_meme, show_both
from memantics.reappraise.stages import ReappraisalSubject
from memantics.starter import IMAGES, read_starter
from memantics.vision.captions import TextLine
from memantics.vision.hashes import share_changed
from memantics.vision.page import Page, erase_captions, mask_captions, read_page, set_caption
from memantics.vision.panels import count_panels
from perf.reading import read_as_before

ROOT = Path(__file__).resolve().parent.parent
PUNS = ROOT.parent / "shared" / "data" / "punmemecn" / "images"


@dataclass
class Figures:
    """What one corpus gave."""

    memes: int = 0
    crashes: list[str] = field(default_factory=list)
    silent: int = 0
    unplanned: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    moved_graded: list[str] = field(default_factory=list)
    checks: list[tuple[str, Checks]] = field(default_factory=list)
    again: list[tuple[float, float]] = field(default_factory=list)


def read_lines(ocr: Ocr, data: bytes, name: str) -> list[TextLine]:
    return [
        TextLine(line.text, line.box, line.score, line.tilt, line.span)
        for line in ocr.read(data, name).lines
    ]


async def reappraise(
    ocr: Ocr, path: Path
) -> tuple[Image.Image, Page, Feeling, ReappraisalPlan | None]:
    data = path.read_bytes()
    image = decode(data, path.name)
    page = read_page(image, read_lines(ocr, data, path.name))
    planner = EmbeddedPlanner()
    subject = ReappraisalSubject(path.stem, path, page)
    feeling = (await planner.feel(subject)).value
    assert feeling is not None
    plan = (await planner.plan(subject, feeling)).value
    return image, page, feeling, plan


async def measure(ocr: Ocr, path: Path, figures: Figures, pictures: Path | None) -> None:
    figures.memes += 1
    image, page, feeling, plan = await reappraise(ocr, path)
    if not page.captions:
        figures.silent += 1
        return
    figures.again.append(set_again(image, page))
    if plan is None:
        figures.unplanned.append(path.stem)
        return
    drawn = await draw_meme(image, page, plan)
    data = encode_png(drawn.image)
    checks = check_result(image, page, plan, Made(drawn, read_lines(ocr, data, path.name)))
    figures.checks.append((path.stem, checks))
    if not checks.panels_kept:
        figures.moved.append(path.stem)
    graded = await draw_meme(image, page, plan, EmbeddedEditor())
    if count_panels(graded.image) != len(page.panels):
        figures.moved_graded.append(path.stem)
    if pictures is not None:
        show_both(image, graded.image, feeling.emotion, plan).save(pictures / f"{path.stem}.png")


def set_again(image: Image.Image, page: Page) -> tuple[float, float]:
    """The round trip: every caption taken out and set again as it was."""
    made = erase_captions(image, page.captions)
    for caption in page.captions:
        made, _ = set_caption(made, caption, caption.text)
    inside = mask_captions(page.size, page.captions)
    return share_changed(image, made, ~inside), share_changed(image, made, inside)


def measure_all(ocr: Ocr, paths: Sequence[Path], pictures: Path | None) -> Figures:
    figures = Figures()
    for path in paths:
        try:
            asyncio.run(measure(ocr, path, figures, pictures))
        except Exception as error:  # noqa: BLE001 - a crash is what is counted
            figures.crashes.append(f"{path.stem}: {error!r}")
    return figures


def show(title: str, figures: Figures) -> None:
    captions = [each for _, checks in figures.checks for each in checks.captions]
    print(f"\n{title}: {figures.memes} memes, {len(captions)} captions set anew")
    rows = [
        ("crashes", len(figures.crashes)),
        ("memes without a caption that OCR finds", figures.silent),
        ("memes without a valid plan", len(figures.unplanned)),
        ("panel count changed", len(figures.moved)),
        ("panel count changed, with grading", len(figures.moved_graded)),
        ("caption-region IoU (OCR boxes), median", show_median([c.overlap for c in captions])),
        ("caption-region IoU (ink), median", show_median([c.ink_overlap for c in captions])),
        ("planned caption read back, median", show_median([c.read for c in captions])),
        ("  read back in full, share", f"{mean(c.read == 1 for c in captions):.3f}"),
        ("pixels changed outside masks, most", max(c.changed_outside for _, c in figures.checks)),
        ("perceptual distance, median bits", median(c.distance for _, c in figures.checks)),
        ("round trip: changed outside, most", max(each[0] for each in figures.again)),
        ("round trip: changed inside, median", show_median([each[1] for each in figures.again])),
    ]
    for name, value in rows:
        print(f"  {name:<42} {value}")
    for label, names in (
        ("crashed", figures.crashes),
        ("moved", figures.moved + figures.moved_graded),
        ("unplanned", figures.unplanned),
    ):
        if names:
            print(f"  {label}: {', '.join(names[:12])}")


def show_median(values: Sequence[float]) -> str:
    return f"{median(values):.3f} (mean {mean(values):.3f})" if values else "–"


def show_emotions(ocr: Ocr) -> None:
    """How often the lexicon finds the emotion that the starter pack's annotators gave."""
    memes = [meme for meme in read_starter() if meme.emotion is not None]
    right = 0
    for meme in memes:
        _, _, feeling, _ = asyncio.run(reappraise(ocr, IMAGES / meme.file))
        right += meme.emotion is not None and feeling.emotion == meme.emotion.source
    print(f"\nemotion of the starter pack found by the lexicon: {right} of {len(memes)}")


def time_one(path: Path) -> None:
    """Text-only reappraisal with all its checks and files, against reading the meme once.

    The reference is the OCR package as it comes: it stays the same when our readers get faster.
    """
    picture = Image.open(path).convert("RGB").resize((1000, 1000), Image.Resampling.LANCZOS)
    data = encode_png(picture)
    ocr, reference = RapidReader(), read_as_before()
    read_lines(ocr, data, path.name)  # weights are loaded once, whatever follows
    reference(data, path.name)
    alone, whole = [], []
    for _ in range(3):
        start = time.process_time()
        reference(data, path.name)
        alone.append(time.process_time() - start)
        start = time.process_time()
        asyncio.run(_whole(ocr, data, path))
        whole.append(time.process_time() - start)
    ratio = min(whole) / min(alone)
    print(
        f"\n{path.stem} at 1000 x 1000, CPU seconds: the OCR package {min(alone):.2f}, "
        f"reappraisal {min(whole):.2f}, ratio {ratio:.2f} (at most 3)"
    )


async def _whole(ocr: Ocr, data: bytes, path: Path) -> None:
    image = decode(data, path.name)
    page = read_page(image, read_lines(ocr, data, path.name))
    planner, subject = EmbeddedPlanner(), ReappraisalSubject(path.stem, path, page)
    feeling = (await planner.feel(subject)).value
    assert feeling is not None
    plan = (await planner.plan(subject, feeling)).value
    assert plan is not None
    drawn = await draw_meme(image, page, plan)
    made = encode_png(drawn.image)
    check_result(image, page, plan, Made(drawn, read_lines(ocr, made, path.name)))
    sheet = io.BytesIO()
    show_both(image, drawn.image, feeling.emotion, plan).save(sheet, "PNG")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure what reappraisal keeps.")
    parser.add_argument("--every", type=int, default=1, help="take only every Nth meme")
    parser.add_argument("--pictures", type=Path, help="write before/after pictures there")
    chosen = parser.parse_args(arguments)
    if chosen.pictures:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
    ocr = open_reader()
    starter = read_starter()
    corpora = [
        ("starter pack, English", [IMAGES / m.file for m in starter if m.language == "en"]),
        ("starter pack, Chinese", [IMAGES / m.file for m in starter if m.language == "zh"]),
    ]
    if PUNS.is_dir():
        corpora.append(("PunMemeCN images", sorted(PUNS.glob("*.png"))))
    for title, paths in corpora:
        show(title, measure_all(ocr, paths[:: chosen.every], chosen.pictures))
    show_emotions(ocr)
    ocr.close()
    for name in ("en-012.png", "zh-012.png"):
        time_one(IMAGES / name)


if __name__ == "__main__":
    main()
