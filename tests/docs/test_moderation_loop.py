"""The guide to the moderation loop, with three simulated people in the real app."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from memantics.annotation.service import AnnotationService
from memantics.moderation.detect import Detector
from memantics.moderation.screening import read_rows
from memantics.serve.settings import ServedModels, ServeSettings
from tests.annotation.web.visitors import Office, Visitor, make_office, open_quick
from tests.commands import Shell
from tests.places import ROOT
from tests.serve.site import serving

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "tutorials" / "moderate-a-forum.md").read_text(encoding="utf-8")
BITTER = ("turnip", "sprout", "radish", "leek", "gherkin", "kale")
FRENCH = "concombres"


def commands() -> Iterator[list[str]]:
    for block in re.findall(r"```(?:console|sh)\n(.*?)```", PAGE, flags=re.DOTALL):
        for line in block.splitlines():
            yield shlex.split(line.removeprefix("$ "))


@pytest.fixture
def client(tmp_path: Path) -> Shell:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return Shell(tmp_path)


def answer(page: str, person: int) -> dict[str, str]:
    """Careful people; the third is unsure of what is new, all of what they cannot read."""
    assert "Reason" in page
    assert "probability" not in page
    said = "yes" if any(word in page for word in BITTER) else "no"
    if FRENCH in page or (person == 2 and "kale" in page):
        said = "unsure"
    return {"version": "0", "k-harmful": "choice", "f-harmful": said}


def work(visitor: Visitor, project: int, person: int) -> int:
    """Answer everything that there is for a person; how many memes that were."""
    done = 0
    while path := visitor.get(f"/p/{project}/next").headers.get("location", "").partition("?")[0]:
        page = visitor.get(path).text.partition("<main")[2]
        assert "<img" not in page
        sent = visitor.post(path, {"project": str(project), **answer(page, person)})
        assert sent.status_code == 303, sent.text
        done += 1
    return done


def review(service: AnnotationService, office: Office, queue: Path) -> list[int]:
    project = service.exchange.open_queue(office.lead, queue).id
    assert project == 1
    for name in ("ann", "bob", "cleo"):
        office.hire(name, project, "annotator")
    return [work(office.visitor(name), 1, n) for n, name in enumerate(("ann", "bob", "cleo"))]


def compare_served(file: Path, screened: Path, home: Path) -> None:
    """A client of OpenAI gets what was screened, before and after a reload."""
    rows = list(read_rows(screened))
    models = ServedModels(detector=file)
    with (
        serving(ServeSettings(models=models, state=home / "state"), home) as site,
        openai.OpenAI(base_url=f"{site.address}/v1", api_key="none", timeout=120) as client,
    ):
        for _ in range(2):
            for start in range(0, len(rows), 60):
                part = rows[start : start + 60]
                answer = client.moderations.create(input=[row["text"] for row in part])
                for row, said in zip(part, answer.results, strict=True):
                    extra = said.model_extra or {}
                    (verdict,) = extra["verdicts"]
                    label = "review" if verdict["review"] else verdict["label"]
                    assert (extra["status"], label) == (row["status"], row["label"])
                    assert said.flagged == (row["label"] != "harmless")
            with site.client() as other:
                assert other.post("/v1/detectors/reload").status_code == 200


def test_once_around(client: Shell, tmp_path: Path) -> None:
    steps = list(commands())
    home = Path(client.environment["MEMANTICS_HOME"])
    kinds = [" ".join(words[1:3]) for words in steps]
    assert kinds[-7:-3] == [
        "screen examples/moderation/new.csv", "annotate open", "annotate export",
        "detector retrain",
    ]  # fmt: skip
    assert [kind.split()[0] for kind in kinds[-3:]] == ["serve", "screen", "drift"]
    told: dict[str, str] = {}
    for words, kind in zip(steps, kinds, strict=True):
        if kind == "annotate open":
            items = (tmp_path / words[3] / "items.jsonl").read_text("utf-8").splitlines()
            (home / "annotate").mkdir(parents=True)
            place = home / "annotate"
            service = open_quick(str(place / "annotate.db"), place / "media")
            assert review(service, make_office(service), tmp_path / words[3]) == [len(items)] * 3
            service.close()
        elif kind.startswith("drift"):
            done = client.run(*words[1:])
            assert done.code == 1, "another detector judged the same memes"
            assert "limits exceeded: " in done.err
            assert (tmp_path / words[-1]).read_text("utf-8").startswith("<!doctype html>")
        elif not kind.startswith("serve"):
            told.setdefault(kind, client.done(*words[1:]))
    compare_served(tmp_path / "detector.zip", tmp_path / "screened-later", tmp_path / "served")
    reasons = {json.loads(item)["hidden"]["reason"].partition(" ")[0] for item in items}
    assert reasons == {"its", "the"}  # in the review range; out of domain or not scored
    line = " ".join(told["detector set"].split())
    assert re.match(r"threshold 0\.\d+ \(precision=0\.9\), review band 0\.1 to 0\.9: on 240", line)
    assert "scored memes are flagged" in told["screen examples/moderation/new.csv"]
    assert "Metrics of harmful memes by threshold" in told["detector eval"]
    assert "<svg" in (tmp_path / "thresholds.html").read_text("utf-8")
    assert "1 are undecided" in " ".join(told["detector retrain"].split())
    new = Detector.load(tmp_path / "detector.zip")
    assert new.point.rule == "precision=0.9"
    said = new.predict(["nobody asked but the old gherkin under the table",
                        "nobody asked but the old mango under the table"])  # fmt: skip
    assert [(one.label, one.out_of_domain) for one in said] == [(1, False), (0, False)]
