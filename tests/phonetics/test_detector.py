from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, recall_score

from memantics.core.errors import DataError, InputError
from memantics.phonetics.detector import (
    FEATURES,
    PunDetector,
    extract_features,
    fit_choice,
    fit_logistic,
    score_detection,
)
from memantics.phonetics.harm import disguise, stress
from memantics.phonetics.reading import Heard, Settings
from memantics.phonetics.speech import read_many
from tests.phonetics.captions import PLAIN, PUNS

PLAINEST = Settings(model="dictionary")


@pytest.fixture(scope="module")
def read() -> tuple[list[Heard], list[bool]]:
    captions = [c for c, _ in PUNS] + list(PLAIN)
    labels = [True] * len(PUNS) + [False] * len(PLAIN)
    return list(read_many(captions, settings=PLAINEST)), labels


def test_it_learns_keeps_and_predicts(read: tuple[list[Heard], list[bool]], tmp_path: Path) -> None:
    readings, labels = read
    detector = PunDetector.train(readings[::2], labels[::2])
    scores = detector.evaluate(readings[1::2], labels[1::2])
    assert scores.f1 > 0.85
    detector.save(tmp_path / "detector.json")
    again = PunDetector.load(tmp_path / "detector.json")
    assert again.predict(readings[0]) == pytest.approx(detector.predict(readings[0]))
    assert len(extract_features(readings[0])) == len(FEATURES)


def test_wrong_files_and_models_are_refused(
    read: tuple[list[Heard], list[bool]], tmp_path: Path
) -> None:
    readings, labels = read
    (tmp_path / "x.json").write_text('{"bias": 1}')
    with pytest.raises(DataError, match="not a pun detector"):
        PunDetector.load(tmp_path / "x.json")
    with pytest.raises(DataError, match="cannot be read"):
        PunDetector.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="needs puns and other captions"):
        PunDetector.train(readings[:3], [True] * 3)
    detector = PunDetector(PunDetector.train(readings, labels).linear, "trigram")
    with pytest.raises(InputError, match="trained on readings of model 'trigram'"):
        detector.predict(readings[0])


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


def test_disguises_sound_the_same_and_readings_see_through_them() -> None:
    rude = ["你真是个笨蛋", "这个人好讨厌", "你怎么这么笨", "别来烦我讨厌鬼", "大笨蛋走开"]
    words = ["笨", "讨厌"]
    hidden = [disguise(text, words, seed=1, settings=PLAINEST) for text in rude]
    assert all(a != b and len(a) == len(b) for a, b in zip(rude, hidden, strict=True))
    assert hidden == [disguise(text, words, seed=1, settings=PLAINEST) for text in rude]
    scores = stress(
        lambda text: any(word in text for word in words),
        list(zip(rude, hidden, strict=True)),
        list(PLAIN[:5]),
        PLAINEST,
    )
    assert (scores.recall_plain, scores.recall_disguised) == (1.0, 0.0)
    assert scores.recall_read > scores.recall_disguised
    assert scores.drop_with_readings < scores.drop == 1.0


def test_a_stress_test_needs_captions() -> None:
    with pytest.raises(InputError, match="needs harmful captions"):
        stress(lambda _: True, [], [])
