"""Annotations that turn function parameters into command-line options: help, flag and bounds.

A public function declares the options once, in the types of its parameters::

    def draw(
        folder: Annotated[Path, Argument("Folder written by 'memantics build knowledge'.")],
        *,
        seed: Annotated[int, Flag("Random seed.", min=0)] = 0,
    ) -> Drawn:

Fields of a settings record are annotated the same way and become flags too.
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
    """A command-line option.

    ``flags`` are its names, separated by spaces (default: the parameter name). ``kind`` is the type
    of the command-line value and ``read`` converts it to the parameter, if they differ. ``default``
    is the command-line default if the parameter has none. ``complete`` returns shell completions.
    ``name`` is the parameter of the command (default: the parameter name), for fields of a record
    that share their name with another parameter.
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
    name: str = ""


Attempts = Annotated[
    int, Flag("Maximum number of attempts until a reply can be parsed.", min=1, max=10)
]
DataFlag = Annotated[
    DataKind | None,
    Flag("Data to use: release or sample. Default: a registered release, else the sample data."),
]
SplitFlag = Annotated[str | None, Flag("Named part of the data, such as train or test.")]
Limit = Annotated[
    int | None, Flag("Evaluate N items, stratified by language and type. Default: all.", min=1)
]
SampleFlag = Annotated[
    int | None,
    Flag("Evaluate a random sample of about N items; all items of a meme stay together.", min=1),
]
Seed = Annotated[int | None, Flag("Random seed of the sample. Default: 0.")]
InvalidFlag = Annotated[
    str | None,
    Flag("Policy for refused and unparsed answers: wrong, drop, retry:N or retry:N,drop."),
]
Rewordings = Annotated[
    Path | None, Flag("Table of reworded captions, with the columns image and text.")
]


class Argument(Flag):
    """A positional command-line argument; ``flags`` is its name."""

    __slots__ = ()


class MadeBy(NamedTuple):
    """A parameter built by a function; the parameters of that function become the flags."""

    by: Callable[..., Any]


def read_pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Parse ``NAME=VALUE`` options.

    >>> read_pairs("--set", ["order=answer_first"])
    {'order': 'answer_first'}
    """
    read: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                f"{flag} {pair!r} is not NAME=VALUE", hint=f"for example {flag} name=value"
            )
        read[name] = value
    return read


ImagePath: TypeAlias = Path | str
TokenPrices: TypeAlias = tuple[float, float] | None  # price per million input and output tokens
ImagePaths: TypeAlias = Sequence[Path] | list[str] | tuple[str, ...]
_TAKEN = "Lines that count as caption: 'caption' (no signs, watermarks, interface texts) or 'all'."
TextTaken = Annotated[TextChoice, Flag(_TAKEN, "--text", default="caption")]
FewMemes = Annotated[
    int | None, Flag("Use only the first N memes. Default: all.", "--limit", min=1)
]
QueueAnnotations = Annotated[
    Path | str | None,
    Flag("File of annotations. Default: annotations.jsonl in the folder of the annotation queue."),
]
MemeFolder = Annotated[
    Path | str | None,
    Argument(
        "Folder of memes, name of a registered release, or 'sample' for the sample data.",
        kind=Path,
        default=None,
    ),
]
BuildModel = Annotated[str | None, Flag("Model to use, as KIND/NAME.", "--model -m", default=None)]
BuildFolder = Annotated[
    Path | str | None, Flag("Output folder of the build. Default: builds/FOLDER-NAME.")
]
