"""Perplexity with tiny random models, against what the library itself computes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from memantics.models.semantic import PerplexityScorer
from tests.metrics.tiny_models import make_encoder, make_masked, make_tokenizer

pytestmark = pytest.mark.slow

TEXTS = ["the meme mocks updates", "a cat sleeps on a keyboard.", "the meme mocks updates"]


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_masked(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("causal")
    tokenizer = make_tokenizer()
    torch.manual_seed(5)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=24, n_layer=2, n_head=2
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def load(kind: str, folder: Path) -> tuple[Any, Any]:
    import transformers

    maker = getattr(transformers, kind)
    return maker.from_pretrained(folder).eval(), make_tokenizer()


def test_a_causal_model_equals_the_loss_of_its_library(causal: Path) -> None:
    import torch

    scorer = PerplexityScorer(causal)
    assert scorer.kind == "causal"
    model, tokenizer = load("GPT2LMHeadModel", causal)
    for text, found in zip(TEXTS, scorer.measure(TEXTS), strict=True):
        made = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        ids = made["input_ids"]
        labels = ids.masked_fill(made["special_tokens_mask"].bool(), -100)
        with torch.inference_mode():
            loss = float(model(input_ids=ids, labels=labels).loss)
        assert found == pytest.approx(math.exp(loss), rel=1e-4)


def test_a_masked_model_hides_one_token_at_a_time(masked: Path) -> None:
    import torch

    scorer = PerplexityScorer(masked, batch=2)
    assert scorer.kind == "masked"
    model, tokenizer = load("BertForMaskedLM", masked)
    (found,) = scorer.measure(TEXTS[:1])
    ids = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    total, places = 0.0, range(1, ids.shape[1] - 1)
    for place in places:
        hidden = ids.clone()
        hidden[0, place] = tokenizer.mask_token_id
        with torch.inference_mode():
            logs = model(input_ids=hidden).logits[0, place].log_softmax(-1)
        total += float(logs[ids[0, place]])
    assert found == pytest.approx(math.exp(-total / len(places)), rel=1e-4)


def test_the_same_text_has_the_same_metric_and_nothing_has_none(masked: Path) -> None:
    scorer = PerplexityScorer(masked)
    first, _, again, empty = scorer.measure([*TEXTS, ""])
    assert first == again
    assert empty is None


def test_long_texts_are_cut_not_refused(masked: Path, causal: Path) -> None:
    for folder in (masked, causal):
        (found,) = PerplexityScorer(folder).measure(["the cat sleeps " * 60])
        assert found is not None
        assert math.isfinite(found)


def test_other_folders_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        PerplexityScorer(tmp_path / "none")
    with pytest.raises(ValueError, match="neither a causal nor a masked"):
        PerplexityScorer(make_encoder(tmp_path))
