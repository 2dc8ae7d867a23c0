from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import InputError
from memantics.core.labels import name_group
from memantics.moderation.card import SAMPLE_LIMIT, format_card, make_card, write_card
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.fast import FastDetector, fit, train
from memantics.moderation.features import sound_of
from memantics.moderation.heads import find_preset, make_rows
from memantics.moderation.obfuscation import add_copies, add_emoji, augment, space_out, spell_out
from memantics.moderation.robustness import (
    measure_evasion,
    measure_leakage,
    pick_targets,
    swap_homophones,
)
from tests.moderation.samples import make_examples


@pytest.fixture(scope="module")
def trained() -> FastDetector:
    return train(make_examples(), find_preset("ridge"))


@pytest.mark.slow
def test_obfuscations_change_the_targets_only() -> None:
    text = "我买苦瓜回家"
    assert spell_out(text, ["苦", "瓜"], 0) == "我买kugua回家"
    assert space_out(text, ["苦"], 0) == "我买 苦 瓜回家"
    assert [c for c in add_emoji(text, ["苦"], 0) if c in text] == list(text)
    swapped = swap_homophones(text, ["苦"], 0)
    assert swapped != text
    assert swapped.replace(swapped[2], "苦") == text


def test_the_targets_are_what_speaks_for_harm(trained: FastDetector) -> None:
    bitter = next(e for e in make_examples() if e.type == "targeted")
    assert {"苦", "瓜"} & set(pick_targets(trained, bitter, None)[:2])


@pytest.mark.slow
def test_obfuscations_lower_recall_where_only_the_text_speaks(trained: FastDetector) -> None:
    bare = [replace(e, text_caption="", image_caption="") for e in make_examples(60, seed=8)]
    found = {own.attack: own for own in measure_evasion(trained, bare, most=20)}
    assert found["none"].recall > 0.9
    assert found["pinyin letters"].recall < found["none"].recall
    assert found["homophones"].recall < found["none"].recall
    with pytest.raises(InputError, match="no harmful meme"):
        measure_evasion(trained, [Example("1", "hi", label=0)])


def test_augmentation_gives_recall_back() -> None:
    bare = [replace(e, text_caption="", image_caption="") for e in make_examples(200)]
    plain = train(bare, find_preset("ridge"))
    taught = train(augment(bare, 1.0).examples, find_preset("ridge"))
    unseen = [replace(e, text_caption="") for e in make_examples(120, seed=8)]
    before, after = (
        {own.attack: own.recall for own in measure_evasion(model, unseen, most=40)}
        for model in (plain, taught)
    )
    assert after["pinyin letters"] > before["pinyin letters"]


def test_augmented_copies_keep_their_labels() -> None:
    examples = make_examples(40)
    grown = augment(examples, 0.5)
    assert list(grown.examples[:40]) == examples
    assert grown.origins[:40] == tuple(range(40))
    assert len(grown.examples) == len(grown.origins) == 60
    for copy, place in zip(grown.examples[40:], grown.origins[40:], strict=True):
        origin = examples[place]
        assert (copy.label, copy.type) == (origin.label, origin.type)
        assert copy.id.split("~")[0] == origin.id
    assert augment(examples, 0.5) == grown


def test_copies_are_texts_alone_that_sound_like_their_originals() -> None:
    examples = [*make_examples(40), Example("blank", "", "captions only", label=0)]
    again = Example("1~0", "苦瓜", label=1)
    grown = add_copies([*examples, again], [*range(41), 0], 1.0, 0)
    copies = grown.examples[42:]
    # A copy of a copy, and of a meme without a text, teaches nothing new.
    assert sorted(grown.origins[42:]) == list(range(40))
    for copy, place in zip(copies, grown.origins[42:], strict=True):
        own = examples[place]
        assert (copy.label, copy.type) == (own.label, own.type)
        assert copy.text_caption == copy.image_caption == ""
        assert [sound_of(c) for c in copy.text] == [sound_of(c) for c in own.text]
    assert (
        sum(
            copy.text != examples[n].text
            for copy, n in zip(copies, grown.origins[42:], strict=True)
        )
        > 10
    )
    assert add_copies(examples, range(41), 0.0, 0).examples == tuple(examples)


def test_a_detector_that_hears_outlives_homophones() -> None:
    """Trained on plain memes with captions; asked for the text alone, obfuscated."""
    deaf = replace(find_preset("fast"), blocks=find_preset("fast").blocks[:3])
    hearing = replace(find_preset("static"), dense=())
    unseen = make_examples(120, seed=8)
    found = {}
    for name, settings in (("deaf", deaf), ("hearing", hearing)):
        model = fit(make_examples(200), settings).detector
        found[name] = {own.attack: own for own in measure_evasion(model, unseen, most=40)}
    assert found["hearing"]["homophones"].alone > found["deaf"]["homophones"].alone + 0.2
    assert found["hearing"]["none"].recall > 0.9


def test_a_meme_without_captions_is_as_long_as_one_with_them() -> None:
    examples = make_examples(60)
    settings = replace(find_preset("ridge"), whole=True)
    model = fit(examples, settings).detector
    bare = replace(examples[0], text_caption="", image_caption="")
    rows = make_rows(model.extractor, [examples[0], bare, Example("none", "")], None)
    lengths = [float(np.linalg.norm(rows.sparse.row(place)[1])) for place in range(3)]
    assert lengths == pytest.approx([1, 1, 0], abs=1e-5)
    plain = make_rows(fit(examples, find_preset("ridge")).detector.extractor, [bare], None)
    assert np.linalg.norm(plain.sparse.values) < 0.9


def test_a_copy_is_held_out_with_its_original() -> None:
    """Labels by lot: whoever knows them at a held-out meme has learnt them from its copy.

    Copies with the same letters (spaces or emoji between them) are held out with their originals
    even if nobody says whose they are, so only copies with other letters can leak.
    """
    pick = random.Random(3)
    examples = [
        replace(e, label=pick.randrange(2), type=None, text=f"{e.text}{chr(0x5000 + i)}")
        for i, e in enumerate(make_examples(120))
    ]
    grown = augment(examples, 1.0)
    copied = dict(zip(grown.origins[120:], grown.examples[120:], strict=True))
    other = [n for n, e in enumerate(examples) if name_group(copied[n].text) != name_group(e.text)]
    alike = sorted(set(range(120)) - set(other))
    assert min(len(other), len(alike)) > 50

    def measure(places: Sequence[int], origins: Sequence[int] | None) -> float:
        said = fit(grown.examples, find_preset("ridge"), origins=origins).held_out
        return sum(said[n].label == examples[n].label for n in places) / len(places)

    assert measure(range(120), grown.origins) < 0.7 < measure(other, None)
    assert measure(other, grown.origins) < 0.7
    assert measure(alike, None) < 0.7


def test_near_duplicates_are_counted_between_folds_and_against_training() -> None:
    examples = make_examples(20)
    twin = replace(examples[3], id="99", text=examples[3].text + "！")
    said = fit(make_examples(40), find_preset("ridge")).detector.predict([*examples, twin])
    found = measure_leakage([*examples, twin], said, folds=[i % 2 for i in range(21)])
    assert found.duplicates == 2
    assert found.count == 21
    seen = measure_leakage([twin], said[-1:], seen=[e.text for e in examples])
    assert seen.duplicates == 1
    assert seen.clean is None


def sample() -> Loaded:
    return Loaded("toy", tuple(make_examples(60)), licence="CC0-1.0", checksum="c", sample=True)


def test_the_card_says_data_licence_selection_metrics_and_limits(tmp_path: Path) -> None:
    loaded = replace(sample(), name="toy | `x`\n# y")
    trained = fit(loaded.examples, find_preset("fast"))
    found = evaluate(loaded.examples, trained.held_out)
    card = make_card(trained.detector, loaded, found, "n")
    text = format_card(card)
    for part in ("CC0-1.0", "60, ", "threshold", "macro-f1", SAMPLE_LIMIT, "no test data"):
        assert part in text
    assert "# y" not in text
    pages = write_card(card, tmp_path / "m.zip")
    assert [page.name for page in pages] == ["m.card.md", "m.card.json"]
