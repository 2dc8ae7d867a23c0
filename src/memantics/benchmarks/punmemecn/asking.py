"""Questions about a single meme: with or without caption, pinyin, examples and reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memantics.benchmarks.punmemecn.brief import Brief, Style
from memantics.benchmarks.punmemecn.examples import Who, pick_memes
from memantics.benchmarks.punmemecn.records import Meme
from memantics.benchmarks.punmemecn.wording import (
    Shot,
    Wording,
    describe,
    hash_shots,
    lay_out,
    name_facts,
    read_wording,
)
from memantics.core.records import Image, Item, Message


@dataclass(frozen=True, slots=True)
class MemePrompt:
    """How a task asks about one meme. ``hashes`` is what a run remembers of it."""

    task: str
    wording: Wording
    style: Style
    shots: tuple[Shot, ...]
    layout: str
    hashes: Mapping[str, str]

    def write(self, item: Item) -> tuple[Message, ...]:
        """The messages for an item."""
        return lay_out(item.images, item.form.context, self.shots, self._text, self.layout)

    def _text(self, context: Mapping[str, str], told: bool) -> str:
        say = self.wording.say
        last = self.wording.ordinal(len(self.shots) + 1)
        rule = "reasons" if self.style.reasons else "reply"
        return say(
            self.task,
            examples=say("examples", last=last, shown=self._show()) if told else "",
            meme=say("meme_last", place=last) if told else say("meme"),
            facts=self.wording.tell(context),
            reply=say(f"{self.task}_{rule}"),
        )

    def _show(self) -> str:
        return "\n\n".join(
            self.wording.say(
                "example",
                place=self.wording.ordinal(number),
                facts=self.wording.tell(shot.context),
                answer=shot.answer,
            )
            for number, shot in enumerate(self.shots, 1)
        )


def prepare(
    task: str, brief: Brief, ids: dict[Who, tuple[str, ...]], label: Callable[[Meme], str]
) -> MemePrompt:
    """The prompt of a brief; ``label`` writes a meme's right answer. Examples need the data."""
    wording, style = read_wording(brief.language), brief.style
    rule = "reasons" if style.reasons else "reply"
    hashes = wording.hashes(task, f"{task}_{rule}", "meme", *name_facts(style))
    shots: tuple[Shot, ...] = ()
    if style.shots:
        hashes |= wording.hashes("examples", "example", "meme_last")
        if style.reasons:
            hashes |= wording.hashes(
                f"{task}_worked", "reason_homophone", "reason_senses", "reason_none"
            )
        if brief.source is not None:
            picked = pick_memes(brief, ids)
            shots = tuple(_work(task, wording, style, m, label(m)) for m in picked.memes)
            hashes[picked.name] = hash_shots(shots)
    return MemePrompt(task, wording, style, shots, brief.options["layout"], hashes)


def _work(task: str, wording: Wording, style: Style, meme: Meme, label: str) -> Shot:
    answer = label
    if style.reasons:
        answer = wording.say(f"{task}_worked", reason=wording.explain(meme), label=label)
    images = (Image(meme.image),) if meme.image is not None else ()
    return Shot(images, describe(meme, style), answer)
