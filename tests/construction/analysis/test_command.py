"""``memantics analyze`` as a user runs it."""

from __future__ import annotations

import json

import pytest

from memantics.core.memes import Meme
from memantics.core.samples import image_path, read_samples
from memantics.understanding.analysis.records import Findings, Harm, Missing
from memantics.workbench.analyze import render_page
from tests.browser import launch, watch
from tests.commands import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """One home for all: its detector is trained at first use, and what was read is shared."""
    return Shell(tmp_path_factory.mktemp("analyze"))


@pytest.mark.slow
def test_without_a_model_it_says_what_it_left_out(shell: Shell) -> None:
    (card,) = json.loads(shell.done("analyze", image_path("CN90001"), "--json"))
    assert "键忘" in card["text"]
    assert card["language"] == "zh"
    assert "健忘" in card["homophones"][0]["reading"]
    assert card["harm"][0]["harmful"] is False
    assert "sample" in card["harm"][0]["by"]
    parts = {gap["part"] for gap in card["missing"]}
    assert parts >= {"intents", "dimensions and graph", "emotion"}
    assert card["emotion"] == []  # unknown rather than guessed
    shown = {own["part"]: own for own in card["shows"]}
    assert "pixels, one panel" in shown["layout"]["says"]
    assert shown["medium"]["says"] == "drawing or screenshot"
    assert all(own["by"] for own in card["shows"])
    assert "faces" in parts
    assert ("nudity" in parts) != ("nudity" in shown)
    assert card["template_cluster"] is None


@pytest.mark.slow
def test_with_a_model_every_part_is_there_and_asked_once(shell: Shell) -> None:
    ask = ("analyze", image_path("en-001"), "-m", "fake/builder", "--json")
    (card,) = json.loads(shell.done(*ask))
    assert card["knowledge"]["individuals"]
    assert card["statuses"]["answered"] >= 12
    calls = shell.folder / "builds" / "analyze" / "calls.jsonl"
    before = calls.read_bytes()
    assert json.loads(shell.done(*ask))[0]["knowledge"] == card["knowledge"]
    assert calls.read_bytes() == before


@pytest.mark.slow
def test_a_model_that_babbles_leaves_gaps_not_errors(shell: Shell) -> None:
    (card,) = json.loads(shell.done("analyze", image_path("en-001"), "-m", "fake/babble", "--json"))
    assert card["statuses"].get("unparsed", 0) > 0
    assert any(gap["part"] == "harm" for gap in card["missing"])


def test_a_bad_image_does_not_end_the_others(shell: Shell) -> None:
    (shell.folder / "bad.png").write_text("not an image")
    ran = shell.run("analyze", "bad.png", image_path("en-001"))
    assert ran.code == 1
    assert "bad.png" in ran.err
    assert "en-001.png" in ran.out
    assert "bad.png" in shell.refused("analyze", "bad.png")


@pytest.mark.slow
def test_the_page_opens_and_hides_what_may_hurt(shell: Shell) -> None:
    shell.done("analyze", image_path("CN90001"), "-m", "fake/builder", "--out", "page.html")
    with launch() as browser, watch(browser) as seen:
        page = seen.page
        page.goto((shell.folder / "page.html").as_uri())
        assert page.locator(".findings .name").first.inner_text().lower() == "text"
        picture = page.locator(".picture")
        if "blurred" in (picture.get_attribute("class") or ""):
            picture.click()
        assert "blurred" not in (picture.get_attribute("class") or "")
        assert page.locator(".drawing .card").count() > 0
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        seen.assert_quiet()


def test_what_is_left_out_is_one_line_for_each_reason() -> None:
    meme = Meme("m", image_path("en-001"))
    gaps = (Missing("a", "needs --model"), Missing("b", "no text"), Missing("c", "needs --model"))
    assert Findings(meme, missing=gaps).gaps == "a, c: needs --model · b: no text"
    assert Findings(meme).gaps == ""


@pytest.mark.parametrize(("baseline", "blurred"), [(True, False), (False, True)])
def test_a_samples_verdict_blurs_nothing(baseline: bool, blurred: bool) -> None:
    harm = Harm(True, "d", 0.9, baseline=baseline)
    page = render_page([Findings(Meme("m", image_path("en-001")), harms=(harm,))])
    assert ("This image may be harmful" in page) is blurred


@pytest.mark.slow
def test_a_detector_of_another_language_gives_no_verdict(shell: Shell) -> None:
    """An English slur is not "harmless" to a detector of Chinese memes."""
    table = shell.folder / "zh.jsonl"
    texts = [meme for meme in read_samples() if meme.language == "zh"]
    lines = [json.dumps({"id": m.id, "text": m.text, "label": int(m.harm.harmful)}) for m in texts]
    table.write_text("\n".join(lines), encoding="utf-8")
    shell.done("detector", "train", "--data", table, "--preset", "ridge", "--out", "zh.zip")
    ask = ("analyze", image_path("en-012"), "--detector", "zh.zip", "--json")
    (card,) = json.loads(shell.done(*ask))
    assert card["harm"] == []
    reasons = {gap["part"]: gap["reason"] for gap in card["missing"]}
    assert "the detector was trained on zh" in reasons["harm by a detector"]
