"""The services that tasks are handed: what looks, listens and compares meanings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

from memantics.core.errors import InputError, MissingExtra
from memantics.core.services import (
    BertSettings,
    LayoutTags,
    Listener,
    NliSettings,
    Services,
    TextScorer,
)


@cache
def open_layout_check(captions: bool) -> LayoutTags:
    """What is told about the layouts of a source and its edit, as tags of an item."""
    from memantics.vision.regions import LayoutCheck

    check = LayoutCheck(_open_line_finder() if captions else None)
    return lambda source, edited: check.compare(source, edited).tag()


def _open_line_finder() -> Callable[[bytes, str], list[tuple[int, int, int, int]]]:
    """The embedded reader's OCR and its table of readings, for boxes instead of words."""
    from memantics.models.embedded.ocr import open_reader

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        with open_reader() as ocr:
            return [line.box for line in ocr.read(data, name).lines]

    return find_lines


@cache
def open_listener() -> Listener:
    """The name of the language model behind it, and a function from captions to reading hints."""
    from memantics.phonetics.reading import hint
    from memantics.phonetics.speech import read_aloud

    return Listener(
        read_aloud("好").model,
        lru_cache(maxsize=8192)(lambda caption: hint(read_aloud(caption))),
    )


def check_text_model(path: Path) -> None:
    """Refuse a folder that holds no model before anything is asked."""
    from memantics.models.semantic import check_folder

    try:
        check_folder(path)
    except ValueError as error:
        raise InputError(str(error), hint="give a local model folder, or off") from error


@cache
def open_bert(settings: BertSettings) -> TextScorer:
    """F1 of BERTScore."""
    from memantics.models.semantic import BertScorer

    try:
        return BertScorer(settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("BERTScore figures", "text") from error
    except ValueError as error:
        raise InputError(f"bertscore: {error}", hint="give a local encoder, or off") from error


@cache
def open_nli(settings: NliSettings) -> TextScorer:
    """Consistency by natural-language inference."""
    from memantics.models.semantic import NliScorer

    try:
        return NliScorer(settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("NLI figures", "text") from error
    except ValueError as error:
        raise InputError(
            f"nli: {error}", hint="give a local classifier and nli_labels, or off"
        ) from error


SERVICES = Services(open_layout_check, open_listener, check_text_model, open_bert, open_nli)
