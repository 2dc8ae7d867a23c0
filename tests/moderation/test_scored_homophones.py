"""Chinese texts judged as they sound, where the operating point says so and the ear is sure."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.subjects import find_intended_text
from memantics.moderation.training import set_point
from tests.commands import Shell
from tests.scale.inline import InlineEngine

pytestmark = pytest.mark.slow
HIDDEN, MEANT, PLAIN = "最近鸭力山大", "最近压力山大", "今天天气不错"


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pressure stands for harm; ducks and the weather are kind."""
    bad = ("压力山大", "工作压力大", "压力很大啊", "最近压力真大", "又有压力了")
    good = ("鸭子很可爱", "今天天气不错", "我们去吃饭", "最近很开心", "大家早上好")
    ends = ("", "啊", "了", "吧", "呢", "呀")
    examples = [
        Example(f"{label}{n}{end}", text + end, label=label)
        for label, texts in ((1, bad), (0, good))
        for n, text in enumerate(texts)
        for end in ends
    ]
    made = Detector.train(examples, "ridge")
    return made.save(tmp_path_factory.mktemp("detector") / "detector.zip")


def test_the_intended_text_is_found_only_with_high_confidence() -> None:
    assert find_intended_text(HIDDEN) == MEANT
    assert (
        find_intended_text(PLAIN) == find_intended_text("") == find_intended_text("鸭" * 500) == ""
    )


def test_a_homophone_reading_is_scored_if_the_operating_point_says_so(
    detector: Path, tmp_path: Path
) -> None:
    file = tmp_path / "listens.zip"
    file.write_bytes(detector.read_bytes())
    # The text as it is meant is just harmful.
    limit = f"{Detector.load(file).predict(MEANT)[0].probability:.9f}"
    Shell(tmp_path).done("detector", "set", file, "--threshold", limit)
    deaf = Detector.load(file)
    assert deaf.verdicts([MEANT])[0].label == "harmful"
    before = deaf.verdicts([HIDDEN])[0]
    assert (before.label, before.obfuscation) == ("harmless", "")
    Shell(tmp_path).done("detector", "set", file, "--threshold", limit, "--homophones")
    hearing = Detector.load(file)
    assert hearing.point.homophones
    assert hearing.choose_point(threshold=0.9).homophones  # another threshold listens as well
    hidden, meant, plain, english = hearing.verdicts([HIDDEN, MEANT, PLAIN, "good day to you all"])
    assert (hidden.label, hidden.obfuscation) == ("harmful", "homophones")
    assert f"homophone reading '{MEANT}'" in hidden.note
    assert same_chance(hidden.probability, meant.probability)
    assert (meant.label, meant.obfuscation) == ("harmful", "")
    assert (plain.label, plain.obfuscation) == ("harmless", "")
    assert english.status == "not_scored"
    assert hearing.predict([HIDDEN])[0].name == "harmful"
    source = tmp_path / "texts.jsonl"
    source.write_text(f'{{"id": "a", "text": "{HIDDEN}"}}\n', encoding="utf-8")
    settings = ScreenSettings(detector=file, readings="none")
    screen(source, settings, out=tmp_path / "out", engine=InlineEngine())
    (row,) = read_rows(tmp_path / "out")
    assert row["obfuscation"] == "homophones"
    assert same_chance(row["probability"], hidden.probability)
    assert "homophone" not in " ".join(set_point(file, homophones=True).lines)
    assert "readings are no longer scored" in set_point(file, threshold=float(limit)).lines[-1]
    assert Detector.load(file).verdicts([HIDDEN])[0].label == "harmless"


def same_chance(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) < 1e-6
