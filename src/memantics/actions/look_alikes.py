"""``build look-alikes``: puns beside the memes nearest to them in picture and in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.actions.options import QueueVerdicts
from memantics.build.chats.tools import ChatTools, ImageFolder, TextFolder, open_tools
from memantics.build.lookalikes import LookAlikes, find_look_alikes, write_look_alikes
from memantics.core.parameters import Argument
from memantics.core.result import Result
from memantics.core.review import read_review

__all__ = ["Grouped", "LookAlikes", "group_look_alikes"]


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
