"""Draw the sample data, write its records, export the five benchmarks' samples, train on them.

``python -m sample_data`` does it all; running it twice changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from memantics.core.samples import DETECTOR_FILE, IMAGES, MEMES_FILE, SampleMeme
from memantics.moderation.data import read_sample_examples
from memantics.moderation.detect import Detector
from memantics.moderation.storage import load_with_card
from sample_data.export import export_samples
from sample_data.sheets import Meme, find_memes

TILE = 300


def replace(path: Path, data: bytes) -> bool:
    """Write a file unless it already holds these bytes; whether it changed."""
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def draw_meme(meme: Meme) -> tuple[SampleMeme, bool]:
    """Draw one meme into the package; its record, and whether the picture changed."""
    canvas = meme.draw()
    changed = replace(IMAGES / f"{meme.id}.png", canvas.png())
    return meme.record(canvas), changed


def dump_records(records: Sequence[SampleMeme]) -> bytes:
    """The records as JSON lines."""
    return b"".join(r.model_dump_json().encode() + b"\n" for r in records)


def make_sheet(memes: Sequence[Meme], columns: int = 4) -> Image.Image:
    """A contact sheet of pictures, freshly drawn."""
    rows = -(-len(memes) // columns)
    sheet = Image.new("RGB", (columns * TILE, rows * TILE), "#888888")
    for number, meme in enumerate(memes):
        picture = meme.draw().finish().convert("RGB")
        picture.thumbnail((TILE - 6, TILE - 6))
        row, column = divmod(number, columns)
        sheet.paste(picture, (column * TILE + 3, row * TILE + 3))
    return sheet


def train_detector() -> bool:
    """Train the detector that ships with the pack, unless it has seen these memes; whether it was.

    Its last digits differ between machines, so that it is not trained again for nothing.
    """
    loaded = read_sample_examples()
    if DETECTOR_FILE.exists() and load_with_card(DETECTOR_FILE)[1]["checksum"] == loaded.checksum:
        return False
    with TemporaryDirectory() as folder:
        made = Detector.train("sample", "ridge").save(Path(folder) / DETECTOR_FILE.name)
        DETECTOR_FILE.write_bytes(made.read_bytes())
    return True


def build() -> None:
    """Draw, write and export everything; remove what is no longer declared."""
    memes = find_memes()
    drawn = [draw_meme(meme) for meme in memes]
    records = [record for record, _ in drawn]
    changed = sum(changed for _, changed in drawn)
    changed += replace(MEMES_FILE, dump_records(records))
    keep = {record.file for record in records}
    for stale in IMAGES.glob("*.png"):
        if stale.name not in keep:
            stale.unlink()
            changed += 1
    changed += export_samples(records)
    changed += train_detector()
    print(f"{len(records)} memes, {changed} files changed")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m sample_data", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ID", help="draw these pictures, no more")
    parser.add_argument("--sheet", metavar="FILE", help="write a contact sheet, no more")
    parser.add_argument("prefix", nargs="*", help="with --sheet: ids that begin so")
    given = parser.parse_args()
    if given.sheet:
        prefixes = tuple(given.prefix) or ("",)
        make_sheet([m for m in find_memes() if m.id.startswith(prefixes)]).save(given.sheet)
    elif given.only:
        for meme in find_memes():
            if meme.id in given.only:
                draw_meme(meme)
                print(f"{IMAGES / meme.id}.png")
    else:
        build()


if __name__ == "__main__":
    main()
