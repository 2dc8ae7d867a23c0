"""The preset with static meanings trains, is saved, and says the same after loading."""

from __future__ import annotations

from pathlib import Path

import memantics as mm


def test_static_meanings_train_and_come_back(tmp_path: Path) -> None:
    trained = mm.Detector.train("sample", preset="static")
    trained.save(tmp_path / "d.zip")
    again = mm.Detector.load(tmp_path / "d.zip")
    texts = ["今天天气真好", "你这个笨蛋"]
    one, two = trained.predict(texts), again.predict(texts)
    assert [own.probability for own in one] == [own.probability for own in two]
