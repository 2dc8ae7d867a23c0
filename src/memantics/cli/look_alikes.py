"""``memantics build look-alikes``: PunMemeCN's groups of three."""

from __future__ import annotations

from memantics.actions import look_alikes as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain


@expose(action.group_look_alikes)
def group_memes(done: action.Grouped) -> None:
    """Give each pun two look-alikes: the non-puns nearest in picture and in words."""
    console().print(plain(f"{len(done.groups)} groups of three: {done.file}"), soft_wrap=True)


@expose(action.check_look_alikes)
def check_groups(done: action.LookAlikeCheck) -> None:
    """Find PunMemeCN's groups of three again: how many are right by picture and by words."""
    told = f"{done.image} by picture, {done.text} by words of {done.groups} groups are right"
    console().print(plain(told), soft_wrap=True)
