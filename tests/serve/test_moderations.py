"""Moderation as the official client of OpenAI asks for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import openai
import pytest

from memantics.core.samples import DETECTOR_FILE, read_samples
from memantics.moderation.detect import Detector
from memantics.moderation.training import set_point
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.moderation.verdict import Verdict
from memantics.serve.moderations import _sum_up
from memantics.serve.settings import ServedModels, ServeSettings
from tests.hostile.images import picture, save
from tests.serve.site import MEME, Site, data_url, serving

HARMLESS = "今天天气真好"


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{site.address}/v1", api_key="none", max_retries=0, timeout=120
    ) as made:
        yield made


def find_harmful() -> str:
    """A text that the sample data calls harmful, and its detector too."""
    texts = [meme.text for meme in read_samples() if meme.harm.harmful and meme.language == "zh"]
    said = Detector.load_sample().predict(texts)
    return next(text for text, one in zip(texts, said, strict=True) if one.label == 1)


def test_texts_get_the_detectors_verdicts_in_their_order(client: openai.OpenAI) -> None:
    harmful = find_harmful()
    said = client.moderations.create(input=[HARMLESS, harmful])
    assert [result.flagged for result in said.results] == [False, True]
    one, two = Detector.load_sample().predict([HARMLESS, harmful])
    for result, own in zip(said.results, (one, two), strict=True):
        scores = result.category_scores.model_extra or {}
        assert scores["harmful"] == pytest.approx(own.probability)
        assert scores["targeted"] == pytest.approx(own.types["targeted"])
        assert result.category_scores.hate == pytest.approx(own.types["targeted"])
        assert result.category_scores.harassment == pytest.approx(own.types["offence"])
    flags: dict[str, Any] = said.results[1].categories.model_extra or {}
    assert flags["harmful"] is True
    assert flags[str(two.type)] is True
    assert said.model.startswith("sample@")
    assert "for demonstration only" in str((said.model_extra or {})["note"])


def test_a_text_unlike_the_training_texts_asks_for_a_person() -> None:
    near = Verdict(status="scored", detector="a", label="harmless", probability=0.1)
    far = replace(near, out_of_domain=True, review=OUTSIDE_NOTE)
    empty = "the text is empty"
    not_scored = Verdict(status="not_scored", detector="a", reason=empty, review=empty)
    found = _sum_up([("text", near), ("text", far), ("text", far), ("text", not_scored)])
    assert found["reason"] == f"{OUTSIDE_NOTE}; the text is empty"
    assert (found["flagged"], found["status"]) == (True, "partly scored")
    assert [_sum_up([("text", one)])["flagged"] for one in (near, far, not_scored)] == [
        False,
        True,
        True,
    ]
    assert _sum_up([("text", near)])["reason"] == ""
    assert _sum_up([("text", far)])["status"] == "scored"


def test_one_text_is_one_result_and_categories_we_cannot_tell_say_so(
    client: openai.OpenAI,
) -> None:
    (result,) = client.moderations.create(input=HARMLESS, model="omni-moderation-latest").results
    dated = client.moderations.create(input=HARMLESS, model="omni-moderation-2024-09-26").results
    assert dated[0].category_scores == result.category_scores
    assert result.categories.violence is False
    assert result.category_scores.violence == 0.0
    assert result.category_applied_input_types.violence == []
    assert result.category_applied_input_types.hate == ["text"]
    assert (result.model_extra or {})["status"] == "scored"


def test_an_image_is_read_and_judged(client: openai.OpenAI) -> None:
    url = data_url(MEME.read_bytes())
    parts: list[Any] = [
        {"type": "text", "text": "다른 언어로 된 글"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    (result,) = client.moderations.create(input=parts).results
    own = Detector.load_sample().predict(["最近有点键忘"])[0]
    extra = result.model_extra or {}
    assert (result.category_scores.model_extra or {})["harmful"] == pytest.approx(own.probability)
    assert result.category_applied_input_types.hate == ["image"]
    # The Korean text was not judged, and the result does not hide it.
    assert extra["status"] == "partly scored"
    assert extra["reason"].startswith("the text is in ko, a script without training texts")
    assert [verdict["status"] for verdict in extra["verdicts"]] == ["not_scored", "scored"]
    # Marks of the drawing are read by some processors; they are no part of the caption.
    assert extra["verdicts"][1]["caption"] == "最近有点键忘"
    assert extra["verdicts"][1]["text"].splitlines()[-1] == "最近有点键忘"


@pytest.mark.parametrize(
    ("given", "reason"),
    [("   ", "the text is empty"), ("おはようございます", "trained on en, zh")],
)
def test_what_cannot_be_judged_is_not_called_harmless(
    client: openai.OpenAI, given: str, reason: str
) -> None:
    (result,) = client.moderations.create(input=given).results
    extra = result.model_extra or {}
    assert extra["status"] == "not_scored"
    assert reason in extra["reason"]
    assert extra["verdicts"][0]["label"] is None
    assert (result.category_applied_input_types.model_extra or {})["harmful"] == []


def test_an_image_without_text_is_not_scored_and_a_broken_one_failed(
    client: openai.OpenAI,
) -> None:
    from PIL import Image

    blank = save(Image.new("RGB", (64, 64), "white"), "PNG")
    whole = save(picture(), "PNG")
    parts: list[Any] = [
        {"type": "image_url", "image_url": {"url": data_url(data)}}
        for data in (blank, whole[: len(whole) // 2])
    ]
    (result,) = client.moderations.create(input=parts).results
    extra = result.model_extra or {}
    assert extra["status"] == "failed"
    assert [verdict["status"] for verdict in extra["verdicts"]] == ["not_scored", "failed"]
    assert "truncated" in extra["reason"]
    assert result.flagged is True
    assert (result.categories.model_extra or {})["review"] is True


def test_models_are_listed_and_unknown_ones_refused(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert client.moderations.create(input=HARMLESS, model=names[0]).model == names[0]
    with pytest.raises(openai.NotFoundError) as refused:
        client.moderations.create(input=HARMLESS, model="gpt-x")
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"input": []}, 400),
        ({}, 400),
        ({"input": [{"type": "image_url", "image_url": {"url": "data:image/png,xx"}}]}, 422),
        ({"input": [{"type": "image_url", "image_url": {"url": "%%%"}}]}, 422),
        ({"input": [{"type": "audio", "audio": "x"}]}, 400),
        ({"input": "x" * 20_001}, 400),
        ({"input": ["x"] * 65}, 400),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(site: Site, body: object, status: int) -> None:
    with site.client() as client:
        answer = client.post("/v1/moderations", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_the_largest_request_is_taken(site: Site) -> None:
    with site.client() as client:
        texts = client.post("/v1/moderations", json={"input": ["好"] * 64})
        long = client.post("/v1/moderations", json={"input": "好" * 20_000})
    assert (texts.status_code, len(texts.json()["results"])) == (200, 64)
    assert long.status_code == 200


def test_a_detector_shows_its_operating_point_and_expected_counts(tmp_path: Path) -> None:
    file = tmp_path / "d.zip"
    shutil.copy(DETECTOR_FILE, file)
    settings = ServeSettings(models=ServedModels(detector=file), state=tmp_path / "state")
    with serving(settings, tmp_path / "home") as site, site.client() as client:
        (trained,) = client.get("/v1/detectors").json()["data"]
        assert (trained["rule"], trained["review_band"], trained["date"]) == ("", None, "")
        assert trained["sample"] is True
    set_point(file, operating_point="cost=miss:10,false_positive:1,review:0.2")
    with serving(settings, tmp_path / "home") as site, site.client() as client:
        (stored,) = client.get("/v1/detectors").json()["data"]
    assert stored["rule"].startswith("cost=")
    assert stored["date"] == date.today().isoformat()
    rates = [stored["expected"][name]["value"] for name in ("allowed", "reviewed", "blocked")]
    assert sum(rates) == pytest.approx(1)
    assert stored["expected"]["memes"] == 79
