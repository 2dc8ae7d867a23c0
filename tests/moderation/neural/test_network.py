"""The network computes what it says: by integration, by encoder, meme by meme."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memantics.core.errors import InputError
from memantics.moderation.examples import TYPES, Example
from memantics.moderation.neural.encoding import Encoded, encode
from memantics.moderation.neural.machine import get_torch
from memantics.moderation.neural.network import (
    ask_network,
    build_network,
    find_width,
    make_scratch,
    open_encoders,
    to_tensors,
)
from memantics.moderation.neural.settings import (
    Backbones,
    CaptionUse,
    Integration,
    NetworkShape,
    Pooling,
)
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import draw_memes

pytestmark = pytest.mark.slow

MEMES = draw_memes(6).examples


def build(backbones: Backbones, shape: NetworkShape) -> tuple[Any, Any]:
    get_torch().manual_seed(0)
    encoders = open_encoders(backbones, shape.length)
    return build_network(encoders, shape).eval(), encoders


def logits(network: Any, encoded: Encoded, rows: list[int]) -> Any:
    torch = get_torch()
    with torch.inference_mode():
        inputs = to_tensors(encoded, np.array(rows), torch.device("cpu"))
        return network(*inputs).double().numpy()


@pytest.mark.parametrize("integration", ["attention", "sum", "none"])
def test_what_each_integration_hears(integration: Integration, text_only: Backbones) -> None:
    """The official code left its attention unused: here both captions reach the decision."""
    network, encoders = build(text_only, NetworkShape(integration=integration))
    first = MEMES[0]
    changed = [
        replace(first, text="天地人你我"),
        replace(first, text_caption="天地人你我"),
        replace(first, image_caption="天地人你我"),
    ]
    encoded = encode([first, *changed], encoders.reader, network.shape)
    found = logits(network, encoded, [0, 1, 2, 3])
    moved = [bool(np.abs(row - found[0]).max() > 1e-4) for row in found[1:]]
    assert moved == [True, integration != "none", integration != "none"]


def test_as_printed_the_captions_cancel_out(text_only: Backbones) -> None:
    network, encoders = build(text_only, NetworkShape(integration="pooled"))
    plain, _ = build(text_only, NetworkShape(integration="none"))
    plain.load_state_dict(network.state_dict())
    encoded = encode(MEMES, encoders.reader, network.shape)
    alone = encode(MEMES, encoders.reader, plain.shape)
    rows = list(range(len(MEMES)))
    assert np.allclose(logits(network, encoded, rows), logits(plain, alone, rows), atol=1e-6)


def test_attention_is_token_by_token(text_only: Backbones) -> None:
    """Against the formula written out, meme by meme, without padding or batches."""
    torch = get_torch()
    network, encoders = build(text_only, NetworkShape(integration="attention"))
    encoded = encode(MEMES, encoders.reader, network.shape)
    found = logits(network, encoded, list(range(len(MEMES))))
    for row, meme in enumerate(MEMES):
        texts = (meme.text, meme.text_caption, meme.image_caption)
        states = []
        with torch.inference_mode():
            for text in texts:
                ids = torch.tensor([encoders.reader.splitter.split(text, 80)])
                states.append(network.texts.model(input_ids=ids).last_hidden_state[0].numpy())
        inline, parts = states[0], [states[0]]
        for caption in states[1:]:
            scores = inline @ caption.T / np.sqrt(inline.shape[1])
            weights = np.exp(scores - scores.max(1, keepdims=True))
            parts.append(weights / weights.sum(1, keepdims=True) @ caption)
        vector = np.mean(parts, axis=0).mean(axis=0)
        with torch.inference_mode():
            expected = network.head(torch.tensor(vector, dtype=torch.float32)[None]).numpy()[0]
        assert np.allclose(found[row], expected, atol=1e-5)


@pytest.mark.parametrize(("kind", "weight"), [("text", 0.5), ("clip", 1.0), ("english", 1.0)])
def test_the_sum_is_the_official_code_s(kind: str, weight: float, encoder: Make) -> None:
    torch = get_torch()
    backbones = (
        Backbones(text=str(encoder("text"))) if kind == "text" else Backbones(clip=encoder(kind))
    )
    shape = NetworkShape(integration="sum", image_caption_weight=weight)
    network, encoders = build(backbones, shape)
    network.images = None
    network.head = torch.nn.Linear(network.texts.width, 2)
    reader = replace(encoders.reader, preparation=None)
    encoded = encode(MEMES[:1], reader, shape)
    vectors = []
    with torch.inference_mode():
        for text in (MEMES[0].text, MEMES[0].text_caption, MEMES[0].image_caption):
            ids = torch.tensor([reader.splitter.split(text, 80)])
            vectors.append(
                encoders.text(input_ids=ids).pooler_output
                if kind == "text"
                else encoders.clip.get_text_features(input_ids=ids).pooler_output
            )
        expected = network.head(vectors[0] + vectors[1] + weight * vectors[2]).numpy()
    assert np.allclose(logits(network, encoded, [0]), expected, atol=1e-5)


@pytest.mark.parametrize("integration", ["attention", "pooled", "sum", "none"])
def test_a_meme_is_judged_alone(integration: Integration, text_only: Backbones) -> None:
    """The official code's commented attention looks from meme to meme of a batch."""
    network, encoders = build(text_only, NetworkShape(integration=integration))
    long = Example("long", "天" * 40, "地" * 40, "人" * 40)
    encoded = encode([*MEMES, long], encoders.reader, network.shape)
    together = logits(network, encoded, list(range(len(encoded))))
    for row in range(len(MEMES)):
        assert np.allclose(together[row], logits(network, encoded, [row])[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["fusion", "clip", "english", "image"])
def test_images_reach_the_decision(kind: str, encoder: Make, tmp_path: Path) -> None:
    backbones = {
        "fusion": lambda: Backbones(text=str(encoder("text")), image=encoder("image")),
        "image": lambda: Backbones(image=encoder("image")),
    }.get(kind, lambda: Backbones(clip=encoder(kind)))()
    shape = NetworkShape(integration="none" if kind == "image" else "attention", target="type")
    network, encoders = build(backbones, shape)
    memes = draw_memes(4, tmp_path).examples
    swapped = [replace(memes[0], image=memes[1].image)]
    encoded = encode([*memes, *swapped], encoders.reader, shape)
    found = logits(network, encoded, [0, 4])
    assert found.shape == (2, len(TYPES))
    assert np.abs(found[0] - found[1]).max() > 1e-4


def test_the_head_takes_both_vectors_side_by_side(encoder: Make, fusion: Backbones) -> None:
    assert build(fusion, NetworkShape())[0].head.in_features == 32 + 32
    assert build(Backbones(clip=encoder("clip")), NetworkShape())[0].head.in_features == 24 + 24


def test_dropout_is_off_when_a_network_is_asked(text_only: Backbones) -> None:
    """The official code never switches to evaluation: two passes give two answers."""
    network, encoders = build(text_only, NetworkShape(dropout=0.5))
    encoded = encode(MEMES, encoders.reader, network.shape)
    network.train()
    rows = list(range(len(MEMES)))
    assert not np.allclose(logits(network, encoded, rows), logits(network, encoded, rows))
    device = get_torch().device("cpu")
    first, second = (ask_network(network, encoded, rows, device) for _ in range(2))
    assert np.array_equal(first, second)
    assert network.training, "and training goes on as before"


def test_chances_come_back_in_the_order_of_the_rows(text_only: Backbones) -> None:
    network, encoders = build(text_only, NetworkShape())
    encoded = encode(MEMES, encoders.reader, network.shape)
    device = get_torch().device("cpu")
    rows = [4, 0, 5, 1]
    found = ask_network(network, encoded, rows, device, batch=2)
    alone = [ask_network(network, encoded, [row], device)[0] for row in rows]
    assert np.allclose(found, alone, atol=1e-6)
    assert np.allclose(found.sum(-1), 1)


def test_the_vocabulary_from_scratch_knows_the_training_part_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    place = make_scratch(["天天 Aa", "地"], tmp_path / "scratch")
    reader = open_encoders(Backbones(text=str(place), from_scratch=True), 16).reader
    assert reader.splitter is not None
    unknown = 1
    assert unknown not in reader.splitter.split("天a", 16)
    assert reader.splitter.split("地人", 16)[1:-1] == [unknown, unknown], "rare, and never seen"


@pytest.mark.parametrize("wrong", ["nowhere", "empty", "weights"])
def test_a_folder_without_an_encoder_is_refused(wrong: str, tmp_path: Path, encoder: Make) -> None:
    place = tmp_path / wrong
    if wrong != "nowhere":
        place.mkdir()
    if wrong == "weights":
        (place / "config.json").write_bytes((encoder("text") / "config.json").read_bytes())
    with pytest.raises(InputError, match=r"no such folder|config.json is missing|has no weights"):
        open_encoders(Backbones(text=str(place)), 16)


def test_a_text_encoder_is_no_clip(encoder: Make) -> None:
    with pytest.raises(InputError, match="is not a CLIP model"):
        open_encoders(Backbones(clip=encoder("text")), 16)


@pytest.mark.parametrize(
    ("captions", "hears"),
    [("none", (False, False)), ("text", (True, False)), ("image", (False, True))],
)
@pytest.mark.parametrize("integration", ["attention", "sum"])
def test_only_the_chosen_captions_are_heard(
    captions: CaptionUse, hears: tuple[bool, bool], integration: Integration, text_only: Backbones
) -> None:
    shape = NetworkShape(integration=integration, captions=captions, pooling="mean")
    network, encoders = build(text_only, shape)
    first = MEMES[0]
    others = [replace(first, text_caption="天地"), replace(first, image_caption="天地")]
    encoded = encode([first, *others], encoders.reader, shape)
    assert encoded.ids is not None
    assert encoded.ids.shape[1] == shape.fields
    found = logits(network, encoded, [0, 1, 2])
    assert tuple(bool(np.abs(row - found[0]).max() > 1e-4) for row in found[1:]) == hears


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_without_captions_every_integration_is_the_same(
    pooling: Pooling, text_only: Backbones
) -> None:
    """What a caption adds is measured against a network that pools its tokens alike."""
    rows = list(range(len(MEMES)))
    found = []
    for integration in ("attention", "sum", "pooled", "none"):
        shape = NetworkShape(integration=integration, captions="none", pooling=pooling)
        network, encoders = build(text_only, shape)
        found.append(logits(network, encode(MEMES, encoders.reader, shape), rows))
    for other in found[1:]:
        assert np.allclose(found[0], other, atol=1e-5)
    own, encoders = build(text_only, NetworkShape(integration="none"))
    alone = logits(own, encode(MEMES, encoders.reader, own.shape), rows)
    assert not np.allclose(found[0], alone, atol=1e-3), "the encoder's own vector is another"


def test_as_printed_a_caption_only_reorders_the_text(text_only: Backbones) -> None:
    """softmax(S Kᵀ / √d) S, place by place, as far as both texts are long."""
    torch = get_torch()
    shape = NetworkShape(captions="text", values="text")
    network, encoders = build(text_only, shape)
    encoded = encode(MEMES, encoders.reader, shape)
    found = logits(network, encoded, list(range(len(MEMES))))
    for row, meme in enumerate(MEMES):
        states = []
        with torch.inference_mode():
            for text in (meme.text, meme.text_caption):
                ids = torch.tensor([encoders.reader.splitter.split(text, 80)])
                states.append(network.texts.model(input_ids=ids).last_hidden_state[0].numpy())
        inline, caption = states
        both = min(len(inline), len(caption))
        scores = inline @ caption[:both].T / np.sqrt(inline.shape[1])
        weights = np.exp(scores - scores.max(1, keepdims=True))
        mixed = weights / weights.sum(1, keepdims=True) @ inline[:both]
        vector = ((inline + mixed) / 2).mean(axis=0)
        with torch.inference_mode():
            expected = network.head(torch.tensor(vector, dtype=torch.float32)[None]).numpy()[0]
        assert np.allclose(found[row], expected, atol=1e-5)


def test_a_resnet_is_an_image_encoder(encoder: Make, tmp_path: Path) -> None:
    backbones = Backbones(image=encoder("resnet"))
    shape = NetworkShape(integration="none")
    network, encoders = build(backbones, shape)
    assert network.head.in_features == 16
    preparation = encoders.reader.preparation
    assert preparation is not None
    assert (preparation.edge, preparation.height, preparation.width) == (18, 16, 16)
    memes = draw_memes(2, tmp_path, sign="image").examples
    found = logits(network, encode(memes, encoders.reader, shape), [0, 1])
    assert found.shape == (2, 2)


def test_an_image_encoder_of_another_kind_is_refused() -> None:
    class Config:
        model_type = "odd"

    with pytest.raises(InputError, match="of the type odd are not supported"):
        find_width(Config())
