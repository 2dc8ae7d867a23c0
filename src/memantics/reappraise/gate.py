"""Only clearly negative memes are turned around: what people said of them, meme by meme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from memantics.core.errors import DataError
from memantics.core.memes import Meme
from memantics.core.queue import read_verdicts
from memantics.reappraise.records import Emotion


@dataclass(frozen=True, slots=True)
class FeelingGate:
    """Memes that may go on, with the feeling that people agreed on; and why others may not."""

    memes: tuple[Meme, ...]
    emotions: Mapping[str, Emotion] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def pass_gate(memes: Sequence[Meme], verdicts: Path | None) -> FeelingGate:
    """The memes that people judged clearly negative (workflow ``find-emotions``).

    Without verdicts every meme may go on, and the planner decides.
    """
    if verdicts is None:
        return FeelingGate(tuple(memes))
    known = {verdict.item: verdict for verdict in read_verdicts(verdicts)}
    named = {emotion: emotion for emotion in get_args(Emotion)}
    kept, emotions, left_out = [], dict[str, Emotion](), dict[str, str]()
    for meme in memes:
        verdict = known.get(meme.id)
        said = {} if verdict is None else verdict.values
        emotion = named.get(str(said.get("source_emotion")))
        if verdict is None:
            left_out[meme.id] = "nobody judged it"
        elif not verdict.kept:
            left_out[meme.id] = verdict.reason or "people dropped it"
        elif said.get("negative") != "yes" or emotion is None:
            left_out[meme.id] = f"not clearly negative: {said.get('negative', 'no majority')}"
        else:
            kept.append(meme)
            emotions[meme.id] = emotion
    if not kept:
        raise DataError(verdicts, "no meme of the folder is clearly negative in it")
    return FeelingGate(tuple(kept), emotions, left_out)
