"""Images of a project: checked, then kept under random names that say nothing."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import schema
from memantics.annotate.errors import Forbidden
from memantics.annotate.records import Media
from memantics.annotate.values import clean_text
from memantics.core.images import ImageFacts, decode, probe

_media = schema.media
ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Stored:
    """An image that is on disk under its new name, and not yet in the database."""

    key: str
    path: Path
    name: str
    digest: str
    size: int
    facts: ImageFacts


def store_image(root: Path, project: int, name: str, data: bytes) -> Stored:
    """Check an image and write it; no transaction waits for that. Raises ImageError.

    The whole first frame is decoded within bounds: what no browser could show is refused here.
    """
    facts = probe(data, name)
    with decode(data, name) as image:  # upright, as browsers show it
        facts = replace(facts, width=image.width, height=image.height)
    key = secrets.token_hex(16)
    folder = root / str(project)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{key}.partial"
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path = folder / key
    partial.replace(path)
    digest = hashlib.sha256(data).hexdigest()
    return Stored(
        key, path, clean_text(Path(name).name, lines=False)[:300], digest, len(data), facts
    )


def register_image(connection: Connection, project: int, stored: Stored) -> str:
    """Enter an image; the same bytes are kept once a project."""
    known = sa.select(_media.c.id).where(
        _media.c.project_id == project, _media.c.sha256 == stored.digest
    )
    if found := connection.execute(known).scalar_one_or_none():
        stored.path.unlink(missing_ok=True)
        return str(found)
    entry = {
        "id": stored.key,
        "project_id": project,
        "sha256": stored.digest,
        "media_type": stored.facts.mime,
        "width": stored.facts.width,
        "height": stored.facts.height,
        "size": stored.size,
        "name": stored.name,
    }
    connection.execute(sa.insert(_media), entry)
    return stored.key


def find_image(connection: Connection, root: Path, key: str) -> tuple[int, Media]:
    """The project and place of an image; only ids that we gave out reach the disk."""
    row = None
    if ID.fullmatch(key):
        row = connection.execute(sa.select(_media).where(_media.c.id == key)).one_or_none()
    if row is None:
        raise Forbidden
    path = root / str(row.project_id) / str(row.id)
    return row.project_id, Media(row.id, path, row.media_type, row.width, row.height, row.size)
