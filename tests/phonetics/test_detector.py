from __future__ import annotations

import numpy as np
import pytest
from perf.phonetics import stress
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, recall_score

from memantics.core.errors import InputError
from memantics.moderation.robustness import obfuscation
from memantics.understanding.phonetics.detector import fit_choice, fit_logistic, score_detection
from memantics.understanding.phonetics.reading import Settings
from tests.phonetics.captions import PLAIN

PLAINEST = Settings(model="dictionary")


def test_rates_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    chances, labels = rng.random(200), rng.random(200) < 0.3
    scores = score_detection(chances.tolist(), labels.tolist(), 0.6)
    said = chances >= 0.6
    assert scores.f1 == pytest.approx(f1_score(labels, said))
    assert scores.tpr == pytest.approx(recall_score(labels, said))
    assert scores.tnr == pytest.approx(recall_score(~labels, ~said))


def test_logistic_regression_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 4))
    labels = rng.random(300) < 1 / (1 + np.exp(-(rows @ [1.0, -2.0, 0.0, 0.5] + 0.3)))
    ours = fit_logistic(rows, labels, "abcd", ridge=1e-6)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(rows, labels)
    assert list(ours.weights.values()) == pytest.approx(theirs.coef_[0], abs=1e-3)
    assert ours.bias == pytest.approx(theirs.intercept_[0], abs=1e-3)


def test_choice_finds_what_makes_the_right_one_win() -> None:
    rng = np.random.default_rng(3)
    groups = []
    for _ in range(120):
        rows = rng.normal(size=(6, 3))
        groups.append((rows, int(np.argmax(rows @ [2.0, 0.0, -1.0]))))
    weights = fit_choice(groups, "abc").weights
    assert weights["a"] > 1 > abs(weights["b"])
    assert weights["c"] < -0.5


def test_obfuscations_sound_the_same_and_readings_see_through_them() -> None:
    rude = ["你真是个笨蛋", "这个人好讨厌", "你怎么这么笨", "别来烦我讨厌鬼", "大笨蛋走开"]
    words = ["笨", "讨厌"]
    hidden = [obfuscation(text, words, seed=1, settings=PLAINEST) for text in rude]
    assert all(a != b and len(a) == len(b) for a, b in zip(rude, hidden, strict=True))
    assert hidden == [obfuscation(text, words, seed=1, settings=PLAINEST) for text in rude]
    scores = stress(
        lambda text: any(word in text for word in words),
        list(zip(rude, hidden, strict=True)),
        list(PLAIN[:5]),
        PLAINEST,
    )
    assert (scores.recall_plain, scores.recall_obfuscated) == (1.0, 0.0)
    assert scores.recall_read > scores.recall_obfuscated
    assert scores.drop_with_readings < scores.drop == 1.0


def test_a_stress_test_needs_captions() -> None:
    with pytest.raises(InputError, match="needs harmful captions"):
        stress(lambda _: True, [], [])
