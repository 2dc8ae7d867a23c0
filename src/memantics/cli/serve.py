"""``memantics serve``: HTTP interfaces and pages on one port."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memantics.cli.expose import spread, spread_with
from memantics.cli.terminal import say
from memantics.core.language import read_language
from memantics.core.parameters import Argument, Flag, MadeBy, TextTaken
from memantics.models.client import CallSettings
from memantics.moderation import SampleChoice, choose_sample

if TYPE_CHECKING:
    from memantics.serve.settings import ServeSettings

ModelNames = Annotated[
    list[str] | None,
    Flag("KIND/NAME for what needs a model; may be repeated.", "--model -m"),
]
DetectorFiles = Annotated[
    list[Path] | None,
    Flag("Detector file; repeat it for other languages. Default: the sample data's sample."),
]
ShadowFile = Annotated[Path | None, Flag("Detector that judges beside; disagreements are counted.")]
StoreFolder = Annotated[Path | None, Flag("Knowledge store. Default: the sample data's knowledge.")]
ChoicesFile = Annotated[
    Path | None, Flag("File to add choices in the studio to. Default: not kept.")
]
Workers = Annotated[int, Flag("Processes; each loads the models.", min=1, max=64)]
StateFolder = Annotated[Path | None, Flag("Folder of jobs. Default: serve in the home folder.")]
Proxies = Annotated[list[str] | None, Flag("Proxy whose X-Forwarded-For is believed.")]
Origins = Annotated[list[str] | None, Flag("Site whose scripts may call (CORS).")]
ImageHosts = Annotated[list[str] | None, Flag("Host from which images may be fetched.")]


@spread_with(hide=("prices",))
def serve(
    calls: CallSettings,
    sample: Annotated[SampleChoice | None, MadeBy(choose_sample)],
    model: ModelNames = None,
    detector: DetectorFiles = None,
    shadow: ShadowFile = None,
    language: Annotated[str, Flag("Language of all texts. Default: each is told.")] = "",
    text: TextTaken = "caption",
    store: StoreFolder = None,
    runs: Annotated[Path | None, Flag("Folder of runs to browse.")] = None,
    images: Annotated[Path | None, Flag("Folder of the store's memes.")] = None,
    preferences: ChoicesFile = None,
    host: Annotated[str, Flag("Where to listen.")] = "127.0.0.1",
    port: Annotated[int, Flag("0 takes any free port.", min=0, max=65535)] = 8080,
    workers: Workers = 1,
    tokens: Annotated[Path | None, Flag("File of 'memantics serve-token'.")] = None,
    state: StateFolder = None,
    queue: Annotated[int, Flag("Items that may wait; then 429.", min=1)] = 256,
    deadline: Annotated[float, Flag("Seconds for a request.", min=0.1)] = 30.0,
    keep: Annotated[float, Flag("Hours a job's result is kept.", min=0.0)] = 24.0,
    public_url: Annotated[str, Flag("The address people use, behind a proxy.")] = "",
    trusted_proxy: Proxies = None,
    origin: Origins = None,
    image_host: ImageHosts = None,
) -> None:
    """Serve moderation, analysis and pages over HTTP, offline by default."""
    from memantics.serve import require_extra

    require_extra()
    from memantics.serve.app import run
    from memantics.serve.settings import Intake, Reach, ServedModels, ServeSettings, find_tokens
    from memantics.web.server import check_public_url, read_proxies

    proxies, public = read_proxies(trusted_proxy or ()), check_public_url(public_url)
    reach = Reach(host, port, public, proxies, tuple(origin or ()))
    settings = ServeSettings(
        reach,
        ServedModels(
            detector[0] if detector else None,
            tuple(model or ()),
            calls,
            store,
            runs,
            images,
            read_language(language),
            tuple(detector[1:] if detector else ()),
            shadow,
            preferences,
            text,
        ),
        Intake(waiting=queue, deadline=deadline, keep=keep * 3600, hosts=tuple(image_host or ())),
        find_tokens(tokens),
        workers=workers,
        sample=sample,
        **({"state": state} if state else {}),
    )
    run(settings, _show_start)


def _show_start(settings: ServeSettings) -> None:
    say(f"Serving on {settings.reach.url}")
    if settings.models.detector is None:
        say("Verdicts are the sample detector's: an example, not to be acted on (--detector FILE).")
    say("Stop with Ctrl+C; what was accepted is finished first.")
    sys.stdout.flush()  # whoever reads a pipe or a log waits for the address


@spread
def make_token(
    name: Annotated[str, Argument("Whose token it is.")],
    file: Annotated[Path, Flag("File that it is added to.", "--tokens")],
    scope: Annotated[
        list[str] | None, Flag("What it may do; all by default. May be repeated.")
    ] = None,
    rate: Annotated[float, Flag("Requests a minute.")] = 600.0,
) -> None:
    """Make a token for a client of the service; only its digest is kept."""
    from memantics.serve.settings import make_token as make

    secret, made = make(file, name, scope or (), rate)
    say(secret)
    say(f"Scopes: {', '.join(made.scopes)}. It is shown this once; {file} holds its digest.")
