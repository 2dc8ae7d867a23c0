"""Whether locked test sets are disjoint from development sets: ``python -m research.disjoint``.

For each data set it counts locked memes that share their group, their caption or nearly their
caption with a development meme. For PunMemeCN it also counts locked homophone puns with a known
reading, and locked images that are nearly equal to a development image. Two captions are near if
the Jaccard similarity of their character trigrams is at least 0.6. Captions are compared without
case, signs and traditional forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memantics.core.images import decode
from memantics.metrics.grouping import find_near_duplicates
from memantics.understanding.vision.hashes import hash_image
from research.data import read_emotions, read_harm, read_hateful, read_puns
from research.protocol import DATA, is_in_test_set
from research.roles import clean
from research.studies.classifiers import read_label

NEAR = 0.6
_SHORTEST = 4
_BITS = 10  # maximum distance of two image hashes of 64 bits


class Captioned(NamedTuple):
    """A meme with its group and its caption."""

    id: str
    group: str
    caption: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Locked memes that resemble development memes."""

    data: str
    locked: int
    groups: int
    same: tuple[str, ...]
    near: tuple[str, ...]


def read_all() -> dict[str, list[Captioned]]:
    """Read the captions of all data sets."""
    labels = {"memeintent": "intent_verb", "mquest": "toxicity"}
    return {
        "punmemecn": [Captioned(r.id, r.group, clean(r.content.caption)) for r in read_puns()],
        "toxicn_mm": [Captioned(r.id, r.group, clean(r.content.text)) for r in read_harm()],
        "hateful_memes": [
            Captioned(r.id, r.group, clean(str(r.content["text"]))) for r in read_hateful()
        ],
        "mer_bench": [Captioned(r.id, r.group, clean(r.content["text"])) for r in read_emotions()],
        **{
            name: [Captioned(r.id, r.group, clean(r.content.text)) for r in read_label(name, one)]
            for name, one in labels.items()
        },
    }


def compare(data: str, rows: Sequence[Captioned]) -> Overlap:
    """Compare the locked memes of a data set with its development memes."""
    locked = [row for row in rows if is_in_test_set(data, row.group)]
    others = [row for row in rows if not is_in_test_set(data, row.group)]
    known = {row.caption for row in others}
    same = [row.id for row in locked if row.caption and row.caption in known]
    rest = [row for row in locked if row.caption not in known and len(row.caption) >= _SHORTEST]
    found = find_near_duplicates(
        [row.caption for row in rest],
        [row.caption for row in others if len(row.caption) >= _SHORTEST],
        NEAR,
        _cut,
    )
    near = [row.id for row, other in zip(rest, found, strict=True) if other is not None]
    groups = {row.group for row in locked} & {row.group for row in others}
    return Overlap(data, len(locked), len(groups), tuple(same), tuple(near))


def list_known_readings() -> list[str]:
    """List locked homophone puns whose intended reading is a development caption or reading."""
    rows = read_puns()
    known = {
        clean(text)
        for row in rows
        if not is_in_test_set("punmemecn", row.group)
        for text in (row.content.caption, row.content.intended)
        if text
    }
    return [
        row.id
        for row in rows
        if row.tags["kind"] == "homophone" and is_in_test_set("punmemecn", row.group)
        if clean(row.content.intended or "") in known
    ]


def _cut(text: str) -> set[str]:
    return {text[place : place + 3] for place in range(max(1, len(text) - 2))}


def compare_images() -> list[tuple[str, str]]:
    """List locked images of PunMemeCN that are nearly equal to a development image."""
    hashes = {}
    for row in read_puns():
        path = DATA / "punmemecn" / "images" / f"{row.id.removesuffix('.png')}.png"
        if path.is_file():
            hashes[row.id] = (row.group, hash_image(decode(path.read_bytes(), path.name)))
    own = {name: pair for name, pair in hashes.items() if is_in_test_set("punmemecn", pair[0])}
    return [
        (name, other)
        for name, (_, value) in own.items()
        for other, (_, known) in hashes.items()
        if other not in own and (value ^ known).bit_count() <= _BITS
    ]


def main() -> None:
    """Print the counts."""
    for data, rows in read_all().items():
        found = compare(data, rows)
        print(
            f"{data}: {found.locked} locked memes, {found.groups} shared groups,"
            f" {len(found.same)} with a development caption, {len(found.near)} nearly",
            *found.same[:3],
            flush=True,
        )
    print(f"punmemecn: {len(list_known_readings())} locked homophone puns with a known reading")
    pairs = compare_images()
    print(f"punmemecn: {len({one for one, _ in pairs})} locked images near a development image")
    for pair in pairs[:20]:
        print(*pair)


if __name__ == "__main__":
    main()
