"""Detectors behind the service: several by language, swapped while it runs, one in the shadow."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from perf.serve import press_and_reload

from memantics.cli import serve as cli
from memantics.moderation.detect import Detector
from memantics.moderation.drift import SampleChoice, read_sample
from memantics.moderation.examples import Example
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.storage import load_with_card, save
from memantics.moderation.training import set_point
from memantics.serve.settings import Intake, ServedModels, ServeSettings
from tests.scale.inline import InlineEngine
from tests.serve.site import Site, serving

TEXTS = {
    "en": (
        ("what a lovely day it is", "we eat at home with friends"),
        ("you are all so stupid", "i hate every one of you"),
    ),
    "zh": (("今天天气真好", "我们一起去吃饭"), ("你这个笨蛋滚开", "讨厌的人都去死吧")),
}


def train(language: str, file: Path) -> Path:
    draw = random.Random(3)
    examples = [
        Example(str(n), f"{draw.choice(own)} {draw.choice(own)}", label=label)
        for n in range(40)
        for label, own in enumerate(TEXTS[language])
    ]
    return Detector.train(examples, "words" if language == "en" else "ridge").save(file)


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train("en", tmp_path_factory.mktemp("en") / "en.zip")


@pytest.fixture(scope="module")
def strict(english: Path) -> Path:
    """The same detector, to which everything is harmful."""
    made, card = load_with_card(english)
    file = english.parent / "strict.zip"
    save(replace(made, decision=replace(made.decision, threshold=0.0)), file, card)
    return file


@pytest.fixture(scope="module")
def site(
    english: Path, strict: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, Path]]:
    folder = tmp_path_factory.mktemp("served")
    live = Path(shutil.copy(english, folder / "live.zip"))
    chinese = train("zh", folder / "zh.zip")
    models = ServedModels(detector=live, others=(chinese,), shadow=strict)
    with serving(ServeSettings(models=models, state=folder / "state"), folder / "home") as made:
        yield made, live


def ask(site: Site, *texts: str) -> list[dict[str, Any]]:
    answer = httpx2.post(f"{site.address}/v1/moderations", json={"input": list(texts)}, timeout=60)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def read_metrics(site: Site) -> str:
    return httpx2.get(f"{site.address}/metrics", timeout=60).text


@pytest.mark.slow
def test_each_language_has_its_detector_and_a_mixed_text_both(site: tuple[Site, Path]) -> None:
    cruel, chinese, mixed, foreign = ask(
        site[0],
        TEXTS["en"][1][0],
        TEXTS["zh"][1][0],
        f"{TEXTS['en'][0][0]}\n{TEXTS['zh'][1][0]}",
        "Das Wetter ist heute wieder schlecht",
    )
    assert [own["flagged"] for own in (cruel, chinese, mixed)] == [True] * 3
    assert cruel["verdicts"][0]["detector"].startswith("live.zip@")
    assert chinese["verdicts"][0]["detector"].startswith("zh.zip@")
    assert mixed["verdicts"][0]["detector"].startswith("zh.zip@")
    # No type is told: harm fills OpenAI's widest category.
    assert cruel["categories"]["harassment"] is True
    assert cruel["category_scores"]["harassment"] == cruel["category_scores"]["harmful"]
    # German has the script of English: it is scored, and the doubt about its language is a reason
    # for review.
    assert (foreign["status"], foreign["flagged"]) == ("scored", True)
    (verdict,) = foreign["verdicts"]
    assert verdict["detector"].startswith("live.zip@")
    assert verdict["label"] == "harmful" or "may be in de" in verdict["review"]


def test_metrics_are_kept_by_detector_and_the_shadow_is_compared(site: tuple[Site, Path]) -> None:
    ask(site[0], TEXTS["en"][0][0])  # harmless to the one, harmful to the other
    wanted = 'memantics_shadow_total{agree="false",said="harmless",shadow="harmful"}'
    until = time.monotonic() + 30
    while wanted not in (shown := read_metrics(site[0])) and time.monotonic() < until:
        time.sleep(0.1)
    assert wanted in shown
    assert 'memantics_score_bucket{detector="live.zip@' in shown
    assert 'memantics_detector_verdicts_total{detector="live.zip@' in shown


@pytest.mark.slow
def test_verdicts_of_a_day_are_kept_for_drift(english: Path, tmp_path: Path) -> None:
    choice = SampleChoice(folder=tmp_path / "days", share=1)
    settings = ServeSettings(
        models=ServedModels(detector=english), state=tmp_path / "s", sample=choice
    )
    with serving(settings, tmp_path / "home") as site:
        flagged = [own["flagged"] for own in ask(site, *TEXTS["en"][0], *TEXTS["en"][1])]
        (day,) = (tmp_path / "days").iterdir()
        rows = list(read_sample(day))
        assert [row["label"] == "harmful" for row in rows] == flagged
        assert {row["text"] for row in rows} == {""}
        assert {row["language"] for row in rows} == {"en"}
        # What cannot be written ends no request.
        shutil.rmtree(tmp_path / "days")
        (tmp_path / "days").write_text("in the way")
        assert ask(site, TEXTS["en"][1][0])[0]["flagged"] is True


@pytest.mark.slow
def test_a_detector_is_swapped_under_load_and_no_request_is_dropped(
    site: tuple[Site, Path], english: Path, strict: Path
) -> None:
    served, live = site
    text, statuses, seen, stop = TEXTS["en"][0][0], [], set(), threading.Event()

    def load() -> None:
        with httpx2.Client(timeout=60) as client:
            while not stop.is_set():
                answer = client.post(f"{served.address}/v1/moderations", json={"input": text})
                statuses.append(answer.status_code)
                seen.add(answer.json()["results"][0]["flagged"])

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for file in (strict, english, strict, english):
        shutil.copy(file, live)
        answer = httpx2.post(f"{served.address}/v1/detectors/reload", timeout=60)
        assert answer.status_code == 200
        assert answer.json()["detector"].startswith("live.zip@")
        assert ask(served, text)[0]["flagged"] is (file == strict)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(statuses) > 20
    assert set(statuses) == {200}
    assert seen == {True, False}
    # What cannot be opened changes nothing.
    live.write_bytes(b"no detector")
    assert httpx2.post(f"{served.address}/v1/detectors/reload", timeout=60).status_code == 422
    assert ask(served, text)[0]["flagged"] is False
    shutil.copy(english, live)


@pytest.mark.slow
def test_two_hundred_requests_a_second_lose_none_to_reloads(
    english: Path, strict: Path, tmp_path: Path
) -> None:
    """Requests start on time, whether or not earlier ones were answered."""
    live = Path(shutil.copy(english, tmp_path / "live.zip"))
    # Room for all: what a slow machine refuses with 429 is no loss to a reload.
    bounds = Intake(waiting=5000, deadline=120)
    settings = ServeSettings(
        models=ServedModels(detector=live), bounds=bounds, state=tmp_path / "state"
    )
    with serving(settings, tmp_path / "home") as site:
        swaps = [strict, english] * 3
        pressing = press_and_reload(site.address, live, swaps, 6.0, TEXTS["en"][1])
        found = asyncio.run(pressing)
    assert found.sent == 1200
    assert found.statuses == {"200": 1200}
    assert found.reloads == {"200": 6}


@pytest.mark.slow
def test_the_official_client_gets_the_verdicts_of_screen(english: Path, tmp_path: Path) -> None:
    """A thousand texts by a stored operating point, whose three outcomes all occur."""
    draw = random.Random(5)
    words = " ".join(text for group in TEXTS["en"] for text in group).split()
    texts = [" ".join(draw.choices(words, k=draw.randrange(3, 9))) for _ in range(1000)]
    source = tmp_path / "texts.jsonl"
    rows = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    source.write_text("\n".join(rows), encoding="utf-8")
    live = Path(shutil.copy(english, tmp_path / "live.zip"))
    chances = [said.probability for said in Detector.load(live).predict(texts)]
    low, high = statistics.quantiles(chances, n=3)
    set_point(live, threshold=high, review_range=(low, (low + high) / 2))
    settings = ScreenSettings(detector=live, readings="none")
    screen(source, settings, out=tmp_path / "out", engine=InlineEngine())
    expected = [
        (row["status"], row["label"], row["probability"]) for row in read_rows(tmp_path / "out")
    ]
    found = []
    models = ServedModels(detector=live)
    with (
        serving(ServeSettings(models=models, state=tmp_path / "s"), tmp_path / "home") as site,
        openai.OpenAI(base_url=f"{site.address}/v1", api_key="none", timeout=120) as client,
    ):
        for start in range(0, 1000, 50):
            for result in client.moderations.create(input=texts[start : start + 50]).results:
                extra: dict[str, Any] = result.model_extra or {}
                (verdict,) = extra["verdicts"]
                label = "review" if verdict["review"] else verdict["label"]
                found.append((extra["status"], label, verdict["probability"]))
                assert result.flagged == (label != "harmless")
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert {row[1] for row in found} >= {"harmless", "harmful", "review"}
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected])


@pytest.mark.parametrize("default", [None, Path("mine.zip")])
def test_the_start_names_the_sample_detector_only_if_it_is_used(
    default: Path | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``detector use FILE`` sets the detector of a service that names none."""
    monkeypatch.setattr(cli, "find_detector", lambda given: given or default)
    cli._show_start(ServeSettings())
    assert ("sample detector" in capsys.readouterr().out) == (default is None)
