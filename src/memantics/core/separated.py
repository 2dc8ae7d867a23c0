"""Tables of separated values: the delimiter and the encoding are detected, then rows are read."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memantics.core.errors import DataError, InputError
from memantics.core.files import bounded_lines, open_regular, open_regular_text

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
SAMPLE = 1 << 16  # characters from which the delimiter of a table is detected
_RUN = re.compile("([\x80-\U0010ffff]+)")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Separated:
    """The form of a table of separated values."""

    delimiter: str = ","
    encoding: str = "utf-8-sig"

    @property
    def words(self) -> str:
        """The form in words.

        >>> Separated(";", "cp1252").words
        'separated by semicolon, encoding cp1252'
        """
        told = f"separated by {DELIMITERS.get(self.delimiter, repr(self.delimiter))}"
        plain = self.encoding in ("utf-8", "utf-8-sig")
        return told if plain else f"{told}, encoding {self.encoding}"


def detect_form(path: Path, delimiter: str = "", encoding: str = "") -> Separated:
    """Detect what is not given: the encoding of a table, and its delimiter."""
    try:
        encoding = codecs.lookup(encoding).name if encoding else ""
    except LookupError as error:
        hint = "for example utf-8, cp1252 or gb18030"
        raise InputError(f"unknown encoding {encoding!r}", hint=hint) from error
    encoding = encoding or _detect_encoding(path)
    if delimiter:
        return Separated(delimiter, encoding)
    with open_regular_text(path, encoding, newline="") as file:
        try:
            text = file.read(SAMPLE)
        except UnicodeError as error:
            raise DataError(path.name, str(error), hint="save it as UTF-8") from error
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    return Separated(detect_delimiter(text, usual, whole=len(text) < SAMPLE), encoding)


def _refuse_unmarked_utf16(name: str, start: bytes) -> None:
    """Raise a DataError if up to every second byte is zero, as in Latin letters."""
    if len(start) < start.count(0) * 10 <= 6 * len(start):
        hint = "name it: --encoding utf-16-le or --encoding utf-16-be"
        raise DataError(name, "looks like UTF-16 without a byte order mark", hint=hint)


def _detect_encoding(path: Path) -> str:
    """Return the encoding: by its mark, else UTF-8, GB 18030 of Chinese texts, or Windows-1252."""
    with open_regular(path) as file:
        head = file.read(4)
        for mark, name in _MARKS:
            if head.startswith(mark):
                return name
        file.seek(0)
        _refuse_unmarked_utf16(path.name, file.read(SAMPLE))
        file.seek(0)
        decoders = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", "gb18030")}
        chinese = Counter[bool]()  # runs of usual Chinese characters, and letters within words
        while decoders:
            block = file.read(1 << 20)
            if block and not block.strip(b"\0"):
                hint = "check that the file was copied completely"
                raise DataError(path.name, "contains a block of zero bytes", hint=hint)
            for name, decoder in list(decoders.items()):
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError:
                    del decoders[name]
                    continue
                if name == "gb18030":
                    for run in _RUN.finditer(text):
                        within = len(run[1]) == 1 and _touches_word(text, run)
                        chinese.update(not within and _is_common(c) for c in run[1])
            if not block:
                break
    if "utf-8" in decoders:
        return "utf-8-sig"
    if "gb18030" not in decoders or chinese[False] >= 2 * chinese[True]:
        return "cp1252"
    if chinese[True] >= 2 * chinese[False]:
        return "gb18030"
    raise DataError(
        path.name,
        "the encoding could be GB 18030 or Windows-1252",
        hint="name it: --encoding gb18030 or --encoding cp1252",
    )


def _touches_word(text: str, run: re.Match[str]) -> bool:
    """Whether a character is beside a Latin letter, as ö is within a word."""
    around = text[max(0, run.start() - 1) : run.start()] + text[run.end() : run.end() + 1]
    return any(character.isalpha() and character.isascii() for character in around)


@cache
def _is_common(character: str) -> bool:
    """Whether a character is one of the usual Chinese ones; letters of others read as rare ones."""
    try:
        return bool(character.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def detect_delimiter(text: str, usual: str, *, whole: bool) -> str:
    r"""Return the delimiter that cuts the first rows into the same number of cells, the most.

    ``usual`` is that of the file name; it is returned if no delimiter fits. ``whole`` tells that
    the last row of the text is complete.

    >>> detect_delimiter("id;text\n1;so, it is\n", ",", whole=True)
    ';'
    """
    found: dict[str, int] = {}
    for mark in DELIMITERS:
        try:
            rows = list(csv.reader(io.StringIO(text), delimiter=mark))[:50]
        except csv.Error:
            continue
        widths = [len(row) for row in (rows if whole or len(rows) < 3 else rows[:-1]) if row]
        if widths and widths[0] > 1:
            # A broken row must not decide, so most rows count.
            same = sum(width == widths[0] for width in widths)
            if same * 2 > len(widths):
                found[mark] = widths[0]
    if not found:
        return usual
    best = max(found.values())
    marks = [mark for mark, width in found.items() if width == best]
    return "\t" if usual == "\t" in marks else marks[0]


def read_separated(
    path: Path, form: Separated, longest: int
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the rows of a table as text by column, numbered from 1 without the header."""
    with long_cells(longest), open_regular_text(path, form.encoding, newline="") as file:
        number = 0
        try:
            lines = bounded_lines(file)
            reader = csv.DictReader(lines, delimiter=form.delimiter, strict=True)
            refuse_equal_names(path, reader.fieldnames or ())
            for number, row in enumerate(reader, 1):
                if None in row or None in row.values():
                    raise DataError(
                        path.name, "has more or fewer cells than the header", row=number
                    )
                yield number, row
        except (csv.Error, UnicodeDecodeError) as error:
            hint = (
                "save it as UTF-8" if isinstance(error, UnicodeDecodeError) else "repair that row"
            )
            raise DataError(path.name, str(error), row=number + 1, hint=hint) from error
        except OSError as error:
            problem = error.strerror or str(error)
            raise DataError(path.name, problem, row=number + 1, hint="repair that row") from error


def refuse_equal_names(path: Path, names: Sequence[str]) -> None:
    """Raise an error if two columns have one name, since only one of them would be read."""
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            raise DataError(
                path.name, f"has {count} columns {name!r}", hint="rename or remove one of them"
            )


@contextmanager
def long_cells(longest: int) -> Iterator[None]:
    """Raise the cell size limit of the csv module, because model replies exceed its default."""
    before = csv.field_size_limit(longest)
    try:
        yield
    finally:
        csv.field_size_limit(before)
