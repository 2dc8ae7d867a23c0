"""One table of texts and images: every interface gives the verdicts of ``screen``."""

from __future__ import annotations

import io
import json
import types
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image

from memantics.core.samples import IMAGES
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from tests.scale.inline import InlineEngine
from tests.serve.site import MEME, Site, data_url
from tests.serve.test_stacks import ask, load_function, plugin

__all__ = ["plugin"]


def draw_blank() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(out, "PNG")
    return out.getvalue()


TEXTS = {
    "zh": "今天天气真好",
    "en": "you are all stupid and I hate every one of you",
    "pun": "压力山大",
    "ko": "너희 모두 정말 싫어",
    "empty": "   ",
    "long": "what a nice day " * 300,
}
PICTURES = {
    "meme": MEME.read_bytes(),
    "english": (IMAGES / "en-001.png").read_bytes(),
    "blank": draw_blank(),
    "broken": MEME.read_bytes()[:2000],
}
# ``label`` of what is not scored is "review" in files and null in the interfaces; the texts of
# reasons name the image, which has no name in a request.
SAME = (
    *("status", "probability", "type", "types", "caption", "matched_id", "template_cluster"),
    *("unseen_ngram_rate", "out_of_domain", "obfuscation", "detector"),
)


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("table")
    rows: list[dict[str, str]] = [{"id": key, "text": text} for key, text in TEXTS.items()]
    for key, data in PICTURES.items():
        (folder / f"{key}.png").write_bytes(data)
        rows.append({"id": key, "image": f"{key}.png"})
    lines = "\n".join(map(json.dumps, rows))
    (folder / "table.jsonl").write_text(lines, encoding="utf-8")
    settings = ScreenSettings(ocr="thorough")  # as the service reads images
    screen([folder / "table.jsonl"], settings, out=folder / "out", engine=InlineEngine())
    found = {str(row["id"]): row for row in read_rows(folder / "out")}
    assert found.keys() == {**TEXTS, **PICTURES}.keys()
    return found


def check(screened: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> None:
    assert found.keys() <= screened.keys()
    for key, verdict in found.items():
        row = screened[key]
        assert {n: verdict[n] for n in SAME} == {n: row[n] for n in SAME}, key
        assert verdict["label"] == (row["label"] if row["status"] == "scored" else None), key


def test_the_table_has_every_status(screened: dict[str, dict[str, Any]]) -> None:
    assert {row["status"] for row in screened.values()} == {"scored", "not_scored", "failed"}
    assert {screened[key]["status"] for key in ("en", "zh", "meme", "english")} == {"scored"}


def test_moderations(site: Site, screened: dict[str, dict[str, Any]]) -> None:
    found = {}
    with site.client() as client:
        for key in screened:
            given: Any = TEXTS.get(key)
            if key in PICTURES:
                url = {"url": data_url(PICTURES[key])}
                given = [{"type": "image_url", "image_url": url}]
            answer = client.post("/v1/moderations", json={"input": given})
            assert answer.status_code == 200, answer.text
            (result,) = answer.json()["results"]
            (found[key],) = result["verdicts"]
            assert result["flagged"] == bool(
                found[key]["review"] or found[key]["label"] != "harmless"
            )
    check(screened, found)


def test_perspective(site: Site, screened: dict[str, dict[str, Any]]) -> None:
    with site.client() as client:
        for key, text in TEXTS.items():
            body = {"comment": {"text": text}, "requestedAttributes": {"TOXICITY": {}}}
            answer = client.post("/v1alpha1/comments:analyze", json=body)
            row = screened[key]
            if row["status"] != "scored":
                assert answer.status_code == 400, key
                continue
            score = answer.json()["attributeScores"]["TOXICITY"]["summaryScore"]
            assert score == {"value": row["probability"], "type": "PROBABILITY"}, key


def test_agents(site: Site, screened: dict[str, dict[str, Any]]) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from mcp import Client

    from memantics.serve.agents import build_agent_server

    async def talk() -> None:
        async with Client(build_agent_server(site.service, IMAGES)) as client:
            for given in (
                {"texts": list(TEXTS.values())},
                {"images": [*map(data_url, PICTURES.values())]},
            ):
                said = await client.call_tool("moderate", given)
                assert said.structured_content is not None
                keys = TEXTS if "texts" in given else PICTURES
                check(screened, dict(zip(keys, said.structured_content["verdicts"], strict=True)))

    anyio.run(talk)


def test_osprey(
    site: Site, screened: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = load_function(monkeypatch).MemanticsHarm()
    monkeypatch.setenv("MEMANTICS_URL", site.address)
    for key, text in TEXTS.items():
        asked = types.SimpleNamespace(text=text)
        if screened[key]["status"] == "scored":
            assert float(function.execute(object(), asked)) == screened[key]["probability"], key
        else:
            with pytest.raises(ValueError, match="not scored"):
                function.execute(object(), asked)


@pytest.mark.slow
def test_coop(plugin: Path, site: Site, screened: dict[str, dict[str, Any]]) -> None:
    for key, row in screened.items():
        value: dict[str, object] = {"type": "STRING", "value": TEXTS.get(key)}
        if key in PICTURES:
            value = {"type": "IMAGE", "value": {"url": data_url(PICTURES[key])}}
        result = ask(plugin, site, {"orgId": "org-1", "value": value})[0]
        if row["status"] == "scored":
            assert result["score"] == row["probability"], key
        else:
            assert "score" not in result, key
            assert result["error"], key
