"""Texts to token ids, from a ``tokenizer.json``, without any package where the text is Chinese.

The encoders behind both of the paper's backbones (Chinese RoBERTa, Chinese CLIP) split texts as
BERT does. That is short enough to stand here, so an exported detector needs neither torch nor
transformers. Any other tokenizer goes through the package ``tokenizers``.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from memantics.core.errors import DataError, MissingExtra

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class Splitter(Protocol):
    """Turns a text into token ids, opening and closing marks included."""

    @property
    def pad(self) -> int:
        """The id that fills up a row."""
        ...

    def split(self, text: str, length: int) -> list[int]:
        """At most ``length`` ids; a longer text loses its end, not its closing mark."""
        ...


@dataclass(frozen=True, slots=True)
class WordPieces:
    """BERT's way: characters of Chinese alone, other words in known pieces, the longest first."""

    vocabulary: Mapping[str, int]
    opening: int
    closing: int
    unknown: int
    pad: int
    lowercase: bool = True
    strip_accents: bool = True
    chinese: bool = True
    clean: bool = True
    prefix: str = "##"
    longest: int = 100

    def split(self, text: str, length: int) -> list[int]:
        """Token ids of a text.

        >>> marks = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}
        >>> known = marks | {"猫": 4, "cat": 5, "##s": 6}
        >>> WordPieces(known, 1, 2, 3, 0).split("猫 Cats ?", 80)
        [1, 4, 5, 6, 3, 2]
        """
        room, found = max(0, length - 2), list[int]()
        for word in self._words(text):
            if len(found) >= room:
                break
            found.extend(self._pieces(word))
        return [self.opening, *found[:room], self.closing]

    def _words(self, text: str) -> Iterator[str]:
        for chunk in self._normalise(text).split():
            start = 0
            for place, letter in enumerate(chunk):
                if _is_mark(letter):
                    if start < place:
                        yield chunk[start:place]
                    yield letter
                    start = place + 1
            if start < len(chunk):
                yield chunk[start:]

    def _normalise(self, text: str) -> str:
        if self.clean:
            text = "".join(" " if c.isspace() else c for c in text if not _is_control(c))
        if self.chinese:
            text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
        if self.strip_accents:
            text = "".join(
                c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn"
            )
        return "".join(map(str.lower, text)) if self.lowercase else text

    def _pieces(self, word: str) -> list[int]:
        if len(word) > self.longest:
            return [self.unknown]
        found, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = (self.prefix if start else "") + word[start:end]
                if piece in self.vocabulary:
                    found.append(self.vocabulary[piece])
                    start = end
                    break
            else:
                return [self.unknown]
        return found


@dataclass(frozen=True, slots=True)
class Foreign:
    """Any other tokenizer, through the package ``tokenizers``."""

    encode: Callable[[str], Sequence[int]]
    pad: int

    def split(self, text: str, length: int) -> list[int]:
        """Token ids of a text; the last of a cut one is its closing mark."""
        # A row without a single token could not be attended to.
        ids = list(self.encode(text)) or [self.pad]
        return ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


class _Normalizer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


class _Named(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str


class _Pieces(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str = ""
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    max_input_chars_per_word: int = 100
    vocab: JsonValue = None


class _Token(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: int
    content: str
    special: bool = False


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    model: _Pieces
    normalizer: _Normalizer | None = None
    pre_tokenizer: _Named | None = None
    added_tokens: list[_Token] = []


def read_splitter(data: bytes, pad: int, name: str = "tokenizer.json") -> Splitter:
    """The splitter that a ``tokenizer.json`` describes; ``pad`` is the id that fills rows."""
    try:
        file = _File.model_validate(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise DataError(name, "is no tokenizer.json", hint="save the tokenizer again") from error
    own = _as_word_pieces(file, pad)
    if own is not None:
        return own
    if find_spec("tokenizers") is None:
        raise MissingExtra("detectors with this tokenizer", "detector")
    package = importlib.import_module("tokenizers")
    foreign = package.Tokenizer.from_str(data.decode())
    foreign.no_padding()
    foreign.no_truncation()
    # A caption that spells a control mark is text like any other.
    foreign.encode_special_tokens = True
    return Foreign(lambda text: foreign.encode(text).ids, pad)


def _as_word_pieces(file: _File, pad: int) -> WordPieces | None:
    """BERT's tokenizer with its usual parts; None where any part is another."""
    model, normalizer = file.model, file.normalizer
    usual = (
        model.type == "WordPiece"
        and isinstance(model.vocab, dict)
        and normalizer is not None
        and normalizer.type == "BertNormalizer"
        and file.pre_tokenizer is not None
        and file.pre_tokenizer.type == "BertPreTokenizer"
    )
    if not usual or normalizer is None or not isinstance(model.vocab, dict):
        return None
    vocabulary = {word: place for word, place in model.vocab.items() if isinstance(place, int)}
    marks = {token.content: token.id for token in file.added_tokens if token.special}
    opening, closing = marks.get("[CLS]"), marks.get("[SEP]")
    unknown = vocabulary.get(model.unk_token or "[UNK]")
    # Marks other than BERT's five may stand in texts and would have to be looked for.
    more = set(marks) - {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"}
    if opening is None or closing is None or unknown is None or more:
        return None
    accents = normalizer.strip_accents
    return WordPieces(
        vocabulary,
        opening,
        closing,
        unknown,
        pad,
        lowercase=normalizer.lowercase,
        strip_accents=normalizer.lowercase if accents is None else accents,
        chinese=normalizer.handle_chinese_chars,
        clean=normalizer.clean_text,
        prefix=model.continuing_subword_prefix or "##",
        longest=model.max_input_chars_per_word,
    )


def _is_control(letter: str) -> bool:
    if letter in "\t\n\r":
        return False
    return letter in "\0\ufffd" or unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs")


def _is_chinese(letter: str) -> bool:
    place = ord(letter)
    return any(low <= place <= high for low, high in _CJK)


def _is_mark(letter: str) -> bool:
    return letter in _ASCII_MARKS or unicodedata.category(letter).startswith("P")
