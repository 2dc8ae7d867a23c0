"""``detector/FILE``: a detector as a model, for tasks that ask whether or how memes are harmful.

A folder that was tuned to write intents answers as the local model that it is.
"""

from __future__ import annotations

import asyncio
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
from memantics.understanding.vision.roles import read_image_text

# How forms call the texts that a detector reads.
_TEXTS = ("text", "caption")
# How the texts of options begin that stand for a verdict.
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
    """Answers with the verdict of a detector; a question of another kind is refused.

    It reads the text that the task gives. Where the task gives none, the text is read from the
    image, and the graver verdict on its caption or on all of it stands, as in ``memantics screen``.
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
        """The detector's files, wherever they lie."""
        return {"name": "detector", "sha256": self._digest}

    async def answer(self, request: Request) -> Reply:
        """The option that the detector's verdict stands for."""
        return await asyncio.to_thread(self._answer, request)

    async def close(self) -> None:
        """Nothing to give back."""

    def _answer(self, request: Request) -> Reply:
        options = _find_verdicts(request.form)  # before an image is read for nothing
        with self._alone:  # one set of weights and one OCR reader
            said = max(self._detector.say(_read(request)), key=lambda one: one.probability)
        verdict = said.name if len(options) == 2 else _name_type(said)
        if verdict not in options:
            raise Rejected(
                "this detector tells no types apart", hint="give one that was trained on types"
            )
        text = answer_choice(request.form, options[verdict])
        return Reply(text, finish="stop", served_by=f"{said.probability:.4f}")


def _name_type(said: Prediction) -> str | None:
    """The type that goes with the label, which an operating point may have moved."""
    harms = {kind: chance for kind, chance in said.types.items() if kind != "none"}
    if not said.label and harms:
        return "none"
    if said.type != "none" or not harms:
        return said.type
    return max(harms, key=lambda kind: harms[kind])


def open_writer(name: str, params: Mapping[str, str]) -> LocalModel | None:
    """A model that was tuned to write, where the folder holds one."""
    folder = Path(name.removeprefix("detector/")).expanduser()
    facts = find_writer(folder)
    if facts is None:
        return None
    # Images are shrunk as they were when it learnt.
    settings = read_settings(params)
    pixels = settings.max_pixels or int(facts["tuning"]["max_pixels"])
    made = LocalModel(
        f"local/{folder / ADAPTER}", settings.model_copy(update={"max_pixels": pixels})
    )
    made.name, made.note = name, f"tuned by LoRA on {facts['data']}"
    return made


def _find_verdicts(form: Form) -> dict[str, str]:
    """The key of the option that each verdict stands for; a question of another kind has none."""
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
        "the options are not labels of the detector",
        hint="run toxicn_mm/detection, toxicn_mm/type or punmemecn/harmful",
    )


def _read(request: Request) -> list[Example]:
    """The meme of a request as a detector sees it: by its caption and, if it has more, by all."""
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
    """One hash over the files of a detector."""
    files = [folder for folder in path.rglob("*") if folder.is_file()] if path.is_dir() else [path]
    return checksum(files, path if path.is_dir() else path.parent)


def _open(name: str, settings: ModelSettings) -> Model:
    return open_writer(name, settings.params) or DetectorModel(name)


KIND = ModelKind(
    "detector",
    "detector/FILE",
    "a detector of harmful memes: fast, neural, exported or LoRA; or a tuned writer of intents",
    _open,
)
