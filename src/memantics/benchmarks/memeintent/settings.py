"""The options of MemeIntent's tasks, read and checked before anything is asked."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from memantics.core.errors import InputError, MissingExtra
from memantics.core.services import BertSettings, Direction, NliSettings, Services
from memantics.core.task import Need
from memantics.metrics.text import Smoothing, Tokenizer
from memantics.tasks.plugin import TaskSetup

_OFF = "off"


@dataclass(frozen=True, slots=True)
class Asking:
    """What shapes the requests of a task."""

    task: Literal["intent", "background", "caption"]
    role: str
    few: bool
    background: str
    captions: str
    only_present: bool
    greedy: bool
    max_tokens: int | None

    @property
    def needs_picture(self) -> bool:
        """Whether a meme without its image cannot be asked about."""
        return self.role == "vlm" or self.captions == "model"

    @property
    def needs(self) -> tuple[Need, ...]:
        """Answers that must be there first."""
        shared = {
            "images": "present" if self.only_present else "all",
            "decoding": "greedy" if self.greedy else "server",
        }
        own = {"role": self.role, "shots": "few" if self.few else "zero", "captions": self.captions}
        needs = []
        if self.background == "auto":
            needs.append(Need("background", "memeintent/background", shared | own))
        if self.captions == "model":
            needs.append(Need("image_caption", "memeintent/caption", shared, captioner=True))
        return tuple(needs)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What shapes the figures of a task."""

    strip_prefix: bool
    by_fact: bool
    smoothing: Smoothing
    tokenizer: Tokenizer
    lower: bool
    stem: bool
    with_bleu: bool
    neural_known: bool
    bert: BertSettings | None
    nli: NliSettings | None
    services: Services


def read_asking(setup: TaskSetup) -> Asking:
    """The options that shape requests; those that a task lacks have one value."""
    chosen = setup.options
    return Asking(
        task=cast("Literal['intent', 'background', 'caption']", setup.card.name),
        role=chosen.get("role", "vlm"),
        few=chosen.get("shots") == "few",
        background=chosen.get("background", "none"),
        captions=chosen.get("captions", "none"),
        only_present=chosen["images"] == "present",
        greedy=chosen["decoding"] == "greedy",
        max_tokens=None
        if chosen["max_tokens"] == "server"
        else _number("max_tokens", chosen["max_tokens"], 1, 131_072),
    )


def read_scoring(chosen: Mapping[str, str], services: Services) -> Scoring:
    """The options that shape figures."""
    return Scoring(
        strip_prefix=chosen.get("strip_prefix") == "yes",
        by_fact=chosen.get("against") == "facts",
        smoothing=cast("Smoothing", chosen.get("bleu_smoothing", "none")),
        tokenizer=cast("Tokenizer", chosen.get("bleu_tokenizer", "words")),
        lower=chosen.get("bleu_case", "lower") == "lower",
        stem=chosen["stemmer"] == "porter",
        with_bleu="bleu_smoothing" in chosen,
        neural_known="bertscore" in chosen,
        bert=_read_bert(chosen),
        nli=_read_nli(chosen),
        services=services,
    )


def check_scoring(scoring: Scoring) -> None:
    """Say before the first call, not after the last, that a figure cannot be had."""
    for settings in (scoring.bert, scoring.nli):
        if settings is not None:
            scoring.services.check_text_model(settings.path)
    wanted = ["nltk"] if scoring.stem else []
    wanted += ["torch", "transformers"] if scoring.bert or scoring.nli else []
    if not all(importlib.util.find_spec(name) for name in wanted):
        raise MissingExtra("neural figures and stems", "text")


def _read_bert(chosen: Mapping[str, str]) -> BertSettings | None:
    path = chosen.get("bertscore", _OFF)
    if path == _OFF:
        return None
    layer, table = chosen["bertscore_layer"], chosen["bertscore_rescale"]
    return BertSettings(
        Path(path).expanduser(),
        None if layer == "auto" else _number("bertscore_layer", layer, 0, 1000),
        None if table == _OFF else Path(table).expanduser(),
    )


def _read_nli(chosen: Mapping[str, str]) -> NliSettings | None:
    path = chosen.get("nli", _OFF)
    if path == _OFF:
        return None
    labels = None
    if chosen["nli_labels"] != "auto":
        first, _, second = chosen["nli_labels"].partition("-")
        labels = (_number("nli_labels", first, 0, 99), _number("nli_labels", second, 0, 99))
    return NliSettings(
        Path(path).expanduser(),
        cast("Direction", chosen["nli_direction"]),
        labels,
        by_sentence=chosen["nli_unit"] == "sentences",
    )


def _number(option: str, text: str, low: int, high: int) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 9 and low <= int(text) <= high:
        return int(text)
    raise InputError(
        f"option {option}: {text!r} is no number from {low} to {high:,}",
        hint=f"such as --set {option}={max(low, min(high, 100))}",
    )
