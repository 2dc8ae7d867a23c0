"""What a worker of ``screen`` does with a reference, from bytes to a row of the result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from memantics.core.data import read_jsonl
from memantics.core.errors import InputError, MemanticsError
from memantics.core.files import replace_file
from memantics.core.images import decode, probe
from memantics.core.labels import Judge
from memantics.core.language import read_language
from memantics.core.memes import MEMES
from memantics.core.parameters import Flag, TextTaken
from memantics.core.tables import need_parquet
from memantics.models.embedded.ocr import OcrProfile, open_reader
from memantics.moderation import operating_points
from memantics.moderation.classifiers import open_judges
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.scale.records import Fetcher, Process, Ref, ShardRow
from memantics.moderation.subjects import MOST_TEXT, Subject
from memantics.moderation.verdict import (
    TextSource,
    TopicLabel,
    Verdict,
    fail,
    judge,
    make_verdict_schema,
)
from memantics.understanding.vision.hashes import (
    Bits,
    SeenPictures,
    find_nearest,
    hash_image,
    pack_hashes,
)
from memantics.understanding.vision.roles import read_image_text

if TYPE_CHECKING:
    import pyarrow as pa

Readings = Literal["flagged", "all", "none"]
CLUSTER_BITS = 8
_READINGS = 3
_LOOK = "[0-9a-f]{1,16}"


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """How memes are judged.

    ``detector`` is a file; without one the tiny detector of the sample data shows how things work.
    ``threshold`` is the probability from which a meme is ``harmful`` (default: the detector's own);
    ``decide`` chooses it on the detector's held-out predictions (``precision=0.9``). Memes in the
    range ``review`` are for people, and then what is not scored; ``reviewers`` of them judge each.
    ``explain`` adds reasons to flagged memes; ``readings`` says of
    which Chinese texts to add what they may be heard as, the dearest step by far where texts are
    given. ``ocr`` is the profile of the reader, ``printed`` which text of an image is its caption,
    ``language`` that of texts whose source names none, ``templates`` a collection of known
    pictures.
    """

    detector: Annotated[
        Path | None,
        Flag("A detector file. Default: a tiny one of the sample data, to try things."),
    ] = None
    threshold: operating_points.ThresholdFlag = None
    operating_point: operating_points.OperatingPointFlag = ""
    review_range: operating_points.ReviewRangeFlag = None
    reviewers: Annotated[
        int, Flag("How many people judge each meme that is for people.", min=1, max=50)
    ] = 1
    explain: Annotated[bool, Flag("Say what moved each flagged meme.")] = False
    readings: Annotated[
        Readings,
        Flag("Which Chinese texts to listen to for hidden words (10 to 100 ms each)."),
    ] = "flagged"
    ocr: Annotated[OcrProfile, Flag("How images are read where no text is given.")] = "fast"
    printed: TextTaken = "caption"
    language: Annotated[str, Flag("Language of texts whose source names none.", metavar="CODE")] = (
        ""
    )
    templates: Annotated[
        Path | None, Flag("A folder that 'collect' listed: its template clusters are known.")
    ] = None

    def __post_init__(self) -> None:
        if self.threshold is not None and self.operating_point:
            raise InputError("a threshold and a rule for one exclude each other", hint="drop one")
        operating_points.OperatingPoint(
            self.threshold or 0, self.review_range
        )  # refuses what is none
        read_language(self.language)  # so does this

    def choose_point(self, detector: Detector) -> operating_points.OperatingPoint:
        """The threshold that was given, or chosen by a rule, or the detector's own point."""
        return detector.choose_point(self.threshold, self.operating_point, self.review_range)


@dataclass(frozen=True)
class ScreenWork:
    """What a worker does to each meme; see :class:`~memantics.moderation.scale.records.Work`.

    ``detector`` is its name and checksum. ``templates`` are hashes of known pictures with the names
    of their template clusters; ``pictures`` is where images are put that people are to look at,
    ``classifiers`` the topics of those in use.
    """

    settings: ScreenSettings
    point: operating_points.OperatingPoint
    detector: str
    templates: tuple[tuple[int, str], ...] = ()
    pictures: Path | None = None
    classifiers: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The verdict row."""
        return make_verdict_schema()

    def open(self) -> Process:
        """Load the detector once; the OCR and the ear are loaded when they are first needed."""
        path = self.settings.detector
        detector = Detector.load(path) if path else Detector.load_sample()
        return _Screener(self, detector).screen

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """A row without a verdict."""
        return self.refuse(ref, reason).to_row()

    def refuse(self, ref: Ref, reason: str) -> Verdict:
        """The verdict on a meme that could not be read: only what the reference says."""
        text = (ref.text or "")[:MOST_TEXT]
        source: TextSource = "given" if ref.text else "none"
        return fail(self.detector, reason, id=ref.id, text=text, caption=text, text_source=source)

    def find_template_cluster(self, look: int) -> str | None:
        """The template cluster of the nearest known picture, if one is near."""
        place = find_nearest(look, self._looks, CLUSTER_BITS) if self.templates else None
        return None if place is None else self.templates[place][1]

    @cached_property
    def _looks(self) -> Bits:
        return pack_hashes([look for look, _ in self.templates])


class _Screener:
    """A worker's open tools."""

    def __init__(self, work: ScreenWork, detector: Detector) -> None:
        self._work, self._settings, self._detector = work, work.settings, detector
        self._fetcher, self._ocr = Fetcher(), open_reader(work.settings.ocr, work.settings.printed)
        self._seen = SeenPictures()
        self._classifiers = open_judges(work.classifiers)

    def screen(self, refs: Sequence[Ref]) -> list[ShardRow]:
        """A row for each reference."""
        self._seen = SeenPictures()  # of this shard: its rows must not depend on what ran before
        looked = [self._look(ref) for ref in refs]
        subjects = [item for item in looked if isinstance(item, Subject)]
        said = iter(
            judge(self._detector, subjects, self._work.point, explain=self._settings.explain)
        )
        rows = []
        for ref, item in zip(refs, looked, strict=True):
            verdict = item if isinstance(item, Verdict) else self._add_readings(next(said))
            if verdict.sha256 and verdict.review:
                self._keep_picture(ref, verdict.sha256)
            rows.append(verdict.to_row())
        return rows

    def _add_readings(self, verdict: Verdict) -> Verdict:
        """What a Chinese text may be heard as and what classifiers say, where that is asked for."""
        if verdict.status != "judged":
            return verdict
        listens = self._settings.readings
        wanted = listens == "all" or (verdict.flagged and listens != "none")
        readings = _read_homophones(verdict.caption) if wanted and verdict.language == "zh" else []
        said = [_ask(classifier, verdict) for _, classifier in sorted(self._classifiers.items())]
        if not readings and not said:
            return verdict
        return replace(verdict, readings=tuple(readings), labels=tuple(said))

    def _keep_picture(self, ref: Ref, sha256: str) -> None:
        """Put an image where people will see it, under its digest."""
        if self._work.pictures is not None:
            data = self._fetcher.fetch(ref) or b""
            ending = probe(data, ref.id).format.lower().replace("jpeg", "jpg")
            self._work.pictures.mkdir(parents=True, exist_ok=True)
            replace_file(self._work.pictures / f"{sha256}.{ending}", data, "image for review")

    def _look(self, ref: Ref) -> Subject | Verdict:
        """What is judged: a text, or an image with its hashes and text; or why there is none."""
        given = Subject(Example(ref.id, ref.text or ""), ref.language or self._settings.language)
        if ref.kind == "text":
            return given
        try:
            return self._see(self._fetcher.fetch(ref) or b"", ref, given)
        except MemanticsError as error:
            return self._work.refuse(ref, str(error))

    def _see(self, data: bytes, ref: Ref, given: Subject) -> Subject:
        """An image with its hashes, its template cluster and, unless that is known, its text."""
        image = decode(data, ref.id)
        look = hash_image(image)
        known = replace(
            given,
            image=True,
            sha256=hashlib.sha256(data).hexdigest(),
            phash=f"{look:016x}",
            template_cluster=self._work.find_template_cluster(look),
            data=data if self._detector.wants_pictures else None,
        )
        if given.example.text.strip():
            return known
        found = self._seen.find(look, image)
        if found is None:
            found = read_image_text(self._ocr, data, ref.id, image=image)
            if not found.unread:
                self._seen.add(look, image, found)
        return known.read(found)


def _ask(classifier: Judge, verdict: Verdict) -> TopicLabel:
    """What a classifier says of a text: a label, or unknown."""
    said = classifier.ask(verdict.caption, verdict.language)
    return TopicLabel(
        said.topic, said.label, f"{classifier.name}@{classifier.version}", said.probability
    )


def _read_homophones(text: str) -> list[str]:
    """What a Chinese caption may be heard as, where its sound says something else."""
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import MAX_CHARACTERS

    if len(text) > MAX_CHARACTERS:
        return []
    found = read_homophones(text)
    return [reading.text for reading in found.readings[:_READINGS]] if found.intended else []


def read_templates(folder: Path) -> tuple[tuple[int, str], ...]:
    """Read image hashes of a collection, each with its template cluster or, without one, its id."""
    if not (folder / MEMES).is_file():
        raise InputError(
            f"{folder} is not a collection", hint="create one with 'memantics collect'"
        )
    found = tuple(
        (int(look, 16), str(line.get("template_cluster") or line.get("id")))
        for _, line in read_jsonl(folder / MEMES)
        if isinstance(line, dict) and re.fullmatch(_LOOK, look := str(line.get("hash")))
    )
    if not found:
        raise InputError(f"{folder} lists no hashes", hint="run memantics collect on it again")
    return found


def read_rows(folder: Path) -> Iterator[ShardRow]:
    """The verdicts in a folder, part by part."""
    for table in read_tables(folder):
        yield from table.to_pylist()


def read_tables(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The parts in a folder as tables, some columns or all."""
    need_parquet()
    import pyarrow.parquet as pq

    for path in sorted((folder / "parts").glob("part-*.parquet")):
        yield pq.read_table(path, columns=None if columns is None else list(columns))
