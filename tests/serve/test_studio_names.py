"""The web pages name models without the paths of files on the server."""

from __future__ import annotations

from memantics.models.kinds import name_models


def test_a_recorded_model_has_the_name_of_its_file_or_run() -> None:
    models = (
        "recorded//srv/replies/cats.jsonl",
        "recorded/runs/intent/answers.jsonl",
        "openai/a/b",
    )
    assert name_models(models) == {
        models[0]: "recorded/cats",
        models[1]: "recorded/intent",
        models[2]: "openai/a/b",
    }


def test_two_models_with_one_short_name_are_shown_in_full() -> None:
    models = ("recorded/a/x.jsonl", "recorded/b/x.jsonl")
    assert name_models(models) == dict(zip(models, models, strict=True))
