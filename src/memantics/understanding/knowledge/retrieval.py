"""Retrieve known memes and statements that are similar in text meaning or image.

A pool is a set of known memes or texts that is searched. It is built from a knowledge store, a
build, a collection of memes, or a folder of texts. Its embeddings are computed once and cached in
the home folder.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from memantics.core.data import read_jsonl
from memantics.core.files import read_regular, replace_file
from memantics.core.images import load
from memantics.core.memes import MEMES, read_memes
from memantics.core.registry import home
from memantics.core.retrieval import NearMeme, Passage, TemplateClusterUse, read_passages
from memantics.metrics.rounding import VECTORS, settle
from memantics.models.embedded.encoder import Encoder, SentenceEncoder, Vectors
from memantics.understanding.knowledge.records import KNOWLEDGE, Knowledge, read_knowledge
from memantics.understanding.knowledge.store import MARKER, GraphStore
from memantics.understanding.vision.hashes import hash_image, measure_distance

_CANDIDATES = 20  # number of nearest memes whose statements are compared


@dataclass(frozen=True, slots=True)
class KnownMeme:
    """One meme of a pool: its text, image hash and statements."""

    meme: str
    text: str
    source: str
    statements: tuple[Passage, ...] = ()
    hash: int | None = None
    template_cluster: str = ""


class Pool:
    """A searchable pool of known memes and statements; see ``open_pool``."""

    def __init__(
        self,
        memes: Iterable[KnownMeme] = (),
        passages: Iterable[Passage] = (),
        encoder: Encoder | None = None,
    ) -> None:
        self.memes = tuple(memes)
        self.passages = tuple(passages)
        self._encoder = encoder or SentenceEncoder()

    def find_memes(
        self, text: str, image: Path | None = None, count: int = 5, without: Container[str] = ()
    ) -> tuple[NearMeme, ...]:
        """Find the nearest memes: those with the same image first, then the nearest texts."""
        look = None if image is None else hash_image(load(image))
        nearness = self._compare(text, self._meme_vectors) if text.strip() else None
        found = [
            NearMeme(
                meme.meme,
                meme.text,
                meme.source,
                float(nearness[place]) if nearness is not None and meme.text else None,
                None if look is None or meme.hash is None else measure_distance(look, meme.hash),
                meme.template_cluster,
                meme.statements,
            )
            for place, meme in enumerate(self.memes)
            if meme.meme not in without
        ]
        return tuple(sorted(found, key=_rank)[:count])

    def find_template_cluster(
        self, image: Path, without: Container[str] = ()
    ) -> TemplateClusterUse | None:
        """Find known memes with the same image and describe their use; None if there are none.

        Memes in the same template cluster of a collection are included.
        """
        near = self.find_memes("", image, len(self.memes), without)
        same = [meme for meme in near if meme.same_picture]
        names = {meme.template_cluster for meme in same if meme.template_cluster}
        members = [meme for meme in near if meme.same_picture or meme.template_cluster in names]
        if not members:
            return None
        uses = [Passage(text, meme.source, meme.meme) for meme in members for text in meme.uses]
        vectors = self._encode(uses)
        alike = settle((vectors @ vectors.T).sum(axis=1), VECTORS)
        use = uses[int(alike.argmax())].text if uses else ""
        memes = tuple(sorted(meme.meme for meme in members))
        return TemplateClusterUse(min(names, default=memes[0]), memes, members[0].source, use)

    def find_passages(
        self,
        text: str,
        count: int = 5,
        dimension: str = "BackgroundKnowledge",
        without: Container[str] = (),
    ) -> tuple[Passage, ...]:
        """Find the nearest statements of a dimension, from the nearest memes and plain texts."""
        if not text.strip():
            return ()
        near = self.find_memes(text, None, _CANDIDATES, without)
        told = [
            passage
            for meme in near
            for passage in meme.statements
            if passage.dimension == dimension
        ]
        scored = list(zip(told, self._compare(text, self._encode(told)), strict=True))
        scored += zip(self.passages, self._compare(text, self._passage_vectors), strict=True)
        rated = [
            replace(passage, nearness=settle(float(value), VECTORS)) for passage, value in scored
        ]
        unique: dict[str, Passage] = {}
        for passage in sorted(rated, key=lambda passage: (-passage.nearness, passage.text)):
            unique.setdefault(passage.text, passage)
        return tuple(unique.values())[:count]

    def _compare(self, text: str, vectors: Vectors) -> Vectors:
        if not len(vectors):
            return np.zeros(0, np.float32)
        return np.asarray(vectors @ self._encoder.encode([text])[0], np.float32)

    def _encode(self, passages: Sequence[Passage]) -> Vectors:
        texts = [passage.text for passage in passages]
        return self._encoder.encode(texts) if texts else np.zeros((0, 1), np.float32)

    @cached_property
    def _meme_vectors(self) -> Vectors:
        return self._remember([meme.text or meme.meme for meme in self.memes])

    @cached_property
    def _passage_vectors(self) -> Vectors:
        return self._remember([passage.text for passage in self.passages])

    def _remember(self, texts: Sequence[str]) -> Vectors:
        """Return embeddings of texts, cached in the home folder."""
        if not texts:
            return np.zeros((0, 1), np.float32)
        mark = "\0".join([self._encoder.version, *texts])
        digest = hashlib.sha256(mark.encode("utf-8", "replace")).hexdigest()[:32]
        place = home() / "retrieval" / f"{digest}.npy"
        try:
            found = np.load(io.BytesIO(read_regular(place)), allow_pickle=False)
            if len(found) == len(texts) and found.dtype == np.float32:
                return np.asarray(found, np.float32)
        except (OSError, ValueError, EOFError):
            pass  # missing or damaged cache: compute again
        made = self._encoder.encode(texts)
        body = io.BytesIO()
        np.save(body, made, allow_pickle=False)
        replace_file(place, body.getvalue(), "vectors")
        return made


def _rank(meme: NearMeme) -> tuple[bool, float, int, str]:
    bits = 64 if meme.bits is None else meme.bits
    near = -1.0 if meme.nearness is None else meme.nearness
    return not meme.same_picture, -near, bits, meme.meme


def open_pool(*places: Path | str, encoder: Encoder | None = None) -> Pool:
    """Open a pool of passages from knowledge stores, build and collection folders, texts or tables.

    Plain texts are split at empty lines; a table needs a column ``text``.
    """
    memes: list[KnownMeme] = []
    passages: list[Passage] = []
    for place in map(Path, places):
        if (place / MARKER).is_file():
            memes += (_adopt(knowledge, place.name) for knowledge in GraphStore.open(place).all())
        elif (place / KNOWLEDGE).is_file():
            memes += (_adopt(knowledge, place.name) for knowledge in read_knowledge(place))
        elif (place / MEMES).is_file():
            memes += _read_collection(place)
        else:
            passages += read_passages(place)
    return Pool(memes, passages, encoder)


def pool_knowledge(known: Iterable[Knowledge], source: str, encoder: Encoder | None = None) -> Pool:
    """Build a searchable pool from facts about memes in memory."""
    return Pool((_adopt(knowledge, source) for knowledge in known), (), encoder)


def _adopt(known: Knowledge, source: str) -> KnownMeme:
    says = " / ".join(
        _tell(individual.label, individual.description)
        for individual in known.of("TextualMaterial")
    )
    statements = tuple(
        Passage(
            _tell(individual.label, individual.description),
            source,
            known.meme,
            individual.dimension,
        )
        for individual in known.individuals
    )
    return KnownMeme(known.meme, says, source, statements)


def _tell(label: str, description: str) -> str:
    return f"{label}: {description}" if description and description != label else label


def _read_collection(folder: Path) -> Iterator[KnownMeme]:
    looks = {
        str(line.get("id")): line.get("hash")
        for _, line in read_jsonl(folder / MEMES)
        if isinstance(line, dict)
    }
    for meme in read_memes(folder):
        told = tuple(Passage(text, folder.name, meme.id, name) for name, text in meme.notes.items())
        yield KnownMeme(
            meme.id,
            meme.text,
            folder.name,
            told,
            _read_hash(looks.get(meme.id)),
            meme.template_cluster,
        )


def _read_hash(look: object) -> int | None:
    try:
        value = int(str(look), 16)
    except ValueError:
        return None
    return value if value < 1 << 64 else None
