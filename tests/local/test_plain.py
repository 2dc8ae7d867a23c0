"""Models without a chat template get one picture and one plain prompt."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memantics.core.errors import Rejected
from memantics.core.records import Form, Image, Message, Reply, Request
from memantics.models.chat import open_processor
from tests.commands import Shell
from tests.local import tiny
from tests.local.conftest import Make
from tests.local.test_model import SHORT, answer, one_by_one

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
FORMS = {"blip2": "Question: {} Answer:", "instructblip": "{}"}


def ask(*parts: str | Image) -> Request:
    return Request((Message("user", parts),), Form("", ()))


def draw_noise(path: Path, seed: int) -> Image:
    Pillow.effect_noise((40, 40), 40 * seed).convert("RGB").save(path)
    return Image(path)


def reply_of(folder: Path, image: Image, text: str) -> str:
    """What transformers itself makes of the same prompt."""
    transformers: Any = importlib.import_module("transformers")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = open_processor(folder, model.config)
    picture = Pillow.open(image.path).convert("RGB")
    inputs = processor(images=picture, text=[text], return_tensors="pt")
    found = model.generate(**inputs, max_new_tokens=SHORT.max_tokens, do_sample=False)
    start = 1 if model.config.text_config.is_encoder_decoder else inputs["input_ids"].shape[1]
    return str(processor.tokenizer.decode(found[0][start:], skip_special_tokens=True)).strip()


@pytest.mark.parametrize("kind", tiny.PLAIN)
def test_replies_are_those_of_transformers(kind: str, checkpoint: Make, tmp_path: Path) -> None:
    folder = checkpoint(kind)
    image = draw_noise(tmp_path / "a.png", 1)
    texts = ["What does it say?", "What is the point of this picture?"]
    found = answer(folder, [ask(image, text) for text in texts])
    assert all(isinstance(reply, Reply) for reply in found), found
    ours = [reply.text for reply in found]
    assert ours == [reply_of(folder, image, FORMS[kind].format(text)) for text in texts]
    assert ours == [reply.text for reply in one_by_one(folder, [ask(image, t) for t in texts])]
    assert all(reply.tokens_out <= (SHORT.max_tokens or 0) for reply in found)


def test_one_picture_is_needed_and_no_more(checkpoint: Make, tmp_path: Path) -> None:
    images = [draw_noise(tmp_path / f"{n}.png", n + 1) for n in range(2)]
    none, two, one = answer(
        checkpoint("blip2"), [ask("Hello"), ask(*images, "Which?"), ask(images[0], "This?")]
    )
    assert isinstance(none, Rejected)
    assert "accepts one image, but the request has 0" in str(none)
    assert isinstance(two, Rejected)
    assert isinstance(one, Reply)


def test_a_task_runs_on_a_model_without_a_template(checkpoint: Make, tmp_path: Path) -> None:
    words = ["--set", "order=letter_only", "--param", "max_tokens=2", "--invalid", "wrong"]
    folder = checkpoint("instructblip")
    ran = Shell(tmp_path).run(
        "run", "mquest/qa", "--model", f"local/{folder}", "--limit", "2", *words
    )
    # Random weights say nothing that can be read, and the command says so.
    assert ran.code == 1, ran
    assert "none of 2 replies could be parsed" in ran.err
