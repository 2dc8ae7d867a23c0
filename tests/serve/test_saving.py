"""What the studio sends to be saved, as nobody's page sends it: refused, and in no log."""

from __future__ import annotations

import json
import logging
import re
import traceback
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from pydantic import ValidationError

from memantics.core.labels import PERSON
from memantics.serve import studio
from memantics.serve.studio.routes import StudioRecord, render_record
from memantics.web import site as web_site
from memantics.web.logs import JsonLines, note_failure
from memantics.web.phrases import PageLanguage
from memantics.workbench.studio import HomophoneFound, tell_sample_meaning
from tests.serve.site import MEME, Site, data_url

SITE = web_site.Site(Path(studio.__file__).parent)
RECORD = {"name": "a", "picture": data_url(MEME.read_bytes())}
HARM = {"status": "scored", "by": "x", "sample": False, "harmful": True, "probability": 0.9}


@pytest.mark.parametrize(
    "part",
    [
        {"sound": {"status": "other", "caption": "a secret caption"}},
        {"harm": {**HARM, "probability": float("nan")}},
        {"harm": {**HARM, "characters": [{"char": "a", "share": float("inf")}]}},
    ],
)
def test_unknown_words_and_metrics_are_no_record(part: dict[str, object]) -> None:
    assert StudioRecord.model_validate({**RECORD, "harm": HARM})
    with pytest.raises(ValidationError):
        StudioRecord.model_validate_json(json.dumps({**RECORD, **part}))


@pytest.mark.slow
def test_such_a_record_gets_400_and_is_in_no_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    ours = {"x-memantics": "studio", "content-type": "application/json"}
    sound = {"status": "found", "caption": "a secret \ud800 caption"}
    with caplog.at_level(logging.INFO, "memantics.web"), site.client(**ours) as client:
        for path, sent in (
            ("/studio/page", {**RECORD, "sound": sound}),
            ("/studio/page", {**RECORD, "sound": {**sound, "status": "other"}}),
            ("/studio/page", {**RECORD, "harm": {**HARM, "probability": float("nan")}}),
            ("/studio/sound", {"text": "a secret \ud800 caption", "language": "en"}),
            ("/studio/harm", {"text": "a secret \ud800 caption", "language": "en"}),
            ("/v1/moderations", {"input": "a secret \ud800 caption"}),
            ("/v1/puns", {"caption": "a secret \ud800 caption"}),
        ):
            answer = client.post(path, content=json.dumps(sent))
            assert answer.status_code == 400, (path, answer.text)
            assert "secret" not in answer.text
        assert client.post("/studio/page", json=RECORD).status_code == 200
    assert "secret" not in "".join(JsonLines().format(record) for record in caplog.records)


def test_an_error_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    caption = "a secret caption"  # not on the line that raises: that one is logged
    try:
        raise UnicodeEncodeError("utf-8", caption, 0, 1, "no")
    except UnicodeEncodeError as error:
        with caplog.at_level(logging.ERROR, "memantics.web"):
            note_failure("failed", error, path="/x")
    line = JsonLines().format(caplog.records[-1])
    assert "secret" not in line
    assert '"error":"UnicodeEncodeError"' in line
    assert "test_saving.py" in line


def test_only_the_innermost_calls_of_an_error_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fall(depth: int) -> None:
        if not depth:
            raise ValueError("x")
        fall(depth - 1)

    with caplog.at_level(logging.ERROR, "memantics.web"):
        for depth in (0, 40):
            with pytest.raises(ValueError, match="x") as caught:
                fall(depth)
            note_failure("failed", caught.value)
    short, long = (
        sum(1 for _ in traceback.walk_tb(record.exc_info[2]))
        for record in caplog.records
        if record.exc_info
    )
    assert (short, long) == (2, 8)
    assert "raise ValueError" in json.loads(JsonLines().format(caplog.records[1]))["where"][-1]


def render(language: PageLanguage) -> str:
    """Render a saved page with marks, own captions, an emotion, and no text to read aloud."""
    marks = {"source": "compositeWithTrainedAlgorithmicMedia", "tool": "X"}
    text = {"lines": [], "text": "", "language": "zh", "panels": 1, "width": 9, "height": 9}
    feeling = {"emotion": "angry", "reason": "", "by": "m", "baseline": False}
    kinder = dict.fromkeys(("reason", "before", "after", "emotion", "target"), "")
    record = StudioRecord.model_validate(
        {
            **RECORD,
            "language": language,
            "text": {**text, "by": "OCR", "marks": marks},
            "sound": {"status": "empty", "caption": ""},
            "kinder": {**kinder, "status": "done", "picture": RECORD["picture"], "by": PERSON},
            "meanings": [{**tell_sample_meaning("CN90001").to_dict(), "feeling": feeling}],
        }
    )
    page = render_record(record, SITE.words(language))
    assert f'<html lang="{language}">' in page
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)


def test_a_saved_page_is_in_the_language_of_the_studio() -> None:
    chinese, english = render("zh"), render("en")
    for text in ("没有可分析的文字。", "含人工智能生成内容的图片", "文字：你；", "生气", ">文字<"):
        assert text in chinese, text
    for text in ("no text to analyse", "image with AI-generated parts", "your captions", ">text<"):
        assert text in english, text
        assert text not in chinese, text
    for page in (chinese, english):
        assert not re.search("compositeWith|a person|sound[.]", page)


def test_every_status_of_homophones_has_a_text() -> None:
    statuses = set(get_args(get_type_hints(HomophoneFound)["status"])) - {"found"}
    for language in web_site.LANGUAGES:
        assert {f"sound.{status}" for status in statuses} <= set(SITE.words(language).messages)
