"""How actions open a desk: a model, its journal in a folder, the cache, and progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, cast

from memantics.actions.asking import Asking, make_asking, open_cache
from memantics.core.errors import InputError
from memantics.core.parameters import MadeBy
from memantics.registry import open_model
from memantics.run.desk import Desk
from memantics.run.engine import AskSettings
from memantics.run.progress import Progress

Watch = Callable[[Progress], None]


class AskingOptions(TypedDict, total=False):
    """How a model is asked, one by one or all at once as ``asking``.

    Without ``use_cache`` it is asked again even what is known.
    """

    base_url: str | None
    params: Mapping[str, str]
    concurrency: int
    timeout: float
    use_cache: bool
    asking: Annotated[Asking, MadeBy(make_asking)]


def find_asking(**options: Unpack[AskingOptions]) -> Asking:
    """The settings of asking that keyword arguments name.

    >>> find_asking(base_url="http://localhost:8000/v1", concurrency=8).concurrency
    8
    """
    given = options.pop("asking", None)
    return given or make_asking(**cast("Any", options))


def asking_of(options: AskingOptions) -> Asking:
    """The settings of asking among the options of an action."""
    named = {
        name: value for name, value in options.items() if name in AskingOptions.__annotations__
    }
    return find_asking(**cast("AskingOptions", named))


def require_model(name: str | None) -> str:
    """The name of the model, which must be given."""
    if name is None:
        raise InputError(
            "no model was named: what is built is asked from one",
            hint="give --model, such as openai/NAME with --base-url",
        )
    return name


@asynccontextmanager
async def open_desk(
    name: str | None, asking: Asking, folder: Path, watch: Watch | None = None
) -> AsyncIterator[Desk]:
    """A desk for one model; say ``desk.expect(n)`` when the number of steps is known."""
    model = open_model(require_model(name), asking.settings)
    settings = AskSettings(concurrency=asking.concurrency)
    try:
        with (
            open_cache(asking.use_cache and model.cacheable) as cache,
            Desk(model, folder, cache, settings, watch or (lambda _: None)) as desk,
        ):
            yield desk
    finally:
        await model.close()


def share_watch(watch: Watch | None, count: int) -> list[Watch | None]:
    """Watchers for several desks that work at once; each shows the sum of what all have done."""
    if watch is None:
        return [None] * count
    seen = [Progress()] * count

    def make(place: int) -> Watch:
        def show(progress: Progress) -> None:
            seen[place] = progress
            watch(add_progress(seen))

        return show

    return [make(place) for place in range(count)]


def add_progress(parts: list[Progress]) -> Progress:
    """The counts of several desks together; they run at the same time, so seconds do not add.

    >>> add_progress([Progress(done=2, total=4, seconds=3.0), Progress(done=1)]).done
    3
    """
    numbers: dict[str, Any] = {
        field.name: sum(getattr(part, field.name) or 0 for part in parts)
        for field in fields(Progress)
        if field.name != "adapted"
    }
    adapted = tuple(dict.fromkeys(line for part in parts for line in part.adapted))
    longest = max(part.seconds for part in parts), max(part.paused for part in parts)
    total = numbers["total"] or None
    both = replace(Progress(**numbers), total=total, seconds=longest[0], paused=longest[1])
    return replace(both, adapted=adapted)
