"""Training: what is learnt, what decides, what is the same twice. Tiny networks, on the CPU."""

from __future__ import annotations

import importlib
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from memantics.core.errors import InputError, StoreError
from memantics.moderation.examples import Example, Loaded, keep_typed
from memantics.moderation.identity import NEEDS_IMAGE, list_identity_sentences
from memantics.moderation.judges import NeuralJudge
from memantics.moderation.neural.encoding import encode, gold_places
from memantics.moderation.neural.feeding import cut_portions, draw_order, split_rows, weigh_classes
from memantics.moderation.neural.machine import Ranks, get_torch
from memantics.moderation.neural.network import build_network, measure, open_encoders
from memantics.moderation.neural.saved import WEIGHTS, load_neural, predict_neural
from memantics.moderation.neural.seeds import SeedPlan, TrainedSeeds, train_neural, write_card
from memantics.moderation.neural.settings import Backbones, NetworkShape, Training, check_training
from memantics.moderation.neural.training import Trainer, TrainingMaterial, digest
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import QUICK, draw_memes

pytestmark = pytest.mark.slow

SHORT = replace(QUICK, epochs=2)
SHAPE = NetworkShape(length=24)


def train(
    data: Loaded, backbones: Backbones, out: Path, training: Training = SHORT, **more: Any
) -> TrainedSeeds:
    shape = more.pop("shape", SHAPE)
    plan = SeedPlan(backbones, shape, training)
    return train_neural(data, plan, out, lambda _: None, more.pop("parts", None))


def test_five_seeds_learn_what_only_a_caption_says(text_only: Backbones, tmp_path: Path) -> None:
    """One command, five seeds: the label shows in the image caption alone."""
    data = draw_memes(160, sign="image_caption")
    training = replace(
        QUICK, seeds=(0, 1, 2, 3, 4), epochs=6, patience=6, rate=8e-3, hold_out="random"
    )
    trained = train(data, text_only, tmp_path, training, parts=None)
    scores = [facts.valid.f1 for facts in trained.seeds]
    assert len(scores) == 5
    assert sorted(scores)[2] > 0.65, scores
    assert len({facts.checksums[WEIGHTS] for facts in trained.seeds}) == 5, "seeds differ"
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["chosen"] == trained.chosen
    assert summary["valid"]["f1"]["mean"] == pytest.approx(np.mean(scores), abs=1e-5)
    assert summary["valid"]["f1"]["sd"] == pytest.approx(np.std(scores, ddof=1), abs=1e-5)
    best = load_neural(tmp_path, "cpu")
    assert best.facts.seed == trained.chosen
    assert NeuralJudge(best).card["languages"] == data.list_languages() == ["zh"]
    asked = predict_neural(best, [data.examples[row] for row in trained.parts.valid])
    gold = gold_places(asked.examples, "harmful")
    guesses = np.array([best.classes.index(one.label) for one in asked.predictions])
    assert measure(gold, guesses, best.classes) == best.facts.valid
    assert not (tmp_path / "seed-0" / "training").exists(), "moments are not kept"
    again = predict_neural(load_neural(tmp_path, "cpu"), asked.examples)
    assert again.predictions == asked.predictions, "the same to the last bit after loading"


def test_the_same_seed_gives_the_same_weights(text_only: Backbones, tmp_path: Path) -> None:
    data = draw_memes(80)
    first = train(data, text_only, tmp_path / "a").seeds[0]
    assert train(data, text_only, tmp_path / "b").seeds[0].checksums == first.checksums
    other = train(data, text_only, tmp_path / "c", replace(SHORT, seeds=(1,))).seeds[0]
    assert other.checksums[WEIGHTS] != first.checksums[WEIGHTS]


def test_the_test_part_decides_nothing(text_only: Backbones, tmp_path: Path) -> None:
    """The official code keeps the epoch that is best on the test set."""
    data = draw_memes(90)
    parts = split_rows(data.examples, range(60, 75), range(75, 90))
    lied = tuple(
        replace(e, label=1 - (e.label or 0)) if row >= 75 else e
        for row, e in enumerate(data.examples)
    )
    training = replace(QUICK, epochs=3)
    first = train(data, text_only, tmp_path / "a", training, parts=parts).seeds[0]
    second = train(
        replace(data, examples=lied), text_only, tmp_path / "b", training, parts=parts
    ).seeds[0]
    assert first.checksums == second.checksums
    assert first.best_epoch == second.best_epoch
    assert first.test is not None
    assert second.test is not None
    assert first.test != second.test, "but it is what is measured"
    lines = (tmp_path / "a" / "seed-0" / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["part"] for line in lines] == ["valid"] * 15 + ["test"] * 15


def test_the_best_epoch_is_kept_and_idle_ones_end_it(text_only: Backbones, tmp_path: Path) -> None:
    data = draw_memes(100)
    # A rate that ruins what was learnt: scores must fall after a while.
    training = replace(QUICK, epochs=12, patience=2, rate=0.05)
    facts = train(data, text_only, tmp_path, training).seeds[0]
    scores = [epoch.score for epoch in facts.history]
    assert facts.best_epoch == int(np.argmax(scores)), "the first of the best"
    assert facts.valid.f1 == max(scores), "its weights are the ones that are kept"
    assert len(scores) == min(12, facts.best_epoch + 1 + 2)


def test_ids_and_file_names_are_no_features(text_only: Backbones, tmp_path: Path) -> None:
    data = draw_memes(80)
    parts = split_rows(data.examples, range(0, 80, 5))
    named = tuple(replace(e, id=f"x{997 * (row + 1) % 80}") for row, e in enumerate(data.examples))
    first = train(data, text_only, tmp_path / "a", parts=parts).seeds[0]
    second = train(replace(data, examples=named), text_only, tmp_path / "b", parts=parts).seeds[0]
    assert first.checksums[WEIGHTS] == second.checksums[WEIGHTS]


def test_precision_and_recall_are_not_swapped() -> None:
    chance = np.random.default_rng(3)
    gold, guess = chance.integers(0, 5, 300), chance.integers(0, 4, 300)
    found = measure(gold, guess, ["a", "b", "c", "d", "e"])
    theirs = precision_recall_fscore_support(gold, guess, average="macro", zero_division=0)
    assert (found.precision, found.recall, found.f1) == pytest.approx(theirs[:3])
    assert found.precision != pytest.approx(found.recall, abs=1e-3)
    each = precision_recall_fscore_support(gold, guess, average=None, zero_division=0)[2]
    assert list(found.by_class.values()) == pytest.approx(each.tolist())


def test_rows_are_shuffled_anew_in_each_epoch() -> None:
    """The official code reads the training file in its order, every time."""
    rows = tuple(range(50))
    orders = [draw_order(rows, seed, epoch).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(rows) for order in orders)
    assert len({tuple(order) for order in [*orders, list(rows)]}) == 5


@pytest.mark.parametrize("how", ["balanced", "sqrt", "none"])
def test_the_weighted_loss_is_pytorch_s(how: Any, text_only: Backbones) -> None:
    """One step's gradient against CrossEntropyLoss(weight=…) over the whole batch."""
    torch = get_torch()
    data = draw_memes(64)
    shape = replace(SHAPE, dropout=0.0)
    gradients = []
    for accumulate in (1, 4):
        trainer, material = make_trainer(data, text_only, shape, how, accumulate)
        rows = draw_order(material.parts.train, 0, 0)[:32]
        kept: list[Any] = []
        trainer._optimiser.step = lambda network=trainer.network, kept=kept: kept.extend(
            p.grad.clone() for p in network.parameters()
        )
        trainer.network.eval()  # without dropout, as in the comparison
        trainer._step(trainer._feeder.feed(trainer._own_portions(rows)), 0)
        gradients.append(kept)
    network = trainer.network
    inputs, gold = plain_batch(material, rows)
    counts = np.bincount(material.gold[list(material.parts.train)], minlength=2)
    power = {"balanced": 1.0, "sqrt": 0.5, "none": 0.0}[how]
    weight = torch.tensor(counts**-power, dtype=torch.float32)
    network.zero_grad()
    torch.nn.CrossEntropyLoss(weight=weight)(network(*inputs), gold).backward()
    expected = [p.grad for p in network.parameters()]
    for found in gradients:
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, atol=2e-6)


def make_trainer(
    data: Loaded, backbones: Backbones, shape: NetworkShape, how: Any, accumulate: int
) -> tuple[Trainer, TrainingMaterial]:
    torch = get_torch()
    torch.manual_seed(0)
    encoders = open_encoders(backbones, shape.length)
    encoded = encode(data.examples, encoders.reader, shape)
    # No limit to the gradient here: it would hide a wrong scale.
    training = replace(QUICK, batch=32, weighting=how, accumulate=accumulate, clip=1e9)
    parts = split_rows(data.examples, range(10))
    material = TrainingMaterial(encoded, parts, shape, training, "")
    network = build_network(encoders, shape)
    return Trainer(network, material, 0, torch.device("cpu"), Ranks()), material


def plain_batch(material: TrainingMaterial, rows: Any) -> tuple[Any, Any]:
    torch = get_torch()
    ids, lengths = material.encoded.ids, material.encoded.lengths
    assert ids is not None
    assert lengths is not None
    mask = np.arange(ids.shape[-1]) < lengths[rows][..., None]
    inputs = (torch.tensor(ids[rows]).long(), torch.tensor(mask))
    return inputs, torch.tensor(material.gold[rows])


def test_class_weights_come_from_the_training_part() -> None:
    gold = np.array([0] * 8 + [1] * 2)
    assert weigh_classes(gold, 2, "balanced").tolist() == pytest.approx([0.625, 2.5])
    assert weigh_classes(gold, 2, "none").tolist() == [1, 1]
    between = weigh_classes(gold, 2, "sqrt")
    assert 1 < between[1] / between[0] < 4
    assert weigh_classes(gold, 3, "balanced")[2] == 0, "a class that is not there weighs nothing"


def test_portions_fill_up_without_weight() -> None:
    weights = np.arange(1.0, 8.0)
    portions = cut_portions(np.arange(7), weights, 4)
    assert [len(portion.rows) for portion in portions] == [2, 2, 2, 2]
    assert [portion.live for portion in portions] == [2, 2, 2, 1]
    assert {portion.total for portion in portions} == {28.0}
    lonely = cut_portions(np.array([3]), weights, 3)
    assert [portion.live for portion in lonely] == [1, 0, 0]


@pytest.mark.filterwarnings("ignore:mkldnn_matmul")  # processors without bf16
def test_half_precision_trains(text_only: Backbones, tmp_path: Path) -> None:
    training = replace(SHORT, precision="bfloat16")
    facts = train(draw_memes(60), text_only, tmp_path, training).seeds[0]
    assert np.isfinite([epoch.loss for epoch in facts.history]).all()
    with pytest.raises(InputError, match="float16 needs a GPU"):
        train(draw_memes(60), text_only, tmp_path / "b", replace(SHORT, precision="float16"))


def test_five_types_from_an_image_and_clip(encoder: Make, tmp_path: Path) -> None:
    data = draw_memes(150, tmp_path / "images", sign="image")
    shape = NetworkShape(target="type", length=24)
    training = replace(QUICK, epochs=6, hold_out="random")
    plan = Backbones(clip=encoder("clip"))
    trained = train(data, plan, tmp_path / "out", training, shape=shape)
    facts = trained.seeds[0]
    assert facts.classes == ("none", "targeted", "offence", "sexual", "dispirited")
    assert facts.valid.f1 > 0.5
    assert not list((tmp_path / "out").glob("pixels*")), "decoded images are not left behind"
    asked = predict_neural(load_neural(tmp_path / "out", "cpu"), data.examples[:3])
    assert all(0 <= one.harmful <= 1 for one in asked.predictions)


def test_missing_images_are_skipped_and_counted(fusion: Backbones, tmp_path: Path) -> None:
    data = draw_memes(60, tmp_path / "images")
    (tmp_path / "images" / "7.png").unlink()
    (tmp_path / "images" / "9.png").write_bytes(b"GIF89a, or so it says")
    trained = train(data, fusion, tmp_path / "out", replace(SHORT, epochs=1))
    assert {skip.row for skip in trained.skips} == {"7", "9"}
    assert trained.seeds[0].counts["skipped"] == 2
    assert trained.seeds[0].counts["train"] + trained.seeds[0].counts["valid"] == 58


def test_other_settings_do_not_go_on_from_these(text_only: Backbones, tmp_path: Path) -> None:
    """The official code reloads its cached data whatever the settings say."""
    data = draw_memes(60)
    first = train(data, text_only, tmp_path).seeds[0]
    said: list[str] = []
    train_neural(data, SeedPlan(text_only, SHAPE, SHORT), tmp_path, said.append)
    assert said == [f"seed 0: already trained, validation macro-F1 {100 * first.valid.f1:.2f}"]
    for changed in (replace(SHORT, rate=1e-3), replace(SHORT, hold_out="random")):
        with pytest.raises(StoreError, match="other data or settings"):
            train(data, text_only, tmp_path, changed)
    with pytest.raises(StoreError, match="other data or settings"):
        train(draw_memes(60, seed=6), text_only, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 1, "type": "targeted"}, "has only one class"),
        ({"label": None}, "has no label"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(
    change: dict[str, Any], message: str, text_only: Backbones, tmp_path: Path
) -> None:
    data = draw_memes(40)
    bad = replace(data, examples=tuple(replace(e, **change) for e in data.examples))
    with pytest.raises(InputError, match=message):
        train(bad, text_only, tmp_path)


def test_empty_texts_are_read_as_such(text_only: Backbones, tmp_path: Path) -> None:
    memes = draw_memes(40).examples
    data = Loaded("gaps", (*memes, Example("e1", "", label=0), Example("e2", "", label=1)))
    facts = train(data, text_only, tmp_path, replace(SHORT, epochs=1)).seeds[0]
    assert np.isfinite(facts.history[0].loss)


def test_half_a_gradient_is_not_kept(
    text_only: Backbones, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that cannot be fixed shows in the middle of a backward pass."""
    data, torch = draw_memes(40), get_torch()
    plain = train(data, text_only, tmp_path / "plain").seeds[0]
    step, calls = Trainer._step, []

    def fail_once(self: Trainer, fed: Any, number: int) -> None:
        calls.append(number)
        if len(calls) == 1:
            for parameter in self.network.parameters():
                parameter.grad = torch.ones_like(parameter)
            raise RuntimeError("x does not have a deterministic implementation")
        step(self, fed, number)

    monkeypatch.setattr(Trainer, "_step", fail_once)
    with warnings.catch_warnings():
        again = train(data, text_only, tmp_path / "again").seeds[0]
    assert again.checksums == plain.checksums


def test_memes_without_a_type_are_left_out_of_types_and_listed() -> None:
    data = draw_memes(40)
    first = next(e for e in data.examples if e.label)
    gaps = tuple(replace(e, type=None) if e is first else e for e in data.examples)
    kept = keep_typed(replace(data, examples=gaps))
    assert [skip.row for skip in kept.skips] == [first.id]
    assert len(kept.examples) == 39
    bare = tuple(replace(e, type=None if e.label else "none") for e in data.examples)
    with pytest.raises(InputError, match=r"no harmful meme has a type; .*--target harmful"):
        keep_typed(replace(data, examples=bare))


def test_a_hopeless_rate_is_named(text_only: Backbones, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a number; use a smaller rate"):
        train(draw_memes(40), text_only, tmp_path, replace(SHORT, rate=1e30, clip=1e30))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": ()}, "seeds must be unique"),
        ({"seeds": (1, 1)}, "must be unique"),
        ({"seeds": (0, -1)}, "the seed -1 is negative"),
        ({"batch": 10, "accumulate": 4}, "is not a multiple of --accumulate 4"),
        ({"share": 0.95}, "not a valid --share"),
        ({"rate": 0.0}, "rate must be above 0"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_training(replace(SHORT, **change))


def test_every_file_is_checked_before_it_is_used(text_only: Backbones, tmp_path: Path) -> None:
    train(draw_memes(40), text_only, tmp_path, replace(SHORT, epochs=1))
    folder = tmp_path / "seed-0"
    path = folder / WEIGHTS
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(StoreError, match="was changed after it was written"):
        load_neural(tmp_path, "cpu")
    path.write_bytes(whole)
    (folder / "text" / "extra.json").write_text("{}")
    with pytest.raises(StoreError, match="does not belong"):
        load_neural(tmp_path, "cpu")
    (folder / "text" / "extra.json").unlink()
    facts = folder / "detector.json"
    plain = facts.read_text()
    for wrong, message in (
        (plain.replace('"format": 1', '"format": 9'), "format 9"),
        (plain.replace('"harmless"', '"clean"', 1), "other classes"),
        ("{", "damaged or from another version"),
    ):
        facts.write_text(wrong)
        with pytest.raises(StoreError, match=message):
            load_neural(tmp_path, "cpu")
    facts.write_text(plain)
    assert load_neural(tmp_path, "cpu").facts.seed == 0


def test_pickles_are_never_opened(text_only: Backbones, tmp_path: Path) -> None:
    """A pickle in the place of weights is refused unread: its code would run on loading."""
    pickle = importlib.import_module("pickle")
    train(draw_memes(40), text_only, tmp_path, replace(SHORT, epochs=1))
    folder = tmp_path / "seed-0"
    marker = tmp_path / "ran"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (marker,)

    (folder / WEIGHTS).write_bytes(pickle.dumps(Bomb()))
    facts = json.loads((folder / "detector.json").read_text())
    facts["checksums"][WEIGHTS] = digest(folder / WEIGHTS)
    (folder / "detector.json").write_text(json.dumps(facts))
    with pytest.raises(StoreError, match="is damaged"):
        load_neural(tmp_path, "cpu")
    assert not marker.exists()


def test_the_card_has_false_positive_rates_by_group(text_only: Backbones, tmp_path: Path) -> None:
    """The rates are those of the chosen seed at 0.5, counted here from its own predictions."""
    data = draw_memes(60)
    trained = train(data, text_only, tmp_path, replace(SHORT, seeds=(0, 1), epochs=1))
    card = write_card(trained, data).read_text(encoding="utf-8")
    sentences = list_identity_sentences("zh")
    examples = [Example(str(n), own.text) for n, own in enumerate(sentences)]
    said = predict_neural(load_neural(tmp_path, "cpu"), examples).predictions
    flagged = sum(one.harmful >= 0.5 for one in said)
    assert f"| zh | all groups | 336 | {100 * flagged / 336:.1f} |" in card
    assert card.count("| zh | ") == 29
    assert NEEDS_IMAGE[1:] not in card


def test_the_card_of_a_network_with_images_says_what_is_missing(
    fusion: Backbones, tmp_path: Path
) -> None:
    data = draw_memes(60, tmp_path / "images")
    card = write_card(train(data, fusion, tmp_path / "out", replace(SHORT, epochs=1)), data)
    text = card.read_text(encoding="utf-8")
    assert f"- {NEEDS_IMAGE[0].upper()}{NEEDS_IMAGE[1:]}." in text
    assert "## Identity terms" not in text
