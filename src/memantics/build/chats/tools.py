"""The embedders and language models that choose chats and their wrong answers, opened by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.build.chats.distractors import Embedders, LayoutEncoder
from memantics.build.chats.records import Flow, Fluency, TextEmbedder, Vectors
from memantics.build.chats.selection import BertFlow, CosineFlow, Gauges
from memantics.core.errors import InputError, MissingExtra
from memantics.core.memes import Meme
from memantics.core.parameters import Flag
from memantics.models.embedded.encoder import open_encoder

Perplexity = Annotated[
    str | None,
    Flag("Folder of a causal or masked language model, or llm/… for that model."),
]
BertFolder = Annotated[Path | None, Flag("Folder of a model for BERTScore between messages.")]
TextFolder = Annotated[Path | None, Flag("Folder of a text embedder (BGE-M3, …).")]
ImageFolder = Annotated[Path | None, Flag("Folder of an image embedder (SigLIP, …).")]


@dataclass(frozen=True, slots=True)
class ChatTools:
    """Folders of models in place of the embedded ones.

    ``perplexity`` is the folder of a language model or ``llm/…``, ``bert`` that of a model for
    BERTScore, the encoders those of embedders of texts and images.
    """

    perplexity: Perplexity = None
    bert: BertFolder = None
    text_encoder: TextFolder = None
    image_encoder: ImageFolder = None


class FileEncoder:
    """An image embedder of files as one of memes."""

    def __init__(self, folder: Path) -> None:
        from memantics.models.embedders import LocalImageEncoder

        self._encoder = LocalImageEncoder(folder)
        self.version = self._encoder.version

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        return self._encoder.encode_files([meme.image for meme in memes])


@contextmanager
def open_tools(tools: ChatTools) -> Iterator[tuple[Embedders, Gauges]]:
    """Open what was named, else the embedded sentence encoder and image layout."""
    encoder: TextEmbedder = open_encoder()
    if tools.text_encoder is not None:
        from memantics.models.embedders import LocalTextEncoder

        encoder = LocalTextEncoder(tools.text_encoder)
    images = LayoutEncoder() if tools.image_encoder is None else FileEncoder(tools.image_encoder)
    with open_fluency(tools.perplexity) as fluency:
        flow = _open_flow(tools.bert, encoder)
        yield Embedders(encoder, images), Gauges(encoder, flow, fluency)


@contextmanager
def open_fluency(name: str | None) -> Iterator[Fluency | None]:
    """The language model that measures perplexity: a folder, or the embedded one."""
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
        from memantics.models.perplexity import PerplexityScorer

        with _blame("--perplexity", "give a language model's folder"):
            scorer = PerplexityScorer(Path(name))
        yield scorer


def _open_flow(folder: Path | None, encoder: TextEmbedder) -> Flow:
    """BERTScore between messages where a model was named, else the cosine of their vectors."""
    if folder is None:
        return CosineFlow(encoder)
    from memantics.models.semantic import BertScorer, BertSettings

    with _blame("--bert", "give a model's folder"):
        return BertFlow(BertScorer(BertSettings(folder)))


@contextmanager
def _blame(flag: str, hint: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra("perplexity and BERTScore", "text") from error
    except ValueError as error:
        raise InputError(f"{flag} {error}", hint=hint) from error
