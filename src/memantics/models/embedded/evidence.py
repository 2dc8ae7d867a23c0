"""The input of the embedded reader (offline baseline) for one question, and each field's topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memantics.core.images import decode, read_bytes
from memantics.core.labels import Judges
from memantics.core.lines import ImageReading, Ocr
from memantics.core.records import Field, Form, Image, Request
from memantics.models.embedded.encoder import Encoder
from memantics.models.embedded.lexicon import HomophoneReader, MoodLexicon

_THUMBNAIL = (32, 32)
ImageReader = Callable[[Ocr, bytes, str], ImageReading]


@dataclass(frozen=True, slots=True)
class Senses:
    """The components of the embedded reader; ``judges`` are classifiers by topic.

    ``look`` reads an image and assigns a role (caption or other) to every line. Without ``look``
    all lines count as caption.
    """

    ocr: Ocr
    encoder: Encoder
    lexicon: MoodLexicon
    homophones: HomophoneReader
    judges: Judges = field(default_factory=dict)
    look: ImageReader | None = None

    def read(self, data: bytes, name: str) -> str:
        """Return the captions of an image, or all its text if it has no caption."""
        found = self.look(self.ocr, data, name) if self.look else self.ocr.read(data, name)
        return found.caption or found.text


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of the embedded reader for one question.

    ``texts`` are the texts of the question's images, in order. ``option_texts`` are the texts of
    the options by field and key, including text in their images. ``similarity`` is the correlation
    of the first and the last image, if there are two.
    """

    form: Form
    texts: tuple[str, ...] = ()
    option_texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    similarity: float | None = None

    @property
    def said(self) -> str:
        """The caption given in the form, else the text read from the image."""
        given = self.find("caption", "text", "ocr")
        return given or "\n".join(text for text in self.texts if text)

    @property
    def background(self) -> str:
        """The other texts given with the question, such as the chat history."""
        return "\n".join(
            text for name, text in self.form.context.items() if text and text != self.said
        )

    def find(self, *names: str) -> str:
        """Return the first context text whose name equals, or else contains, one of these names."""
        context = self.form.context
        exact = [context[name] for name in names if context.get(name)]
        loose = [text for key, text in context.items() for name in names if text and name in key]
        return next(iter([*exact, *loose]), "")


def gather(request: Request, senses: Senses) -> Evidence:
    """Read all images of the last turn and of the options; compare the first and last image."""
    form = request.form
    choices = [(field.name, option) for field in form.fields for option in field.options]
    option_paths = {option.image.path for _, option in choices if option.image is not None}
    shown = [path for path in _shown(request) if path not in option_paths]
    data = {path: read_bytes(path) for path in dict.fromkeys(shown)}
    texts = tuple(senses.read(data[path], path.name) for path in shown)
    said: dict[tuple[str, str], str] = {}
    for name, option in choices:
        parts = [option.text]
        if option.image is not None:
            path = option.image.path
            parts.append(senses.read(read_bytes(path), path.name))
        said[name, option.key] = "\n".join(part for part in parts if part)
    pair = (data[shown[0]], data[shown[-1]]) if len(shown) > 1 else None
    return Evidence(form, texts, said, None if pair is None else compare_pixels(*pair))


def _shown(request: Request) -> Iterator[Path]:
    """Yield the images of the last user turn; earlier turns contain few-shot examples."""
    turns = [message for message in request.messages if message.role == "user"]
    for part in turns[-1].parts if turns else ():
        if isinstance(part, Image):
            yield part.path


def compare_pixels(one: bytes, other: bytes) -> float:
    """Return the correlation of two images as grey thumbnails; -1 if their shapes differ.

    The correlation detects moved panels and other images, but not a changed caption.
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
    """Return the proportion of character pairs of ``one`` that also occur in ``other``.

    >>> overlap("hello", "hello there"), overlap("hello", "bye")
    (1.0, 0.0)
    """
    pairs = _pairs(one)
    return len(pairs & _pairs(other)) / len(pairs) if pairs else 0.0


def _pairs(text: str) -> frozenset[str]:
    letters: Iterable[str] = [c for c in text.casefold() if c.isalnum()]
    row = "".join(letters)
    return frozenset(row[i : i + 2] for i in range(len(row) - 1)) or frozenset(row)


QuestionTopic = Literal["pun", "harm", "valence", "target", "emotion", "similarity", "general"]

_PUN = re.compile(r"\bpuns?\b|wordplay|homophon|双关|谐音", re.IGNORECASE)
_HARM = re.compile(
    r"toxic|harmful|hateful|offens|abus|insult|有害|冒犯|攻击|辱骂|侮辱|不良", re.IGNORECASE
)
_SIMILARITY = re.compile(r"consisten|layout|preserv|same (?:panel|scene)|一致|布局", re.IGNORECASE)
_NOT = re.compile(
    r"^\s*(?:non?\b|non-|not\b|none\b|un(?=harm|offens)|false$|否$|不|非|无|没)"
    r"|\b(?:not|no|isn't|without|harmless|benign|neither)\b|无害|正常",
    re.IGNORECASE,
)
_NONE = re.compile(r"^\s*(?:none|neither)\b|^\s*以上(?:都|皆)不", re.IGNORECASE)
_POLES: dict[str, re.Pattern[str]] = {
    "positive": re.compile(r"positive|正面|积极|正向|褒义", re.IGNORECASE),
    "negative": re.compile(r"negative|负面|消极|负向|贬义", re.IGNORECASE),
    "neutral": re.compile(r"neutral|中性|中立", re.IGNORECASE),
}
_SIDES: dict[str, re.Pattern[str]] = {
    "both": re.compile(r"\bboth\b|双方|两者|共同|自己和|我们", re.IGNORECASE),
    "self": re.compile(r"\bself\b|oneself|\bsender\b|自己|自身|自我", re.IGNORECASE),
    "other": re.compile(r"\bothers?\b|\breceiver\b|他人|对方|别人", re.IGNORECASE),
}
LABEL = 24  # A longer option is a sentence, not the name of a class.
EMOTIONS: dict[str, float] = {
    "angry": -0.8, "sad": -0.7, "tense": -0.5, "bored": -0.3, "afraid": -0.6,
    "calm": 0.3, "relaxed": 0.4, "happy": 0.8, "excited": 0.7, "amused": 0.5,
    "愤怒": -0.8, "悲伤": -0.7, "紧张": -0.5, "无聊": -0.3, "害怕": -0.6,
    "平静": 0.3, "放松": 0.4, "开心": 0.8, "快乐": 0.8, "兴奋": 0.7,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sides:
    """Two options, one of which negates the other."""

    yes: str
    no: str


def find_topic(form: Form, field: Field) -> QuestionTopic:
    """Return the topic of a form field from its options and name; also from the question.

    >>> from memantics.core.records import Option
    >>> field = Field("label", "choice", (Option("双关", "双关"), Option("非双关", "非双关")))
    >>> find_topic(Form("这张表情包是不是双关？", (field,)), field)
    'pun'
    """
    texts = [option.text or option.key for option in field.options]
    if match_poles(field):
        return "valence"
    if match_sides(field):
        return "target"
    if sum(emotion_of(text) is not None for text in texts) >= 2:
        return "emotion"
    wording = " ".join([field.name.replace("_", " "), *texts])
    asked = f"{wording} {form.question}" if len(form.fields) == 1 else wording
    closed = field.kind == "boolean" or split_sides(field) is not None
    if closed and _PUN.search(asked):
        return "pun"
    if _HARM.search(asked):
        return "harm"
    return "similarity" if field.kind == "boolean" and _SIMILARITY.search(asked) else "general"


def split_sides(field: Field) -> Sides | None:
    """Return the affirmative and the negative option of a yes-or-no question.

    >>> from memantics.core.records import Option
    >>> split_sides(Field("x", "choice", (Option("A", "not harmful"), Option("B", "harmful"))))
    Sides(yes='B', no='A')
    """
    if len(field.options) != 2:
        return None
    denying = [denies(option.text or option.key) for option in field.options]
    if denying[0] == denying[1]:
        return None
    yes, no = (field.options[1], field.options[0]) if denying[0] else field.options
    return Sides(yes.key, no.key)


def denies(text: str) -> bool:
    """Return whether an option is a negation: "not a pun", "non-harmful", "非双关"."""
    return _NOT.search(text) is not None


def names_harmless(text: str) -> bool:
    """Return whether an option is a class label for harmless content."""
    return len(text) <= LABEL and denies(text) and not is_empty_choice(text)


def is_empty_choice(text: str) -> bool:
    """Return whether an option rejects all others ("none of the others")."""
    return _NONE.search(text) is not None


def asks_about_words(question: str) -> bool:
    """Return whether a question asks for the text on the meme."""
    return _WORDS.search(question) is not None


_WORDS = re.compile(
    r"\b(?:text|caption|says?|written|phrase|words?|slogan|quote)\b|文字|字幕|写着", re.IGNORECASE
)


def match_poles(field: Field) -> dict[str, str]:
    """Return the keys of the positive, negative and neutral option, if these are all options."""
    return _match(_POLES, field)


def match_sides(field: Field) -> dict[str, str]:
    """Return the keys of the options for oneself, others and both, if these are all options."""
    return _match(_SIDES, field)


def _match(patterns: Mapping[str, re.Pattern[str]], field: Field) -> dict[str, str]:
    """Return the option key for each pattern; empty unless every option matches a pattern."""
    found: dict[str, str] = {}
    for option in field.options:
        text = option.text or option.key
        names = [name for name, pattern in patterns.items() if pattern.search(text)]
        if not names or names[0] in found or len(text) > LABEL:
            return {}
        found[names[0]] = option.key
    return found if len(found) > 1 else {}


def emotion_of(text: str) -> float | None:
    """Return the valence of an emotion word; None for other texts."""
    return EMOTIONS.get(text.strip().casefold())
