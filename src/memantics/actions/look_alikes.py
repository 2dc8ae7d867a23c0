"""``build look-alikes``: puns beside the memes nearest to them in picture and in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.build.chats.tools import ChatTools, ImageFolder, TextFolder, open_tools
from memantics.build.lookalikes import LookAlikes, find_look_alikes, pair_up, write_look_alikes
from memantics.core.data import dump_json, open_once
from memantics.core.errors import DataError
from memantics.core.journal import replace_file
from memantics.core.memes import Meme
from memantics.core.parameters import Argument, Data, Flag, QueueVerdicts
from memantics.core.queue import read_review
from memantics.core.result import Result
from memantics.registry import find_benchmark, find_source


@dataclass(frozen=True, slots=True)
class Grouped(Result):
    """The groups of three that a review gives, and the file that publishing reads."""

    file: Path
    groups: tuple[LookAlikes, ...]


def group_look_alikes(
    queue: Annotated[Path | str, Argument("A queue judged by the workflow pun-form.")],
    *,
    verdicts: QueueVerdicts = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
) -> Grouped:
    """Give each pun of a queue judged by ``pun-form`` two look-alikes among those that are none.

    The nearest in picture and the nearest in words; without encoders, by the embedded ones.
    ``publish`` then writes the groups of three.
    """
    folder = Path(queue)
    review = read_review(folder, Path(verdicts) if verdicts else None)
    tools = ChatTools(text_encoder=text_encoder, image_encoder=image_encoder)
    with open_tools(tools) as (embedders, _):
        groups = find_look_alikes(review, embedders)
    return Grouped(write_look_alikes(folder, groups), tuple(groups))


@dataclass(frozen=True, slots=True)
class LookAlikeCheck(Result):
    """How many groups of a release are found again: by picture, and by words."""

    groups: int
    image: int
    text: int


def check_look_alikes(
    *,
    data: Data = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
    out: Annotated[Path | None, Flag("File for the figures; 'paper --figures' reads it.")] = None,
) -> LookAlikeCheck:
    """Take PunMemeCN's groups of three apart and put them together again, as ``look-alikes`` does.

    A pun is right by picture when its nearest non-pun is the one that its group has for that, and
    by words alike. Groups without all three images are left out.
    """
    benchmark = find_benchmark("punmemecn")
    source = find_source(benchmark, data)
    seen = [meme for meme in open_once(benchmark.plugin.open_release, source).memes if meme.image]
    whole = {meme.group for meme in seen if sum(m.group == meme.group for m in seen) == 3}
    puns = [meme for meme in seen if meme.group in whole and meme.is_pun]
    pool = [meme for meme in seen if meme.group in whole and not meme.is_pun]
    if not puns:
        raise DataError(source.root, "no group has its three images", hint="data add --images DIR")
    tools = ChatTools(text_encoder=text_encoder, image_encoder=image_encoder)
    memes = [Meme(meme.id, meme.image, meme.caption) for meme in (*puns, *pool)]
    with open_tools(tools) as (embedders, _):
        images = embedders.image.encode(memes)
        texts = embedders.text.encode([meme.reading or meme.caption for meme in (*puns, *pool)])
    found = pair_up(images, texts, len(puns))
    right = {
        kind: sum(
            (pool[pairs[n][0]].group, pool[pairs[n][0]].role) == (pun.group, f"similar_{kind}")
            for n, pun in enumerate(puns)
            if n in pairs
        )
        for kind, pairs in found.items()
    }
    done = LookAlikeCheck(len(puns), right["image"], right["text"])
    if out is not None:
        figures = {f"look_alikes.{name}": getattr(done, name) for name in ("groups", *right)}
        replace_file(out, dump_json(figures).encode(), "figures")
    return done
