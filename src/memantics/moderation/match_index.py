"""Match list of a detector: labelled memes whose copies get the same label by hash matching.

The index is a folder beside the detector file: one JSON line per entry, and sorted, memory-mapped
arrays of hashes. A similar image matches only if its text is also the same or has a similar
embedding, since memes made from one template differ only in their text. If an entry has no text
(imported hash lists), the match needs human review. Hashes of 256 bits are split into sixteen parts
of 16 bits. If two hashes differ in at most 31 bits, some part differs in at most one bit. Looking
up each part, and each part with one bit flipped, therefore finds all matches.
"""

from __future__ import annotations

import hashlib
import io
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.files import check_regular, in_turn, open_regular, replace_file
from memantics.metrics.rounding import Ints
from memantics.metrics.text import measure_overlap
from memantics.moderation.match_hashes import WIDE_BITS, count_apart, normalize_text
from memantics.understanding.vision.hashes import Bits, count_bits

MOST_APART = 31  # maximum Hamming distance in bits; the index finds no matches beyond it
_PARTS = 16
_FLIPS = np.array([0, *(1 << bit for bit in range(16))], np.uint16)
Wide = NDArray[np.uint64]
ENDING = ".match-list"
# maximum Hamming distance, in bits, of recompressed copies (docs/research/match-list.md)
NEAR_BITS = 6
SAME_TEXT = 0.9  # minimum text similarity of two copies
NEAR_EMBEDDING = 24  # maximum Hamming distance of two embedding hashes
_MOST_NEAR = 256  # maximum number of similar images whose texts are compared
_LINES = "entries.jsonl"
_TURNS = tuple(f"phash-{turn}" for turn in range(4))
_KINDS = ("sha", "text", *_TURNS)
_WIDE = ("pdq", "embedding_hash")
_NEEDED = {_LINES, *(f"{kind}.npy" for kind in _KINDS)}
_FILES = (*sorted(_NEEDED), *(f"{kind}.npy" for kind in _WIDE))
How = Literal[
    "same bytes",
    "same text",
    "similar image, same text",
    "similar image, similar text embedding",
    "similar text embedding",
    "similar image, text of the entry unknown",
    "same bytes, another caption",
    "same template, other text",
]
OTHER_TEXT: Final = "same template, other text"
_UNSURE = ("similar image, text of the entry unknown", "same bytes, another caption")


class WideIndex:
    """An index of 256-bit hashes in one file; ``lines`` are byte offsets of the entries."""

    def __init__(self, folder: Path, name: str) -> None:
        # A plain view of the mapped file: slicing a numpy memmap costs microseconds each time.
        table = _map_array(folder, name, 17)
        size, flat = table.shape[1], table.reshape(-1)
        self.bits = flat[: 4 * size].reshape(size, 4)
        self._heads = flat[4 * size : 8 * size].view(np.uint16).reshape(_PARTS, size)
        self._order = flat[8 * size : 16 * size].view(np.uint32)
        self.lines = flat[16 * size :].view(np.int64)

    @staticmethod
    def write(folder: Path, name: str, bits: Wide, lines: NDArray[np.int64]) -> None:
        """Write the index of hashes; each hash is a row of four 64-bit numbers."""
        parts = np.ascontiguousarray(bits.view(np.uint16).reshape(-1, _PARTS).T)
        order = np.argsort(parts, axis=1, kind="stable").astype(np.uint32)
        heads = np.take_along_axis(parts, order, axis=1)
        # One file, so that a concurrent reader never sees parts of two versions.
        flat = [array.reshape(-1).view(np.uint64) for array in (bits, heads, order, lines)]
        save_array(folder / f"{name}.npy", np.concatenate(flat).reshape(17, len(lines)))

    def find(self, wanted: str, most: int) -> list[int]:
        """Return offsets of hashes that differ from ``wanted`` in at most ``most`` bits."""
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


def _map_array(folder: Path, name: str, rows: int) -> NDArray[Any]:
    """Map the file of an array into memory; raise ValueError for another shape or type."""
    path = folder / f"{name}.npy"
    check_regular(path)
    try:
        table = np.load(path, mmap_mode="r")
    except Exception as error:  # numpy evaluates the header, which can raise any error
        raise ValueError(f"{name}.npy cannot be read") from error
    if not isinstance(table, np.ndarray) or table.dtype != np.uint64 or table.ndim != 2:
        raise ValueError(f"{name}.npy has another type")
    if len(table) != rows:
        raise ValueError(f"{name}.npy has {len(table)} rows, not {rows}")
    return table.view(np.ndarray)


def read_wide(hashes: Sequence[str]) -> Wide:
    """Convert hexadecimal hashes of 256 bits to rows of four 64-bit numbers.

    >>> read_wide(["0" * 63 + "1"]).shape
    (1, 4)
    """
    data = b"".join(bytes.fromhex(text) for text in hashes)
    return np.frombuffer(data, np.uint64).reshape(-1, WIDE_BITS // 64)


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Replace the file of an array atomically."""
    file = io.BytesIO()
    np.save(file, values)
    replace_file(path, file.getvalue(), "match list", "--detector")


@dataclass(frozen=True, slots=True)
class MatchEntry:
    """An entry of a match list: a meme with its label; empty fields are unknown.

    ``reason`` is shown with every match. ``pdq`` is the perceptual hash used by shared hash lists.
    ``embedding_hash`` is a hash of the text embedding, set for entries added with ``semantic``.
    """

    id: str
    label: Literal["harmless", "harmful"]
    reason: str = ""
    text: str = ""
    sha256: str = ""
    phash: str = ""
    pdq: str = ""
    embedding_hash: str = ""

    @property
    def has_image(self) -> bool:
        """Whether a hash of its image is known."""
        return bool(self.sha256 or self.phash or self.pdq)


_READ = TypeAdapter(MatchEntry)


@dataclass(frozen=True, slots=True)
class HashMatch:
    """A match: the entry of the match list that a meme is a copy of, and how it matched."""

    entry: MatchEntry
    how: How

    @property
    def copied(self) -> bool:
        """Whether the meme is a copy of the entry; False for another meme on its template."""
        return self.how != OTHER_TEXT

    @property
    def sure(self) -> bool:
        """Whether the match decides the label; otherwise it needs human review."""
        return self.copied and self.how not in _UNSURE

    @property
    def reason(self) -> str:
        """How the meme matched, and the reason stored with the entry."""
        return f"{self.how}: {self.entry.reason}" if self.entry.reason else self.how

    def cite(self) -> str:
        """Describe the match in one line, for notes and review reasons."""
        return f"matches {self.entry.id} ({self.reason})"


class MatchList:
    """The match list in a folder; changes by other processes take effect at the next lookup."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stamp: dict[str, tuple[int, int]] = {}
        self._arrays: dict[str, tuple[Bits, Ints]] = {}
        self._wide: dict[str, WideIndex] = {}

    @classmethod
    def beside(cls, detector: Path) -> MatchList:
        """Open the match list that belongs to a detector file or folder."""
        return cls(detector.with_name(detector.name + ENDING))

    def find(
        self,
        *,
        text: str,
        sha256: str = "",
        phash: str = "",
        pdq: str = "",
        embed: Callable[[str], str] | None = None,
        templates: bool = False,
    ) -> HashMatch | None:
        """Find the entry that a meme is a copy of.

        Entries are compared by file bytes, by image and text, by text, then by text embedding. An
        image with another caption than that of the entry is another meme, which needs human review.
        Text alone decides only for memes without an image: the same words on another image can
        have another meaning. ``embed`` hashes the embedding of a text; it is called only if an
        entry has an embedding hash. With ``templates``, an entry on the same template with another
        text is returned if no other entry matches.

        Returns:
            The match, or None if no entry matches.
        """
        self._follow()
        if not self._arrays:
            return None
        said = normalize_text(text)
        with self._reading():
            if sha256 and (found := self._find_same_bytes(sha256, said)):
                return found
        hashed = embed(text) if said and embed and "embedding_hash" in self._wide else ""
        with self._reading():
            found = self._find_other(said, phash, pdq, hashed)
            return found or (self._find_template(said, phash, pdq) if templates else None)

    def _find_other(self, said: str, phash: str, pdq: str, hashed: str) -> HashMatch | None:
        if phash or pdq:
            return self._find_similar(phash, pdq, said, hashed)
        if said:
            places = self._list_equal("text", _cut(_digest(said)))
            for known in self._read(places):
                if not known.has_image and normalize_text(known.text) == said:
                    return HashMatch(known, "same text")
        if hashed:
            for known in self._read(self._wide["embedding_hash"].find(hashed, NEAR_EMBEDDING)):
                if not known.has_image:
                    return HashMatch(known, "similar text embedding")
        return None

    @property
    def has_pdq(self) -> bool:
        """Whether any entry has a PDQ hash."""
        self._follow()
        return "pdq" in self._wide

    @property
    def version(self) -> str:
        """A digest of the entries; empty for an empty match list."""
        self._follow()
        # A changed entry gets a new line in the file, so the byte offsets identify the contents.
        lines = [np.ascontiguousarray(places).tobytes() for places in self._list_places()]
        return hashlib.sha256(b"".join(lines)).hexdigest()[:12] if any(lines) else ""

    def walk(self) -> Iterator[MatchEntry]:
        """Iterate over the entries, oldest first."""
        self._follow()
        with self._reading():
            yield from self._read(sorted({int(p) for lines in self._list_places() for p in lines}))

    def _list_places(self) -> list[Ints]:
        more = [index.lines for index in self._wide.values()]
        return [*(places for _, places in self._arrays.values()), *more]

    def add(self, entries: Iterable[MatchEntry]) -> list[MatchEntry]:
        """Add entries; an older entry for the same image or text is replaced.

        An entry without an id gets one. Raises InputError for an entry with neither text nor hash.
        """
        made = []
        for given in entries:
            if not (given.sha256 or given.phash or given.pdq or normalize_text(given.text)):
                raise InputError(
                    "an entry of a match list needs a text or an image", hint="give one"
                )
            name = given.id or f"m{_digest(_name_content(given))[:12]}"
            made.append(MatchEntry(**{**asdict(given), "id": name}))
        with in_turn(self.folder):
            self._follow(locked=True)
            with self._reading():
                gone = [place for one in made for place in self._find_older(one)]
            self._write(made, gone)
        return made

    def remove(self, names: Sequence[str]) -> list[MatchEntry]:
        """Remove entries by id; raise InputError if an id is not in the list."""
        with in_turn(self.folder):
            self._follow(locked=True)
            places = sorted({int(p) for lines in self._list_places() for p in lines})
            with self._reading():
                entries = list(self._read(places))
            known = {one.id: (place, one) for place, one in zip(places, entries, strict=True)}
            missing = [name for name in names if name not in known]
            if missing:
                raise InputError(
                    f"{self.folder} has no entry with the id {missing[0]!r}",
                    hint="list the ids with 'memantics match-list list DETECTOR'",
                )
            gone = [known[name] for name in dict.fromkeys(names)]
            self._write([], [place for place, _ in gone])
        return [one for _, one in gone]

    def _find_older(self, made: MatchEntry) -> list[int]:
        """Return offsets of entries for the same image or text."""
        if not self._arrays:
            return []
        if made.sha256:
            places = self._list_equal("sha", _cut(made.sha256))
        elif said := normalize_text(made.text):
            places = self._list_equal("text", _cut(_digest(said)))
        elif made.phash:
            places = self._list_equal(_TURNS[0], int(made.phash, 16))
        else:
            places = self._wide["pdq"].find(made.pdq, 0) if "pdq" in self._wide else []
        found = zip(places, self._read(places), strict=True)
        return [place for place, old in found if _name_content(old) == _name_content(made)]

    def _write(self, made: Sequence[MatchEntry], gone: Sequence[int]) -> None:
        """Append new entries, and update the hash arrays: add ``made``, remove ``gone``.

        If the first write fails, its files are deleted, since they are not a whole match list.
        """
        first = not self._arrays
        try:
            self._write_files(made, gone)
        except BaseException:
            for name in _FILES if first else ():
                (self.folder / name).unlink(missing_ok=True)
            raise
        self._arrays = {}

    def _write_files(self, made: Sequence[MatchEntry], gone: Sequence[int]) -> None:
        file = self.folder / _LINES
        at = file.stat().st_size if file.is_file() else 0
        places = []
        with file.open("ab") as lines:
            for entry in made:
                places.append(at)
                at += lines.write(orjson.dumps(asdict(entry)) + b"\n")
        keys = [_list_keys(entry) for entry in made]
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
                # The text file is unchanged, so a new attempt after a failed write still finds the
                # removed entries.
                continue
            more = np.array([key for key, _ in new], np.uint64)
            values = np.concatenate([values[kept], more])
            lined = np.concatenate([old[kept], np.array([place for _, place in new], np.int64)])
            order = np.argsort(values, kind="stable")
            # Keys and offsets share one file, so that a reader never sees two versions.
            stacked = np.stack([values[order], lined[order].view("u8")])
            save_array(self.folder / f"{kind}.npy", stacked)

    def _write_wide(
        self, kind: str, made: Iterable[tuple[MatchEntry, int]], gone: Sequence[int]
    ) -> None:
        known, new = self._wide.get(kind), [(p, at) for p, at in made if getattr(p, kind)]
        if known is None and not new:
            return
        bits = read_wide([getattr(entry, kind) for entry, _ in new])
        lines = np.array([at for _, at in new], np.int64)
        if known is not None:
            kept = ~np.isin(known.lines, np.array(gone, np.int64))
            bits = np.concatenate([known.bits[kept], bits])
            lines = np.concatenate([known.lines[kept], lines])
        WideIndex.write(self.folder, kind, bits, lines)

    @property
    def exists(self) -> bool:
        """Whether the folder exists, or existed when the list was last read."""
        return bool(self._stamp) or self.folder.is_dir()

    def check(self) -> None:
        """Raise StoreError if a file is missing or damaged; of the entries, two are read."""
        self._follow()
        places = [places for places in self._list_places() if len(places)]
        ends = {int(find(every)) for find in (np.min, np.max) for every in places}
        with self._reading():
            for _ in self._read(sorted(ends)):
                pass

    def _follow(self, *, locked: bool = False) -> None:
        """Load the memory-mapped hash arrays again if they changed on disk.

        Raises StoreError if a file is missing: without it, known memes would be scored as if they
        were not in the list. A reader waits for a writer that is creating the files.
        """
        found = self._stat_files()
        if found and not found.keys() >= _NEEDED and not locked:
            with in_turn(self.folder):
                found = self._stat_files()
        lost = (self._stamp.keys() | (_NEEDED if found else set())) - found.keys()
        if lost:
            raise StoreError(
                f"the match list {self.folder} is incomplete: {min(lost)} is missing",
                hint="restore the folder; or delete it, load the detector again and add the entries"
                " again",
            )
        if not found:
            self._arrays, self._wide = {}, {}
            return
        if found == self._stamp and self._arrays:
            return
        with self._reading():
            read = {kind: _map_array(self.folder, kind, 2) for kind in _KINDS}
            self._arrays = {
                kind: (keys, places.view("i8")) for kind, (keys, places) in read.items()
            }
            self._wide = {
                kind: WideIndex(self.folder, kind) for kind in _WIDE if f"{kind}.npy" in found
            }
        self._stamp = found

    def _stat_files(self) -> dict[str, tuple[int, int]]:
        """Return the time and number of each file; raise StoreError for a pipe or a device."""
        found = {}
        for name in _FILES:
            try:
                facts = (self.folder / name).stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._refuse() from error
            if not stat.S_ISREG(facts.st_mode):
                raise self._refuse()
            # New lines of the text file always come with new arrays.
            found[name] = (0, 0) if name == _LINES else (facts.st_mtime_ns, facts.st_ino)
        return found

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert the errors of damaged files into StoreError."""
        try:
            yield
        except (OSError, ValueError, IndexError, EOFError, TypeError, OverflowError) as error:
            raise self._refuse() from error

    def _refuse(self) -> StoreError:
        return StoreError(
            f"the match list {self.folder} cannot be read",
            hint="delete the folder, and add the entries again",
        )

    def _list_equal(self, kind: str, key: int) -> list[int]:
        values, places = self._arrays[kind]
        first, last = (
            int(np.searchsorted(values, np.uint64(key), side)) for side in ("left", "right")
        )
        return [int(place) for place in places[first:last]]

    def _find_same_bytes(self, sha256: str, said: str) -> HashMatch | None:
        """Find the entry of an image file; with several captions, the one with the same text."""
        unsure = None
        for known in self._read(self._list_equal("sha", _cut(sha256))):
            if known.sha256 != sha256:
                continue
            other = normalize_text(known.text)
            if not said or not other or measure_overlap(said, other) >= SAME_TEXT:
                return HashMatch(known, "same bytes")
            unsure = unsure or HashMatch(known, "same bytes, another caption")
        return unsure

    def _find_similar(self, phash: str, pdq: str, said: str, hashed: str) -> HashMatch | None:
        """Find the nearest entry with a similar image and the same text, or a similar embedding."""
        places = self._list_similar(int(phash, 16)) if phash else []
        if pdq and "pdq" in self._wide:
            places = [*places, *self._wide["pdq"].find(pdq, MOST_APART)[:_MOST_NEAR]]
        unsure = None
        for known in self._read(list(dict.fromkeys(places))):
            other = normalize_text(known.text)
            if measure_overlap(said, other) >= SAME_TEXT if said and other else said == other:
                return HashMatch(known, "similar image, same text")
            other_hash = known.embedding_hash
            if hashed and other_hash and count_apart(hashed, other_hash) <= NEAR_EMBEDDING:
                return HashMatch(known, "similar image, similar text embedding")
            if not known.text and unsure is None:
                unsure = HashMatch(known, "similar image, text of the entry unknown")
        return unsure

    def list_near(self, sha256: str = "", phash: str = "", pdq: str = "") -> list[MatchEntry]:
        """List entries with the same bytes or a similar image, whatever their text."""
        self._follow()
        if not self._arrays:
            return []
        with self._reading():
            places = self._list_equal("sha", _cut(sha256)) if sha256 else []
            places += self._list_similar(int(phash, 16)) if phash else []
            if pdq and "pdq" in self._wide:
                places += self._wide["pdq"].find(pdq, MOST_APART)[:_MOST_NEAR]
            return list(self._read(list(dict.fromkeys(places))))

    def _find_template(self, said: str, phash: str, pdq: str) -> HashMatch | None:
        others = (one for one in self.list_near("", phash, pdq) if normalize_text(one.text))
        entry = next(others, None) if said else None
        return None if entry is None else HashMatch(entry, OTHER_TEXT)

    def _list_similar(self, phash: int) -> list[int]:
        """Find image hashes that differ in at most NEAR_BITS bits.

        If two hashes differ in at most six bits, at least one quarter of the hash differs in at
        most one bit. Looking up each quarter in its own sorted array therefore finds all matches.
        """
        near: dict[int, int] = {}
        for turn, kind in enumerate(_TURNS):
            values, places = self._arrays[kind]
            turned = np.uint64(_turn(phash, turn))
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

    def _read(self, places: Sequence[int]) -> Iterator[MatchEntry]:
        if not places:
            return
        with open_regular(self.folder / _LINES) as lines:
            for place in places:
                lines.seek(place)
                yield _parse(lines.readline(), str(self.folder / _LINES))


def _parse(line: bytes, where: str) -> MatchEntry:
    try:
        return _READ.validate_json(line)
    except ValidationError as error:
        raise StoreError(
            f"{where}: {first_fault(error)}", hint="delete the folder, and add the entries again"
        ) from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _cut(digest: str) -> int:
    return int(digest[:16] or "0", 16)


def _name_content(entry: MatchEntry) -> str:
    """Identify the meme of an entry: the digest or hash of its image, and its text."""
    return f"{entry.sha256 or entry.phash or entry.pdq}:{normalize_text(entry.text)}"


def _list_keys(entry: MatchEntry) -> dict[str, int]:
    """Return the lookup keys of an entry, by kind of hash."""
    keys = {"sha": _cut(entry.sha256)} if entry.sha256 else {}
    if said := normalize_text(entry.text):
        keys["text"] = _cut(_digest(said))
    if entry.phash:
        phash = int(entry.phash, 16)
        keys |= {kind: _turn(phash, turn) for turn, kind in enumerate(_TURNS)}
    return keys


def _turn(phash: int, turn: int) -> int:
    """Rotate a 64-bit hash so that another quarter comes first."""
    shift = 16 * turn
    return ((phash << shift) | (phash >> (64 - shift))) & ((1 << 64) - 1)
