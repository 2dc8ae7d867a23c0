"""Settings of the HTTP service: listening address, models, limits and client tokens.

Tokens are stored as digests, each with its scopes and rate. A token file is TOML, one table per
client::

    [shop]
    sha256 = "…"
    scopes = ["moderate"]
    rate = 600  # requests per minute
    roles = ["reviewer"]  # in which the people of this client may decide by a policy

The environment variable ``MEMANTICS_TOKENS`` may contain the same text.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter, ValidationError

from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, first_fault, require_known
from memantics.core.files import in_turn, read_regular_text, replace_file
from memantics.core.lines import TextChoice
from memantics.core.policy import ROLE, read_policy
from memantics.core.registry import home
from memantics.models.client import CallSettings
from memantics.moderation import SampleChoice, check_url, find_secret
from memantics.web.budget import LOGIN_BYTES, Limits
from memantics.web.server import is_local, list_hosts, server_url

VARIABLE = "MEMANTICS_TOKENS"
TokenScope = Literal[
    "moderate",
    "analyze",
    "puns",
    "reappraise",
    "knowledge",
    "pages",
    "metrics",
    "reload",
    "banks",
    "agents",
    "decide",
    "read_decisions",
    "appeal",
]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
RATE = 600.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
PORT = 8080
COMMENT_BYTES = 512 * 1024  # a body of comments:analyze
MEGABYTE = 1024 * 1024
# These paths accept any host name, because health probes of an orchestrator use the IP address.
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Token:
    """A client's token: its scopes and requests per minute. Only the digest is stored.

    ``roles`` limits the roles in which the people of this client may decide by a policy. Without
    them, the client names the role in each request.
    """

    name: str
    sha256: str
    scopes: tuple[TokenScope, ...] = SCOPES
    rate: float = RATE
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.sha256):
            raise ValueError("sha256 must be 64 hexadecimal digits")
        if not 0 < self.rate < float("inf"):
            raise ValueError("rate must be a positive number of requests per minute")


_TABLES = TypeAdapter(dict[str, dict[str, object]])
_TOKEN = TypeAdapter(Token)


def digest(secret: str) -> str:
    """Return the digest of a token; tokens are long and random, so one hash round is enough.

    >>> digest("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def read_tokens(
    file: Path | None, environment: Mapping[str, str] = os.environ
) -> tuple[Token, ...]:
    """Return the tokens of a file and of the environment; names must be unique."""
    found: dict[str, Token] = {}
    if file is not None:
        try:
            text = read_regular_text(file)
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(file, f"cannot be read: {error}", hint="check --tokens") from error
        found |= _parse(str(file), text)
    tokens = _parse(VARIABLE, environment.get(VARIABLE, ""))
    twice = sorted(found.keys() & tokens.keys())
    if twice:
        raise InputError(
            f"token {twice[0]} is in {file} and in {VARIABLE}", hint="remove one of them"
        )
    return tuple((found | tokens).values())


def _parse(where: str, text: str) -> dict[str, Token]:
    try:
        tables = _TABLES.validate_python(load_toml(text))
        return {
            name: _TOKEN.validate_python({"name": name, **table}) for name, table in tables.items()
        }
    except tomllib.TOMLDecodeError as error:
        raise DataError(
            where, f"is not valid TOML: {error}", hint="see docs/how-to/serve.md"
        ) from error
    except ValidationError as error:
        raise DataError(where, first_fault(error), hint="see docs/how-to/serve.md") from error


def make_token(
    file: Path,
    name: str,
    scopes: Sequence[str] = (),
    rate: float = RATE,
    roles: Sequence[str] = (),
) -> tuple[str, Token]:
    """Create a token and add it to a file with mode 0600; the secret is not stored."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a valid token name", hint="use letters, digits, - and _")
    for scope in scopes:
        require_known("scope", scope, SCOPES)
    for role in roles:
        if not ROLE.fullmatch(role):
            raise InputError(f"{role[:60]!r} is not a valid role", hint="use a role of the policy")
    secret = f"mm-{secrets.token_urlsafe(32)}"
    granted = tuple(scope for scope in SCOPES if scope in scopes) or SCOPES
    try:
        made = Token(name, digest(secret), granted, rate, tuple(roles))
    except ValueError as error:
        raise InputError(str(error)) from error
    with in_turn(file.absolute().parent):
        _add_token(file, made)
    return secret, made


def _add_token(file: Path, made: Token) -> None:
    kept = read_tokens(file, {}) if file.exists() else ()
    if any(token.name == made.name for token in kept):
        raise InputError(
            f"{file} already contains a token named {made.name}",
            hint="choose another name, or delete it",
        )
    replace_file(file, "\n".join(map(_write, (*kept, made))).encode(), "tokens")
    file.chmod(0o600)


def _write(token: Token) -> str:
    scopes = ", ".join(f'"{scope}"' for scope in token.scopes)
    facts = f'sha256 = "{token.sha256}"\nscopes = [{scopes}]\nrate = {token.rate:g}\n'
    if token.roles:
        facts += "roles = [" + ", ".join(f'"{role}"' for role in token.roles) + "]\n"
    return f"[{token.name}]\n{facts}"


@dataclass(frozen=True, slots=True)
class Reach:
    """The listening address of the service and the allowed callers.

    ``public_url`` is the URL that people use. ``trusted_proxies`` are the proxies whose header
    ``X-Forwarded-For`` is accepted. ``origins`` are web sites whose scripts may call the service
    (CORS; none by default).
    """

    host: str = "127.0.0.1"
    port: int = PORT
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def open_to_others(self) -> bool:
        """Whether other machines can call the service."""
        return bool(self.public_url) or not is_local(self.host)

    @property
    def url(self) -> str:
        """The URL of the service for clients."""
        return server_url(self.host, self.port, self.public_url)


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The detectors, models, knowledge graph and run folder of the service.

    Without a detector, the small detector of the sample data is used and marked as such. Without a
    model, features that need one are disabled; the first model is the default. Without a knowledge
    graph (``store``), that of the sample data is used. ``images`` is the image folder of the memes
    in the graph. ``language`` is the declared language of all texts, if their script allows it.
    ``others`` are detectors for other languages. ``shadow`` is a second detector that scores the
    same inputs; only its disagreements are counted. ``preferences`` is the file for users' choices
    in the studio (None: not stored). ``text`` selects the text of an image that counts as caption.
    ``attributes`` are the attributes of ``comments:analyze``, as NAME=FILE or NAME=FILE:LABEL.
    """

    detector: Path | None = None
    models: tuple[str, ...] = ()
    calls: CallSettings = field(default_factory=CallSettings)
    store: Path | None = None
    runs: Path | None = None
    images: Path | None = None
    language: str = ""
    others: tuple[Path, ...] = ()
    shadow: Path | None = None
    preferences: Path | None = None
    text: TextChoice = "caption"
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intake:
    """Limits of requests and jobs.

    ``waiting`` is the maximum queue length per component (text, OCR, other work), ``jobs`` the
    maximum number of unfinished jobs, ``deadline`` the time limit of a request in seconds, and
    ``keep`` the seconds for which a job's result is stored. ``hosts`` are hosts from which images
    may be fetched (none by default). ``bank_writes`` allows clients to change the match list.
    """

    body_bytes: int = 32 * MEGABYTE
    pixels: int = 40_000_000
    inputs: int = 64
    waiting: int = 256
    jobs: int = 64
    deadline: float = 30.0
    keep: float = 24 * 3600.0
    hosts: tuple[str, ...] = ()
    bank_writes: bool = False


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """The decision log of a service: its database, policy, webhooks and their secret."""

    database: str
    policy: Path | None = None
    webhooks: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """All settings of one service.

    ``state`` is the folder of background jobs; ``sample`` configures the daily sample of verdicts,
    ``decisions`` the decision log (None: no decisions are recorded).
    """

    reach: Reach = Reach()
    models: ServedModels = field(default_factory=ServedModels)
    bounds: Intake = Intake()
    tokens: tuple[Token, ...] = ()
    state: Path = field(default_factory=lambda: home() / "serve")
    workers: int = 1
    sample: SampleChoice | None = None
    decisions: DecisionSettings | None = None

    def __post_init__(self) -> None:
        if self.reach.open_to_others and not self.tokens:
            raise InputError(
                "a service that other machines can reach needs a token",
                hint="create one with 'memantics serve-token NAME', then use --tokens FILE",
            )

    @property
    def limits(self) -> Limits:
        """The request limits that the outermost layer of the web app applies."""
        return Limits(
            list_hosts(self.reach.host, self.reach.public_url),
            self.reach.public_url.startswith("https://"),
            open_paths=HEALTH_PATHS,
            form_bytes=self.bounds.body_bytes,
            program_paths=("/v1/", "/v1alpha1/", "/h/", "/m/", "/c/"),
            bodies=(
                ("/login", LOGIN_BYTES),
                ("/logout", LOGIN_BYTES),
                ("/v1alpha1/", COMMENT_BYTES),
            ),
            streams=("/events",),
        )


def find_tokens(file: Path | None) -> tuple[Token, ...]:
    """Return the tokens of a file and of the environment."""
    return read_tokens(file)


def choose_decisions(
    database: str | None, policy: Path | None, webhooks: tuple[str, ...]
) -> DecisionSettings | None:
    """Check the settings of decisions before the service starts."""
    if database is None:
        if policy is not None or webhooks:
            raise InputError(
                "--policy and --webhook need a decision log", hint="add --decisions FILE"
            )
        return None
    if policy is not None:
        read_policy(policy)  # raises DataError
    urls = tuple(check_url(url) for url in webhooks)
    return DecisionSettings(database, policy, urls, find_secret() if urls else "")
