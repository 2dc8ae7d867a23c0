from __future__ import annotations

import io
import marshal
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memantics.core import text as core_text
from memantics.core.errors import InputError, UnknownName
from memantics.core.samples import image_path
from memantics.moderation.examples import Example
from memantics.moderation.explanation import explain
from memantics.moderation.fast import FastDetector, fit, train
from memantics.moderation.features import (
    Dense,
    Extractor,
    FeatureBlock,
    fit_vocabulary,
    list_ngrams,
    read_intended,
)
from memantics.moderation.heads import PRESETS, find_preset, make_dense, measure_images
from memantics.moderation.kernel import Singles
from memantics.moderation.storage import load, save
from tests.moderation.samples import make_examples, shuffle_ids

QUICK = ("fast", "ridge", "linear")


@pytest.fixture(scope="module")
def trained() -> FastDetector:
    return train(make_examples(), find_preset("fast"))


@pytest.mark.parametrize("preset", QUICK)
def test_it_learns_what_is_there_to_learn(preset: str) -> None:
    detector = train(make_examples(), find_preset(preset))
    unseen = make_examples(80, seed=9)
    said = detector.predict(unseen)
    assert np.mean([p.label == e.label for p, e in zip(said, unseen, strict=True)]) > 0.95
    assert np.mean([p.type == e.type for p, e in zip(said, unseen, strict=True)]) > 0.9
    for own in said:
        assert 0 <= own.probability <= 1
        assert sum(own.types.values()) == pytest.approx(1)


@pytest.mark.parametrize("preset", QUICK)
def test_ids_change_no_prediction(preset: str) -> None:
    """Neither ids at training nor ids and image names at prediction may count."""
    examples = make_examples()
    unseen = make_examples(40, seed=9)
    plain = train(examples, find_preset(preset)).predict(unseen)
    shuffled = train(shuffle_ids(examples), find_preset(preset))
    renamed = [replace(e, id=f"harmful-{i}", image=None) for i, e in enumerate(unseen)]
    for before, after in zip(plain, shuffled.predict(renamed), strict=True):
        assert replace(after, id=before.id) == before


def test_the_place_and_name_of_an_image_change_nothing(tmp_path: Path) -> None:
    body = image_path("en-001").read_bytes()
    paths = [tmp_path / "harmless.png", tmp_path / "99999.png"]
    for path in paths:
        path.write_bytes(body)
    first, second = measure_images(paths)
    assert np.array_equal(first, second)
    assert not measure_images([None, tmp_path / "gone.png"]).any()
    examples = [replace(e, image=paths[0]) for e in make_examples(20)]
    settings = replace(find_preset("ridge"), dense=(Dense("image", 0.3),))
    detector = train(examples, settings)
    moved = [replace(e, image=paths[1]) for e in examples]
    assert detector.predict(examples) == detector.predict(moved)


def test_predictions_do_not_depend_on_the_batch(trained: FastDetector) -> None:
    unseen = make_examples(30, seed=4)
    alone = [trained.predict([example])[0] for example in unseen]
    assert trained.predict(unseen) == alone
    assert trained.predict([]) == []


@pytest.mark.parametrize(("above", "label"), [(-0.001, 1), (0.0, 1), (0.001, 0)])
def test_harm_holds_from_its_threshold_on(trained: FastDetector, above: float, label: int) -> None:
    """As a label of a classifier does (``test_classifier.py``)."""
    example = make_examples(1)[0]
    (said,) = trained.predict([example])
    decision = replace(trained.decision, threshold=said.probability + above)
    (again,) = replace(trained, decision=decision).predict([example])
    assert (again.label, again.probability) == (label, said.probability)


def test_training_twice_gives_the_same_detector() -> None:
    examples, unseen = make_examples(80), make_examples(20, seed=5)
    one, two = (train(examples, find_preset("fast")).predict(unseen) for _ in range(2))
    assert one == two


def test_hierarchical_types_follow_the_decision() -> None:
    settings = replace(find_preset("fast"), type_head="hierarchical")
    detector = train(make_examples(), settings)
    for own in detector.predict(make_examples(60, seed=3)):
        assert (own.type == "none") == (own.label == 0)


def test_data_without_types_gives_a_detector_without_types() -> None:
    bare = [replace(e, type=None, modality=None) for e in make_examples()]
    detector = train(bare, find_preset("fast"))
    assert detector.types == ()
    own = detector.predict(bare[:3])[0]
    assert (own.type, own.types) == (None, {})
    assert explain(detector, bare[0]).gap == pytest.approx(0, abs=1e-4)


def test_what_cannot_be_trained_is_refused() -> None:
    examples = make_examples(40)
    with pytest.raises(InputError, match="only one class"):
        train([e for e in examples if e.label == 0], find_preset("fast"))
    with pytest.raises(InputError, match="no label"):
        train([replace(examples[0], label=None), *examples], find_preset("fast"))
    with pytest.raises(InputError, match="too few"):
        train(examples[:7], find_preset("fast"))
    unlike = [Example(str(i), chr(0x4E00 + i), label=i % 2) for i in range(30)]
    with pytest.raises(InputError, match="no n-gram"):
        train(unlike, find_preset("ridge"))
    with pytest.raises(UnknownName, match="did you mean fast"):
        find_preset("fst")


def test_empty_and_odd_texts_are_judged(trained: FastDetector) -> None:
    odd = ["", " \n ", "\ud800", "a" * 50_000, "😀", "<script>", "\u202e反"]
    for own in trained.predict([Example("x", text) for text in odd]):
        assert 0 <= own.probability <= 1


class Letters:
    """An embedder that counts two letters."""

    version = "letters-1"

    def encode(self, texts: list[str]) -> Singles:
        rows = np.array([[1 + t.count("苦"), 1 + t.count("西")] for t in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_meanings_take_a_byte_each_and_come_back_to_the_digit(tmp_path: Path) -> None:
    settings = replace(find_preset("full"), dense=(Dense("text", 0.8), Dense("text_caption", 0.3)))
    examples, embedder = make_examples(60), Signs()
    detector = train(examples, settings, embedder)  # type: ignore[arg-type]
    save(detector, tmp_path / "m.zip")
    again = load(tmp_path / "m.zip")
    assert again.predict(examples, embedder) == detector.predict(examples, embedder)  # type: ignore[arg-type]
    with zipfile.ZipFile(tmp_path / "m.zip") as archive:
        stored = np.load(io.BytesIO(archive.read("known_dense.npy")))
    assert stored.dtype == np.int8


def test_images_and_meanings_stand_side_by_side() -> None:
    settings = replace(find_preset("full"), dense=(Dense("text", 0.8), Dense("image", 0.3)))
    examples = [replace(e, image=image_path("en-001")) for e in make_examples(40)]
    detector = train(examples, settings, Signs())  # type: ignore[arg-type]
    found = explain(detector, examples[0], Signs())  # type: ignore[arg-type]
    assert found.gap == pytest.approx(0, abs=1e-3)
    assert {"meaning", "statistics"} <= {part.kind for part in found.parts}
    assert found.sense == "all contributions add up to the score"
    assert (
        replace(found, score=found.score + 0.5).sense
        == "the contributions leave +0.50 of the score unexplained"
    )
    assert replace(found, hiding=True).sense.startswith("each value is the score drop")


class Signs:
    """An embedder with many small numbers, as real ones have."""

    version = "signs-1"

    def encode(self, texts: list[str]) -> Singles:
        rows = np.stack([np.random.default_rng(len(t)).normal(size=64) * 0.1 for t in texts])
        return np.asarray(rows, np.float32)


def test_an_embedder_is_a_block_and_must_be_the_same_one() -> None:
    settings = replace(find_preset("ridge"), dense=(Dense("text", 1.0),))
    examples = make_examples(80)
    embedder = Letters()
    detector = train(examples, settings, embedder)  # type: ignore[arg-type]
    found = explain(detector, examples[0], embedder)  # type: ignore[arg-type]
    assert found.gap == pytest.approx(0, abs=1e-4)
    assert any(part.kind == "meaning" for part in found.parts)
    with pytest.raises(InputError, match="needs the encoder letters-1"):
        detector.predict(examples)
    with pytest.raises(InputError, match="need a text encoder"):
        train(examples, settings)


@pytest.mark.parametrize("preset", QUICK)
def test_contributions_add_up_and_find_the_word(preset: str) -> None:
    examples = make_examples()
    detector = train(examples, find_preset(preset))
    bitter = next(e for e in examples if e.type == "targeted")
    found = explain(detector, bitter)
    assert found.prediction == detector.predict([bitter])[0]
    assert found.gap == pytest.approx(0, abs=1e-3)
    odds = np.log(found.prediction.probability / (1 - found.prediction.probability))
    assert found.score == pytest.approx(odds, abs=1e-6)
    text = found.fields[0]
    assert text.field == "text"
    top = max(range(len(text.text)), key=lambda place: text.characters[place])
    assert text.text[top] in "苦瓜"
    assert {part.text for part in found.strongest(3)} & {"苦", "瓜", "苦瓜", "苦瓜,"}


def test_held_out_predictions_are_not_those_of_the_trained_detector() -> None:
    examples = make_examples(60, seed=2)
    noisy = [replace(e, label=1 - int(e.label or 0), type=None) if i % 9 == 0 else e
             for i, e in enumerate(examples)]  # fmt: skip
    trained = fit(noisy, find_preset("fast"))
    own = trained.detector.predict(noisy)
    fitted = np.mean([p.label == e.label for p, e in zip(own, noisy, strict=True)])
    held = np.mean([p.label == e.label for p, e in zip(trained.held_out, noisy, strict=True)])
    assert held < fitted


def test_vocabularies_keep_what_two_memes_share() -> None:
    texts = [list_ngrams("chars", own) for own in ("ab", "ac", "a")]
    vocabulary = fit_vocabulary(FeatureBlock("text", "chars", 1.0), texts)
    assert vocabulary.pieces == ("a",)


def test_sounds_of_homophones_meet() -> None:
    assert list_ngrams("pinyin", "蒸鱼") == list_ngrams("pinyin", "争余")
    assert list_ngrams("fuzzy", "狮子") == list_ngrams("fuzzy", "丝子")
    assert list_ngrams("words", "我们去公园") == ["我们", "去", "公园"]


def test_words_come_from_no_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jieba believes any cache that lies in the temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({"去公园": 10**9}, 10**9)))
    core_text._load_cutter.cache_clear()
    assert list_ngrams("words", "我们去公园") == ["我们", "去", "公园"]
    assert [path.name for path in tmp_path.glob("*.cache")] == ["jieba.cache"]


@pytest.mark.slow
def test_a_obfuscated_word_is_heard() -> None:
    assert read_intended("年年有鱼") == "年年有余"
    assert read_intended("今天天气不错") == read_intended("") == ""


def test_every_preset_is_found_by_its_name() -> None:
    assert {find_preset(name).preset for name in PRESETS} == set(PRESETS)


class Chatty:
    """Gives every text the same meaning, the empty one too."""

    version = "chatty-1"

    def encode(self, texts: Sequence[str]) -> Singles:
        return np.full((len(texts), 4), 0.5, np.float32)


def test_a_field_that_is_empty_has_no_meaning() -> None:
    """Whatever an embedder makes of nothing: blank fields must not look alike."""
    extractor = Extractor((), (), (Dense("text", 1.0), Dense("text_caption", 1.0)), 1.0)
    examples = [Example("1", "hi"), Example("2", " \n", "what it means"), Example("3", "")]
    dense = make_dense(extractor, examples, Chatty())
    assert dense is not None
    halves = dense.reshape(3, 2, 4).any(axis=2)
    assert halves.tolist() == [[True, False], [False, True], [False, False]]
    assert dense[0, :4].tolist() == [0.5] * 4
