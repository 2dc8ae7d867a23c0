"""``memantics serve``: HTTP interfaces and pages on one port."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memantics.actions.asking import Asking
from memantics.cli.flags import asks_models
from memantics.cli.terminal import say

if TYPE_CHECKING:
    from memantics.serve.settings import ServeSettings

ModelNames = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="KIND/NAME for what needs a model; may be repeated."),
]
DetectorFile = Annotated[
    Path | None, typer.Option(help="Detector file. Default: the starter pack's sample.")
]
StoreFolder = Annotated[
    Path | None, typer.Option(help="Knowledge store. Default: the starter pack's knowledge.")
]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Processes; each loads the models.")]
StateFolder = Annotated[
    Path | None, typer.Option(help="Folder of jobs. Default: serve in the home folder.")
]
Proxies = Annotated[list[str] | None, typer.Option(help="Proxy whose X-Forwarded-For is believed.")]
Origins = Annotated[list[str] | None, typer.Option(help="Site whose scripts may call (CORS).")]
ImageHosts = Annotated[
    list[str] | None, typer.Option(help="Host from which images may be fetched.")
]


@asks_models(price=False)
def serve(
    asking: Asking,
    model: ModelNames = None,
    detector: DetectorFile = None,
    store: StoreFolder = None,
    runs: Annotated[Path | None, typer.Option(help="Folder of runs to browse.")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the store's memes.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080,
    workers: Workers = 1,
    tokens: Annotated[Path | None, typer.Option(help="File of 'memantics serve-token'.")] = None,
    state: StateFolder = None,
    queue: Annotated[int, typer.Option(min=1, help="Items that may wait; then 429.")] = 256,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 30.0,
    keep: Annotated[float, typer.Option(min=0.0, help="Hours a job's result is kept.")] = 24.0,
    public_url: Annotated[str, typer.Option(help="The address people use, behind a proxy.")] = "",
    trusted_proxy: Proxies = None,
    origin: Origins = None,
    image_host: ImageHosts = None,
) -> None:
    """Serve moderation, analysis and pages over HTTP, offline by default."""
    from memantics.serve import require_extra

    require_extra()
    from memantics.serve.run import run
    from memantics.serve.settings import Bounds, Models, Reach, ServeSettings, find_tokens
    from memantics.web.address import check_public_url, read_proxies

    reach = Reach(
        host,
        port,
        check_public_url(public_url),
        read_proxies(trusted_proxy or ()),
        tuple(origin or ()),
    )
    settings = ServeSettings(
        reach,
        Models(detector, tuple(model or ()), asking, store, runs, images),
        Bounds(waiting=queue, deadline=deadline, keep=keep * 3600, hosts=tuple(image_host or ())),
        find_tokens(tokens),
        workers=workers,
        **({"state": state} if state else {}),
    )
    run(settings, _show_start)


def _show_start(settings: ServeSettings) -> None:
    say(f"Serving on {settings.reach.address}")
    if settings.models.detector is None:
        say("Verdicts are the sample detector's: an example, not to be acted on (--detector FILE).")
    say("Stop with Ctrl+C; what was accepted is finished first.")
    sys.stdout.flush()  # whoever reads a pipe or a log waits for the address


def make_token(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    file: Annotated[Path, typer.Option("--tokens", help="File that it is added to.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="What it may do; all by default. May be repeated.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a minute.")] = 600.0,
) -> None:
    """Make a token for a client of the service; only its digest is kept."""
    from memantics.serve.tokens import make_token as make

    secret, made = make(file, name, scope or (), rate)
    say(secret)
    say(f"Scopes: {', '.join(made.scopes)}. It is shown this once; {file} holds its digest.")
