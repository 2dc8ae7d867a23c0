"""What a person saves from the studio: one self-contained page, made of the parts they saw."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from memantics.actions import studio
from memantics.actions.kinder import KinderFound
from memantics.core.errors import InputError
from memantics.core.images import MIME, probe
from memantics.report.kit import fill_page
from memantics.web.site import Catalogue, Language

_HERE = Path(__file__).parent
MOST_PICTURE = 40 * 1024 * 1024  # characters of a picture as a data URL


class StudioRecord(BaseModel):
    """All parts of one meme as the page holds them, its picture as a data URL.

    This is also what "Save as data" writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str = Field(max_length=500)
    language: Language = "en"
    picture: str = Field(max_length=MOST_PICTURE)
    text: studio.TextFound | None = None
    sound: studio.SoundFound | None = None
    harm: studio.HarmFound | None = None
    kinder: KinderFound | None = None
    meanings: tuple[studio.MeaningFound, ...] = ()


def render_record(record: StudioRecord, words: Catalogue) -> str:
    """The page as text; pictures are checked, for it is opened later and elsewhere."""
    styles = ("knowledge.css", "analysis.css", str(_HERE / "saved.css"))
    return fill_page(
        str(_HERE / "saved.html"),
        (studio.read_style(), *styles),
        "analysis.js",
        t=words,
        record=record,
        picture=check_picture(record.picture),
        kinder=check_picture(record.kinder.picture)
        if record.kinder and record.kinder.picture
        else "",
        letters=[(share.char, _level(share.share)) for share in record.harm.characters]
        if record.harm
        else [],
        blurred=is_harmful(record),
        meanings=[(found, studio.draw_meaning(found)) for found in record.meanings],
        date=datetime.now(UTC).date().isoformat(),
    )


def is_harmful(record: StudioRecord) -> bool:
    """Whether somebody to rely on found harm; a sample's verdict blurs nothing."""
    judged = record.harm is not None and record.harm.harmful and not record.harm.sample
    told = any(
        (found.harm is not None and found.harm.harmful) or found.knowledge.of("Toxicity")
        for found in record.meanings
    )
    return judged or told


def check_picture(url: str) -> str:
    """A data URL of a picture as it may stand in a page, under the type that its bytes show."""
    data = read_url(url)
    return f"data:{MIME[probe(data, 'picture').format]};base64,{url.partition(';base64,')[2]}"


def read_url(url: str) -> bytes:
    """The bytes of a picture in a data URL."""
    head, _, body = url.partition(";base64,")
    try:
        if head.startswith("data:"):
            return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InputError("a picture is no data URL", hint="send data:image/…;base64,…")


def _level(share: float) -> str:
    size = min(4, int(abs(share) * 5))
    return f"{'h' if share > 0 else 'g'}{size}" if size else ""
