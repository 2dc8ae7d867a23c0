"""The work of one ``screen`` process: turn a reference to a meme into a row with its verdict."""

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
from memantics.core.files import check_regular, replace_file
from memantics.core.images import decode, probe
from memantics.core.labels import Judge
from memantics.core.language import read_language
from memantics.core.memes import MEMES
from memantics.core.parameters import Flag, TextTaken
from memantics.core.policy import read_policy
from memantics.core.stamping import describe_marks
from memantics.core.tables import need_parquet
from memantics.models.embedded.ocr import OcrProfile, open_reader
from memantics.moderation import operating_points, rules
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
from memantics.web.phrases import PageLanguage

if TYPE_CHECKING:
    import pyarrow as pa

Readings = Literal["flagged", "all", "none"]
CLUSTER_BITS = 8
_READINGS = 3
_LOOK = "[0-9a-f]{1,16}"


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """Settings of a screening.

    Args:
        detector: Detector file. Default: the sample detector, for demonstration only.
        threshold: Probability from which a meme is harmful. Default: stored in the detector.
        operating_point: Rule that chooses the operating point on held-out memes, such as
            ``precision=0.9``, ``reviews=50/day`` or ``cost=miss:10,false_positive:1,review:0.2``.
        volume: Memes per time for ``reviews=``, such as ``20000/day``.
        review_range: Probabilities that need human review.
        reviewers: Number of annotators per reviewed meme.
        explain: Add feature attributions to flagged memes.
        readings: Which Chinese texts get homophone readings; the slowest step for texts.
        ocr: OCR profile for images. ``fast`` takes about half the time of ``thorough``, but only
            ``thorough`` gives the same verdicts as the service and ``analyze``.
        printed: Which text of an image counts as its caption.
        language: Language of texts whose source does not name one.
        page_language: Language of the summary page: ``en`` or ``zh``.
        templates: Output folder of ``collect`` with known templates.
        policy: Policy file that is the form and the guideline of the human review.
        gold: Share of hidden items with a known clause in the review queue.
        model: Model that decides flagged memes by the policy, as ``KIND/NAME``.
    """

    detector: Annotated[
        Path | None,
        Flag("Detector file. Default: the sample detector, for demonstration only."),
    ] = None
    threshold: operating_points.ThresholdFlag = None
    operating_point: rules.RuleFlag = ""
    volume: rules.VolumeFlag = ""
    review_range: operating_points.ReviewRangeFlag = None
    reviewers: Annotated[
        int, Flag("Number of annotators per meme that needs human review.", min=1, max=50)
    ] = 1
    explain: Annotated[bool, Flag("Add feature attributions for flagged memes.")] = False
    readings: Annotated[
        Readings,
        Flag("Which Chinese texts to search for homophones (10 to 100 ms per text)."),
    ] = "flagged"
    ocr: Annotated[
        OcrProfile,
        Flag(
            "OCR profile for images without a given text. fast: about half the time, but verdicts"
            " may differ from those of 'serve'."
        ),
    ] = "thorough"
    printed: TextTaken = "caption"
    language: Annotated[
        str, Flag("Language of texts whose source has no language.", metavar="CODE")
    ] = ""
    page_language: Annotated[PageLanguage, Flag("Language of the summary page: en or zh.")] = "en"
    templates: Annotated[
        Path | None, Flag("Output folder of 'collect' with known templates. Default: none.")
    ] = None
    policy: Annotated[
        Path | None, Flag("Policy file; reviewers choose which of its clauses a meme breaks.")
    ] = None
    gold: Annotated[
        float,
        Flag(
            "Proportion of test items with a known clause in the review queue, taken from the "
            "examples of --policy.",
            min=0,
            max=0.5,
        ),
    ] = 0.0
    model: Annotated[
        str | None,
        Flag(
            "Model that decides flagged memes by --policy and cites a clause. Default: none.",
            "--model -m",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.threshold is not None and self.operating_point:
            raise InputError(
                "--threshold and --operating-point cannot be combined", hint="give one of them"
            )
        if self.operating_point:
            rules.read_rule(self.operating_point, self.volume)  # raises InputError
        # Raises InputError for invalid values.
        operating_points.OperatingPoint(self.threshold or 0, self.review_range)
        if self.gold and self.policy is None:
            raise InputError("--gold needs a policy", hint="add --policy POLICY.md")
        if self.model and self.policy is None:
            raise InputError("--model needs a policy", hint="add --policy POLICY.md")
        if self.policy is not None:
            read_policy(self.policy)  # raises DataError before the screening starts
        read_language(self.language)  # raises InputError for an unknown code

    def choose_point(self, detector: Detector) -> operating_points.OperatingPoint:
        """Choose the operating point: a given threshold, a rule, or the detector's default."""
        return detector.choose_point(
            self.threshold, self.operating_point, self.review_range, self.volume
        )


@dataclass(frozen=True)
class ScreenWork:
    """The work on each meme; see :class:`~memantics.moderation.scale.records.Work`.

    ``detector`` is its name and checksum. ``templates`` are image hashes with the names of their
    template clusters. ``pictures`` is the folder for images that need human review.
    ``classifiers`` are the topics of the default classifiers.
    """

    settings: ScreenSettings
    point: operating_points.OperatingPoint
    detector: str
    templates: tuple[tuple[int, str], ...] = ()
    pictures: Path | None = None
    classifiers: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a verdict row."""
        return make_verdict_schema()

    def open(self) -> Process:
        """Load the detector; OCR and the homophone reader are loaded on first use."""
        path = self.settings.detector
        detector = Detector.load(path) if path else Detector.load_sample()
        return _Screener(self, detector).screen

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """Make a row with the status failed."""
        return self.refuse(ref, reason).to_row()

    def refuse(self, ref: Ref, reason: str) -> Verdict:
        """Make a failed verdict from the reference alone."""
        text = (ref.text or "")[:MOST_TEXT]
        source: TextSource = "given" if ref.text else "none"
        return fail(self.detector, reason, id=ref.id, text=text, caption=text, text_source=source)

    def find_template_cluster(self, look: int) -> str | None:
        """Return the template cluster of the nearest image whose hash differs in at most 8 bits."""
        place = find_nearest(look, self._looks, CLUSTER_BITS) if self.templates else None
        return None if place is None else self.templates[place][1]

    @cached_property
    def _looks(self) -> Bits:
        return pack_hashes([look for look, _ in self.templates])


class _Screener:
    """The loaded tools of one worker."""

    def __init__(self, work: ScreenWork, detector: Detector) -> None:
        self._work, self._settings, self._detector = work, work.settings, detector
        self._fetcher, self._ocr = Fetcher(), open_reader(work.settings.ocr, work.settings.printed)
        self._seen = SeenPictures()
        self._classifiers = open_judges(work.classifiers)

    def screen(self, refs: Sequence[Ref]) -> list[ShardRow]:
        """Score references, one row each."""
        # created per shard, so that rows do not depend on earlier shards
        self._seen = SeenPictures()
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
        """Add homophone readings of Chinese texts and classifier labels, if requested."""
        if verdict.status != "scored":
            return verdict
        listens = self._settings.readings
        wanted = listens == "all" or (verdict.flagged and listens != "none")
        readings = _read_homophones(verdict.caption) if wanted and verdict.language == "zh" else []
        said = [_ask(classifier, verdict) for _, classifier in sorted(self._classifiers.items())]
        if not readings and not said:
            return verdict
        return replace(verdict, readings=tuple(readings), labels=tuple(said))

    def _keep_picture(self, ref: Ref, sha256: str) -> None:
        """Copy an image to the review queue, named by its digest."""
        if self._work.pictures is not None:
            data = self._fetcher.fetch(ref) or b""
            ending = probe(data, ref.id).format.lower().replace("jpeg", "jpg")
            self._work.pictures.mkdir(parents=True, exist_ok=True)
            replace_file(self._work.pictures / f"{sha256}.{ending}", data, "image for review")

    def _look(self, ref: Ref) -> Subject | Verdict:
        """Read the meme of a reference; return a failed verdict if it cannot be read.

        If only its image cannot be read, its text is scored, and the meme needs human review.
        """
        example = Example(ref.id, ref.text or "")
        language = ref.language or self._settings.language
        given = Subject(example, language, image_fault=ref.image_fault)
        if ref.kind == "text":
            return given
        try:
            return self._see(self._fetcher.fetch(ref) or b"", ref, given)
        except MemanticsError as error:
            if example.text.strip():
                return replace(given, image_fault=str(error))
            return self._work.refuse(ref, str(error))

    def _see(self, data: bytes, ref: Ref, given: Subject) -> Subject:
        """Compute hashes and template cluster of an image and, unless given, read its text."""
        image = decode(data, ref.id)
        look = hash_image(image)
        known = replace(
            given,
            image=True,
            sha256=hashlib.sha256(data).hexdigest(),
            phash=f"{look:016x}",
            template_cluster=self._work.find_template_cluster(look),
            data=data if self._detector.wants_pictures else None,
            credentials=describe_marks(data),
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
    """Classify a text; the label may be unknown."""
    said = classifier.ask(verdict.caption, verdict.language)
    return TopicLabel(
        said.topic, said.label, f"{classifier.name}@{classifier.version}", said.probability
    )


def _read_homophones(text: str) -> list[str]:
    """Find homophone readings of a Chinese caption that differ from its text."""
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
            f"{folder} is not an output folder of 'memantics collect'",
            hint="create one with 'memantics collect'",
        )
    found = tuple(
        (int(look, 16), str(line.get("template_cluster") or line.get("id")))
        for _, line in read_jsonl(folder / MEMES)
        if isinstance(line, dict) and re.fullmatch(_LOOK, look := str(line.get("hash")))
    )
    if not found:
        raise InputError(f"{folder} has no image hashes", hint="run 'memantics collect' again")
    return found


def read_rows(folder: Path) -> Iterator[ShardRow]:
    """Iterate over the verdicts in a folder."""
    for table in read_tables(folder):
        yield from table.to_pylist()


def read_tables(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Iterate over the parts in a folder as Arrow tables, with some or all columns."""
    need_parquet()
    import pyarrow.parquet as pq

    for path in sorted((folder / "parts").glob("part-*.parquet")):
        check_regular(path)
        yield pq.read_table(path, columns=None if columns is None else list(columns))
