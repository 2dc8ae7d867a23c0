"""``build chat-quality``: fluency, coherence and diversity of any file of chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.build.chats.quality import ChatQuality, measure_file, write_figures
from memantics.build.chats.tools import BertFolder, ChatTools, Perplexity, open_tools
from memantics.core.errors import InputError
from memantics.core.parameters import Argument
from memantics.core.result import Result, Table


@dataclass(frozen=True, slots=True)
class ChatFigures(Result):
    """Figures of files of chats; ``note`` says what measured coherence and perplexity."""

    files: tuple[ChatQuality, ...]
    note: str

    def table(self) -> Table:
        """PunMemeCN's Table 1."""
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
        """Write the figures for ``paper(figures=…)``; the first file is the benchmark's own."""
        write_figures(Path(path), self.files)
        return Path(path)


def measure_chats(
    files: Annotated[
        Path | str | Sequence[Path | str],
        Argument("Chats: PunMemeCN's, ours, or any JSON with lists of utterances."),
    ],
    *,
    perplexity: Perplexity = None,
    bert: BertFolder | str = None,
) -> ChatFigures:
    """Measure files of chats: fluency, coherence of neighbouring turns, diversity.

    ``perplexity`` and ``bert`` name models; without ``bert`` coherence is the cosine of sentence
    vectors, without ``perplexity`` there is none.
    """
    paths = [Path(folder) for folder in ([files] if isinstance(files, str | Path) else files)]
    if not paths:
        raise InputError("no file of chats was named", hint="such as '_Chat(easy).json'")
    tools = ChatTools(perplexity, None if bert is None else Path(bert))
    with open_tools(tools) as (_, gauges):
        found = tuple(measure_file(path, gauges.fluency, gauges.flow) for path in paths)
        notes = [f"coherence: {gauges.flow.note}"] if gauges.flow else []
        notes += [f"perplexity: {gauges.fluency.note}"] if gauges.fluency else []
    return ChatFigures(found, "; ".join(notes))
