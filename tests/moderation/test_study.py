"""A study: variants alike but for what they vary, tested once, compared by memes and by seeds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.metrics import precision_recall_fscore_support

from memantics.core.errors import DataError, InputError, StoreError, UnknownName
from memantics.metrics.comparison import welch_t_test
from memantics.moderation.data import load_examples, put_captions
from memantics.moderation.examples import LABELS, Example, Loaded
from memantics.moderation.neural.settings import Training
from memantics.moderation.study.running import (
    StudyPlan,
    VariantVerdicts,
    contrast,
    correct,
    read_study,
    read_verdicts,
    run_study,
    score_sheet,
)
from memantics.moderation.study.study import StudyData
from memantics.moderation.study.variants import (
    CHECKS,
    PAPER,
    StudyEncoders,
    choose_variants,
    make_shape,
    make_training,
    read_variant,
)
from tests.commands import Shell
from tests.moderation.neural.conftest import Make, encoder, plain_arithmetic
from tests.moderation.neural.tiny import QUICK, draw_memes

__all__ = ["encoder", "plain_arithmetic"]
QUIET = replace(QUICK, epochs=2, seeds=(0, 1), hold_out="random")


def draw_parts(tmp_path: Path) -> tuple[Loaded, Loaded]:
    whole = draw_memes(90, tmp_path / "pictures", sign="text")
    kinds = ("fusion", "text", "image", "both")
    examples = [
        replace(own, modality=kinds[place % 4]) if own.label else own  # type: ignore[arg-type]
        for place, own in enumerate(whole.examples)
    ]
    first, second = examples[:66], examples[66:]
    return replace(whole, examples=tuple(first)), replace(whole, examples=tuple(second))


def test_names_say_what_is_trained() -> None:
    assert [own.name for own in choose_variants((), StudyEncoders(text="bert"))] == [
        "roberta",
        "fast",
    ]
    chosen = choose_variants(
        ("paper", "checks"), StudyEncoders("a", Path("b"), Path("c"), Path("d"))
    )
    assert tuple(own.name for own in chosen) == (*PAPER, *CHECKS)
    for name in ("fusion+all", "bert", "", "fusion@sum+both", "Fusion"):
        with pytest.raises(UnknownName):
            read_variant(name)
    for name in ("vit+text", "resnet+both", "ridge+text", "fusion@sum"):
        with pytest.raises(InputError, match="is not a valid variant"):
            read_variant(name)
    with pytest.raises(InputError, match=r"clip\+both needs an encoder of the kind clip"):
        choose_variants(("clip+both",), StudyEncoders(text="bert"))


def test_caption_variants_differ_in_captions_alone() -> None:
    """With attention tokens were averaged, without it the encoder's own vector was taken."""
    shapes = [
        make_shape(read_variant(name), "harmful", "mean", 80)
        for name in ("fusion", "fusion+text", "fusion+image", "fusion+both")
    ]
    assert {shape.pooling for shape in shapes} == {"mean"}
    assert [shape.joined for shape in shapes] == [(), ("text",), ("image",), ("text", "image")]
    assert [shape.fields for shape in shapes] == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("names", "epochs", "rate"),
    [(("resnet", "vit"), 20, 5e-5), (("roberta", "fusion", "fusion+both", "clip+text"), 10, 1e-5)],
)
def test_epochs_and_rates_are_the_paper_s_by_family(
    names: tuple[str, ...], epochs: int, rate: float
) -> None:
    for name in names:
        own = make_training(read_variant(name), Training(), None, None)
        assert (own.epochs, own.rate) == (epochs, rate), name
        told = make_training(read_variant(name), Training(), 3, 2e-4)
        assert (told.epochs, told.rate) == (3, 2e-4), name


@pytest.mark.slow
def test_a_study_trains_tests_and_compares(encoder: Make, tmp_path: Path) -> None:
    parts = draw_parts(tmp_path)
    encoding = StudyEncoders(
        str(encoder("text")), encoder("image"), encoder("resnet"), encoder("clip")
    )
    names = ("roberta", "resnet", "vit", "fusion", "fusion+text", "fusion+both", "clip+both@sum")
    plan = StudyPlan(
        choose_variants((*names, "ridge"), encoding),
        encoding,
        QUIET,
        epochs=2,
        rate=3e-3,
        length=24,
    )
    said: list[str] = []
    done = run_study(*parts, plan, tmp_path / "study", said.append)
    assert [(row.task, row.variant) for row in done.rows] == [
        (task, name) for task in ("harmful", "type") for name in (*names, "ridge")
    ]
    assert {row.seeds for row in done.rows if row.variant != "ridge"} == {2}
    main = done.rows[0].find("macro_f1")
    assert main is not None
    assert main.n == 24
    assert "over 2 seeds" in main.note
    parts_of = [own.label for own in done.rows[0].scores if own.by == "modality"]
    assert parts_of == ["fusion", "text", "image", "both"]
    pairs = [(own.task, own.first, own.second) for own in done.contrasts]
    assert pairs == [(task, "fusion", name) for task in ("harmful", "type") for name in names[4:6]]
    assert all(own.corrected is not None for own in done.contrasts)
    assert read_study(tmp_path / "study") == done
    verdicts = read_verdicts(tmp_path / "study", done)
    assert set(verdicts) == {*names, "ridge"}
    assert {len(said) for said in verdicts.values()} == {24}
    assert {share for said in verdicts.values() for share in said.values()} <= {0.0, 0.5, 1.0}
    assert len(done.table().rows) == 16
    said.clear()
    again = run_study(*parts, plan, tmp_path / "study", said.append)
    assert again == done, "what is done is not done again"
    assert not any("epoch" in line for line in said)
    other = replace(plan, rate=1e-3)
    with pytest.raises(StoreError, match="other data or settings"):
        run_study(*parts, other, tmp_path / "study", said.append)
    with pytest.raises(UnknownName):
        run_study(*parts, replace(plan, against="clip"), tmp_path / "study", said.append)


def test_memes_without_an_image_are_nobody_s(encoder: Make, tmp_path: Path) -> None:
    first, second = draw_parts(tmp_path)
    lost = replace(second.examples[0], image=None)
    second = replace(second, examples=(lost, *second.examples[1:]))
    encoding = StudyEncoders(image=encoder("image"))
    plan = StudyPlan(
        choose_variants(("vit", "ridge"), encoding), encoding, QUIET, ("harmful",), epochs=1
    )
    done = run_study(first, second, plan, tmp_path / "study", lambda _: None)
    assert done.tested_on == 23
    assert any("1 memes of the test set have no image" in note for note in done.notes)
    assert [row.find("macro_f1").n for row in done.rows] == [23, 23]  # type: ignore[union-attr]
    bare = replace(second, examples=tuple(replace(own, image=None) for own in second.examples))
    with pytest.raises(InputError, match="no meme of the test set has an image"):
        run_study(first, bare, plan, tmp_path / "none", lambda _: None)
    with pytest.raises(InputError, match="in both the training and the test set"):
        run_study(first, first, plan, tmp_path / "same", lambda _: None)


def make_sheet(gold: list[int], *said: list[int]) -> VariantVerdicts:
    names = tuple(f"m{place}" for place in range(len(gold)))
    return VariantVerdicts(names, np.array(gold), np.array(said), LABELS)


def test_metrics_are_scikit_learn_s_averaged_over_seeds() -> None:
    gold = [0, 0, 1, 1, 1, 0, 1, 0]
    seeds = [[0, 1, 1, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0, 1, 1]]
    sheet = make_sheet(gold, *seeds)
    known = {name: Example(name, "", label=gold[row]) for row, name in enumerate(sheet.memes)}
    scores = {own.key: own for own in score_sheet(sheet, known)}
    told = [
        precision_recall_fscore_support(gold, own, average="macro", zero_division=0)[:3]
        for own in seeds
    ]
    for place, key in enumerate(("macro_precision", "macro_recall", "macro_f1")):
        assert scores[key].value == pytest.approx(np.mean([own[place] for own in told]))
    silent = score_sheet(make_sheet([0, 1], [0, 0]), known)
    assert next(own for own in silent if own.key == "f1_harmful").value == 0.0


def test_a_class_that_never_occurs_has_no_metric_and_lowers_no_mean() -> None:
    gold = np.array([0, 1] * 20)
    classes = ("none", "targeted", "sexual")
    sheet = VariantVerdicts(tuple(map(str, range(40))), gold, gold[None], classes)
    scores = {(own.key, own.label): own for own in score_sheet(sheet, {})}
    assert scores["macro_f1", ""].value == scores["macro_recall", ""].value == 1.0
    assert scores["f1", "targeted"].value == 1.0
    absent = scores["f1", "sexual"]
    assert (absent.value, absent.low, absent.note) == (None, None, "does not occur")


def test_contrasts_are_by_memes_and_by_seeds() -> None:
    gold = [0, 1] * 30
    worse = [[own if n % 3 else 1 - own for n, own in enumerate(gold)] for _ in range(2)]
    worse[1][0] = gold[0]
    better = [list(gold), [1 - gold[0], *gold[1:]]]
    one, other = make_sheet(gold, *worse), make_sheet(gold, *better)
    found = contrast("harmful", ("a", "b"), one, other)
    assert found is not None
    assert found.difference > 0.2
    assert found.low is not None
    assert found.low > 0.1
    assert found.p is not None
    assert found.p < 0.01
    assert found.p < 0.001, "without a floor"
    weak = contrast("harmful", ("a", "b"), one, make_sheet(gold, *[worse[0]] * 2))
    assert weak is not None
    for row in (found, weak):  # interval and p-value come from one test
        assert row.low is not None
        assert row.high is not None
        assert row.p is not None
        assert (row.low > 0 or row.high < 0) == (row.p < 0.05)
    same = contrast("harmful", ("a", "a"), one, one)
    assert same is not None
    assert same.difference == 0.0
    assert same.p_seeds == pytest.approx(1.0)
    alone = contrast("harmful", ("a", "b"), make_sheet(gold, worse[0]), make_sheet(gold, gold))
    assert alone is not None
    assert alone.p_seeds is None, "one seed tells nothing about seeds"
    empty = VariantVerdicts((), np.array([], np.int64), np.zeros((1, 0), np.int64), LABELS)
    assert contrast("harmful", ("a", "b"), one, empty) is None
    repaired = correct(
        [replace(found, p=0.01), replace(found, p=0.04), replace(found, task="type")]
    )
    assert [own.corrected for own in repaired] == [0.02, 0.04, found.p]


def test_welch_is_scipy_s() -> None:
    first, second = [0.71, 0.74, 0.7], [0.75, 0.8, 0.79, 0.77]
    found = welch_t_test(first, second)
    assert found is not None
    told = ttest_ind(second, first, equal_var=False)
    assert (found.statistic, found.p) == pytest.approx((told.statistic, told.pvalue))
    assert welch_t_test([1.0], second) is None
    assert welch_t_test([1.0, 1.0], [1.0, 1.0]) is None


def test_new_captions_take_the_place_of_the_data_s(tmp_path: Path) -> None:
    plain = load_examples("sample")
    first, second = plain.examples[:2]
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps({"id": first.id, "text_caption": "new"}) + "\n", encoding="utf-8")
    found = put_captions(plain, path)
    assert found.examples[0].text_caption == "new"
    assert found.examples[0].image_caption == first.image_caption
    assert found.examples[1] == second
    assert f"1 of {len(plain.examples)}" in found.notes[-1]
    assert found.checksum != plain.checksum, "a detector knows what it was trained on"
    path.write_text(json.dumps({"id": "nobody", "text_caption": "new"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no id of"):
        put_captions(plain, path)


def test_data_without_parts_are_split() -> None:
    first, second = StudyData("sample").load()
    names = {own.id for own in first.examples} & {own.id for own in second.examples}
    assert not names
    assert len(second.examples) == pytest.approx(
        0.2 * (len(first.examples) + len(second.examples)), abs=3
    )
    with pytest.raises(InputError, match="0 is not a valid --share"):
        StudyData("sample", share=0).load()


def test_the_command_studies_fast_detectors_without_torch(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.done(
        "detector", "study", "ridge", "linear", "--data", "sample", "--against", "ridge"
    )
    assert "ridge → linear" in told
    assert (tmp_path / "study" / "study.json").is_file()
    found = json.loads(shell.done("detector", "study", "ridge", "--data", "sample", "--json"))
    assert found["rows"][0]["variant"] == "ridge"
    captions = tmp_path / "captions.jsonl"
    lines = [{"id": own.id, "text_caption": "new"} for own in load_examples("sample").examples]
    captions.write_text("".join(json.dumps(own) + "\n" for own in lines), encoding="utf-8")
    words = ("detector", "study", "ridge", "--data", "sample", "--captions", captions, "--json")
    other = json.loads(shell.done(*words, "--out", "other"))
    assert any("have new captions" in note for note in other["notes"])
    marks = {
        json.loads((tmp_path / own / "ridge.json").read_bytes())["mark"]
        for own in ("study", "other")
    }
    assert len(marks) == 2, "answers are kept by what was read"
    told = shell.refused("detector", "study", "fusion", "--data", "sample")
    assert "--text-backbone" in told


def test_a_study_s_training_is_checked() -> None:
    plan = StudyPlan(
        choose_variants(("ridge",), StudyEncoders()), StudyEncoders(), Training(seeds=())
    )
    with pytest.raises(InputError, match="seeds"):
        run_study(Loaded("a", ()), Loaded("b", ()), plan, Path("nowhere"), print)
