"""The interface of hasher-matcher-actioner: hashes, lookups and banks over the match list."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from memantics.core.samples import DETECTOR_FILE
from memantics.moderation import add_to_match_list, read_match_list
from memantics.serve.settings import Intake, ServedModels, ServeSettings, Token, digest
from tests.commands import Shell
from tests.serve.clients import find_python
from tests.serve.site import Site, serving

TOKENS = (
    Token("mod", digest("mod-secret"), ("moderate",)),
    Token("lead", digest("lead-secret"), ("moderate", "banks")),
)
FONT = ImageFont.load_default(40)


def draw_template(caption: str) -> Image.Image:
    """A gradient with shapes, so that PDQ has enough structure, and a caption below."""
    image = Image.linear_gradient("L").resize((640, 480)).convert("RGB")
    pen = ImageDraw.Draw(image)
    for place in range(0, 600, 60):
        pen.ellipse((place, (place * 7) % 300, place + 90, (place * 7) % 300 + 70), fill="black")
        pen.rectangle((place, (place * 3) % 280, place + 20, (place * 3) % 280 + 50), fill="white")
    pen.rectangle((0, 400, 640, 480), fill="white")
    pen.text((20, 415), caption, fill="black", font=FONT)
    return image


def encode(image: Image.Image, **options: Any) -> bytes:
    body = io.BytesIO()
    image.save(body, **({"format": "PNG"} | options))
    return body.getvalue()


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("listed")
    file = Path(shutil.copy(DETECTOR_FILE, folder / "detector.zip"))
    (folder / "known.png").write_bytes(encode(draw_template("MONDAY AGAIN")))
    add_to_match_list(file, [str(folder / "known.png")], label="harmful", reason="a test")
    return file


@pytest.fixture(scope="module")
def banks(detector: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("banks")
    settings = ServeSettings(
        models=ServedModels(detector=detector),
        bounds=Intake(deadline=120, bank_writes=True),
        tokens=TOKENS,
        state=folder / "state",
    )
    with serving(settings, folder / "home") as made:
        yield made


def look_up(site: Site, data: bytes, path: str = "/m/lookup") -> Any:
    with site.client("mod-secret") as client:
        answer = client.post(path, files={"photo": ("a.png", data)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_photo_has_the_hashes_of_the_list(banks: Site, detector: Path) -> None:
    (entry,) = read_match_list(detector)
    hashes = look_up(banks, encode(draw_template("MONDAY AGAIN")), "/h/hash")
    assert hashes == {"pdq": entry.pdq, "phash": entry.phash, "sha256": entry.sha256}
    assert len(entry.pdq) == 64


def test_a_hash_is_looked_up_with_its_distance(banks: Site, detector: Path) -> None:
    (entry,) = read_match_list(detector)
    near = f"{int(entry.pdq, 16) ^ (2**31 - 1):064x}"  # 31 bits apart
    far = f"{int(entry.pdq, 16) ^ (2**32 - 1):064x}"
    with banks.client("mod-secret") as client:
        for signal, count in ((entry.pdq, "0"), (near, "31"), (far, None)):
            given = {"signal_type": "pdq", "signal": signal}
            said = client.get("/m/lookup", params=given).json()
            raw = client.get("/m/raw_lookup", params=given | {"include_distance": "true"}).json()
            if count is None:
                assert (said, raw) == ({}, {"matches": []})
                continue
            (match,) = said["HARMFUL"]
            assert match["distance"] == count
            assert isinstance(match["bank_content_id"], int)
            assert raw["matches"] == [{"content_id": match["bank_content_id"], "distance": count}]
        other = client.get("/m/lookup", params=given | {"signal": entry.pdq, "text": "Good day"})
    assert other.json() == {}


@pytest.mark.slow
def test_a_copy_matches_and_another_text_on_the_template_does_not(banks: Site) -> None:
    copy = look_up(banks, encode(draw_template("MONDAY AGAIN"), format="JPEG", quality=60))
    assert [match["distance"] for match in copy["phash"]["HARMFUL"]]
    assert copy["pdq"]["HARMFUL"]
    assert copy["sha256"] == {}
    path = "/m/lookup?templates=true"
    sibling = look_up(banks, encode(draw_template("LUNCH IS READY")), path)
    assert sibling["pdq"] == sibling["phash"] == sibling["sha256"] == {}
    (other,) = sibling["template"]["HARMFUL"]
    assert other["bank_content_id"] == copy["pdq"]["HARMFUL"][0]["bank_content_id"]


def test_a_verdict_names_the_template_and_does_not_follow_it(banks: Site) -> None:
    from tests.serve.site import data_url

    body = [
        {"type": "image_url", "image_url": {"url": data_url(encode(draw_template(text)))}}
        for text in ("MONDAY AGAIN", "LUNCH IS READY")
    ]
    with banks.client("mod-secret") as client:
        result = client.post("/v1/moderations", json={"input": body}).json()["results"][0]
    copy, sibling = result["verdicts"]
    assert (copy["label"], bool(copy["matched_id"])) == ("harmful", True)
    assert (sibling["label"], sibling["matched_id"]) == ("harmless", "")
    assert sibling["match_reason"] == f"same template, other text: {copy['matched_id']}"


def test_banks_are_read_and_changed(banks: Site, detector: Path) -> None:
    image = encode(Image.effect_noise((256, 256), 90).convert("RGB"))
    signal = {"pdq": "f0" * 32}
    with banks.client("lead-secret") as client:
        names = [bank["name"] for bank in client.get("/c/banks").json()]
        assert names == ["HARMFUL", "HARMLESS"]
        assert client.get("/c/bank/HARMFUL").json()["matching_enabled_ratio"] == 1
        assert client.get("/c/bank/NONE").status_code == 404
        added = client.post("/c/bank/HARMLESS/content", files={"photo": ("a.png", image)}).json()
        assert set(added["signals"]) == {"pdq", "phash", "sha256"}
        hashed = client.post("/c/bank/HARMFUL/signal", json=signal).json()
        assert hashed["signals"] == signal
        found = client.get("/m/lookup", params={"signal_type": "pdq", "signal": "F0" * 32}).json()
        assert found == {"HARMFUL": [{"bank_content_id": hashed["id"], "distance": "0"}]}
        wrong = client.delete(f"/c/bank/HARMLESS/content/{hashed['id']}")
        assert wrong.json() == {"deleted": 0}
        for bank, made in (("HARMFUL", hashed), ("HARMLESS", added)):
            assert client.delete(f"/c/bank/{bank}/content/{made['id']}").json() == {"deleted": 1}
    assert len(read_match_list(detector)) == 1


def test_rights_and_errors_have_the_form_of_the_interface(banks: Site, site: Site) -> None:
    with banks.client("mod-secret") as client:
        refused = client.post("/c/bank/HARMFUL/signal", json={"pdq": "f0" * 32})
        assert (refused.status_code, list(refused.json())) == (403, ["message"])
        for given in ({}, {"signal_type": "pdq"}, {"signal_type": "md5", "signal": "ab"}):
            answer = client.get("/m/lookup", params=given)
            assert answer.status_code in (400, 422)
            assert answer.json()["message"]
    with banks.client() as client:
        for path in ("/h/hash", "/m/lookup", "/m/raw_lookup", "/c/banks", "/c/bank/HARMFUL"):
            assert client.get(path).status_code == 401
    with site.client() as client:  # the sample detector has no list, and banks are read-only
        assert client.get("/c/banks").json() == []
        assert client.get("/m/lookup?signal_type=pdq&signal=" + "0" * 64).status_code == 404
        refused = client.post("/c/bank/HARMFUL/signal", json={"pdq": "f0" * 32})
        assert "--bank-writes" in refused.json()["message"]


def test_lists_of_threatexchange_are_read_and_written(tmp_path: Path, shell: Shell) -> None:
    detector = shutil.copy(DETECTOR_FILE, tmp_path / "detector.zip")
    lines = tmp_path / "list.txt"
    lines.write_text(f"pdq {'ab' * 32}\nvideo_md5 {'0' * 32}\npdq {'cd' * 32}\n", "utf-8")
    assert "imported: 2" in shell.done("match-list", "import", detector, lines)
    table = tmp_path / "list.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "indicator", "type", "tags"))
        rows.writerows([("7", "ef" * 32, "HASH_PDQ", ""), ("8", "0" * 32, "HASH_MD5", "")])
    assert "imported: 1" in shell.done("match-list", "import", detector, table)
    out = tmp_path / "out.txt"
    words = ("match-list", "export", detector, "--out", out, "--format", "threatexchange")
    assert "3 hashes" in shell.done(*words)
    written = sorted(out.read_text("utf-8").splitlines())
    assert written == [f"pdq {sign * 32}" for sign in ("ab", "cd", "ef")]


MATCH = """
import json, sys
from pathlib import Path
from threatexchange.exchanges.impl.file_api import (
    FileCollaborationConfig, LocalFileSignalExchangeAPI,
)
from threatexchange.signal_type.pdq.signal import PdqSignal
config = FileCollaborationConfig(name="a", api="local_file", enabled=True, filename=sys.argv[1])
updates = next(LocalFileSignalExchangeAPI(config).fetch_iter([PdqSignal], None)).updates
index = PdqSignal.get_index_cls().build([(signal, signal) for _, signal in updates])
photo = PdqSignal.hash_from_bytes(Path(sys.argv[2]).read_bytes())
print(json.dumps([photo, [match.metadata for match in index.query(photo)]]))
"""


@pytest.mark.slow
def test_the_threatexchange_package_matches_an_exported_list(
    banks: Site, detector: Path, tmp_path: Path, shell: Shell
) -> None:
    """Meta's own package computes the same PDQ hash, reads our list and finds the copy in it."""
    import json

    python = find_python("threatexchange")
    out, image = tmp_path / "out.txt", tmp_path / "copy.jpg"
    shell.done("match-list", "export", detector, "--out", out, "--format", "threatexchange")
    image.write_bytes(encode(draw_template("MONDAY AGAIN"), format="JPEG", quality=60))
    done = subprocess.run(
        [python, "-c", MATCH, out, image], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    hashed, found = json.loads(done.stdout)
    (entry,) = read_match_list(detector)
    assert look_up(banks, image.read_bytes(), "/h/hash")["pdq"] == hashed
    assert found == [entry.pdq]
