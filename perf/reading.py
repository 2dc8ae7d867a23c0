"""``python -m perf.reading [--images 40] [--memes LIST.jsonl]``: cost and recall of OCR.

Three readers in random turns on each image, in one process with one thread: the package as it comes
("before"), ``thorough`` and ``fast``. Images are the sample data's, or those that a list names
(``{"image": FILE, "text": CAPTION, "group": NAME}`` per line). Recall is the proportion of the
caption's
letters and digits that were read, as a multiset; intervals are a bootstrap over groups.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memantics.core.images import decode
from memantics.core.lines import ImageReading, order_lines
from memantics.models.embedded import ocr

# How many times cheaper than before. x86 processors compute with denormal numbers in microcode,
# which is most of what ``thorough`` saves; ARM processors never did (docs/research/ocr.md).
TARGETS = {"x86_64": {"thorough": 2.3, "fast": 4.5}, "aarch64": {"thorough": 1.0, "fast": 2.0}}
LINE_HEIGHT = 48  # of the images that the recogniser takes; the finder takes multiples of 32


@dataclass(frozen=True, slots=True)
class Captioned:
    """An image and what is printed on it; images of one group are alike."""

    path: Path
    text: str
    group: str


@dataclass
class Reader:
    """A reader with its CPU time, stage by stage, and what it found of each caption."""

    name: str
    read: Callable[[bytes, str], ImageReading]
    cpu: float = 0.0
    stages: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    texts: list[str] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return sum(self.found) / sum(self.wanted)

    def try_on(self, meme: Captioned, data: bytes) -> None:
        started = time.process_time()
        text = self.read(data, meme.path.name).text
        self.cpu += time.process_time() - started
        wanted, held = (count_letters(one) for one in (meme.text, text))
        self.texts.append(text)
        self.found.append((wanted & held).total())
        self.wanted.append(wanted.total())


def count_letters(text: str) -> Counter[str]:
    return Counter(letter for letter in text.casefold() if letter.isalnum())


def read_as_before(*, alternatives: bool = False) -> Callable[[bytes, str], ImageReading]:
    """Return the package as it comes, with its own sessions: what reading cost before.

    With ``alternatives`` it also lists the characters that it was unsure of, as our readers do.
    """
    from rapidocr import RapidOCR

    folder = ocr._weights()
    plain: Any = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.max_side_len": 1280,
            "Det.model_path": str(folder / ocr._DETECTOR),
            "Det.limit_side_len": 544,
            "Rec.model_path": str(folder / ocr._RECOGNISER),
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )

    plain.unsure = {}
    if alternatives:
        recogniser = plain._load_rec_model()
        recogniser.postprocess_op = ocr._keep_alternatives(recogniser.postprocess_op, plain.unsure)

    def read(data: bytes, name: str) -> ImageReading:
        plain.unsure.clear()
        pixels = np.ascontiguousarray(np.asarray(decode(data, name))[:, :, ::-1])
        return ImageReading(order_lines(ocr._read_thoroughly(plain, pixels)))

    return read


def clock_networks() -> defaultdict[str, float]:
    """CPU time of the networks by stage, from now on and of every session."""
    from onnxruntime import InferenceSession

    spent: defaultdict[str, float] = defaultdict(float)
    run = InferenceSession.run

    def clocked(self: Any, names: Any, feed: dict[str, Any], *rest: Any) -> Any:
        (given,) = feed.values()
        started = time.process_time()
        result = run(self, names, feed, *rest)
        stage = "recognition" if given.shape[2] == LINE_HEIGHT else "detection"
        spent[stage] += time.process_time() - started
        return result

    InferenceSession.run = clocked
    return spent


def list_memes(count: int, listing: Path | None = None) -> list[Captioned]:
    if listing is None:
        from memantics.core.samples import image_path, read_samples

        sample = random.Random(3).sample(list(read_samples()), count)
        return [Captioned(image_path(meme.id), meme.text, meme.id) for meme in sample]
    rows = [json.loads(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    return [
        Captioned(listing.parent / row["image"], row["text"], row["group"]) for row in rows[:count]
    ]


def read_in_turns(memes: Sequence[Captioned]) -> list[Reader]:
    """Three readers that have read every meme."""
    readers = [
        Reader("before", read_as_before()),
        Reader("thorough", ocr.RapidReader("thorough").read),
        Reader("fast", ocr.RapidReader("fast").read),
    ]
    for reader in readers:
        reader.read(memes[0].path.read_bytes(), "warm-up")
    spent = clock_networks()
    for meme in memes:
        data = meme.path.read_bytes()
        for reader in random.sample(readers, len(readers)):
            spent.clear()
            reader.try_on(meme, data)
            for stage, seconds in spent.items():
                reader.stages[stage] += seconds
    return readers


def bound_difference(
    memes: Sequence[Captioned], one: Reader, other: Reader, resamples: int = 2000
) -> tuple[float, float]:
    """95 % interval of the difference in recall, bootstrap over groups."""
    groups = {name: place for place, name in enumerate(dict.fromkeys(m.group for m in memes))}
    sums = np.zeros((len(groups), 3))
    for meme, *counts in zip(memes, one.found, other.found, one.wanted, strict=True):
        sums[groups[meme.group]] += counts
    drawn = np.random.default_rng(0).integers(len(groups), size=(resamples, len(groups)))
    totals = sums[drawn].sum(axis=1)
    low, high = np.percentile((totals[:, 0] - totals[:, 1]) / totals[:, 2], (2.5, 97.5))
    return float(low), float(high)


def _open_fast() -> None:
    ocr.load_engine(ocr._weights())


def _read_fast(path: str) -> int:
    return len(ocr.RapidReader("fast").read(Path(path).read_bytes(), path).text)


def compare_processes(memes: Sequence[Captioned]) -> float:
    """Return how many times faster two processes read the same images than one, models loaded."""
    paths = [str(meme.path) for meme in memes]
    seconds = []
    for count in (1, 2):
        with multiprocessing.get_context("spawn").Pool(count, _open_fast) as pool:
            pool.map(_read_fast, paths[:1] * 2 * count, chunksize=1)
            started = time.monotonic()
            pool.map(_read_fast, paths, chunksize=1)
            seconds.append(time.monotonic() - started)
    return seconds[0] / seconds[1]


def describe(memes: Sequence[Captioned], readers: Sequence[Reader]) -> Iterator[str]:
    before, count = readers[0], len(memes)
    for reader in readers:
        stages = {name: 1000 * spent / count for name, spent in sorted(reader.stages.items())}
        rest = 1000 * reader.cpu / count - sum(stages.values())
        low, high = bound_difference(memes, reader, before)
        same = sum(one == other for one, other in zip(reader.texts, before.texts, strict=True))
        yield (
            f"{reader.name:<10}{1000 * reader.cpu / count:7.0f} ms "
            + ", ".join(f"{name} {spent:.0f}" for name, spent in stages.items())
            + f", rest {rest:.0f}; {before.cpu / reader.cpu:.2f} times cheaper; "
            + f"recall {reader.recall:.4f} ({100 * low:+.2f} to {100 * high:+.2f} points); "
            + f"the same text on {same} of {count}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.reading", description=__doc__)
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--memes", type=Path, help="images with captions, one a line")
    parser.add_argument("--processes", action="store_true", help="also two processes against one")
    given = parser.parse_args()
    memes = list_memes(given.images, given.memes)
    print(f"{len(memes)} images, {platform.machine()}", flush=True)
    for line in describe(memes, read_in_turns(memes)):
        print(line, flush=True)
    if given.processes:
        print(f"two processes, times one: {compare_processes(memes):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
