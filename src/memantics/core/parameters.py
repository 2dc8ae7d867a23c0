"""What a parameter of an action means to a person: its help, its flag, its bounds.

An action says it once, in the type of the parameter, and the command line is made of it::

    def draw(
        folder: Annotated[Path, Argument("A folder that 'memantics build knowledge' made.")],
        *,
        seed: Annotated[int, Flag("Seed of every draw.", min=0)] = 0,
    ) -> Drawn:

Fields of a settings record are annotated alike: an action that takes the record has all its flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from memantics.core.data import DataKind
from memantics.core.errors import InputError
from memantics.core.lines import TextChoice

UNSAID: Any = object()


@dataclass(frozen=True, slots=True)
class Flag:
    """An option of the command line.

    ``flags`` are its names, separated by blanks (default: that of the parameter). ``kind`` is the
    type of the words in a terminal and ``read`` makes the parameter of them, where they differ;
    ``default`` is what the command line takes where nothing is said and the parameter has none.
    ``complete`` lists what the shell may make of the beginning of a word.
    """

    help: str
    flags: str = ""
    min: float | None = None
    max: float | None = None
    metavar: str | None = None
    kind: Any = None
    read: Callable[[Any], Any] | None = None
    default: Any = UNSAID
    complete: Callable[[str], Sequence[str]] | None = None


Attempts = Annotated[int, Flag("Tries at a reply that can be read.", min=1, max=10)]
DataFlag = Annotated[
    DataKind | None,
    Flag("Which data. Default: a registered release, else the sample."),
]
SplitFlag = Annotated[str | None, Flag("A named part of the data.")]
Limit = Annotated[int | None, Flag("Ask only N items, in turn of each language and kind.", min=1)]
SampleFlag = Annotated[
    int | None, Flag("Ask a random sample of N items; memes are kept whole.", min=1)
]
Seed = Annotated[int | None, Flag("The seed of the sample. Default: 0.")]
InvalidFlag = Annotated[
    str | None, Flag("Refused and unparsed answers: wrong, drop, retry:N or retry:N,drop.")
]
Rewordings = Annotated[
    Path | None, Flag("Captions in other words: a table with the columns image and text.")
]


class Argument(Flag):
    """A word of the command line that stands without a flag; ``flags`` is its name there."""

    __slots__ = ()


class MadeBy(NamedTuple):
    """A parameter that is made by a function, whose parameters are the flags."""

    by: Callable[..., Any]


def read_pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Read ``NAME=VALUE`` options.

    >>> read_pairs("--set", ["order=answer_first"])
    {'order': 'answer_first'}
    """
    read: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                f"{flag} {pair!r} is not NAME=VALUE", hint=f"such as {flag} name=value"
            )
        read[name] = value
    return read


ImagePath: TypeAlias = Path | str
TokenPrices: TypeAlias = tuple[float, float] | None  # of a million tokens in and out
ImagePaths: TypeAlias = Sequence[Path] | list[str] | tuple[str, ...]
_TAKEN = "Which text of an image is its caption: what the roles say, or all."
TextTaken = Annotated[TextChoice, Flag(_TAKEN, "--text", default="caption")]
FewMemes = Annotated[int | None, Flag("Take only the first N memes.", "--limit", min=1)]
QueueAnnotations = Annotated[
    Path | str | None, Flag("Annotations. Default: annotations.jsonl in the queue.")
]
MemeFolder = Annotated[
    Path | str | None,
    Argument(
        "A folder of memes, a registered release, or 'sample' for the sample data.",
        kind=Path,
        default=None,
    ),
]
BuildModel = Annotated[
    str | None, Flag("KIND/NAME of the model that is asked.", "--model -m", default=None)
]
BuildFolder = Annotated[
    Path | str | None, Flag("Folder of the build. Default: builds/NAME-OF-FOLDER.")
]
