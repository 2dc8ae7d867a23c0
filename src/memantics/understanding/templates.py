"""Find duplicates of a meme and other memes on the same template.

A duplicate has a similar image hash *and* the same text. A meme with a similar image and another
text is kept as a member of the same template cluster; a train-test split must keep the cluster
together.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from memantics.core.language import has_dense_script
from memantics.metrics.grouping import join_pairs
from memantics.understanding.vision.hashes import find_pairs

DUPLICATE_BITS = 3
CLUSTER_BITS = 8
_LONG = 20  # number of letters from which two equal captions may differ by one misread letter
_ALIKE = 0.7  # minimum letter similarity of a misread word


@dataclass(frozen=True, slots=True)
class Face:
    """Image hash and text of a meme; of two duplicates, the one of higher ``weight`` is kept."""

    id: str
    sha256: str
    hash: int
    text: str
    weight: int


@dataclass(frozen=True, slots=True)
class Kin:
    """The template cluster and duplicate status of a meme.

    ``template_cluster`` is the id of its first member, empty for a single meme. ``original`` is the
    id of the meme that this one duplicates, empty for originals. ``distance`` is the number of
    differing hash bits.
    """

    template_cluster: str = ""
    original: str = ""
    distance: int = 0


def find_kin(
    faces: Sequence[Face], duplicate_bits: int = DUPLICATE_BITS, cluster_bits: int = CLUSTER_BITS
) -> dict[str, Kin]:
    """Find template clusters and duplicates among memes, by id.

    >>> faces = [Face("a", "1", 0b0, "hi there", 9), Face("b", "2", 0b1, "HI THERE!", 5),
    ...          Face("c", "3", 0b11, "bye now", 9)]
    >>> {id: (kin.template_cluster, kin.original) for id, kin in find_kin(faces).items()}
    {'a': ('a', ''), 'b': ('a', 'a'), 'c': ('a', '')}
    """
    by_hash: defaultdict[int, list[int]] = defaultdict(list)
    for place, face in enumerate(faces):
        by_hash[face.hash].append(place)
    different = sorted(by_hash)
    near: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    kindred: list[tuple[int, int]] = []
    for one, other, distance in find_pairs(different, max(cluster_bits, duplicate_bits)):
        if distance <= cluster_bits:
            kindred.append((one, other))
        if distance <= duplicate_bits:
            near[different[one]].append((different[other], distance))
            near[different[other]].append((different[one], distance))
    template_clusters: defaultdict[int, list[int]] = defaultdict(list)
    for root, value in zip(join_pairs(len(different), kindred), different, strict=True):
        template_clusters[root] += by_hash[value]
    copies = _find_copies(faces, near)
    kin: dict[str, Kin] = {}
    for members in template_clusters.values():
        head = faces[min(members)].id if len(members) > 1 else ""
        for place in members:
            original, distance = copies.get(place, ("", 0))
            kin[faces[place].id] = Kin(head, original, distance)
    return {face.id: kin[face.id] for face in faces}


def _find_copies(
    faces: Sequence[Face], near: dict[int, list[tuple[int, int]]]
) -> dict[int, tuple[str, int]]:
    """Map each duplicate to its original; the largest image is kept."""
    originals: defaultdict[int, list[int]] = defaultdict(list)
    same_bytes: dict[str, int] = {}
    copies: dict[int, tuple[str, int]] = {}
    for place in sorted(range(len(faces)), key=lambda i: (-faces[i].weight, i)):
        face = faces[place]
        if face.sha256 in same_bytes:
            copies[place] = (faces[same_bytes[face.sha256]].id, 0)
            continue
        same_bytes[face.sha256] = place
        for value, distance in [(face.hash, 0), *near.get(face.hash, ())]:
            twin = next((i for i in originals[value] if say_same(faces[i].text, face.text)), None)
            if twin is not None:
                copies[place] = (faces[twin].id, distance)
                break
        else:
            originals[face.hash].append(place)
    return copies


def say_same(one: str, other: str) -> bool:
    """Tell whether two OCR readings have the same caption, except for misread letters.

    One different word makes another meme. In a short Chinese text one different character does too,
    since puns change one character.

    >>> say_same("One does not simply", "ONE DOES  NOT SIMPLY!"), say_same("一起加油", "一起加鱿")
    (True, False)
    >>> say_same("when it is monday again", "when it is friday again")
    False
    """
    first, second = _fold(one), _fold(other)
    letters = first.replace(" ", ""), second.replace(" ", "")
    if letters[0] == letters[1]:
        return True
    if min(map(len, letters)) < _LONG or abs(len(letters[0]) - len(letters[1])) > 2:
        return False
    if has_dense_script(one) or has_dense_script(other):
        match = difflib.SequenceMatcher(None, letters[0], letters[1], autojunk=False)
        return max(map(len, letters)) - sum(b.size for b in match.get_matching_blocks()) <= 1
    return _same_words(first.split(), second.split())


def _same_words(one: list[str], other: list[str]) -> bool:
    changes = [
        code
        for code in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    for _, a, b, c, d in changes:
        pair = "".join(one[a:b]), "".join(other[c:d])
        if any(char.isdigit() for word in pair for char in word):
            return False  # a different number makes another meme
        if difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() < _ALIKE:
            return False
    return len(changes) <= 2


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"[^\W_]+", plain))
