from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memantics.core.records import Score
from memantics.core.samples import image_path
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.explanation import Explanation, explain
from memantics.moderation.fast import Prediction, fit
from memantics.moderation.heads import find_preset
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.pages import (
    find_doubtful,
    find_mistakes,
    summarize,
    write_evaluation,
    write_explanation,
    write_summary,
)
from memantics.moderation.robustness import Evasion, Leakage, Robustness
from memantics.moderation.verdict import Verdict, make_verdict_schema
from tests.browser import launch, watch
from tests.moderation.samples import make_examples

ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}\u202e"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation with mistakes of both kinds and a hostile meme, and an explanation."""
    folder = tmp_path_factory.mktemp("pages")
    plain = make_examples(60)
    trained = fit(plain, find_preset("ridge"))
    examples = [
        replace(e, label=1 - int(e.label or 0), type=None, text=e.text + ATTACK,
                image=image_path("en-001") if i % 2 else None)
        if i % 7 == 0 else e
        for i, e in enumerate(plain)
    ]  # fmt: skip
    loaded = Loaded("toy " + ATTACK, tuple(examples), licence=ATTACK, checksum="0" * 64)
    report = Robustness((Evasion("spaces", 9, 0.5, 0.3, 0.7, 0.4),), Leakage(1, 60, 0.7, 0.6))
    found = evaluate(examples, trained.held_out)
    assert isinstance(found.harmful[0], Score)
    said = trained.held_out
    write_evaluation(folder / "eval.html", "toy " + ATTACK, loaded, said, found, report)
    why = explain(trained.detector, examples[0])
    write_explanation(folder / "why.html", examples[0], why, sample=True)
    return folder


def test_mistakes_come_surest_first() -> None:
    examples = make_examples(40)
    noisy = [replace(e, label=1 - int(e.label or 0)) for e in examples[:10]] + examples[10:]
    said = fit(examples, find_preset("ridge")).held_out
    found = find_mistakes(noisy, said)
    assert len(found) >= 8
    assert [own.sure for own in found] == sorted((own.sure for own in found), reverse=True)


def test_the_most_uncertain_memes_are_nearest_to_a_threshold(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = [
        Verdict(id=f"{chance}", status="scored", label="harmless", probability=chance,
                text="t", detector="d").to_row()
        for chance in (0.05, 0.31, 0.5, 0.6, 0.845, 0.99)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=make_verdict_schema())
    point = OperatingPoint(0.85, (0.3, 0.5))
    found = summarize([table], {}, point)
    assert found.thresholds == (0.3, 0.85)
    assert [row["id"] for row in found.doubtful] == ["0.845", "0.31", "0.99", "0.5", "0.05", "0.6"]
    assert summarize([table], {}, OperatingPoint(0.5)).doubtful[0]["id"] == "0.5"
    write_summary(found, {"detector": "d", "threshold": 0.85, "note": ""}, tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "nearest to a threshold of the operating point (0.300, 0.850)" in page
    assert "human review from 0.300 to 0.850" in page
    said = [Prediction(row["id"], 0, row["probability"], None, {}) for row in rows]
    examples = [Example(one.id, "t", label=1) for one in said]
    first = [example.id for example, _ in find_doubtful(examples, said, point)]
    assert first == [row["id"] for row in found.doubtful]


def test_the_evaluation_page_lists_the_most_uncertain_memes(pages: Path) -> None:
    text = (pages / "eval.html").read_text(encoding="utf-8")
    assert "nearest to a threshold of the operating point" in text


@pytest.mark.parametrize(
    ("known", "title", "line"),
    [
        ({"label": 0}, "Harmless", "harmless, probability of harm 0.78"),
        ({"label": 1, "type": "offence"}, "Harmful", "harmful, probability of harm 0.78, type off"),
        (
            {"label": 0, "review": "its probability 0.78 is in the review band, 0.3 to 0.84"},
            "Needs human review",
            "needs human review, probability of harm 0.78: its probability 0.78 is in the review",
        ),
        (
            {"label": 1, "review": "its probability 0.78 is in the review band, 0.3 to 0.84"},
            "Needs human review",
            "needs human review, probability of harm 0.78: its probability 0.78 is in the review",
        ),
        (
            {"label": 0, "not_scored": "no text", "review": "no text"},
            "Needs human review",
            "needs human review: not scored: no text",
        ),
    ],
)
def test_an_explanation_is_titled_by_its_outcome(
    tmp_path: Path, known: dict[str, Any], title: str, line: str
) -> None:
    given: dict[str, Any] = {"id": "a", "probability": 0.78, "type": None, "types": {}}
    said = Prediction(**(given | known))
    why = Explanation(1.0, 0.0, 2.0, (), (), "harmful", "harmless", said)
    assert why.title == title
    assert why.lines[0].startswith(line)
    write_explanation(tmp_path / "why.html", Example("a", "t"), why, sample=False)
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert f"<h1>{title}" in page
    assert f"<title>{title}: a</title>" in page
    assert ("Reason for human review" in page) == bool(known.get("review"))


@pytest.mark.slow
def test_the_pages_are_quiet_and_hostile_memes_stay_text(pages: Path) -> None:
    with launch() as browser:
        for name in ("eval.html", "why.html"):
            for width in (1280, 390):
                with watch(browser, width=width) as watched:
                    page = watched.page
                    page.goto((pages / name).as_uri())
                    watched.assert_quiet()
                    assert page.locator("script").count() == 0
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    assert "49" not in page.title()


@pytest.mark.slow
def test_images_are_blurred_until_asked_and_mistakes_can_be_sorted(pages: Path) -> None:
    with launch() as browser, watch(browser) as watched:
        page = watched.page
        page.goto((pages / "eval.html").as_uri())
        picture = page.locator(".reveal").first
        image = picture.locator("img")
        assert "blur" in image.evaluate("own => getComputedStyle(own).filter")
        picture.click()
        assert image.evaluate("own => getComputedStyle(own).filter") == "none"
        everything = page.locator(".mistake:visible").count()
        page.get_by_label("false negatives (harmful, predicted harmless)").check()
        missed = page.locator(".mistake:visible").count()
        page.get_by_label("false positives (harmless, predicted harmful)").check()
        alarms = page.locator(".mistake:visible").count()
        assert missed + alarms == everything
        assert min(missed, alarms) > 0
        watched.assert_quiet()
