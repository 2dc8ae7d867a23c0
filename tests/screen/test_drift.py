"""Drift between two screenings: the tests, the limits, what drives it, the page, the exit code."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2_contingency
from statsmodels.stats.multitest import (  # type: ignore[import-untyped,unused-ignore]
    multipletests,
)

import memantics as mm
from memantics.core.errors import InputError
from memantics.metrics.comparison import REST, compare_counts, pool_rare
from memantics.moderation.drift import ASPECTS, DailySample, SampleChoice, has_sample, read_sample
from memantics.moderation.verdict import Verdict, make_verdict_schema
from tests.commands import Shell


def write(folder: Path, *rows: dict[str, Any], detector: str = "d") -> Path:
    """A screened folder of such verdicts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = [
        Verdict(id=str(n), detector=detector, **{"status": "scored", "reason": "", **row}).to_row()
        for n, row in enumerate(rows)
    ]
    (folder / "parts").mkdir(parents=True)
    table = pa.Table.from_pylist(made, schema=make_verdict_schema())
    pq.write_table(table, folder / "parts" / "part-000000.parquet")
    return folder


def draw(seed: int, count: int, harmful: float = 0.2) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        bad = chance.random() < harmful
        rows.append(
            {
                "text": "bad words" if bad else "good morning",
                "label": "harmful" if bad else "harmless",
                "probability": chance.uniform(0.7, 1) if bad else chance.uniform(0, 0.4),
                "language": chance.choice(("en", "en", "zh")),
            }
        )
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_that_of_scipy(seed: int) -> None:
    chance = random.Random(seed)
    now, then = (Counter(chance.choices("abcdef", [9, 8, 7, 3, 2, 1], k=400)) for _ in range(2))
    rows = pool_rare(now, then)
    expected = chi2_contingency([[row[1:][side] for row in rows] for side in (0, 1)], False)
    assert compare_counts(now, then).p == pytest.approx(expected.pvalue, abs=1e-9)


def test_categories_at_the_limit_of_rarity() -> None:
    assert pool_rare({"a": 95, "b": 5}, {"a": 95, "b": 5}) == [("a", 95, 95), ("b", 5, 5)]
    assert pool_rare({"a": 96, "b": 4}, {"a": 95, "b": 5})[1] == (REST, 4, 5)
    assert compare_counts({}, {"a": 9}).p is None
    assert compare_counts({"a": 9}, {"a": 9}).p is None


def test_the_same_source_does_not_drift(tmp_path: Path) -> None:
    now, then = write(tmp_path / "now", *draw(1, 500)), write(tmp_path / "then", *draw(2, 500))
    found = mm.drift(now, against=then)
    assert found.beyond == ()
    assert found.memes == (500, 500)
    assert [aspect.name for aspect in found.aspects] == list(ASPECTS)
    raw = [compare_counts(*_split(a.counts)).p for a in found.aspects]
    known = [p for p in raw if p is not None]
    corrected = multipletests(known, method="holm")[1].tolist()
    assert [a.p for a in found.aspects if a.p is not None] == pytest.approx(corrected)


def _split(counts: tuple[tuple[str, int, int], ...]) -> tuple[dict[str, int], dict[str, int]]:
    return {name: now for name, now, _ in counts}, {name: then for name, _, then in counts}


def test_a_shift_is_found_with_the_memes_that_drive_it(shell: Shell) -> None:
    now = write(shell.folder / "now", *draw(1, 500, 0.5))
    then = write(shell.folder / "then", *draw(2, 500))
    found = mm.drift(now, against=then)
    assert found.beyond == ("scores", "verdicts")
    (verdicts,) = [aspect for aspect in found.aspects if aspect.name == "verdicts"]
    assert verdicts.grown == "harmful"
    assert {row["text"] for row in verdicts.drivers} == {"bad words"}
    ran = shell.run("drift", "now", "--against", "then", "--out", "d.html")
    assert ran.code == 1
    verdict = "the group that grew most is memes with the verdict harmful: from "
    assert found.grown.startswith(verdict)
    assert found.grown.endswith(" of all memes")
    first, last = ran.err.strip().split("limits exceeded: ")
    assert (" ".join(first.split()), last) == (found.grown, "scores, verdicts")
    page = (shell.folder / "d.html").read_text()
    assert '<span class="hidden-text"><bdi>bad words</bdi>' in page
    assert page.count("<svg") >= 4
    assert f"<bdi>T{found.grown[1:]}.</bdi>" in page


def test_another_detector_is_named(shell: Shell) -> None:
    """Scores that moved since another detector judges are no news about the memes."""
    for name, detector in (("then", "old.zip@1"), ("now", "new.zip@2"), ("again", "new.zip@2")):
        write(shell.folder / name, *draw(3, 50), detector=detector)
    told = " ".join(shell.run("drift", "now", "--against", "then", "--out", "d.html").err.split())
    assert "note: the detector changed from old.zip@1 to new.zip@2" in told
    assert "The detector changed from old.zip@1" in (shell.folder / "d.html").read_text(
        encoding="utf-8"
    )
    assert "judged by" not in shell.run("drift", "now", "--against", "again").err
    assert mm.drift(shell.folder / "now", against=shell.folder / "again").note == ""


def test_a_copied_detector_file_is_the_same_detector(tmp_path: Path) -> None:
    for name, detector in (("then", "a.zip@12"), ("now", "b.zip@12"), ("more", "a.zip@13")):
        write(tmp_path / name, *draw(3, 50), detector=detector)
    assert mm.drift(tmp_path / "now", against=tmp_path / "then").note == ""
    found = mm.drift(tmp_path / "more", against=tmp_path / "then")
    assert found.note.startswith("the detector changed from a.zip@12 to a.zip@13")


@pytest.mark.parametrize(
    ("changed", "grown"),
    [
        ({"language": "fr"}, "the language fr: from 0.0% to 50.0%"),
        ({"type": "offence"}, "the type offence: from 0.0% to 50.0%"),
        ({"template_cluster": "cat"}, "the template cluster cat: from 0.0% to 50.0%"),
        ({"label": "harmful"}, "memes with the verdict harmful: from 0.0% to 50.0%"),
        ({"label": "harmful", "type": "offence"}, "the type offence: from 0.0% to 50.0%"),
        ({"probability": 0.9}, ""),
    ],
)
def test_the_group_that_grew_most_is_named(
    tmp_path: Path, changed: dict[str, Any], grown: str
) -> None:
    row = {"label": "harmless", "probability": 0.1, "language": "en", "template_cluster": "dog"}
    then = write(tmp_path / "then", *[row] * 200)
    now = write(tmp_path / "now", *[row] * 100, *[row | changed] * 100)
    found = mm.drift(now, against=then)
    assert found.beyond
    assert found.grown == (f"the group that grew most is {grown} of all memes" if grown else "")


def test_limits_are_both_needed(tmp_path: Path) -> None:
    now, then = write(tmp_path / "now", *draw(1, 500, 0.5)), write(tmp_path / "then", *draw(2, 500))
    (distance,) = [a.distance for a in mm.drift(now, against=then).aspects if a.name == "verdicts"]
    for limits, beyond in (
        (mm.DriftLimits(min_shift=distance), True),
        (mm.DriftLimits(min_shift=distance + 1e-6), False),
        (mm.DriftLimits(alpha=0), False),
    ):
        found = mm.drift(now, against=then, limits=limits)
        assert ("verdicts" in found.beyond) is beyond


def test_what_is_no_screening_is_refused(shell: Shell) -> None:
    write(shell.folder / "now", *draw(1, 20))
    assert "has no verdicts" in shell.refused("drift", "now", "--against", "nowhere")
    with pytest.raises(InputError, match="has no verdicts"):
        mm.drift(shell.folder, against=shell.folder / "now")


def make_day(folder: Path, day: str, rows: list[dict[str, Any]], **choice: Any) -> Path:
    """What the service keeps of such verdicts on one day."""
    chance = random.Random(day)
    sample = DailySample(SampleChoice(folder=folder, **choice), chance.random, lambda: day)
    for row in rows:
        sample.add(Verdict(id="secret", detector="d", **{"status": "scored", **row}))
    return folder / day


def test_the_days_of_a_service_are_compared_without_their_texts(shell: Shell) -> None:
    folder = shell.folder / "days"
    calm = make_day(folder, "2026-01-01", draw(1, 2000), share=0.5)
    same = make_day(folder, "2026-01-02", draw(2, 2000), share=0.5)
    other = make_day(folder, "2026-01-03", draw(3, 2000, 0.5), share=0.5)
    assert mm.drift(same, against=calm).beyond == ()
    found = mm.drift(other, against=calm)
    assert found.beyond == ("scores", "verdicts")
    assert 900 < found.memes[0] < 1100
    assert shell.run("drift", other, "--against", calm).code == 1
    (kept,) = other.iterdir()
    assert "words" not in kept.read_text()
    assert "secret" not in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    texts = make_day(folder, "2026-01-04", draw(3, 50), share=1, texts=True)
    assert "good morning" in next(texts.iterdir()).read_text()
    # A day of a service beside a screened folder.
    screened = write(shell.folder / "screened", *draw(4, 1000))
    assert mm.drift(same, against=screened).beyond == ()
    with pytest.raises(InputError, match="has no verdicts"):
        mm.drift(folder, against=calm)
    kept.write_text("{}\n")
    assert "is not a verdict" in shell.refused("drift", other, "--against", calm)


def test_a_day_is_full_and_the_next_begins_anew(tmp_path: Path) -> None:
    days = iter(["a", "a", "a", "b", "b"])
    choice = SampleChoice(folder=tmp_path, share=1, most=2)
    sample = DailySample(choice, lambda: 0.0, lambda: next(days))
    for _ in range(5):
        sample.add(Verdict(detector="d", status="not_scored"))
    assert [has_sample(tmp_path / day) for day in "ab"] == [True, True]
    assert [len(list(read_sample(tmp_path / day))) for day in "ab"] == [2, 2]
    none = DailySample(SampleChoice(folder=tmp_path / "c", share=0.5), lambda: 0.5, lambda: "x")
    none.add(Verdict(detector="d", status="not_scored"))
    assert not (tmp_path / "c").exists()
