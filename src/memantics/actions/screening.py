"""Screening: what a worker does with a reference, from bytes to a row of the result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memantics.actions.detect import Detector
from memantics.actions.unjudged import MOST_TEXT, explain_unjudged
from memantics.core.data import read_jsonl
from memantics.core.errors import InputError, MemanticsError
from memantics.core.images import decode, probe
from memantics.core.journal import replace_file
from memantics.core.language import settle_language
from memantics.core.memes import MEMES
from memantics.core.opinion import Judge
from memantics.core.tables import need_parquet
from memantics.detector.examples import Example
from memantics.detector.opinions import open_judges
from memantics.models.embedded.ocr import Profile
from memantics.scale.fetching import Fetcher
from memantics.scale.records import Process, Ref, Row
from memantics.vision.captions import choose_captions
from memantics.vision.copies import SeenPictures
from memantics.vision.hashes import Bits, find_nearest, hash_image, pack_hashes

if TYPE_CHECKING:
    import pyarrow as pa

Readings = Literal["flagged", "all", "none"]
FAMILY_BITS = 8
_READINGS = 3
_LOOK = "[0-9a-f]{1,16}"


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """How memes are judged.

    ``detector`` is a file; without one the tiny detector of the starter pack shows how things work.
    ``threshold`` is the probability from which a meme is ``harmful`` (default: the detector's own);
    ``decide`` chooses it on the detector's held-out predictions (``precision=0.9``). Memes in the
    range ``review`` are for people. ``explain`` adds reasons to flagged memes; ``readings`` says of
    which Chinese texts to add what they may be heard as, the dearest step by far where texts are
    given. ``ocr`` is the profile of the reader, ``templates`` a collection of known pictures.
    """

    detector: Path | None = None
    threshold: float | None = None
    decide: str = ""
    review: tuple[float, float] | None = None
    explain: bool = False
    readings: Readings = "flagged"
    ocr: Profile = "fast"
    templates: Path | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and self.decide:
            raise InputError("a threshold and a rule for one exclude each other", hint="drop one")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"threshold {self.threshold} is no probability", hint="use 0 to 1")
        if self.review is not None and not 0 <= self.review[0] < self.review[1] <= 1:
            raise InputError(
                f"{self.review[0]}..{self.review[1]} is no range", hint="such as 0.3..0.7"
            )


def read_range(text: str) -> tuple[float, float] | None:
    """``LOW..HIGH`` of ``--review``; nothing where it is empty."""
    if not text:
        return None
    found = re.fullmatch(r"(\d*\.?\d+)\.\.(\d*\.?\d+)", text)
    if found is None:
        raise InputError(f"--review {text!r} is not LOW..HIGH", hint="such as --review 0.3..0.7")
    return float(found.group(1)), float(found.group(2))


@dataclass(frozen=True)
class ScreenWork:
    """What a worker does to each meme; see :class:`~memantics.scale.records.Work`.

    ``templates`` are hashes of known pictures with the names of their families; ``pictures`` is
    where images are put that people are to look at, ``experts`` the topics of those in use.
    """

    settings: ScreenSettings
    threshold: float
    detector: str
    languages: tuple[str, ...]
    templates: tuple[tuple[int, str], ...] = ()
    pictures: Path | None = None
    experts: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The verdict row."""
        import pyarrow as pa

        text, number = pa.string(), pa.float64()
        piece = pa.struct([("piece", text), ("share", number)])
        kind = pa.struct([("type", text), ("probability", number)])
        names = ("topic", "label", "expert")
        label = pa.struct([*((name, text) for name in names), ("probability", number)])
        return pa.schema(
            [
                *((name, text) for name in ("id", "sha256", "phash", "status", "reason")),
                *((name, text) for name in ("text", "text_source", "language", "label")),
                ("probability", number),
                ("type", text),
                ("types", pa.list_(kind)),
                ("because", pa.list_(piece)),
                ("readings", pa.list_(text)),
                ("family", text),
                ("labels", pa.list_(label)),
                ("novelty", number),
                ("out_of_domain", pa.bool_()),
                ("detector", text),
            ]
        )

    def open(self) -> Process:
        """Load the detector once; the OCR and the ear are loaded when they are first needed."""
        path = self.settings.detector
        judge = Detector.load(path) if path else Detector.starter()
        return _Screener(self, judge).screen

    def fail(self, ref: Ref, reason: str) -> Row:
        """A row without a verdict."""
        return self.start(ref) | {"status": "failed", "reason": reason}

    def start(self, ref: Ref) -> Row:
        """A row with what the reference says."""
        return self._empty | {
            "id": ref.id,
            "text": (ref.text or "")[:MOST_TEXT],
            "text_source": "given" if ref.text else "none",
        }

    @cached_property
    def _empty(self) -> Row:
        empty: Row = dict.fromkeys(self.schema.names)
        lists: Row = {"types": [], "because": [], "readings": [], "labels": []}
        return empty | lists | {"reason": "", "detector": self.detector}

    def find_family(self, look: int) -> str | None:
        """The family of the nearest known picture, if one is near."""
        place = find_nearest(look, self._looks, FAMILY_BITS) if self.templates else None
        return None if place is None else self.templates[place][1]

    @cached_property
    def _looks(self) -> Bits:
        return pack_hashes([look for look, _ in self.templates])


class _Screener:
    """A worker's open tools."""

    def __init__(self, work: ScreenWork, judge: Detector) -> None:
        self._work, self._settings, self._judge = work, work.settings, judge
        self._fetcher, self._read = Fetcher(), _open_reader(work.settings.ocr)
        self._seen = SeenPictures()
        self._judges = open_judges(work.experts)

    def screen(self, refs: Sequence[Ref]) -> list[Row]:
        """A row for each reference."""
        self._seen = SeenPictures()  # of this shard: its rows must not depend on what ran before
        rows = [self._look(ref) for ref in refs]
        places = [place for place, row in enumerate(rows) if row["status"] == "judged"]
        ready = [rows[place] for place in places]
        examples = [Example(str(place), row["text"]) for place, row in enumerate(ready)]
        found = self._judge.judge.predict(examples)
        for row, example, said in zip(ready, examples, found, strict=True):
            row["probability"] = said.probability
            if (novelty := self._judge.novelty) is not None:
                row["novelty"] = novelty.measure(example.text)
                row["out_of_domain"] = novelty.is_outside(row["novelty"])
            row["label"] = self._decide(said.probability, row["out_of_domain"])
            row["types"] = [
                {"type": name, "probability": chance}
                for name, chance in sorted((said.types or {}).items())
            ]
            flagged = row["label"] != "harmless"
            row["type"] = said.type if flagged and said.type != "none" else None
            if flagged and self._settings.explain:
                row["because"] = _list_reasons(self._judge, example)
            listens = self._settings.readings
            if row["language"] == "zh" and (listens == "all" or (flagged and listens != "none")):
                row["readings"] = _listen(row["text"])
            row["labels"] = [_ask(judge, row) for _, judge in sorted(self._judges.items())]
            if row["label"] == "review" and row["sha256"]:
                self._keep_picture(refs[places[int(example.id)]], row["sha256"])
        return rows

    def _keep_picture(self, ref: Ref, sha256: str) -> None:
        """Put an image where people will see it, under its digest."""
        if self._work.pictures is not None:
            data = self._fetcher.fetch(ref) or b""
            ending = probe(data, ref.id).format.lower().replace("jpeg", "jpg")
            self._work.pictures.mkdir(parents=True, exist_ok=True)
            replace_file(self._work.pictures / f"{sha256}.{ending}", data, "image for review")

    def _decide(self, probability: float, outside: bool | None) -> str:
        """What a detector has seen nothing like is for people, whatever it says."""
        review = self._settings.review
        if outside or (review is not None and review[0] <= probability <= review[1]):
            return "review"
        return "harmful" if probability >= self._work.threshold else "harmless"

    def _look(self, ref: Ref) -> Row:
        """Everything before the verdict: bytes, hash, text, language; or why there is none."""
        row = self._work.start(ref)
        data, unread = None, 0
        if ref.kind != "text":
            try:
                data = self._fetcher.fetch(ref)
                seen, unread = self._see(data or b"", ref)
                row |= seen
            except MemanticsError as error:
                return self._work.fail(ref, str(error))
        given = row["text_source"] == "given"
        text = ((ref.text or "") if given else row["text"]).strip()
        language = text and settle_language(text, ref.language)
        why = explain_unjudged(
            text, language, self._work.languages, image=data is not None, unread=unread
        )
        row["language"] = language or None
        row["text_source"] = row["text_source"] if text else "none"
        row["status"], row["reason"] = "unjudged" if why else "judged", why
        return row

    def _see(self, data: bytes, ref: Ref) -> tuple[Row, int]:
        """Hashes, family and text of an image, and how many regions of text were not read."""
        image = decode(data, ref.id)
        look = hash_image(image)
        found: Row = {"sha256": hashlib.sha256(data).hexdigest(), "phash": f"{look:016x}"}
        found["family"] = self._work.find_family(look)
        unread = 0
        if not (ref.text or "").strip():
            text = self._seen.find(look, image)
            if text is None:
                text, unread = self._read(data, ref.id)
                if not unread:
                    self._seen.add(look, image, text)
            found |= {"text": text, "text_source": "ocr"}
        return found, unread


def _ask(judge: Judge, row: Row) -> Row:
    """What an expert says of a text: a label, or unknown."""
    said = judge.ask(row["text"], row["language"] or "")
    named = f"{judge.name}@{judge.version}"
    return {
        "topic": said.topic,
        "label": said.label,
        "expert": named,
        "probability": said.probability,
    }


def _open_reader(profile: Profile) -> Callable[[bytes, str], tuple[str, int]]:
    """Reads an image: its text, and how many regions were left out."""
    from memantics.models.embedded.ocr import open_reader

    reader = open_reader(profile)

    def read(data: bytes, name: str) -> tuple[str, int]:
        found = reader.read(data, name)
        return "\n".join(choose_captions(found.lines))[: MOST_TEXT + 1], found.unread

    return read


def _listen(text: str) -> list[str]:
    """What a Chinese caption may be heard as, where its sound says something else."""
    from memantics.phonetics.reading import MAX_CHARACTERS
    from memantics.phonetics.speech import read_aloud

    if len(text) > MAX_CHARACTERS:
        return []
    heard = read_aloud(text)
    return [reading.text for reading in heard.readings[:_READINGS]] if heard.meant else []


def _list_reasons(judge: Detector, example: Example) -> list[Row]:
    with suppress(InputError):  # networks give no reasons
        found = judge.explain(example).strongest(6)
        return [{"piece": part.text, "share": part.contribution} for part in found]
    return []


def read_templates(folder: Path) -> tuple[tuple[int, str], ...]:
    """Hashes of the pictures of a collection, with their families; else with their own ids."""
    if not (folder / MEMES).is_file():
        raise InputError(f"{folder} is no collection", hint="memantics collect makes one")
    found = tuple(
        (int(look, 16), str(line.get("family") or line.get("id")))
        for _, line in read_jsonl(folder / MEMES)
        if isinstance(line, dict) and re.fullmatch(_LOOK, look := str(line.get("hash")))
    )
    if not found:
        raise InputError(f"{folder} lists no hashes", hint="run memantics collect on it again")
    return found


def read_rows(folder: Path) -> Iterator[Row]:
    """The verdicts in a folder, part by part."""
    for table in read_tables(folder):
        yield from table.to_pylist()


def read_tables(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The parts in a folder as tables, some columns or all."""
    need_parquet()
    import pyarrow.parquet as pq

    for path in sorted((folder / "parts").glob("part-*.parquet")):
        yield pq.read_table(path, columns=None if columns is None else list(columns))
