"""The base of records that come from files, requests and replies of models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A record that refuses fields it does not know, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Lenient(BaseModel):
    """A record that passes over fields it does not know, and does not change."""

    model_config = ConfigDict(extra="ignore", frozen=True)
