"""How commands open a desk: a model, its journal in the folder of the build, and a progress bar."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import typer

from memantics.cli.evaluation import read_pairs, read_price
from memantics.cli.progress import Watcher
from memantics.core.cache import Cache
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.registry import ModelSettings, open_model
from memantics.run.desk import Desk
from memantics.run.engine import AskSettings
from memantics.run.progress import Progress

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DeskWish:
    """What a user says about the model that takes the steps."""

    model: str
    settings: ModelSettings = field(default_factory=ModelSettings)
    prices: tuple[float, float] | None = None
    use_cache: bool = True


@dataclass(frozen=True, slots=True)
class Calls:
    """The options of every command that asks a model, as a user gave them."""

    model: str | None
    base_url: str | None
    param: list[str] | None
    concurrency: int
    timeout: float
    price: str | None
    no_cache: bool

    def wish(self) -> DeskWish:
        """The wish for a desk; without a model nothing is built, for nothing is invented."""
        if self.model is None:
            raise InputError(
                "no model was named: what is built is asked from one",
                hint="give --model, such as openai/NAME with --base-url",
            )
        settings = ModelSettings(
            self.base_url, self.concurrency, self.timeout, read_pairs("--param", self.param)
        )
        return DeskWish(self.model, settings, read_price(self.price), not self.no_cache)


@asynccontextmanager
async def open_desk(wish: DeskWish, folder: Path, title: str) -> AsyncIterator[Desk]:
    """A desk that shows its progress; say ``desk.expect(n)`` when the number of steps is known."""
    model = open_model(wish.model, wish.settings)
    cache = Cache(home() / "cache.sqlite") if wish.use_cache and model.cacheable else None
    settings = AskSettings(concurrency=wish.settings.concurrency)
    try:
        with (
            Watcher(title, None, wish.prices) as view,
            Desk(model, folder, cache, settings, view.show) as desk,
        ):
            yield desk
    finally:
        await model.close()
        if cache is not None:
            cache.close()


def run_chain(chain: Callable[[], Coroutine[object, object, Result]]) -> Result:
    """Run a chain of steps; an interruption says how to go on."""
    try:
        return asyncio.run(chain())
    except (KeyboardInterrupt, typer.Abort):
        typer.echo(
            "interrupted: what was answered is kept; run the same command to go on", err=True
        )
        raise typer.Exit(130) from None


@contextmanager
def watching(
    title: str, prices: tuple[float, float] | None
) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of an action that asks a model; an interruption says how to go on."""
    try:
        with Watcher(title, None, prices) as view:
            yield view.show
    except (KeyboardInterrupt, typer.Abort):
        typer.echo(
            "interrupted: what was answered is kept; run the same command to go on", err=True
        )
        raise typer.Exit(130) from None


def stop_at_failures(counts: Mapping[str, int]) -> None:
    """Exit code 1 where calls failed."""
    if counts.get("failed"):
        raise typer.Exit(1)
