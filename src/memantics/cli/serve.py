"""``memantics serve``: the HTTP API and the web pages on one port."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from memantics.cli.expose import spread, spread_with
from memantics.cli.terminal import say
from memantics.core.errors import InputError
from memantics.core.language import read_language
from memantics.core.parameters import Argument, Flag, MadeBy, TextTaken
from memantics.models.client import CallSettings
from memantics.moderation import SampleChoice, choose_sample, find_detector

if TYPE_CHECKING:
    from memantics.serve.settings import Intake, ServeSettings

ModelNames = Annotated[
    list[str] | None,
    Flag("Model for analyses, as KIND/NAME; repeatable. Default: none.", "--model -m"),
]
DetectorFiles = Annotated[
    list[Path] | None,
    Flag("Detector file; repeatable, one per language. Default: the sample detector."),
]
ShadowFile = Annotated[
    Path | None,
    Flag(
        "New detector to test: it scores the same inputs, and different verdicts are only counted."
    ),
]
StoreFolder = Annotated[
    Path | None, Flag("Folder of the knowledge store. Default: that of the sample data.")
]
ChoicesFile = Annotated[
    Path | None, Flag("File for users' choices in the studio. Default: not stored.")
]
Attributes = Annotated[
    list[str] | None,
    Flag(
        "Attribute of the Perspective API, as NAME=FILE or NAME=FILE:LABEL; repeatable."
        " FILE is a detector or classifier, or 'sample'. Default: none.",
        "--attribute",
    ),
]
TextLanguage = Annotated[str, Flag("Language code of all texts. Default: detected per text.")]
HostName = Annotated[str, Flag("Host name or IP address to listen on.")]
QueueLength = Annotated[int, Flag("Maximum queue length; further requests get status 429.", min=1)]
BankWrites = Annotated[
    bool, Flag("Let clients with the scope 'banks' change the match list of the detector.")
]
Workers = Annotated[int, Flag("Number of worker processes; each loads the models.", min=1, max=64)]
StateFolder = Annotated[
    Path | None, Flag("Folder for jobs. Default: serve/ in the Memantics home folder.")
]
Proxies = Annotated[
    list[str] | None,
    Flag("IP address of a proxy whose X-Forwarded-For header is trusted; repeatable."),
]
Origins = Annotated[
    list[str] | None, Flag("Origin that may send cross-origin requests (CORS); repeatable.")
]
ImageHosts = Annotated[
    list[str] | None, Flag("Host from which images may be fetched; repeatable. Default: none.")
]


def choose_decisions(
    decisions: Annotated[
        str | None,
        Flag("SQLite file or postgresql://… of the decision log. Default: no decisions."),
    ] = None,
    policy: Annotated[Path | None, Flag("Policy file by which decisions are made.")] = None,
    webhook: Annotated[
        list[str] | None,
        Flag("URL that receives decisions, signed with MEMANTICS_WEBHOOK_SECRET; repeatable."),
    ] = None,
) -> Any:
    """Check the settings of decisions before the service starts."""
    from memantics.serve import require_extra

    require_extra()  # before the next import: this function is called before ``serve``
    from memantics.serve.settings import choose_decisions as choose

    return choose(decisions, policy, tuple(webhook or ()))


@spread_with(hide=("prices",))
def serve(
    calls: CallSettings,
    sample: Annotated[SampleChoice | None, MadeBy(choose_sample)],
    model: ModelNames = None,
    detector: DetectorFiles = None,
    shadow: ShadowFile = None,
    attribute: Attributes = None,
    language: TextLanguage = "",
    text: TextTaken = "caption",
    store: StoreFolder = None,
    runs: Annotated[Path | None, Flag("Folder of runs to browse. Default: none.")] = None,
    images: Annotated[Path | None, Flag("Folder with the images of the store's memes.")] = None,
    preferences: ChoicesFile = None,
    host: HostName = "127.0.0.1",
    port: Annotated[int, Flag("Port to listen on; 0: any free port.", min=0, max=65535)] = 8080,
    workers: Workers = 1,
    tokens: Annotated[Path | None, Flag("Token file written by 'memantics serve-token'.")] = None,
    state: StateFolder = None,
    queue: QueueLength = 256,
    deadline: Annotated[float, Flag("Time limit per request, in seconds.", min=0.1)] = 30.0,
    keep: Annotated[float, Flag("Hours for which a job's result is kept.", min=0.0)] = 24.0,
    public_url: Annotated[str, Flag("Public URL of the service behind a proxy.")] = "",
    trusted_proxy: Proxies = None,
    origin: Origins = None,
    bank_writes: BankWrites = False,
    image_host: ImageHosts = None,
    decisions: Annotated[Any, MadeBy(choose_decisions)] = None,
) -> None:
    """Serve moderation, analysis and web pages over HTTP, offline by default."""
    from memantics.serve import require_extra

    require_extra()
    from memantics.serve.app import run
    from memantics.serve.settings import Reach, ServedModels, ServeSettings, find_tokens
    from memantics.web.server import check_public_url, read_proxies

    proxies, public = read_proxies(trusted_proxy or ()), check_public_url(public_url)
    settings = ServeSettings(
        Reach(host, port, public, proxies, tuple(origin or ())),
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
            tuple(attribute or ()),
        ),
        _bound(queue, deadline, keep, image_host, bank_writes),
        find_tokens(tokens),
        workers=workers,
        sample=sample,
        decisions=decisions,
        **({"state": state} if state else {}),
    )
    run(settings, _show_start)


def _bound(
    queue: int, deadline: float, hours: float, hosts: list[str] | None, bank_writes: bool
) -> Intake:
    from memantics.serve.settings import Intake

    return Intake(
        waiting=queue,
        deadline=deadline,
        keep=hours * 3600,
        hosts=tuple(hosts or ()),
        bank_writes=bank_writes,
    )


@spread
def serve_agents(
    detector: DetectorFiles = None,
    store: StoreFolder = None,
    runs: Annotated[Path | None, Flag("Folder of runs. Default: none.")] = None,
    images: Annotated[
        Path | None, Flag("Folder of images that the tools may read by name. Default: none.")
    ] = None,
    http: Annotated[
        bool, Flag("Serve over HTTP. Default: over standard input and output.")
    ] = False,
    host: Annotated[str, Flag("Host name or IP address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Flag("Port to listen on; 0: any free port.", min=0, max=65535)] = 8081,
    tokens: Annotated[Path | None, Flag("Token file written by 'memantics serve-token'.")] = None,
    deadline: Annotated[float, Flag("Time limit per call, in seconds.", min=0.1)] = 60.0,
    public_url: Annotated[str, Flag("Public URL of the server behind a proxy.")] = "",
    trusted_proxy: Proxies = None,
    image_host: ImageHosts = None,
) -> None:
    """Serve tools for agents (Model Context Protocol): analyse, moderate, query, compare."""
    from memantics.serve import require_agents

    require_agents()
    from memantics.serve.agents import PATH, run_agents
    from memantics.serve.settings import Intake, Reach, ServedModels, ServeSettings, find_tokens
    from memantics.web.server import check_public_url, read_proxies

    for folder in filter(None, (images, runs)):
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder", hint="check --images and --runs")
    proxies, public = read_proxies(trusted_proxy or ()), check_public_url(public_url)
    models = ServedModels(
        detector[0] if detector else None,
        store=store,
        runs=runs,
        images=images,
        others=tuple(detector[1:] if detector else ()),
    )
    settings = ServeSettings(
        Reach(host, port, public, proxies),
        models,
        Intake(deadline=deadline, hosts=tuple(image_host or ())),
        find_tokens(tokens),
    )

    def show(settings: ServeSettings) -> None:
        say(f"Serving on {settings.reach.url}{PATH}")
        sys.stdout.flush()

    run_agents(settings, show, http=http)


def _show_start(settings: ServeSettings) -> None:
    say(f"Serving on {settings.reach.url}")
    if find_detector(settings.models.detector) is None:
        say("Verdicts come from the sample detector (demonstration only); set --detector FILE.")
    say("Stop with Ctrl+C; accepted requests are finished first.")
    sys.stdout.flush()  # flushed at once, since a reader of a pipe or a log waits for the address


@spread
def make_token(
    name: Annotated[str, Argument("Name of the client.")],
    file: Annotated[Path, Flag("Token file to add it to.", "--tokens")],
    scope: Annotated[
        list[str] | None,
        Flag("What the client may use, such as moderate; repeatable. Default: everything."),
    ] = None,
    rate: Annotated[float, Flag("Rate limit in requests per minute.")] = 600.0,
    role: Annotated[
        list[str] | None,
        Flag("Role in which the client's people may decide by a policy; repeatable. Default: any."),
    ] = None,
) -> None:
    """Create a token for a client of the service; only a hash of it is stored."""
    from memantics.serve.settings import make_token as make

    secret, made = make(file, name, scope or (), rate, role or ())
    say(secret)
    say(f"Scopes: {', '.join(made.scopes)}. It is shown only once; {file} contains its digest.")
