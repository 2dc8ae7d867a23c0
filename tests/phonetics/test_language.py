from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.understanding.phonetics.language import (
    MODEL_VARIABLE,
    FrequencyModel,
    Transitions,
    TrigramModel,
    find_model_file,
    load_model,
)
from memantics.understanding.phonetics.lattice import Lattice
from memantics.understanding.phonetics.ranking import load_weights


def test_frequencies_join_characters() -> None:
    model = FrequencyModel(
        "x", {"合理": 0.01, "吗": 0.1}, Transitions({"理": {"吗": 1.0}}, {"吗": 0.1})
    )
    alone, state = model.step(model.begin(), "吗")
    after, _ = model.step(model.step(model.begin(), "合理")[1], "吗")
    assert alone == pytest.approx(-1.0)
    assert after == pytest.approx(-0.65)
    assert state == "吗"
    assert model.weigh("不在里面") < model.weigh("合理")
    assert model.join("理", "吗") == pytest.approx(1.0)
    assert model.join("吗", "理") == pytest.approx(-1.0)


def test_without_transitions_no_joint_is_judged() -> None:
    assert FrequencyModel("x", {"合理": 0.01}).join("合", "理") == 0.0


def test_a_named_model_that_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("kenlm")
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "none.lm"))
    assert find_model_file() == tmp_path / "none.lm"
    with pytest.raises(
        InputError, match=r"cannot read the language model.*libime-data-language-model"
    ):
        TrigramModel(tmp_path / "none.lm")


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    bad = tmp_path / "bad.lm"
    bad.write_bytes(b"not a language model")
    with pytest.raises(InputError, match="cannot read the language model"):
        TrigramModel(bad)


def test_the_best_model_is_found_and_has_weights() -> None:
    model = load_model("auto")
    order, sure = load_weights(model.name)
    assert order.weights
    assert sure.weights


def test_the_trigram_model_hears_context(trigram: Lattice) -> None:
    model = trigram.model
    after, _ = model.step(model.step(model.begin(), "是否")[1], "合理")
    assert after > model.weigh("合理")
