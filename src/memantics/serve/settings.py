"""How the service is run: where it listens, what it answers with, what it lets in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from memantics.actions.desk import Asking
from memantics.actions.drift import SampleChoice
from memantics.core.errors import InputError
from memantics.core.lines import TextChoice
from memantics.core.registry import home
from memantics.serve.tokens import Token, read_tokens
from memantics.web.address import is_local, list_hosts, name_address
from memantics.web.shell import Limits

PORT = 8080
MEGABYTE = 1024 * 1024
# Under these any name is answered: probes of an orchestrator call by address.
PROBES = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the service listens, and who may call it from where.

    ``public_url`` is the address that people use, ``trusted_proxies`` the proxies whose
    ``X-Forwarded-For`` is believed, ``origins`` the sites whose scripts may call (CORS; none by
    default).
    """

    host: str = "127.0.0.1"
    port: int = PORT
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def open_to_others(self) -> bool:
        """Whether anybody but this machine can call."""
        return bool(self.public_url) or not is_local(self.host)

    @property
    def address(self) -> str:
        """Where to point a client."""
        return name_address(self.host, self.port, self.public_url)


@dataclass(frozen=True, slots=True)
class Models:
    """Who answers: a detector's file, models, a knowledge store, and a folder of runs to browse.

    Without a detector the tiny one of the starter pack answers, and says so; without a model what
    needs one is left out (the first is asked where none is named); without a store the starter
    pack's knowledge is asked. ``images`` is the folder of the memes that a store is about,
    ``language`` what all texts are said to be in, where their letters allow that. ``others`` are
    detectors beside the first, for other languages; ``shadow`` judges what they judge, and only its
    disagreements are counted. With ``flag_unjudged`` what could not be judged is flagged.
    ``preferences`` is the file to which people's choices in the studio are added; None: they are
    not kept.
    ``text`` is which text of an image is its caption, for everything that the service reads.
    """

    detector: Path | None = None
    models: tuple[str, ...] = ()
    asking: Asking = field(default_factory=Asking)
    store: Path | None = None
    runs: Path | None = None
    images: Path | None = None
    language: str = ""
    others: tuple[Path, ...] = ()
    shadow: Path | None = None
    flag_unjudged: bool = False
    preferences: Path | None = None
    text: TextChoice = "caption"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is let in, and for how long it is kept.

    ``waiting`` is the number of requests that may wait for each part (text, OCR, other work),
    ``jobs`` of unfinished jobs, ``deadline`` the seconds of a request, ``keep`` those of a job's
    result. ``hosts`` are those from which images may be fetched (none by default).
    """

    body_bytes: int = 32 * MEGABYTE
    pixels: int = 40_000_000
    inputs: int = 64
    waiting: int = 256
    jobs: int = 64
    deadline: float = 30.0
    keep: float = 24 * 3600.0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Everything about one service.

    ``state`` is the folder of its jobs; ``sample`` says which verdicts of each day are kept.
    """

    reach: Reach = Reach()
    models: Models = field(default_factory=Models)
    bounds: Bounds = Bounds()
    tokens: tuple[Token, ...] = ()
    state: Path = field(default_factory=lambda: home() / "serve")
    workers: int = 1
    sample: SampleChoice | None = None

    def __post_init__(self) -> None:
        if self.reach.open_to_others and not self.tokens:
            raise InputError(
                "the service would be open to other machines and there is no token",
                hint="memantics serve-token NAME makes one; then give --tokens FILE",
            )

    @property
    def limits(self) -> Limits:
        """What the shell around the application lets in."""
        return Limits(
            list_hosts(self.reach.host, self.reach.public_url),
            self.reach.public_url.startswith("https://"),
            open_paths=PROBES,
            form_bytes=self.bounds.body_bytes,
            program_paths=("/v1/",),
        )


def find_tokens(file: Path | None) -> tuple[Token, ...]:
    """The tokens of a file and of the environment."""
    return read_tokens(file)
