"""The authors' own prompt, read from the script of their second repository, which asks models.

Nothing of it is run: only the texts of ``_format_prompt`` are taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from memantics.core.prompt import Prompt
from memantics.tasks.literals import find_function, parse_file, read_text

SCRIPTS = ("VLMs_inference.py", "HF_inference/VLMs_inferences.py")
REPOSITORY = "VLMs_meme-inference"
ORDER = "explain_first"
_HOLES = {"question": "$question", "i": "A", "chr(65 + i)": "A", "option": "a"}
# An option as the script writes it, with these letters for its own.
_OPTION = "A. a\n"


def official_prompts(source: Source, options: Mapping[str, str]) -> dict[str, Prompt]:
    """The prompt of ``qa`` as its authors send it: it asks for the reasons first."""
    if options["order"] != ORDER:
        raise InputError(
            f"wording=official has no words for order={options['order']}",
            hint=f"use order={ORDER}, or leave wording out",
        )
    place = next(filter(Path.is_file, _list_places(source.root)), None)
    if source.kind != "release" or place is None:
        raise DataError(
            source.root,
            f"neither it nor a folder {REPOSITORY} beside it holds {SCRIPTS[0]}, from which"
            " wording=official reads the authors' prompt",
            hint=f"clone {REPOSITORY} beside the release that you registered",
        )
    function = find_function(parse_file(place), "_format_prompt")
    text = "".join(_read(function.body)) if function is not None else ""
    prompt = Prompt(ORDER, text)
    if prompt.holes != {"question", "options"}:
        raise DataError(place, "does not hold the prompt in the form that we know")
    return {ORDER: prompt}


def _list_places(root: Path) -> Iterator[Path]:
    for folder in (root, *root.resolve().parents[:2]):
        for name in SCRIPTS:
            yield folder / name
            yield folder / REPOSITORY / name


def _read(body: list[ast.stmt]) -> Iterator[str]:
    """The pieces of which the script makes up its prompt; the loop over options is one of them."""
    for one in body:
        if isinstance(one, ast.For):
            if "".join(_read(one.body)) == _OPTION:
                yield "$options\n"
        elif isinstance(one, ast.Assign | ast.AugAssign):
            yield read_text(one.value, _HOLES) or ""
