"""Neural metrics with tiny models of random weights, made here and saved to a folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memantics.core.task import BertSettings, NliSettings
from memantics.models.semantic import (
    BertScorer,
    NliScorer,
    check_folder,
    describe_folder,
    read_baseline,
)
from tests.metrics.tiny_models import make_encoder, make_judge, make_roberta

pytestmark = pytest.mark.slow

torch: Any = pytest.importorskip("torch", reason="the extra 'text' is not installed")
transformers: Any = pytest.importorskip("transformers", reason="the extra 'text' is missing")

PAIRS = [
    ("the meme mocks updates", "the meme mocks updates"),
    ("the meme mocks a cat", "a cat sleeps on the keyboard"),
    ("updates take all night .", "the meme mocks updates that take all night"),
    ("cat", "the meme mocks a cat that sleeps all night on a keyboard"),
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("tiny-encoder"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judge(tmp_path_factory.mktemp("tiny-judge"), ("CONTRADICTION", "neutral", "Entail"))


def greedy_match(folder: Path, own: str, other: str, layer: int) -> tuple[float, float, float]:
    """BERTScore once more, one text at a time, in numpy."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    sides = []
    for text in (own, other):
        with torch.no_grad():
            output = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        vectors = output.hidden_states[layer][0].numpy()
        sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    similarity = sides[0] @ sides[1].T
    precision = similarity.max(axis=1)[1:-1].mean()
    recall = similarity.max(axis=0)[1:-1].mean()
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_bertscore_equals_plain_greedy_matching(encoder: Path, layer: int) -> None:
    found = BertScorer(BertSettings(encoder, layer, device="cpu")).score(PAIRS)
    for (one, other), score in zip(PAIRS, found, strict=True):
        expected = greedy_match(encoder, one, other, layer)
        assert (score.precision, score.recall, score.f1) == pytest.approx(expected, abs=1e-5)


def test_bertscore_equals_the_package_of_its_authors(encoder: Path) -> None:
    package: Any = pytest.importorskip("bert_score", reason="bert-score is not installed")
    scorer = package.BERTScorer(
        model_type=str(encoder), num_layers=2, batch_size=1, device="cpu", lang="en"
    )
    # The package asks for truncation at the tokenizer's limit, which this one does not have.
    scorer._tokenizer.model_max_length = 32
    expected = scorer.score([one for one, _ in PAIRS], [other for _, other in PAIRS])
    found = BertScorer(BertSettings(encoder, 2, batch=3, device="cpu")).score(PAIRS)
    for place, score in enumerate(found):
        wanted = [float(column[place]) for column in expected]
        assert [score.precision, score.recall, score.f1] == pytest.approx(wanted, abs=1e-5)


def test_byte_level_models_get_their_leading_space(tmp_path: Path) -> None:
    """As the authors' package means it; with transformers 5 it silently loses that space."""
    folder = make_roberta(tmp_path / "roberta")
    found = BertScorer(BertSettings(folder, 2, device="cpu")).score(PAIRS)
    for (one, other), score in zip(PAIRS, found, strict=True):
        expected = greedy_match(folder, f" {one}", f" {other}", 2)
        without = greedy_match(folder, one, other, 2)
        assert (score.precision, score.recall, score.f1) == pytest.approx(expected, abs=1e-5)
        assert one == other or expected != pytest.approx(without, abs=1e-3)
    # Longer than its places: cut, not out of range.
    assert BertScorer(BertSettings(folder, device="cpu")).score([("cat " * 90, "a cat")])[0].f1 > 0


def test_batches_and_padding_change_nothing(encoder: Path) -> None:
    alone = BertScorer(BertSettings(encoder, batch=1, device="cpu")).score(PAIRS)
    together = BertScorer(BertSettings(encoder, batch=32, device="cpu")).score(PAIRS)
    assert [s.f1 for s in alone] == pytest.approx([s.f1 for s in together], abs=1e-5)
    assert alone[0].f1 == pytest.approx(1.0, abs=1e-5)


def test_empty_and_long_texts(encoder: Path) -> None:
    scorer = BertScorer(BertSettings(encoder, device="cpu"))
    empty, long = scorer.score([("", "the meme"), ("the meme " * 60, "the meme")])
    assert empty.f1 == 0.0
    assert 0 < long.f1 <= 1
    assert scorer.score([]) == []


def test_rescaling_moves_the_baseline_to_zero(encoder: Path, tmp_path: Path) -> None:
    plain = BertScorer(BertSettings(encoder, 2, device="cpu")).score(PAIRS)
    table = tmp_path / "base.tsv"
    table.write_text("LAYER,P,R,F\n1,0.1,0.1,0.1\n2,0.25,0.5,0.4\n", encoding="utf-8")
    scorer = BertScorer(BertSettings(encoder, 2, table, device="cpu"))
    for before, after in zip(plain, scorer.score(PAIRS), strict=True):
        assert after.precision == pytest.approx((before.precision - 0.25) / 0.75)
        assert after.f1 == pytest.approx((before.f1 - 0.4) / 0.6)
    assert "layer 2" in scorer.note
    assert "base.tsv" in scorer.note
    with pytest.raises(ValueError, match="layer 7"):
        read_baseline(table, 7)


@pytest.mark.parametrize("direction", ["generated_first", "reference_first"])
def test_consistency_equals_the_formula(judge: Path, direction: Any) -> None:
    found = NliScorer(NliSettings(judge, direction, by_sentence=False, device="cpu")).score(PAIRS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(judge)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(judge).eval()
    for (one, other), score in zip(PAIRS, found, strict=True):
        texts = (one, other) if direction == "generated_first" else (other, one)
        with torch.no_grad():
            logits = model(**tokenizer(*texts, return_tensors="pt")).logits[0].tolist()
        risk = math.exp(logits[0]) / (math.exp(logits[0]) + math.exp(logits[2]))
        assert score == pytest.approx(1 - risk, abs=1e-5)


def test_consistency_is_the_mean_over_sentences(judge: Path) -> None:
    scorer = NliScorer(NliSettings(judge, device="cpu"))
    first, second = "the meme mocks updates .", "a cat sleeps !"
    both, one, other, nothing = scorer.score(
        [(f"{first} {second}", "the meme"), (first, "the meme"), (second, "the meme"), ("", "a")]
    )
    assert both == pytest.approx((one + other) / 2, abs=1e-6)
    assert nothing == 0.0


def test_labels_are_named_or_given(tmp_path: Path, judge: Path) -> None:
    unnamed = make_judge(tmp_path, ("LABEL_0", "LABEL_1"))
    with pytest.raises(ValueError, match="no unique label"):
        NliScorer(NliSettings(unnamed, device="cpu"))
    assert NliScorer(NliSettings(unnamed, labels=(0, 1), device="cpu")).labels == (0, 1)
    assert NliScorer(NliSettings(judge, device="cpu")).labels == (2, 0)
    with pytest.raises(ValueError, match="0 to 1"):
        NliScorer(NliSettings(unnamed, labels=(0, 2), device="cpu"))


def test_faults_are_said_in_one_line(tmp_path: Path, encoder: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        check_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"config\.json is missing"):
        check_folder(tmp_path)
    with pytest.raises(ValueError, match="layer 9 is not between 0 and 3"):
        BertScorer(BertSettings(encoder, 9, device="cpu"))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be loaded") as raised:
        BertScorer(BertSettings(tmp_path, device="cpu"))
    assert "\n" not in str(raised.value)


def test_an_untrained_head_is_refused(encoder: Path) -> None:
    """An encoder alone would judge at random, and the package would only warn."""
    with pytest.raises(ValueError, match="has no weights for classifier"):
        NliScorer(NliSettings(encoder, labels=(0, 1), device="cpu"))


def test_the_hash_tells_models_apart(encoder: Path, judge: Path) -> None:
    assert describe_folder(encoder) == describe_folder(encoder)
    assert describe_folder(encoder).split()[1:] != describe_folder(judge).split()[1:]
