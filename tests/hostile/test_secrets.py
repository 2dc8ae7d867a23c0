"""Keys are masked wherever anything is written, also where an address or a reply holds them."""

from __future__ import annotations

import asyncio
import json
import logging
import tarfile
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue

from memantics.core.files import AppendOnlyFile, replace_file, whole_file
from memantics.core.records import Reply
from memantics.core.samples import IMAGES
from memantics.models.cache import Cache
from memantics.models.openai import OpenAIModel, OpenAISettings
from memantics.models.wire import WireSettings
from memantics.moderation.scale.records import ShardRow
from memantics.moderation.screen import ArchiveFormat, FlaggedMeme, write_samples
from memantics.web.logs import JsonLines
from tests.engine.toy import toy_request

KEY, ASKED, SENT, NESTED = "sk-header-1234", 'query/"key"+ 5678', "param-key-9012", "head-key-3456"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> OpenAIModel:
    monkeypatch.setenv("OTHER_API_KEY", "environment-7890")
    from urllib.parse import quote

    extra: dict[str, JsonValue] = {
        "api_key": SENT,
        "extra_headers": {"Authorization": NESTED},
        "stop": "an honest word",
    }
    address = f"http://localhost:8000/v1?api_key={quote(ASKED, safe='')}&version=2026-01-01-x"
    return OpenAIModel("m", address, KEY, OpenAISettings(WireSettings(extra=extra)))


def holds_none(text: str) -> bool:
    return not any(
        word in text for word in ("sk-header", "5678", "param-key", "head-key", "environment-7")
    )


def test_the_identity_of_a_model_holds_no_key(model: OpenAIModel) -> None:
    shown = json.dumps(model.identity) + repr(model)
    assert holds_none(shown)
    assert "an honest word" in shown
    assert "version=2026-01-01-x" in shown


@pytest.mark.usefixtures("model")
def test_what_a_reply_echoes_is_masked_where_it_is_written(tmp_path: Path) -> None:
    said = f"my keys: {KEY} {ASKED} {SENT} {NESTED} environment-7890, an honest word"
    line = json.dumps({"text": said}).encode() + b"\n"
    call_log = AppendOnlyFile(tmp_path / "answers.jsonl", "answers")
    call_log.append(line)
    call_log.close()
    replace_file(tmp_path / "run.json", line)
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put(b"0" * 32, Reply(said))
    cache.flush()
    found = cache.get(b"0" * 32)
    cache.close()
    assert found is not None
    written = [found.text, (tmp_path / "run.json").read_text()]
    written.append((tmp_path / "answers.jsonl").read_text())
    for text in written:
        assert holds_none(text)
        assert "an honest word" in text
        assert text.count("***") == 5
    for path in (tmp_path / "answers.jsonl", tmp_path / "run.json"):
        assert json.loads(path.read_text())["text"].startswith("my keys: ***")


@pytest.mark.usefixtures("model")
def test_logs_hold_no_key() -> None:
    record = logging.LogRecord("memantics.web", logging.INFO, "", 0, f"asked {KEY}", (), None)
    assert holds_none(JsonLines().format(record))


def test_a_word_is_no_secret(tmp_path: Path) -> None:
    OpenAIModel("m", "http://localhost:8000/v1", "EMPTY12")
    replace_file(tmp_path / "a", b"EMPTY12")
    assert (tmp_path / "a").read_bytes() == b"EMPTY12"
    OpenAIModel("m", "http://localhost:8000/v1", "EMPTY123")
    replace_file(tmp_path / "a", b"EMPTY123")
    assert (tmp_path / "a").read_bytes() == b"***"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("form", ["webdataset", "imagefolder"])
def test_files_that_are_written_piece_by_piece_are_masked(
    tmp_path: Path, form: ArchiveFormat
) -> None:
    said = f"my keys: {KEY} {ASKED} {SENT} {NESTED} environment-7890, an honest word"
    image = sorted(IMAGES.glob("*.png"))[0].read_bytes()
    facts: ShardRow = {"id": "a", "text": said}
    write_samples(tmp_path / "out", [FlaggedMeme(facts, image), FlaggedMeme(facts, image)], form)
    with whole_file(tmp_path / "out" / "more.jsonl") as file:
        line = orjson.dumps({"text": said}) + b"\n"
        assert file.write(line) == len(line)
    written = b""
    for path in (tmp_path / "out").rglob("*"):
        if path.suffix == ".tar":
            with tarfile.open(path) as archive:
                for member in archive:
                    body = archive.extractfile(member)
                    assert body is not None
                    written += body.read()
        elif path.is_file():
            written += path.read_bytes()
    assert holds_none(written.decode("latin-1"))
    assert written.count(image) == 2
    assert written.count(b"***") == 5 * (5 if form == "webdataset" else 3)


def test_a_reply_that_echoes_the_key_never_comes_in() -> None:
    """What is shown, sent on or kept later holds no key, whoever writes it."""

    async def echo(request: web.Request) -> web.Response:
        said = request.headers["authorization"]
        return web.json_response({"choices": [{"message": {"content": f"you sent {said}"}}]})

    async def scenario() -> str:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", echo)
        async with TestServer(app) as server:
            opened = OpenAIModel("m", str(server.make_url("/v1")), KEY)
            try:
                return (await opened.answer(toy_request())).text
            finally:
                await opened.close()

    assert asyncio.run(scenario()) == "you sent Bearer ***"
