"""What the reader knows when it answers: the form, and what its senses made of the images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memantics.core.images import decode, read_bytes
from memantics.core.records import Form, Image, Request
from memantics.models.embedded.encoder import Encoder
from memantics.models.embedded.lexicon import Lexicon
from memantics.models.embedded.ocr import Ocr
from memantics.models.embedded.sound import Ear

_THUMBNAIL = (32, 32)


@dataclass(frozen=True, slots=True)
class Senses:
    """The parts of the reader, each behind its protocol."""

    ocr: Ocr
    encoder: Encoder
    lexicon: Lexicon
    ear: Ear


@dataclass(frozen=True, slots=True)
class Evidence:
    """One question's evidence.

    ``texts`` holds what each image of the question says, in order; ``option_texts`` what the
    options say, by field and key, with the text of an option's image added. ``likeness`` is
    the correlation of the first image with the last, where there are two.
    """

    form: Form
    texts: tuple[str, ...] = ()
    option_texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    likeness: float | None = None

    @property
    def said(self) -> str:
        """What the meme says: the caption that the form gives, else what was read."""
        given = self.find("caption", "text", "ocr")
        return given or "\n".join(text for text in self.texts if text)

    @property
    def background(self) -> str:
        """The other texts that belong to the question, such as a chat's history."""
        return "\n".join(
            text for name, text in self.form.context.items() if text and text != self.said
        )

    def find(self, *names: str) -> str:
        """The first context text whose name is, or else contains, one of these."""
        context = self.form.context
        exact = [context[name] for name in names if context.get(name)]
        loose = [text for key, text in context.items() for name in names if text and name in key]
        return next(iter([*exact, *loose]), "")


def gather(request: Request, senses: Senses) -> Evidence:
    """Read every image of the last turn and of the options, and compare first with last."""
    form = request.form
    choices = [(field.name, option) for field in form.fields for option in field.options]
    option_paths = {option.image.path for _, option in choices if option.image is not None}
    shown = [path for path in _shown(request) if path not in option_paths]
    data = {path: read_bytes(path) for path in dict.fromkeys(shown)}
    texts = tuple(senses.ocr.read(data[path], path.name).text for path in shown)
    said: dict[tuple[str, str], str] = {}
    for name, option in choices:
        parts = [option.text]
        if option.image is not None:
            path = option.image.path
            parts.append(senses.ocr.read(read_bytes(path), path.name).text)
        said[name, option.key] = "\n".join(part for part in parts if part)
    pair = (data[shown[0]], data[shown[-1]]) if len(shown) > 1 else None
    return Evidence(form, texts, said, None if pair is None else compare_pixels(*pair))


def _shown(request: Request) -> Iterator[Path]:
    """The images of the last turn that is the user's: earlier ones are examples."""
    turns = [message for message in request.messages if message.role == "user"]
    for part in turns[-1].parts if turns else ():
        if isinstance(part, Image):
            yield part.path


def compare_pixels(one: bytes, other: bytes) -> float:
    """Correlation of two images as grey thumbnails; -1 when their shapes differ.

    A coarse look: it sees moved panels and another picture, not another caption.
    """
    import numpy as np

    images = [decode(data, "image to compare") for data in (one, other)]
    shapes = [image.width / image.height for image in images]
    if max(shapes) > 1.1 * min(shapes):
        return -1.0
    flat = [np.asarray(i.convert("L").resize(_THUMBNAIL), dtype=np.float64).ravel() for i in images]
    centred = [pixels - pixels.mean() for pixels in flat]
    scale = float(np.linalg.norm(centred[0]) * np.linalg.norm(centred[1]))
    return float(centred[0] @ centred[1]) / scale if scale > 0 else float(flat[0][0] == flat[1][0])


def overlap(one: str, other: str) -> float:
    """Share of the letters of ``one`` that ``other`` has too, as pairs of neighbours.

    >>> overlap("hello", "hello there"), overlap("hello", "bye")
    (1.0, 0.0)
    """
    pairs = _pairs(one)
    return len(pairs & _pairs(other)) / len(pairs) if pairs else 0.0


def _pairs(text: str) -> frozenset[str]:
    letters: Iterable[str] = [c for c in text.casefold() if c.isalnum()]
    row = "".join(letters)
    return frozenset(row[i : i + 2] for i in range(len(row) - 1)) or frozenset(row)
