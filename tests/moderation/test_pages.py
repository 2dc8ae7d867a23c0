from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.records import Score
from memantics.core.samples import image_path
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Loaded
from memantics.moderation.explanation import explain
from memantics.moderation.fast import fit
from memantics.moderation.heads import find_preset
from memantics.moderation.pages import find_mistakes, write_evaluation, write_explanation
from memantics.moderation.robustness import Evasion, Leakage, Robustness
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
