"""Tokens of clients: kept as digests, each with its scopes and its rate.

A file of tokens is TOML, one table for each::

    [shop]
    sha256 = "…"
    scopes = ["moderate"]
    rate = 600  # requests a minute

The variable ``MEMANTICS_TOKENS`` may hold the same text.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter, ValidationError

from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, first_fault, require_known
from memantics.core.journal import in_turn, replace_file

VARIABLE = "MEMANTICS_TOKENS"
Scope = Literal[
    "moderate", "analyze", "puns", "reappraise", "knowledge", "pages", "metrics", "reload"
]
SCOPES: tuple[Scope, ...] = get_args(Scope)
RATE = 600.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Token:
    """Who may do what, and how many times a minute. Only the digest of a token is known."""

    name: str
    sha256: str
    scopes: tuple[Scope, ...] = SCOPES
    rate: float = RATE

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.sha256):
            raise ValueError("sha256 must be 64 hexadecimal digits")
        if not 0 < self.rate < float("inf"):
            raise ValueError("rate must be a positive number of requests a minute")


_TABLES = TypeAdapter(dict[str, dict[str, object]])
_TOKEN = TypeAdapter(Token)


def digest(secret: str) -> str:
    """The digest under which a token is kept: tokens are long and random, so one round is enough.

    >>> digest("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def read_tokens(
    file: Path | None, environment: Mapping[str, str] = os.environ
) -> tuple[Token, ...]:
    """The tokens of a file and of the environment; a name may stand in one of them only."""
    found: dict[str, Token] = {}
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(file, f"cannot be read: {error}", hint="check --tokens") from error
        found |= _parse(str(file), text)
    tokens = _parse(VARIABLE, environment.get(VARIABLE, ""))
    twice = sorted(found.keys() & tokens.keys())
    if twice:
        raise InputError(f"token {twice[0]} is in {file} and in {VARIABLE}", hint="drop one")
    return tuple((found | tokens).values())


def _parse(where: str, text: str) -> dict[str, Token]:
    try:
        tables = _TABLES.validate_python(load_toml(text))
        return {
            name: _TOKEN.validate_python({"name": name, **table}) for name, table in tables.items()
        }
    except tomllib.TOMLDecodeError as error:
        raise DataError(where, f"is no TOML: {error}", hint="see docs/serve.md") from error
    except ValidationError as error:
        raise DataError(where, first_fault(error), hint="see docs/serve.md") from error


def make_token(
    file: Path, name: str, scopes: Sequence[str] = (), rate: float = RATE
) -> tuple[str, Token]:
    """A new token, added to a file that only its owner can read; the secret is nowhere kept."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name for a token", hint="use letters, digits, - and _")
    for scope in scopes:
        require_known("scope", scope, SCOPES)
    with in_turn(file.absolute().parent):
        return _add_token(file, name, scopes, rate)


def _add_token(file: Path, name: str, scopes: Sequence[str], rate: float) -> tuple[str, Token]:
    kept = read_tokens(file, {}) if file.exists() else ()
    if any(token.name == name for token in kept):
        raise InputError(f"{file} holds a token {name}", hint="choose another name, or delete it")
    secret = f"mm-{secrets.token_urlsafe(32)}"
    granted = tuple(scope for scope in SCOPES if scope in scopes) or SCOPES
    try:
        made = Token(name, digest(secret), granted, rate)
    except ValueError as error:
        raise InputError(str(error)) from error
    replace_file(file, "\n".join(map(_write, (*kept, made))).encode(), "tokens")
    file.chmod(0o600)
    return secret, made


def _write(token: Token) -> str:
    scopes = ", ".join(f'"{scope}"' for scope in token.scopes)
    facts = f'sha256 = "{token.sha256}"\nscopes = [{scopes}]\nrate = {token.rate:g}\n'
    return f"[{token.name}]\n{facts}"
