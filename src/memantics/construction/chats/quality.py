"""``build chat-quality``: fluency, coherence of adjacent turns and diversity of chat files.

It computes Table 1 of the PunMemeCN paper for that benchmark's files, for output of ``build
chats``, and for dialogue data sets with a list of utterances under one of several names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import JsonValue

from memantics.construction.chats.rules import Flow, Fluency
from memantics.construction.chats.selection import BertFolder, ChatTools, Perplexity, open_tools
from memantics.core.data import read_json, read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.parameters import Argument
from memantics.core.result import Result, Table
from memantics.core.text import cut_chinese
from memantics.metrics.text import measure_distinct

# Names under which dialogue data sets store utterances.
_LISTS = ("turns", "chat_history", "conversation", "content", "dialog", "dialogue", "messages")
_TEXTS = ("text", "utterance", "content", "value")
_TAG = re.compile(r"^\s*(?:[甲乙AB]|speaker ?\d)\s*[:：]\s*", re.IGNORECASE)
_MEME = re.compile(r"!\[[^\]]*\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class ChatQuality(Result):
    """Store the metrics of one file; None if a metric's model was not given.

    ``perplexity`` is the mean over utterances. ``coherence`` is the mean over adjacent utterances,
    measured by ``coherence_by``.
    """

    file: str
    chats: int
    utterances: int
    perplexity: float | None
    coherence: float | None
    distinct_1: float | None
    distinct_2: float | None
    coherence_by: str = ""

    def metrics(self, start: str = "chats") -> dict[str, JsonValue]:
        """Return the metrics by the names of PunMemeCN's statistics, and the cosine similarity."""
        scored = self.coherence_by.startswith("BERTScore")
        return {
            f"{start}.perplexity": self.perplexity,
            f"{start}.bertscore": self.coherence if scored else None,
            f"{start}.distinct_1": self.distinct_1,
            f"{start}.distinct_2": self.distinct_2,
        }


def read_chats(path: Path) -> list[list[str]]:
    """Return the utterances of each chat, without speakers and memes."""
    found = [lines for lines in (_clean(chat) for chat in _walk(_load(path))) if lines]
    if not found:
        raise DataError(
            path,
            "contains no chats",
            hint=f"expected a list of utterances under one of {', '.join(_LISTS)}",
        )
    return found


def _load(path: Path) -> JsonValue:
    if path.suffix == ".jsonl":
        return [value for _, value in read_jsonl(path)]
    try:
        return read_json(path)
    except DataError:
        # Many data sets store JSON lines in .json or .txt files.
        return [value for _, value in read_jsonl(path)]


def _walk(value: JsonValue) -> Iterator[list[str]]:
    """Yield every list of utterances in a document, at any depth."""
    if isinstance(value, str) and "\n" in value:
        yield value.split("\n")  # format of chats in PunMemeCN's metadata
    elif isinstance(value, list):
        said = [_read_text(member) for member in value]
        if said and all(line is not None for line in said):
            yield [line for line in said if line is not None]
        else:
            for member in value:
                yield from _walk(member)
    elif isinstance(value, dict):
        named = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        inner = [value["meme_chat"]] if "meme_chat" in value else value.values()
        if named is not None:
            yield from _walk(named)
        else:
            for member in inner:
                if isinstance(member, dict | list) or member is not value.get("meme_explanation"):
                    yield from _walk(member)


def _read_text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((str(value[name]) for name in _TEXTS if isinstance(value.get(name), str)), None)
    return None


def _clean(chat: Iterable[str]) -> list[str]:
    plain = (_MEME.sub("", _TAG.sub("", line)).strip() for line in chat)
    return [line for line in plain if line]


def measure_file(path: Path, fluency: Fluency | None, flow: Flow | None) -> ChatQuality:
    """Return all metrics of a file."""
    chats = read_chats(path)
    lines = [line for chat in chats for line in chat]
    pairs = [pair for chat in chats for pair in pairwise(chat)]
    varied = measure_distinct(lines, cut_chinese)
    return ChatQuality(
        file=path.name,
        chats=len(chats),
        utterances=len(lines),
        perplexity=_mean(fluency.measure(lines)) if fluency else None,
        coherence=_mean(flow.measure(pairs)) if flow and pairs else None,
        distinct_1=_round(varied[1]),
        distinct_2=_round(varied[2]),
        coherence_by=flow.note if flow else "",
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def write_metrics(path: Path, found: Sequence[ChatQuality]) -> None:
    """Write metrics in the format that ``memantics paper --statistics`` reads.

    The first file holds the benchmark's chats; others are named by their file names.
    """
    metrics = found[0].metrics()
    for quality in found[1:]:
        metrics |= quality.metrics(f"chats.{Path(quality.file).stem}")
    known = {key: value for key, value in metrics.items() if value is not None}
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ChatMetrics(Result):
    """Store the metrics of chat files; ``note`` names the measures of coherence and perplexity."""

    files: tuple[ChatQuality, ...]
    note: str

    def table(self) -> Table:
        """Return PunMemeCN's Table 1."""
        columns = ("file", *(f">{n}" for n in ("chats", "perplexity", "coherence")))
        columns = (*columns, ">Distinct-1", ">Distinct-2")
        rows = tuple(
            (
                quality.file,
                f"{quality.chats:,}",
                *(
                    "–" if value is None else f"{value:.3f}"
                    for value in (
                        quality.perplexity,
                        quality.coherence,
                        quality.distinct_1,
                        quality.distinct_2,
                    )
                ),
            )
            for quality in self.files
        )
        return Table(columns, rows)

    def save(self, path: Path | str) -> Path:
        """Write metrics for ``paper(statistics=…)``; the first file holds the benchmark's chats."""
        write_metrics(Path(path), self.files)
        return Path(path)


def measure_chats(
    files: Annotated[
        Path | str | Sequence[Path | str],
        Argument("JSON files with chats: of PunMemeCN, of 'build chats', or lists of utterances."),
    ],
    *,
    perplexity: Perplexity = None,
    bert: BertFolder | str = None,
) -> ChatMetrics:
    """Measure files of chats: fluency, coherence of neighbouring turns, diversity.

    Args:
        files: One file or several: PunMemeCN's chats, ours, or any JSON with lists of utterances.
        perplexity: Language model that measures fluency. Default: fluency is not measured.
        bert: Folder of a BERT model for coherence. Default: cosine of sentence embeddings.

    Returns:
        The metrics of each file, and a note on what was not measured.

    Raises:
        DataError: A file holds no chats.

    Example:
        >>> built = mm.build.chats("memes", model="fake/drafter")  # for real chats, a VLM
        >>> round(mm.measure_chats("builds/memes/chats.jsonl").files[0].distinct_2, 1)
        0.8
    """
    paths = [Path(folder) for folder in ([files] if isinstance(files, str | Path) else files)]
    if not paths:
        raise InputError("no chat file was given", hint="for example '_Chat(easy).json'")
    tools = ChatTools(perplexity, None if bert is None else Path(bert))
    with open_tools(tools) as (_, gauges):
        found = tuple(measure_file(path, gauges.fluency, gauges.flow) for path in paths)
        notes = [f"coherence: {gauges.flow.note}"] if gauges.flow else []
        notes += [f"perplexity: {gauges.fluency.note}"] if gauges.fluency else []
    return ChatMetrics(found, "; ".join(notes))
