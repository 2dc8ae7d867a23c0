"""Hash matching against decided memes: copies get the same label at once, without training.

The index is a folder beside the detector's file: one JSON line per decided meme, and sorted arrays
of digests and hashes that are memory-mapped. A similar image counts only with the same text or one
of the same meaning, since memes on one template differ in nothing else. Where the text of a decided
meme is unknown (hash lists), the match needs human review. Hashes have 256 bits in sixteen parts of
16 bits: of up to 31 different bits, at most one is in some part, so looking up each part, and each
part with one bit changed, finds all matches among a million.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.files import in_turn, replace_file
from memantics.metrics.rounding import Ints
from memantics.metrics.text import share_common
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.moderation.features import clean
from memantics.moderation.obfuscation import unmask
from memantics.understanding.vision.hashes import Bits, count_bits

WIDE_BITS = 256
MOST_APART = 31  # bits: more would need another look-up
_PARTS = 16
_FLIPS = np.array([0, *(1 << bit for bit in range(16))], np.uint16)
Wide = NDArray[np.uint64]
ENDING = ".precedents"
NEAR_BITS = 6  # recompressed and rescaled copies stay within (docs/research/precedents.md)
SAME_TEXT = 0.9  # how alike the texts of two copies are
NEAR_SENSE = 24  # bits of 256 in which texts of the same meaning differ at most
_MOST_NEAR = 256  # pictures whose texts are compared
_LINES = "precedents.jsonl"
_TURNS = tuple(f"look-{turn}" for turn in range(4))
_KINDS = ("sha", "text", *_TURNS)
_WIDE = ("pdq", "sense")
How = Literal[
    "the same bytes",
    "the same text",
    "the same picture with the same text",
    "the same picture with a text of the same meaning",
    "a text of the same meaning",
    "the same picture, whose text is not known",
]


class WideIndex:
    """Sorted parts of hashes in one file of a folder; ``lines`` are their places."""

    def __init__(self, folder: Path, name: str) -> None:
        # A plain array over the mapped file: slices of a memmap cost microseconds each.
        table: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
        size, flat = table.shape[1], table.reshape(-1)
        self.bits = flat[: 4 * size].reshape(size, 4)
        self._heads = flat[4 * size : 8 * size].view(np.uint16).reshape(_PARTS, size)
        self._order = flat[8 * size : 16 * size].view(np.uint32)
        self.lines = flat[16 * size :].view(np.int64)

    @staticmethod
    def write(folder: Path, name: str, bits: Wide, lines: NDArray[np.int64]) -> None:
        """Write the index of some hashes (four numbers each)."""
        parts = np.ascontiguousarray(bits.view(np.uint16).reshape(-1, _PARTS).T)
        order = np.argsort(parts, axis=1, kind="stable").astype(np.uint32)
        heads = np.take_along_axis(parts, order, axis=1)
        # All in one file: whoever reads meanwhile never sees parts of two states.
        flat = [array.reshape(-1).view(np.uint64) for array in (bits, heads, order, lines)]
        save_array(folder / f"{name}.npy", np.concatenate(flat).reshape(17, len(lines)))

    def find(self, wanted: str, most: int) -> list[int]:
        """Lines of hashes that differ from one in at most so many bits, the nearest first."""
        hashed = read_wide([wanted])
        parts = hashed.view(np.uint16).ravel()
        starts, sizes = [], []
        for number, (part, head) in enumerate(zip(parts, self._heads, strict=True)):
            lookups = part ^ _FLIPS
            first = np.searchsorted(head, lookups, "left")
            starts.append(first + number * len(self.lines))
            sizes.append(np.searchsorted(head, lookups, "right") - first)
        start, size = np.concatenate(starts), np.concatenate(sizes)
        steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        places = np.unique(self._order[np.repeat(start, size) + steps])
        apart = np.bitwise_count(self.bits[places] ^ hashed).sum(axis=1)
        near = np.flatnonzero(apart <= min(most, MOST_APART))
        ordered = near[np.argsort(apart[near], kind="stable")]
        return [int(line) for line in self.lines[places[ordered]]]


def read_wide(hashes: Sequence[str]) -> Wide:
    """Hexadecimal hashes as rows of four numbers.

    >>> read_wide(["0" * 63 + "1"]).shape
    (1, 4)
    """
    data = b"".join(bytes.fromhex(text) for text in hashes)
    return np.frombuffer(data, np.uint64).reshape(-1, WIDE_BITS // 64)


@cache
def _open_encoder() -> SentenceEncoder:
    return SentenceEncoder()


@cache
def _draw_planes(width: int) -> NDArray[np.float64]:
    return np.random.default_rng(7).standard_normal((width, WIDE_BITS))


def hash_meaning(text: str) -> str:
    """On which side of 256 random planes the sentence encoder's vector of a text lies.

    Vectors at an angle of a degrees differ in about 256 a / 180 bits.
    """
    (vector,) = _open_encoder().encode([text])
    sides = np.asarray(vector, float) @ _draw_planes(len(vector)) > 0
    return np.packbits(sides).tobytes().hex()


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write an array in one step."""
    file = io.BytesIO()
    np.save(file, values)
    replace_file(path, file.getvalue(), "precedents", "--detector")


@dataclass(frozen=True, slots=True)
class Precedent:
    """A decided meme: what it was called and why; empty fields are not known of it.

    ``pdq`` is the hash of the industry's lists, ``sense`` a hash of what the text means, where it
    was taught by meaning.
    """

    id: str
    label: Literal["harmless", "harmful"]
    why: str = ""
    text: str = ""
    sha256: str = ""
    phash: str = ""
    pdq: str = ""
    sense: str = ""


_READ = TypeAdapter(Precedent)


@dataclass(frozen=True, slots=True)
class Copied:
    """The precedent that a meme is a copy of, and how that was told."""

    precedent: Precedent
    how: How

    @property
    def sure(self) -> bool:
        """Whether it decides; else people are to look."""
        return self.how != "the same picture, whose text is not known"

    def cite(self) -> str:
        """How a verdict names it."""
        why = f": {self.precedent.why}" if self.precedent.why else ""
        return f"precedent {self.precedent.id} ({self.how}){why}"


class Memory:
    """The precedents in a folder; whoever teaches one is heard at the next look-up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stamp: tuple[tuple[int, int], ...] = ()
        self._arrays: dict[str, tuple[Bits, Ints]] = {}
        self._wide: dict[str, WideIndex] = {}

    @classmethod
    def beside(cls, detector: Path) -> Memory:
        """The memory of a detector's file or folder."""
        return cls(detector.with_name(detector.name + ENDING))

    def find(
        self,
        *,
        text: str,
        sha256: str = "",
        phash: str = "",
        pdq: str = "",
        mean: Callable[[str], str] | None = None,
    ) -> Copied | None:
        """The precedent of a meme: by bytes, by picture and text, by text, then by meaning.

        A text alone decides only what has no picture: the same words on another one mean another
        thing. ``mean`` hashes what a text means; it is asked only where a precedent was taught by
        meaning.
        """
        self._follow()
        if not self._arrays:
            return None
        if sha256 and (known := self._find_equal("sha", _cut(sha256), "sha256", sha256)):
            return Copied(known, "the same bytes")
        said = _normalize(text)
        sense = mean(text) if said and mean is not None and "sense" in self._wide else ""
        if phash or pdq:
            return self._find_alike(phash, pdq, said, sense)
        if said:
            places = self._list_equal("text", _cut(_digest(said)))
            for known in self._read(places):
                if not known.phash and _normalize(known.text) == said:
                    return Copied(known, "the same text")
        if sense:
            for known in self._read(self._wide["sense"].find(sense, NEAR_SENSE)):
                if not known.phash:
                    return Copied(known, "a text of the same meaning")
        return None

    @property
    def knows_lists(self) -> bool:
        """Whether a precedent has a hash of the industry's lists."""
        self._follow()
        return "pdq" in self._wide

    @property
    def version(self) -> str:
        """Digest of what it holds; empty where that is nothing."""
        self._follow()
        # A precedent that changes gets a new line.
        lines = [np.ascontiguousarray(places).tobytes() for places in self._list_places()]
        return hashlib.sha256(b"".join(lines)).hexdigest()[:12] if any(lines) else ""

    def walk(self) -> Iterator[Precedent]:
        """All precedents, oldest first."""
        self._follow()
        return self._read(sorted({int(p) for lines in self._list_places() for p in lines}))

    def _list_places(self) -> list[Ints]:
        more = [index.lines for index in self._wide.values()]
        return [*(places for _, places in self._arrays.values()), *more]

    def teach(self, precedents: Iterable[Precedent]) -> list[Precedent]:
        """Add precedents; an older one on the same image or text is replaced.

        Those without an id get one.
        """
        made = []
        for given in precedents:
            if not (given.sha256 or given.phash or given.pdq or _normalize(given.text)):
                raise InputError("a precedent needs a text or an image", hint="give one")
            name = given.id or f"p{_digest(_name_thing(given))[:12]}"
            made.append(Precedent(**{**asdict(given), "id": name}))
        with in_turn(self.folder):
            self._follow()
            gone = [place for one in made for place in self._find_older(one)]
            self._write(made, gone)
        return made

    def forget(self, names: Sequence[str]) -> list[Precedent]:
        """Remove precedents by their ids."""
        with in_turn(self.folder):
            self._follow()
            places = sorted({int(p) for lines in self._list_places() for p in lines})
            known = {
                one.id: (place, one) for place, one in zip(places, self._read(places), strict=True)
            }
            missing = [name for name in names if name not in known]
            if missing:
                raise InputError(
                    f"{self.folder} has no precedent {missing[0]!r}",
                    hint="memantics detector precedents FILE lists them",
                )
            gone = [known[name] for name in dict.fromkeys(names)]
            self._write([], [place for place, _ in gone])
        return [one for _, one in gone]

    def _find_older(self, made: Precedent) -> list[int]:
        """Places of precedents on the same thing."""
        if not self._arrays:
            return []
        if made.sha256:
            places = self._list_equal("sha", _cut(made.sha256))
        elif said := _normalize(made.text):
            places = self._list_equal("text", _cut(_digest(said)))
        elif made.phash:
            places = self._list_equal(_TURNS[0], int(made.phash, 16))
        else:
            places = self._wide["pdq"].find(made.pdq, 0) if "pdq" in self._wide else []
        found = zip(places, self._read(places), strict=True)
        return [place for place, old in found if _name_thing(old) == _name_thing(made)]

    def _write(self, made: Sequence[Precedent], gone: Sequence[int]) -> None:
        """Append lines, then put their keys into the arrays and take others out."""
        file = self.folder / _LINES
        at = file.stat().st_size if file.is_file() else 0
        places = []
        with file.open("ab") as lines:
            for precedent in made:
                places.append(at)
                at += lines.write(orjson.dumps(asdict(precedent)) + b"\n")
        keys = [_list_keys(precedent) for precedent in made]
        for kind in _WIDE:
            self._write_wide(kind, zip(made, places, strict=True), gone)
        nothing = (np.zeros(0, np.uint64), np.zeros(0, np.int64))
        for kind in _KINDS:
            values, old = self._arrays.get(kind, nothing)
            kept = ~np.isin(old, np.array(gone, np.int64))
            new = [
                (image_keys[kind], place)
                for image_keys, place in zip(keys, places, strict=True)
                if kind in image_keys
            ]
            if kind in self._arrays and kept.all() and not new:
                continue  # whatever fails on the way, a rerun finds what is to be forgotten
            more = np.array([key for key, _ in new], np.uint64)
            values = np.concatenate([values[kept], more])
            lined = np.concatenate([old[kept], np.array([place for _, place in new], np.int64)])
            order = np.argsort(values, kind="stable")
            # Keys and lines in one file: whoever reads meanwhile never sees those of two states.
            stacked = np.stack([values[order], lined[order].view("u8")])
            save_array(self.folder / f"{kind}.npy", stacked)
        self._arrays = {}

    def _write_wide(
        self, kind: str, made: Iterable[tuple[Precedent, int]], gone: Sequence[int]
    ) -> None:
        known, new = self._wide.get(kind), [(p, at) for p, at in made if getattr(p, kind)]
        if known is None and not new:
            return
        bits = read_wide([getattr(precedent, kind) for precedent, _ in new])
        lines = np.array([at for _, at in new], np.int64)
        if known is not None:
            kept = ~np.isin(known.lines, np.array(gone, np.int64))
            bits = np.concatenate([known.bits[kept], bits])
            lines = np.concatenate([known.lines[kept], lines])
        WideIndex.write(self.folder, kind, bits, lines)

    def _follow(self) -> None:
        """Map the arrays again where they were written since."""
        files = [self.folder / f"{kind}.npy" for kind in (*_KINDS, *_WIDE)]
        found = [file.stat() for file in files if file.exists()]
        if not files[len(_KINDS) - 1].exists():
            self._arrays, self._wide = {}, {}
            return
        stamp = tuple((one.st_mtime_ns, one.st_ino) for one in found)
        if stamp == self._stamp and self._arrays:
            return
        try:
            read = {kind: np.load(self.folder / f"{kind}.npy", mmap_mode="r") for kind in _KINDS}
            self._arrays = {
                kind: (keys, places.view("i8")) for kind, (keys, places) in read.items()
            }
            self._wide = {
                kind: WideIndex(self.folder, kind)
                for kind in _WIDE
                if (self.folder / f"{kind}.npy").is_file()
            }
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.folder} holds no precedents that can be read", hint="teach them again"
            ) from error
        self._stamp = stamp

    def _list_equal(self, kind: str, key: int) -> list[int]:
        values, places = self._arrays[kind]
        first, last = (
            int(np.searchsorted(values, np.uint64(key), side)) for side in ("left", "right")
        )
        return [int(place) for place in places[first:last]]

    def _find_equal(self, kind: str, key: int, field: str, wanted: str) -> Precedent | None:
        found = self._read(self._list_equal(kind, key))
        return next((known for known in found if getattr(known, field) == wanted), None)

    def _find_alike(self, phash: str, pdq: str, said: str, sense: str) -> Copied | None:
        """The nearest precedent that looks alike and says the same, by letter or by meaning."""
        places = self._list_alike(int(phash, 16)) if phash else []
        if pdq and "pdq" in self._wide:
            places = [*places, *self._wide["pdq"].find(pdq, MOST_APART)[:_MOST_NEAR]]
        unsure = None
        for known in self._read(list(dict.fromkeys(places))):
            other = _normalize(known.text)
            if share_common(said, other) >= SAME_TEXT if said and other else said == other:
                return Copied(known, "the same picture with the same text")
            if sense and known.sense and count_apart(sense, known.sense) <= NEAR_SENSE:
                return Copied(known, "the same picture with a text of the same meaning")
            if not known.text and unsure is None:
                unsure = Copied(known, "the same picture, whose text is not known")
        return unsure

    def _list_alike(self, look: int) -> list[int]:
        """Of six different bits at most one lies in some quarter: four orders find all, fast."""
        near: dict[int, int] = {}
        for turn, kind in enumerate(_TURNS):
            values, places = self._arrays[kind]
            turned = np.uint64(_turn(look, turn))
            head = turned >> np.uint64(48)
            heads = np.array([head, *(head ^ np.uint64(1 << bit) for bit in range(16))], np.uint64)
            low, high = heads << np.uint64(48), (heads << np.uint64(48)) | np.uint64((1 << 48) - 1)
            firsts = np.searchsorted(values, low, "left")
            lasts = np.searchsorted(values, high, "right")
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
                apart = count_bits(np.asarray(values[first:last]) ^ turned)
                for place in np.flatnonzero(apart <= NEAR_BITS).tolist():
                    near[int(places[first + place])] = int(apart[place])
        return sorted(near, key=lambda place: (near[place], place))[:_MOST_NEAR]

    def _read(self, places: Sequence[int]) -> Iterator[Precedent]:
        if not places:
            return
        with (self.folder / _LINES).open("rb") as lines:
            for place in places:
                lines.seek(place)
                yield _parse(lines.readline(), str(self.folder / _LINES))


def _parse(line: bytes, where: str) -> Precedent:
    try:
        return _READ.validate_json(line)
    except ValidationError as error:
        raise StoreError(f"{where}: {first_fault(error)}", hint="teach it again") from error


def count_apart(first: str, second: str) -> int:
    """Different bits of two hexadecimal hashes.

    >>> count_apart("0f", "00")
    4
    """
    return (int(first, 16) ^ int(second, 16)).bit_count()


def _normalize(text: str) -> str:
    """A text as copies share it: obfuscations undone, marks and white space left out."""
    return "".join(sign for sign in clean(unmask(text).text) if sign.isalnum())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _cut(digest: str) -> int:
    return int(digest[:16] or "0", 16)


def _name_thing(precedent: Precedent) -> str:
    """What a precedent is about: the bytes of an image, its look, or a text."""
    look = precedent.phash or precedent.pdq
    return precedent.sha256 or f"{look}:{_normalize(precedent.text)}"


def _list_keys(precedent: Precedent) -> dict[str, int]:
    """Under what a precedent is found."""
    keys = {"sha": _cut(precedent.sha256)} if precedent.sha256 else {}
    if said := _normalize(precedent.text):
        keys["text"] = _cut(_digest(said))
    if precedent.phash:
        look = int(precedent.phash, 16)
        keys |= {kind: _turn(look, turn) for turn, kind in enumerate(_TURNS)}
    return keys


def _turn(look: int, turn: int) -> int:
    """A hash with another quarter in front."""
    shift = 16 * turn
    return ((look << shift) | (look >> (64 - shift))) & ((1 << 64) - 1)
