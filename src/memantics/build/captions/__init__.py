"""What the words of a meme mean and what its picture shows, by any model, with provenance."""

from memantics.build.captions.mine import (
    CAPTIONS,
    Captioned,
    CaptionReport,
    Origin,
    mine_captions,
    read_captions,
    with_captions,
    write_captions,
)

__all__ = [
    "CAPTIONS",
    "CaptionReport",
    "Captioned",
    "Origin",
    "mine_captions",
    "read_captions",
    "with_captions",
    "write_captions",
]
