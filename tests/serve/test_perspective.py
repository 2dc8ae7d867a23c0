"""The method AnalyzeComment of the Perspective API: documented requests, answers and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import InputError
from memantics.moderation import (
    AttributeSource,
    Classifier,
    SampleChoice,
    open_attributes,
    score_attributes,
)
from memantics.serve.settings import ServedModels, ServeSettings
from tests.commands import Shell
from tests.serve.site import Site, serving

PATH = "/v1alpha1/comments:analyze"
TEXT = "What kind of idiot name is foo? Sorry, I like your name."


def save_classifier(folder: Path) -> Path:
    table = folder / "moods.csv"
    rows = [f"{n},你真讨厌{n},angry\n{n + 50},今天真好{n},happy" for n in range(30)]
    table.write_text("id,text,mood\n" + "\n".join(rows), encoding="utf-8")
    return Classifier.train(f"{table}/mood").save(folder / "moods.zip")


def ask(site: Site, **fields: Any) -> Any:
    body = {"comment": {"text": TEXT}, "requestedAttributes": {"TOXICITY": {}}} | fields
    with site.client() as client:
        return client.post(PATH, params={"key": "any"}, json=body)


def test_the_documented_request_gets_the_documented_answer(site: Site) -> None:
    """The example of the documentation, with every field of AnalyzeComment."""
    fields = {
        "comment": {"text": TEXT, "type": "PLAIN_TEXT"},
        "context": {"entries": [{"text": "An article.", "type": "PLAIN_TEXT"}]},
        "requestedAttributes": {"TOXICITY": {"scoreType": "PROBABILITY", "scoreThreshold": 0.0}},
        "languages": ["en"],
        "spanAnnotations": True,
        "doNotStore": True,
        "clientToken": "comment-53922",
        "sessionId": "a session",
        "communityId": "/forum/movies",
    }
    answer = ask(site, **fields)
    assert answer.status_code == 200
    said = answer.json()
    assert list(said) == ["attributeScores", "languages", "detectedLanguages", "clientToken"]
    assert (said["languages"], said["clientToken"]) == (["en"], "comment-53922")
    (score,) = said["attributeScores"].values()
    assert score["summaryScore"]["type"] == "PROBABILITY"
    assert 0 < score["summaryScore"]["value"] < 1
    places = [(span["begin"], span["end"]) for span in score["spanScores"]]
    assert places == [(0, 31), (32, 56)]  # the sentences of the documentation
    assert {span["score"]["type"] for span in score["spanScores"]} == {"PROBABILITY"}
    bare = ask(site).json()
    assert bare["attributeScores"]["TOXICITY"]["summaryScore"] == score["summaryScore"]
    assert "spanScores" not in bare["attributeScores"]["TOXICITY"]
    assert "clientToken" not in bare
    assert bare["languages"] == bare["detectedLanguages"] == ["en"]


def test_a_score_below_its_threshold_is_left_out(site: Site) -> None:
    value = ask(site).json()["attributeScores"]["TOXICITY"]["summaryScore"]["value"]
    at = ask(site, requestedAttributes={"TOXICITY": {"scoreThreshold": value}}).json()
    assert at["attributeScores"]["TOXICITY"]["summaryScore"]["value"] == value
    above = ask(site, requestedAttributes={"TOXICITY": {"scoreThreshold": value + 1e-9}}).json()
    assert above == {"languages": ["en"], "detectedLanguages": ["en"]}


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"comment": {"text": " "}}, "COMMENT_EMPTY", "Comment must be non-empty."),
        ({"comment": {"text": "a" * 20_001}}, "COMMENT_TOO_LONG", "Comment text too long."),
        ({"requestedAttributes": {}}, "NO_REQUESTED_ATTRIBUTES", "Missing requested_attributes"),
        (
            {"requestedAttributes": {"TOXICITY": {}, "FLIRTATION": {}}},
            "INVALID_REQUEST",
            "Unknown requested attribute: FLIRTATION",
        ),
        (
            {"requestedAttributes": {"TOXICITY": {"scoreType": "RAW"}}},
            "INVALID_REQUEST",
            "Requested score type RAW is not supported by attribute TOXICITY",
        ),
        (
            {"comment": {"text": "<b>a</b>", "type": "HTML"}},
            "INVALID_REQUEST",
            "Currently, only 'PLAIN_TEXT' comments are supported",
        ),
        (
            {"languages": ["it", "fr"]},
            "LANGUAGE_NOT_SUPPORTED_BY_ATTRIBUTE",
            "Attribute TOXICITY does not support request languages: it, fr",
        ),
        (
            {"comment": {"text": "привет, как дела"}},
            "LANGUAGE_NOT_SUPPORTED_BY_ATTRIBUTE",
            "Attribute TOXICITY does not support request languages: ru",
        ),
        (
            {"comment": {"text": "meme.png"}},
            "INVALID_REQUEST",
            "TOXICITY: the text is the name of an image file, which was not opened",
        ),
    ],
)
def test_errors_have_the_documented_form(
    site: Site, fields: dict[str, Any], kind: str, message: str
) -> None:
    answer = ask(site, **fields)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["status"], error["message"]) == (400, "INVALID_ARGUMENT", message)
    assert error["details"][0]["errorType"] == kind


def test_attributes_that_do_not_support_the_language_can_be_dropped(site: Site) -> None:
    for fields in ({"languages": ["en", "it"]}, {"comment": {"text": "привет, как дела"}}):
        assert ask(site, **fields).status_code == 400
        said = ask(site, dropUnsupportedAttributes=True, **fields)
        assert said.status_code == 200
        assert "attributeScores" not in said.json()


def test_names_of_fields_are_read_in_either_case_and_others_are_errors(site: Site) -> None:
    snake = {"requested_attributes": {"TOXICITY": {}}, "do_not_store": True}
    with site.client() as client:
        said = client.post(PATH, json={"comment": {"text": TEXT}, **snake})
        wrong = client.post(PATH, json={"comment": {"text": TEXT}, "doNotStor": True, **snake})
        damaged = client.post(PATH, content=b"{comment: 1}")
    assert said.json() == ask(site).json()
    assert (wrong.status_code, damaged.status_code) == (400, 400)
    assert "doNotStor" in wrong.json()["error"]["message"]
    assert damaged.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_the_key_of_a_request_is_a_token(guarded: Site) -> None:
    body = {"comment": {"text": TEXT}, "requestedAttributes": {"TOXICITY": {}}}
    with guarded.client() as client:
        for key, status in (("", 401), ("wrong", 401), ("mod-secret", 400)):
            answer = client.post(PATH, params={"key": key}, json=body)
            assert answer.status_code == status
            error = answer.json()["error"]
            assert error["code"] == status
        # This service has no attributes.
        assert error["message"] == "Unknown requested attribute: TOXICITY"
        elsewhere = client.post(
            "/v1/moderations", params={"key": "mod-secret"}, json={"input": "a"}
        )
        assert elsewhere.status_code == 401


def test_a_comment_that_may_not_be_stored_is_not_in_the_sample(tmp_path: Path) -> None:
    sample = SampleChoice(folder=tmp_path / "sample", share=1.0, texts=True)
    models = ServedModels(attributes=("TOXICITY=sample",))
    settings = ServeSettings(models=models, state=tmp_path / "state", sample=sample)
    with serving(settings, tmp_path / "home") as site:
        ask(site, comment={"text": "secret comment"}, doNotStore=True)
        ask(site, comment={"text": "public comment"}, doNotStore=False)
    kept = b"".join(
        file.read_bytes() for file in (tmp_path / "sample").rglob("*") if file.is_file()
    )
    assert b"public comment" in kept
    assert b"secret comment" not in kept


def test_attributes_come_from_detectors_and_classifiers(tmp_path: Path) -> None:
    file = save_classifier(tmp_path)
    known = open_attributes([f"ANGER={file}:angry", f"JOY={file}:happy", "TOXICITY=sample"])
    assert known["ANGER"].scorer is known["JOY"].scorer
    scores = score_attributes(known, "今天天气真好", spans=known)
    assert [score.name for score in scores] == ["ANGER", "JOY", "TOXICITY"]
    assert all(score.spans for score in scores)
    assert scores[0].verdict is None
    assert scores[2].verdict is not None
    assert scores[2].probability == scores[2].verdict.probability
    (gone,) = score_attributes({"ANGER": known["ANGER"]}, "привет")
    assert (gone.probability, gone.foreign) == (None, True)


@pytest.mark.parametrize(
    "given",
    ["TOXICITY", "toxicity=sample", "TOXICITY=", "A=none.zip", "A=sample:none", "A=CLASSIFIER"],
)
def test_wrong_attributes_are_refused(given: str, tmp_path: Path) -> None:
    file = save_classifier(tmp_path)
    with pytest.raises(InputError):
        open_attributes([given.replace("CLASSIFIER", str(file))])
    with pytest.raises(InputError, match="twice"):
        open_attributes(["A=sample", "A=sample"])


def test_a_wrong_attribute_stops_the_command_before_it_serves(shell: Shell) -> None:
    done = shell.run("serve", "--attribute", "TOXICITY=none.zip", "--port", "0")
    assert done.code == 2
    assert "none.zip" in done.err
    assert json.dumps("Traceback") not in done.err


def test_the_scores_of_one_sentence_are_the_score_of_the_text() -> None:
    sources: dict[str, AttributeSource] = open_attributes(["TOXICITY=sample"])
    (score,) = score_attributes(sources, "hello idiots", spans=sources)
    (span,) = score.spans
    assert abs(span.probability - (score.probability or 0)) < 1e-6
