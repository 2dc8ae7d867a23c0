"""Score, rank and filter generated chats for variety of topics and words.

The embedders and language models behind the scores are opened by name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np

from memantics.construction.chats.distractors import Embedders, LayoutEncoder
from memantics.construction.chats.rules import (
    ChatDraft,
    Flow,
    Fluency,
    Quality,
    TextEmbedder,
    cut_words,
)
from memantics.core.errors import InputError, MissingExtra
from memantics.core.language import has_dense_script
from memantics.core.memes import Meme
from memantics.core.parameters import Flag
from memantics.metrics.grouping import find_near_duplicates
from memantics.metrics.text import measure_distinct
from memantics.models.embedded.encoder import SentenceEncoder, Vectors
from memantics.models.semantic import BertScorer

_BALANCE = 0.05  # penalty on the rank of a topic that is more frequent than others
_TWIN = 0.7  # shared word bigrams above which two chats count as the same


@dataclass(frozen=True, slots=True)
class Gauges:
    """Hold the models that measure chats; None leaves a metric out."""

    encoder: TextEmbedder | None = None
    flow: Flow | None = None
    fluency: Fluency | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Store the metrics of all chats together; None if not measured."""

    chats: int
    memes: int
    turns: dict[str, int]
    topics: dict[str, int]
    distinct_1: float | None
    distinct_2: float | None
    perplexity: float | None
    flow: float | None
    measured_by: dict[str, str]


class BertFlow:
    """Measure BERTScore F1 of adjacent messages, as in PunMemeCN."""

    def __init__(self, scorer: BertScorer) -> None:
        self.note = f"BERTScore F1: {scorer.note}"
        self._scorer = scorer

    def measure(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the BERTScore of each pair."""
        return [score.f1 for score in self._scorer.score(pairs)]


class CosineFlow:
    """Measure the cosine of sentence embeddings of adjacent messages, instead of BERTScore."""

    def __init__(self, encoder: TextEmbedder) -> None:
        self.note = f"cosine: {encoder.version}"
        self._encoder = encoder

    def measure(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair."""
        texts = sorted({text for pair in pairs for text in pair})
        if not texts:
            return []
        vectors = dict(zip(texts, self._encoder.encode(texts), strict=True))
        return [float(vectors[one] @ vectors[other]) for one, other in pairs]


def measure_drafts(drafts: Sequence[ChatDraft], gauges: Gauges) -> list[ChatDraft]:
    """Return drafts with their metrics; each measure is called once for all."""
    texts = [draft.said.text for draft in drafts]
    perplexities: Sequence[float | None] = [None] * len(drafts)
    if gauges.fluency is not None:
        perplexities = gauges.fluency.measure(texts)
    flows = _measure_flow(drafts, gauges.flow)
    fits = _measure_fit(drafts, gauges.encoder)
    return [
        replace(draft, quality=Quality(*measures))
        for draft, *measures in zip(drafts, perplexities, flows, fits, strict=True)
    ]


def _measure_flow(drafts: Sequence[ChatDraft], flow: Flow | None) -> list[float | None]:
    if flow is None:
        return [None] * len(drafts)
    pairs = [list(pairwise(turn.text for turn in draft.said.turns)) for draft in drafts]
    measures = iter(flow.measure([pair for draft_pairs in pairs for pair in draft_pairs]))
    return [
        sum(next(measures) for _ in draft_pairs) / len(draft_pairs) if draft_pairs else None
        for draft_pairs in pairs
    ]


def _measure_fit(drafts: Sequence[ChatDraft], encoder: TextEmbedder | None) -> list[float | None]:
    """Return the similarity between the end of each chat and the meaning of its meme."""
    if encoder is None or not drafts:
        return [None] * len(drafts)
    ends = encoder.encode([draft.said.turns[-1].text for draft in drafts])
    meanings = encoder.encode([draft.subject.meaning or draft.subject.about for draft in drafts])
    return [float(value) for value in np.einsum("ij,ij->i", ends, meanings)]


def select_chats(drafts: Sequence[ChatDraft], keep: int) -> list[ChatDraft]:
    """Select at most ``keep`` chats per meme, one per topic, by mean rank and topic balance."""
    ranks = rank_drafts(drafts)
    by_meme: defaultdict[str, list[int]] = defaultdict(list)
    for place, draft in enumerate(drafts):
        by_meme[draft.subject.meme.id].append(place)
    topics: Counter[str] = Counter()
    chosen: list[ChatDraft] = []
    for places in by_meme.values():
        left = list(places)
        mine: list[ChatDraft] = []
        while left and len(mine) < keep:
            fewest = min((topics[drafts[i].topic] for i in left), default=0)
            best = min(
                left,
                key=lambda i: (ranks[i] + _BALANCE * (topics[drafts[i].topic] - fewest), i),
            )
            chat_draft = drafts[best]
            left.remove(best)
            if not _is_twin(chat_draft, mine):
                mine.append(chat_draft)
                topics[chat_draft.topic] += 1
            left = [i for i in left if all(drafts[i].topic != kept.topic for kept in mine)]
        chosen += mine
    return chosen


def rank_drafts(drafts: Sequence[ChatDraft]) -> list[float]:
    """Return the mean rank of each draft over its metrics, from 0 (best) to 1."""
    measures: list[Callable[[Quality], float | None]] = [
        lambda quality: quality.perplexity,
        lambda quality: None if quality.flow is None else -quality.flow,
        lambda quality: None if quality.fit is None else -quality.fit,
    ]
    sums = [0.0] * len(drafts)
    counts = [0] * len(drafts)
    for measure in measures:
        known = [
            (value, i) for i, d in enumerate(drafts) if (value := measure(d.quality)) is not None
        ]
        for rank, (_, place) in enumerate(sorted(known)):
            sums[place] += rank / max(1, len(known) - 1)
            counts[place] += 1
    return [total / count if count else 0.5 for total, count in zip(sums, counts, strict=True)]


def _is_twin(draft: ChatDraft, others: Sequence[ChatDraft]) -> bool:
    texts = [other.said.text for other in others]
    return find_near_duplicates([draft.said.text], texts, _TWIN, _word_pairs)[0] is not None


def _word_pairs(text: str) -> list[str]:
    words = list(cut_words(text.casefold()))
    return [" ".join(pair) for pair in pairwise(words)] or words


def cut_utterance(text: str) -> list[str]:
    """Return the tokens of a message for Distinct-n; jieba segments Chinese.

    >>> cut_utterance("So good, so good!")
    ['So', 'good,', 'so', 'good!']
    """
    return list(cut_words(text)) if has_dense_script(text) else text.split()


def describe_corpus(chosen: Sequence[ChatDraft], gauges: Gauges) -> Corpus:
    """Return the metrics of all chats together; turns include the meme, as in papers."""
    varied = measure_distinct(
        (turn.text for draft in chosen for turn in draft.said.turns), cut_utterance
    )
    return Corpus(
        chats=len(chosen),
        memes=len({draft.subject.meme.id for draft in chosen}),
        turns=dict(sorted(Counter(str(len(draft.said.turns) + 1) for draft in chosen).items())),
        topics=dict(sorted(Counter(draft.topic for draft in chosen).items())),
        distinct_1=varied[1],
        distinct_2=varied[2],
        perplexity=_mean([draft.quality.perplexity for draft in chosen]),
        flow=_mean([draft.quality.flow for draft in chosen]),
        measured_by={
            name: note
            for name, note in (
                ("perplexity", gauges.fluency.note if gauges.fluency else ""),
                ("flow", gauges.flow.note if gauges.flow else ""),
                ("fit", f"cosine: {gauges.encoder.version}" if gauges.encoder else ""),
            )
            if note
        },
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


Perplexity = Annotated[
    str | None,
    Flag("Folder of a causal or masked language model, or llm/… for a server model."),
]
BertFolder = Annotated[
    Path | None, Flag("Folder of a BERT model that measures the coherence of messages (BERTScore).")
]
TextFolder = Annotated[Path | None, Flag("Folder of a text embedder, such as BGE-M3.")]
ImageFolder = Annotated[Path | None, Flag("Folder of an image embedder, such as SigLIP.")]


@dataclass(frozen=True, slots=True)
class ChatTools:
    """Store folders of models that replace the small models shipped with the package.

    ``perplexity`` is the folder of a language model or ``llm/…``, ``bert`` that of a model for
    BERTScore. The encoders are folders of text and image embedders.
    """

    perplexity: Perplexity = None
    bert: BertFolder = None
    text_encoder: TextFolder = None
    image_encoder: ImageFolder = None


class FileEncoder:
    """Adapt an image embedder of files to memes."""

    def __init__(self, folder: Path) -> None:
        from memantics.models.embedders import LocalImageEncoder

        self._encoder = LocalImageEncoder(folder)
        self.version = self._encoder.version

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        return self._encoder.encode_files([meme.image for meme in memes])


@contextmanager
def open_tools(tools: ChatTools) -> Iterator[tuple[Embedders, Gauges]]:
    """Open the given models.

    By default, the sentence encoder shipped with the package compares texts, and coarse layout and
    colours compare images.
    """
    encoder: TextEmbedder = SentenceEncoder()
    if tools.text_encoder is not None:
        from memantics.models.embedders import LocalTextEncoder

        encoder = LocalTextEncoder(tools.text_encoder)
    images = LayoutEncoder() if tools.image_encoder is None else FileEncoder(tools.image_encoder)
    with open_fluency(tools.perplexity) as fluency:
        flow = _open_flow(tools.bert, encoder)
        yield Embedders(encoder, images), Gauges(encoder, flow, fluency)


@contextmanager
def open_fluency(name: str | None) -> Iterator[Fluency | None]:
    """Open the language model that measures perplexity: a folder, or the one in the package."""
    if name is None:
        yield None
    elif name.startswith("llm/"):
        from memantics.models.llm import EmbeddedLlm

        model = EmbeddedLlm(name)
        model.note = f"{name}, causal"
        try:
            yield model
        finally:
            model.shut()
    else:
        from memantics.models.semantic import PerplexityScorer

        with _blame("--perplexity", "give the folder of a language model"):
            scorer = PerplexityScorer(Path(name))
        yield scorer


def _open_flow(folder: Path | None, encoder: TextEmbedder) -> Flow:
    """Open BERTScore if a model is given, else the cosine of sentence embeddings."""
    if folder is None:
        return CosineFlow(encoder)
    from memantics.core.task import BertSettings
    from memantics.models.semantic import BertScorer

    with _blame("--bert", "give the folder of a model"):
        return BertFlow(BertScorer(BertSettings(folder)))


@contextmanager
def _blame(flag: str, hint: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra("perplexity and BERTScore", "text") from error
    except ValueError as error:
        raise InputError(f"{flag} {error}", hint=hint) from error
