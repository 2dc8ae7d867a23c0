"""Measure which copies of known memes a match list recognises.

``python -m research.match_list`` adds 200 development images of PunMemeCN with their captions and
queries edited copies, other memes, and the same images with another caption. ``… templates`` counts
memes with nearly the same image. ``… meaning`` adds
texts of ToxiCN MM by embedding and queries reworded and other texts. ``… cost`` measures lookups
among a million hashes. Captions are those of the release, not read by OCR.
"""

from __future__ import annotations

import io
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from memantics.metrics.text import measure_overlap
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.match_hashes import count_apart, hash_embedding, normalize_text
from memantics.moderation.match_index import (
    MOST_APART,
    NEAR_BITS,
    SAME_TEXT,
    MatchEntry,
    MatchList,
    WideIndex,
)
from memantics.moderation.match_lookup import hash_meme, look_up_signals
from memantics.understanding.vision.hashes import hash_image
from memantics.understanding.vision.pdq import hash_pdq
from memantics.understanding.vision.roles import read_image_text
from research.data import read_harm, read_puns
from research.protocol import DATA

TAUGHT = 200


def _save(image: Image.Image, quality: int) -> Image.Image:
    body = io.BytesIO()
    image.save(body, "JPEG", quality=quality)
    return Image.open(io.BytesIO(body.getvalue()))


def _crop(share: float) -> Callable[[Image.Image], Image.Image]:
    def cut(image: Image.Image) -> Image.Image:
        wide, high = image.size
        x, y = int(wide * share / 2), int(high * share / 2)
        return image.crop((x, y, wide - x, high - y))

    return cut


EDITS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG at 75": lambda image: _save(image, 75),
    "JPEG at 30": lambda image: _save(image, 30),
    "half the size": lambda image: image.resize((image.width // 2, image.height // 2)),
    "brighter by a fifth": lambda image: image.point(lambda value: min(255, int(value * 1.2))),
    "cropped by 2 %": _crop(0.02),
    "cropped by 5 %": _crop(0.05),
    "cropped by 10 %": _crop(0.10),
}


WORDINGS: dict[str, Callable[[str, random.Random], str]] = {
    "a particle more": lambda text, _: f"{text}啊",
    "two interjections around": lambda text, _: f"哈哈，{text}，真的",
    "one character left out": lambda text, draw: _leave_out(text, draw, 1),
    "two characters left out": lambda text, draw: _leave_out(text, draw, 2),
    "halves swapped": lambda text, _: text[len(text) // 2 :] + text[: len(text) // 2],
}


def _leave_out(text: str, draw: random.Random, count: int) -> str:
    gone = set(draw.sample(range(len(text)), count))
    return "".join(sign for place, sign in enumerate(text) if place not in gone)


def measure_meaning() -> int:
    """Count reworded and other texts within several Hamming distances."""
    out = sys.stdout.write
    texts = [row.content.text.strip() for row in read_harm()]
    texts = list(dict.fromkeys(text for text in texts if 8 <= len(text) <= 60))
    random.Random(2).shuffle(texts)
    taught = {text: hash_embedding(text) for text in texts[:TAUGHT]}
    limits = (16, 20, 24, 28, 31)
    for name, reword in WORDINGS.items():
        draw = random.Random(name)
        apart = [count_apart(look, hash_embedding(reword(t, draw))) for t, look in taught.items()]
        counts = ", ".join(f"{sum(bits <= most for bits in apart)}" for most in limits)
        out(f"{name}: within {limits} bits {counts} of {len(taught)}\n")
    strangers = [hash_embedding(text) for text in texts[TAUGHT : TAUGHT + 1000]]
    near = [min(count_apart(look, other) for look in taught.values()) for other in strangers]
    counts = ", ".join(f"{sum(bits <= most for bits in near)}" for most in limits)
    out(f"strangers: {counts} of {len(strangers)}\n")
    return 0


def measure_cost(count: int = 1_000_000, asked: int = 300) -> int:
    """Measure lookups of hashes with 31 changed bits among a million random ones."""
    out = sys.stdout.write
    draw = np.random.default_rng(1)
    bits = draw.integers(0, 2**64, (count, 4), dtype=np.uint64)
    with tempfile.TemporaryDirectory() as place:
        WideIndex.write(Path(place), "pdq", bits, np.arange(count))
        size = sum(path.stat().st_size for path in Path(place).iterdir()) / 1e6
        index, spans, hits = WideIndex(Path(place), "pdq"), [], 0
        cpu = 0.0
        for number in draw.integers(0, count, asked).tolist():
            look = int.from_bytes(bits[number].tobytes(), "big")
            for bit in draw.choice(256, MOST_APART, replace=False).tolist():
                look ^= 1 << bit
            began, before = time.perf_counter(), time.process_time()
            found = index.find(f"{look:064x}", MOST_APART)
            spans.append(1000 * (time.perf_counter() - began))
            cpu += time.process_time() - before
            hits += number in found
    tail = statistics.quantiles(spans, n=20)[-1]
    out(
        f"{hits} of {asked} found, median {statistics.median(spans):.2f} ms, 95 % within"
        f" {tail:.2f} ms, {1000 * cpu / asked:.2f} ms of CPU time, {size:.0f} MB\n"
    )
    return 0


def measure_templates() -> int:
    """Count pairs of memes with nearly the same image, by whether their captions are the same."""
    out = sys.stdout.write
    folder = DATA / "punmemecn" / "images"
    files = {path.name: path for path in folder.rglob("*.png")}
    rows = [row for row in read_puns() if row.content.name in files]
    captions = [normalize_text(row.content.caption) for row in rows]
    images = [Image.open(files[row.content.name]).convert("RGB") for row in rows]
    pdq = [hash_pdq(image) for image in images]
    looks = [f"{hash_image(image):016x}" for image in images]
    out(f"{len(rows)} memes, {sum(map(bool, pdq))} with a PDQ hash\n")
    for name, hashes, most in (("PDQ", pdq, MOST_APART), ("64-bit hash", looks, NEAR_BITS)):
        near = [
            (one, two)
            for one, two in itertools.combinations(range(len(rows)), 2)
            if hashes[one] and hashes[two] and count_apart(hashes[one], hashes[two]) <= most
        ]
        same = sum(measure_overlap(captions[one], captions[two]) >= SAME_TEXT for one, two in near)
        out(f"{name}: {len(near)} pairs, {same} with the same caption\n")
    return measure_drawn_templates(images)


def measure_drawn_templates(images: Sequence[Image.Image], count: int = 60) -> int:
    """Draw two captions on each image, list the first, and look up copies and the second."""
    out = sys.stdout.write
    pairs = [("MONDAY AGAIN", "LUNCH IS READY"), ("I LOVE MY CAT", "WHERE IS THE BUS")]
    folder = Path(tempfile.mkdtemp())
    detector, reader = folder / "detector.zip", open_reader("fast")
    chosen = random.Random(4).sample(list(images), count)
    captions = [pairs[place % len(pairs)] for place in range(count)]
    listed = [
        _encode(_caption(image, one)) for image, (one, _) in zip(chosen, captions, strict=True)
    ]
    MatchList.beside(detector).add(
        MatchEntry(
            str(place), "harmful", "", read_image_text(reader, data, "m").caption, **hash_meme(data)
        )
        for place, data in enumerate(listed)
    )
    for name, side in (("copy at JPEG 60", 0), ("another caption", 1)):
        plain = texts = templates = 0
        for place, image in enumerate(chosen):
            data = _encode(_caption(image, captions[place][side]), 60)
            signals = hash_meme(data)
            text = read_image_text(reader, data, "meme").caption
            plain += any(one.entry.id == str(place) for one in look_up_signals(detector, signals))
            found = [
                one
                for one in look_up_signals(detector, signals, text or None)
                if one.entry.id == str(place)
            ]
            texts += any(one.match for one in found)
            templates += bool(found) and not any(one.match for one in found)
        out(
            f"{name}: {plain} of {count} match by hash alone, {texts} with the text,"
            f" {templates} are the same template with other text\n"
        )
    return 0


def _caption(image: Image.Image, text: str) -> Image.Image:
    """Return the image with a caption on a white bar below, a sixth of its height."""
    wide, high = image.size
    bar = max(24, high // 6)
    made = Image.new("RGB", (wide, high + bar), "white")
    made.paste(image, (0, 0))
    size = min(bar * 0.6, wide / len(text) * 1.4)
    font = ImageFont.load_default(size)
    ImageDraw.Draw(made).text((10, high + bar // 6), text, "black", font=font)
    return made


def _encode(image: Image.Image, quality: int = 90) -> bytes:
    body = io.BytesIO()
    image.save(body, "JPEG", quality=quality)
    return body.getvalue()


def main() -> int:
    """Print the values of docs/research/match-list.md."""
    other = {"meaning": measure_meaning, "cost": measure_cost, "templates": measure_templates}
    if sys.argv[1:]:
        return other[sys.argv[1]]()
    out = sys.stdout.write
    folder = DATA / "punmemecn" / "images"
    files = {path.name: path for path in folder.rglob("*.png")}
    rows = [row for row in read_puns() if row.content.name in files]
    random.Random(1).shuffle(rows)
    taught, others = rows[:TAUGHT], rows[TAUGHT:]
    pictures = {row.id: Image.open(files[row.content.name]).convert("RGB") for row in taught}
    match_list = MatchList(Path(tempfile.mkdtemp()) / "match-list")
    match_list.add(
        MatchEntry(
            row.id, "harmful", "", row.content.caption, "", f"{hash_image(pictures[row.id]):016x}"
        )
        for row in taught
    )

    def knows(image: Image.Image, text: str) -> bool:
        return (
            match_list.find(text=text, sha256="0" * 64, phash=f"{hash_image(image):016x}")
            is not None
        )

    for name, edit in EDITS.items():
        hits = sum(knows(edit(pictures[row.id]), row.content.caption) for row in taught)
        out(f"{name}: {hits} of {len(taught)}\n")
    swapped = sum(
        knows(pictures[row.id], other.content.caption)
        for row, other in zip(taught, others, strict=False)
    )
    out(f"another caption: {swapped} of {min(len(taught), len(others))}\n")
    captions = {row.content.caption for row in taught}
    strangers = [row for row in others if row.content.caption not in captions]
    alarms = sum(
        knows(Image.open(files[row.content.name]).convert("RGB"), row.content.caption)
        for row in strangers
    )
    out(f"other memes of the release: {alarms} of {len(strangers)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
