"""Settings of knowledge extraction, made from command-line values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from memantics.core.parameters import (
    Attempts,
    Flag,
)
from memantics.understanding.analysis.asking import ToxicityRule
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.extraction.plan import Refine, adapt_plan, find_plan
from memantics.understanding.extraction.report import (
    read_background,
)
from memantics.understanding.kb import open_known
from memantics.understanding.knowledge.ontology.vocabulary import read_specs


def make_extract_settings(
    order: str = "default",
    refine: Refine | None = None,
    language: str = "en",
    background: Path | None = None,
    attempts: int = 3,
) -> ExtractSettings:
    """Return extraction settings; ``background`` is a text file or a folder of text files."""
    told = read_background(background) if background else ""
    return ExtractSettings(find_plan(order), refine, language, told, attempts)


def with_retrieval(
    settings: ExtractSettings, places: Sequence[Path], count: int = 5
) -> ExtractSettings:
    """Return the settings with background retrieved from graph stores, builds or text folders."""
    if not places:
        return settings
    return replace(settings, retriever=open_known(places), retrieved=count)


def with_dimensions(settings: ExtractSettings, folder: Path | None) -> ExtractSettings:
    """Return the settings with the user's dimensions from a folder of TOML files."""
    if folder is None:
        return settings
    given = read_specs(folder)
    files = tuple(sorted(folder.glob("*.toml")))
    return replace(settings, plan=adapt_plan(settings.plan, given), files=files)


def read_extract_settings(
    *,
    order: Annotated[
        str,
        Flag(
            "Order in which dimensions are extracted: default, paper (of M-QUEST) or official (its "
            "code)."
        ),
    ] = "default",
    refine: Annotated[
        Refine | None,
        Flag(
            "When the model is asked for relations: with the entries (same), in a second call "
            "(second), or never (off)."
        ),
    ] = None,
    background: Annotated[
        Path | None, Flag("Background knowledge: a text file or a folder of text files.")
    ] = None,
    dimensions: Annotated[
        Path | None,
        Flag("Folder of NAME.toml files that add, change or remove dimensions."),
    ] = None,
    retrieve: Annotated[
        Sequence[Path],
        Flag(
            "Knowledge store, build or folder of texts from which background is retrieved; "
            "repeatable."
        ),
    ] = (),
    retrieved: Annotated[
        int, Flag("Number of statements to retrieve per meme.", min=1, max=50)
    ] = 5,
    language: Annotated[str, Flag("Language of labels, descriptions and questions.")] = "en",
    attempts: Attempts = 3,
    toxicity: Annotated[
        ToxicityRule,
        Flag(
            "Definition of toxic: the paper's six kinds, or content that a reviewer would "
            "call harmful."
        ),
    ] = "paper",
) -> ExtractSettings:
    """Return extraction settings from the command-line values."""
    settings = make_extract_settings(order, refine, language, background, attempts)
    settings = replace(settings, toxicity=toxicity)
    return with_dimensions(with_retrieval(settings, retrieve, retrieved), dimensions)
