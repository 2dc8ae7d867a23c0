"""Settings of the verbs of :mod:`memantics.actions.build`, from the words a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from memantics.actions.retrieve import open_known
from memantics.build.chats.build import BuildSettings
from memantics.build.chats.distractors import DistractorSettings
from memantics.build.chats.generate import ChatSettings
from memantics.build.chats.rules import ChatLimits
from memantics.build.chats.tools import ChatTools
from memantics.build.extract.chain import ExtractSettings
from memantics.build.extract.folder import read_background
from memantics.build.extract.plan import Refine, adapt_plan, find_plan
from memantics.build.intents.draft import IntentSettings
from memantics.build.intents.form import MOST_INTENTS
from memantics.build.questions.records import Critic, QuestionSettings
from memantics.core.errors import UnknownName
from memantics.knowledge.ontology.specs import read_specs
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, Dimension, find_dimension
from memantics.tasks.chats import TOPICS, Topic

__all__ = [
    "MOST_INTENTS",
    "TOPICS",
    "BuildSettings",
    "ChatLimits",
    "ChatSettings",
    "ChatTools",
    "Critic",
    "DistractorSettings",
    "ExtractSettings",
    "IntentSettings",
    "QuestionSettings",
    "Refine",
    "find_dimensions",
    "find_topics",
    "make_extract_settings",
    "with_dimensions",
    "with_retrieval",
]


def make_extract_settings(
    order: str = "default",
    refine: Refine | None = None,
    language: str = "en",
    background: Path | None = None,
    attempts: int = 3,
) -> ExtractSettings:
    """How knowledge is extracted; ``background`` is a text file, or a folder of them."""
    told = read_background(background) if background else ""
    return ExtractSettings(find_plan(order), refine, language, told, attempts)


def with_retrieval(
    settings: ExtractSettings, places: Sequence[Path], count: int = 5
) -> ExtractSettings:
    """The same settings, with background retrieved from stores, builds or folders of texts."""
    if not places:
        return settings
    return replace(settings, retriever=open_known(places), retrieved=count)


def with_dimensions(settings: ExtractSettings, folder: Path | None) -> ExtractSettings:
    """The same settings, with dimensions of the user's own: a folder of TOML files."""
    if folder is None:
        return settings
    given = read_specs(folder)
    files = tuple(sorted(folder.glob("*.toml")))
    return replace(settings, plan=adapt_plan(settings.plan, given), files=files)


def find_dimensions(names: Sequence[str]) -> tuple[Dimension, ...]:
    """Dimensions by our names or the official ones, each once.

    >>> find_dimensions(["EmotionExpression", "Emotion"])
    ('Emotion',)
    """
    found = {name: find_dimension(name) for name in names}
    for name, dimension in found.items():
        if dimension is None:
            raise UnknownName("dimension", name, DIMENSIONS)
    return tuple(dict.fromkeys(text for text in found.values() if text is not None))


def find_topics(names: Sequence[str]) -> tuple[Topic, ...]:
    """Topics of chats by name, each once; all where none is named."""
    for name in names:
        if name not in TOPICS:
            raise UnknownName("topic", name, TOPICS)
    return tuple(cast("Topic", name) for name in dict.fromkeys(names or TOPICS))
