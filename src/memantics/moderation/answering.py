"""The model ``detector/FILE``: a detector answers tasks that ask whether or how memes are harmful.

A folder with a model tuned to write intents is opened as that local model.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from memantics.core.data import checksum
from memantics.core.errors import Rejected
from memantics.core.images import read_bytes
from memantics.core.model import Model
from memantics.core.records import Form, Image, Reply, Request
from memantics.models.embedded.ocr import open_reader
from memantics.models.kinds import ModelKind, ModelSettings, answer_choice
from memantics.models.local.model import LocalModel
from memantics.models.local.settings import read_settings
from memantics.moderation.card import SAMPLE_NOTE
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.judges import OpenDetector, open_judge
from memantics.moderation.lora.judging import ADAPTER
from memantics.moderation.lora.tuning import find_writer
from memantics.moderation.verdict import NO_NUMBER
from memantics.understanding.vision.roles import read_image_text

# Names of form fields whose text the detector reads.
_TEXTS = ("text", "caption")
# First words of answer options, by the label that they stand for.
_VERDICTS: Mapping[str, tuple[str, ...]] = {
    "harmless": ("harmless", "无害"),
    "harmful": ("harmful", "有害"),
}
_TYPES: Mapping[str, tuple[str, ...]] = {
    "targeted": ("targeted", "针对性"),
    "offence": ("general offence", "一般冒犯"),
    "sexual": ("sexual", "性暗示"),
    "dispirited": ("dispirited", "消沉"),
    "none": ("harmless", "无害"),
}


class DetectorModel:
    """A model that answers with the verdict of a detector, and rejects other questions.

    It scores the text that the task gives. Without one, OCR reads the image; the more severe
    verdict of its caption and of all its text counts, as in ``memantics screen``.
    """

    cacheable = False

    def __init__(self, name: str) -> None:
        self.name = name
        path = Path(name.removeprefix("detector/")).expanduser()
        self._detector = OpenDetector(open_judge(path), path.name, path)
        self._digest = _digest(path)
        self.note = f"detector: {SAMPLE_NOTE}" if self._detector.sample else "detector"
        self._alone = threading.Lock()

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Identify the detector by the digest of its files, independent of their location."""
        return {"name": "detector", "sha256": self._digest}

    async def answer(self, request: Request) -> Reply:
        """Answer with the option that corresponds to the detector's verdict."""
        return await asyncio.to_thread(self._answer, request)

    async def close(self) -> None:
        """Do nothing: the model holds no connections."""

    def _answer(self, request: Request) -> Reply:
        options = _find_verdicts(
            request.form
        )  # raises Rejected for an unsupported question, before OCR runs
        with self._alone:  # all answers share one set of weights and one OCR reader
            found = self._detector.say(_read(request))
        if not all(math.isfinite(one.probability) for one in found):
            raise Rejected(NO_NUMBER)
        said = max(found, key=lambda one: one.probability)
        verdict = said.name if len(options) == 2 else _name_type(said)
        if verdict not in options:
            raise Rejected(
                "this detector predicts no harm types",
                hint="use a detector trained on data with harm types",
            )
        text = answer_choice(request.form, options[verdict])
        return Reply(text, finish="stop", served_by=f"{said.probability:.4f}")


def _name_type(said: Prediction) -> str | None:
    """Return the predicted type; none if the operating point changed the label to harmless."""
    harms = {kind: chance for kind, chance in said.types.items() if kind != "none"}
    if not said.label and harms:
        return "none"
    if said.type != "none" or not harms:
        return said.type
    return max(harms, key=lambda kind: harms[kind])


def open_writer(name: str, params: Mapping[str, str]) -> LocalModel | None:
    """Open the model tuned to write intents; None if the folder holds another kind of model."""
    folder = Path(name.removeprefix("detector/")).expanduser()
    facts = find_writer(folder)
    if facts is None:
        return None
    # Images are resized as in training.
    settings = read_settings(params)
    pixels = settings.max_pixels or int(facts["tuning"]["max_pixels"])
    made = LocalModel(
        f"local/{folder / ADAPTER}", settings.model_copy(update={"max_pixels": pixels})
    )
    made.name, made.note = name, f"tuned by LoRA on {facts['data']}"
    return made


def _find_verdicts(form: Form) -> dict[str, str]:
    """Map each label to the key of its option; raise Rejected if the options are not labels."""
    choices = [field.options for field in form.fields if field.options]
    options = choices[0] if len(choices) == 1 else ()
    words = _VERDICTS if len(options) == 2 else _TYPES
    found = {
        verdict: option.key
        for verdict, names in words.items()
        for option in options
        if option.text.casefold().startswith(names)
    }
    if len(found) == len(words) == len(options):
        return found
    raise Rejected(
        "the answer options are not labels that a detector predicts",
        hint="run toxicn_mm/detection, toxicn_mm/type or punmemecn/harmful",
    )


def _read(request: Request) -> list[Example]:
    """Make examples of a request: the caption and, if the image has more text, all of it."""
    context = request.form.context
    parts = [part for message in request.messages for part in message.parts]
    image = next((part.path for part in parts if isinstance(part, Image)), None)
    text = next((context[name] for name in _TEXTS if context.get(name)), "")
    more = {name: context.get(name, "") for name in ("text_caption", "image_caption")}
    example = Example("meme", text, more["text_caption"], more["image_caption"], image)
    if not example.empty:
        return [example]
    if image is None:
        raise Rejected("a detector needs a text or an image", hint="choose another --set input=…")
    with open_reader() as ocr:
        found = read_image_text(ocr, read_bytes(image), image.name)
    return [replace(example, text=text) for text in dict.fromkeys((found.caption, found.said))]


def _digest(path: Path) -> str:
    """Compute one hash over the files of a detector."""
    files = [folder for folder in path.rglob("*") if folder.is_file()] if path.is_dir() else [path]
    return checksum(files, path if path.is_dir() else path.parent)


def _open(name: str, settings: ModelSettings) -> Model:
    return open_writer(name, settings.params) or DetectorModel(name)


KIND = ModelKind(
    "detector",
    "detector/FILE",
    "a detector of harmful memes (fast, neural, exported or LoRA), or a model tuned on intents",
    _open,
)
