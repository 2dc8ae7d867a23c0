"""The text and image that a detector scores, reasons for not scoring, and match-list lookup."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.core.images import decode, read_bytes
from memantics.core.language import UNKNOWN, Understood, understand
from memantics.core.lines import ImageReading, explain_unread
from memantics.core.memes import SUFFIXES
from memantics.moderation.examples import Example
from memantics.moderation.judges import OpenDetector
from memantics.moderation.match_hashes import hash_embedding
from memantics.moderation.match_index import HashMatch, MatchList
from memantics.understanding.vision.hashes import hash_image
from memantics.understanding.vision.pdq import hash_pdq

MOST_TEXT = 20_000
_SURE = 0.8  # minimum confidence of a homophone reading
NO_PICTURE = "the detector needs an image, and the meme has none"
_ENDINGS = "|".join(map(re.escape, sorted(SUFFIXES)))
# The URL of an image may end in a query or a fragment.
_IMAGE_NAME = re.compile(rf".*({_ENDINGS})([?#]\S*)?", re.IGNORECASE)


def explain_not_scored(
    text: str, read: Understood, languages: Sequence[str], *, image: bool
) -> str:
    """Explain why a detector of these languages does not score a text; empty if it does.

    A text is scored if any of its letters is in a script of the training texts, whatever its
    language seems to be.

    >>> explain_not_scored("привет", understand("привет", ["en"]), ["en"], image=False)
    'the text is in ru, a script without training texts; the detector was trained on en'
    >>> explain_not_scored("", Understood(""), ("zh",), image=True)
    'no text was found in the image'
    >>> explain_not_scored("memes/今晚.png", Understood("zh"), ("zh",), image=False)
    'the text is the name of an image file, which was not opened'
    """
    if not text:
        return "no text was found in the image" if image else "the text is empty"
    if not image and _IMAGE_NAME.fullmatch(text):
        return "the text is the name of an image file, which was not opened"
    if read.legible:
        return ""
    named = "" if read.foreign in ("", UNKNOWN) else f"{read.foreign}, "
    trained = f"the detector was trained on {', '.join(languages)}"
    return f"the text is in {named}a script without training texts; {trained}"


def explain_doubts(
    text: str, read: Understood, languages: Sequence[str], beside: Collection[str], unread: int
) -> str:
    """List reasons for doubt in the score of a text: length, unread regions, another language.

    >>> explain_doubts("wir haben Montag", Understood("de", foreign="de"), ["en"], (), 0)
    'the text may be in de; the detector was trained on en'
    """
    doubts = []
    if len(text) > MOST_TEXT:
        doubts.append(f"only the first {MOST_TEXT:,} characters of the text were scored")
    if unread:
        doubts.append(explain_unread(unread))
    trained = f"the detector was trained on {', '.join(languages)}"
    if read.foreign and read.foreign not in beside:
        other = "another language" if read.foreign == UNKNOWN else read.foreign
        doubts.append(f"the text may be in {other}; {trained}")
    elif read.also and read.also not in beside:
        doubts.append(f"part of the text is in {read.also}; {trained}")
    return "; ".join(doubts)


def find_intended_text(text: str) -> str:
    """Return the intended homophone reading of a Chinese text; empty if there is none."""
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import MAX_CHARACTERS, Settings

    if not text.strip() or len(text) > MAX_CHARACTERS:
        return ""
    intended = read_homophones(text, settings=Settings(language="zh", threshold=_SURE)).intended
    return intended.text if intended is not None else ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The input of a verdict: a text, or an image with its text.

    ``language`` is the language given by the source, if any. ``image`` is True if the text is from
    an image, ``given`` if the text was supplied and not read by OCR. ``unread`` counts text regions
    that OCR skipped. ``data`` are the bytes of an image without a file. The text of ``example`` is
    the caption; ``text`` is all text of an image if it has more, ``other_text`` the text outside
    the caption. ``credentials`` describes the marks in the file. ``image_fault`` is the reason why
    only the text is scored though the source names an image.
    """

    example: Example
    language: str = ""
    image: bool = False
    given: bool = True
    unread: int = 0
    sha256: str | None = None
    phash: str | None = None
    template_cluster: str | None = None
    data: bytes | None = None
    text: str = ""
    other_text: str = ""
    image_fault: str = ""
    credentials: str = ""

    def read(self, found: ImageReading) -> Subject:
        """Add the OCR result of the image."""
        more = found.said[:MOST_TEXT] if found.other_text else ""
        return replace(
            self,
            example=replace(self.example, text=found.caption[: MOST_TEXT + 1]),
            image=True,
            given=False,
            unread=found.unread,
            text=more,
            other_text=found.other_text[:MOST_TEXT],
        )


def see_example(example: Example, language: str = "", *, given: bool = True) -> Subject:
    """Make the input of a verdict from an example: its caption and all text of its image."""
    captions = example.text.split("\n")
    others = [line for line in example.printed.split("\n") if line not in captions]
    return Subject(
        example,
        language,
        example.image is not None,
        given,
        text=example.printed[:MOST_TEXT],
        other_text="\n".join(others)[:MOST_TEXT],
    )


def widen(detector: OpenDetector, subject: Subject) -> Subject:
    """Score all text of an image if only its caption is in an unsupported language."""
    if not subject.text or not detector.machine.reads_texts:
        return subject
    texts = (subject.example.text, subject.text)
    known = [not understand(text, detector.languages, subject.language).foreign for text in texts]
    if known != [False, True]:
        return subject
    return replace(subject, example=replace(subject.example, text=subject.text))


@contextmanager
def put_pictures(
    detector: OpenDetector, subjects: Sequence[Subject]
) -> Iterator[Sequence[Subject]]:
    """Write images to temporary files while a detector scores them."""
    if not detector.machine.sees_images or not any(subject.data for subject in subjects):
        yield subjects
        return
    with tempfile.TemporaryDirectory() as folder:
        placed = list(subjects)
        for place, subject in enumerate(subjects):
            if subject.data is not None and subject.example.image is None:
                file = Path(folder) / str(place)
                file.write_bytes(subject.data)
                placed[place] = replace(subject, example=replace(subject.example, image=file))
        yield placed


def find_match(match_list: MatchList, subject: Subject) -> HashMatch | None:
    """Find the match-list entry (known labelled meme) of which a meme is a copy.

    Missing hashes are computed from the image. An entry on the same template with another text is
    returned if there is no match.
    """
    sha256, phash, pdq = subject.sha256 or "", subject.phash or "", ""
    image, data, lists = subject.example.image, subject.data, match_list.has_pdq
    if image is not None and data is None and (lists or not sha256):
        data = read_bytes(image)
    if data is not None and (lists or not sha256):
        picture = decode(data, subject.example.id)
        sha256, phash = hashlib.sha256(data).hexdigest(), f"{hash_image(picture):016x}"
        pdq = hash_pdq(picture) if lists else ""
    text = subject.example.text
    return match_list.find(
        text=text, sha256=sha256, phash=phash, pdq=pdq, embed=hash_embedding, templates=True
    )
