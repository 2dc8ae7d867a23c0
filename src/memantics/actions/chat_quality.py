"""``build chat-quality``: fluency, coherence and diversity of any file of chats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memantics.build.chats.quality import ChatQuality, measure_chats, write_figures
from memantics.build.chats.tools import ChatTools, open_tools
from memantics.core.errors import InputError
from memantics.core.result import Table

__all__ = ["ChatQuality", "measure_chat_files", "tabulate_quality", "write_figures"]


def measure_chat_files(
    paths: Sequence[Path], *, perplexity: str | None = None, bert: Path | None = None
) -> tuple[list[ChatQuality], str]:
    """Measure files of chats, and say what measured coherence and perplexity.

    ``perplexity`` and ``bert`` name models; without ``bert`` coherence is the cosine of sentence
    vectors, without ``perplexity`` there is none.
    """
    if not paths:
        raise InputError("no file of chats was named", hint="such as '_Chat(easy).json'")
    with open_tools(ChatTools(perplexity, bert)) as (_, gauges):
        found = [measure_chats(path, gauges.fluency, gauges.flow) for path in paths]
        notes = [f"coherence: {gauges.flow.note}"] if gauges.flow else []
        notes += [f"perplexity: {gauges.fluency.note}"] if gauges.fluency else []
    return found, "; ".join(notes)


def tabulate_quality(found: Sequence[ChatQuality]) -> Table:
    """The paper's Table 1."""
    columns = ("file", *(f">{n}" for n in ("chats", "perplexity", "coherence")))
    columns = (*columns, ">Distinct-1", ">Distinct-2")
    rows = tuple(
        (
            own.file,
            f"{own.chats:,}",
            *(
                "–" if value is None else f"{value:.3f}"
                for value in (own.perplexity, own.coherence, own.distinct_1, own.distinct_2)
            ),
        )
        for own in found
    )
    return Table(columns, rows)
