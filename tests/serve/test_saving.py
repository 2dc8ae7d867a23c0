"""What the studio sends to be saved, as nobody's page sends it: refused, and in no log."""

from __future__ import annotations

import json
import logging
import traceback

import pytest
from pydantic import ValidationError

from memantics.serve.studio.routes import StudioRecord
from memantics.web.logs import JsonLines, note_failure
from tests.serve.site import MEME, Site, data_url

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
