"""``judge compare`` on runs of MER-Bench: wrong edits, and the judges that accept them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.benchmarks.mer_bench.judgement import LABELS, PARTS, REASON
from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.records import Image, Reply, Request
from memantics.models import kinds as registered
from memantics.models.kinds import ModelKind
from tests.commands import Shell

TASK = "mer_bench/judge"
MEMES = 6


def reply(request: Request, rating: int) -> str:
    """Rate everything alike; from 3 on, the target emotion is perceived."""
    target = request.form.context["target_emotion"]
    other = next(label for label in LABELS if label != target)
    values: dict[str, JsonValue] = {
        "consistent": rating > 2, "label": target if rating > 2 else other
    }  # fmt: skip
    return orjson.dumps(
        {
            part.name: {REASON: f"{part.name}: {target}, scenario, text and image align"}
            | {key: values.get(key, rating) for key in part.values}
            for part in PARTS
        }
    ).decode()


class EditJudge:
    """A judge whose rating depends on the two images."""

    note, cacheable = "scripted", False

    def __init__(self, name: str, rate: Callable[[str, str], int]) -> None:
        self.name, self._rate, self.asked = name, rate, 0

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The name."""
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:
        """Rate one edit."""
        self.asked += 1
        parts = request.messages[-1].parts
        source, edit = (str(part.path) for part in parts if isinstance(part, Image))
        return Reply(reply(request, self._rate(source, edit)))

    async def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> dict[str, EditJudge]:
    made = {
        "edits/kind": EditJudge("edits/kind", lambda *_: 5),
        # It sees an unchanged image, and nothing else.
        "edits/differs": EditJudge("edits/differs", lambda a, b: 1 if a == b else 5),
        # It compares the file names, which edits share with their source.
        "edits/strict": EditJudge(
            "edits/strict",
            lambda a, b: 5 if a != b and Path(a).name == Path(b).name and "Edited" in b else 1,
        ),
    }
    planted: dict[str, Model] = {**made}
    kind = ModelKind("edits", "edits/NAME", "", lambda name, _: planted[name])
    monkeypatch.setitem(globals(), "KIND", kind)
    monkeypatch.setitem(registered.MODEL_KINDS.ours, "edits", f"{__name__}:KIND")
    return made


@pytest.fixture
def run(tmp_path: Path) -> mm.Run:
    return mm.evaluate(
        TASK, "baseline/constant", out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=MEMES),
    )  # fmt: skip


@pytest.mark.slow
def test_wrong_edits_are_accepted_or_not(run: mm.Run, judges: dict[str, EditJudge]) -> None:
    done = mm.compare_judges([run], model=list(judges), sample=MEMES)
    found = {(one.judge, one.name): one for one in done.findings if one.kind == "wrong answer"}
    accepted = {
        judge: [found[judge, name].value for name in
                ("unchanged meme", "another meme's edit", "edit and source exchanged")]
        for judge in judges
    }  # fmt: skip
    assert accepted["edits/kind"] == [1.0, 1.0, 1.0]
    assert accepted["edits/differs"] == [0.0, 1.0, 1.0]
    assert accepted["edits/strict"] == [0.0, 0.0, 0.0]
    one = found["edits/kind", "unchanged meme"]
    assert (one.quality, one.n) == ("rfs", MEMES)
    assert (one.low or 0) > 0.4  # six edits of four memes
    again = [one for one in done.findings if one.kind == "consistency"]
    assert [(one.value, one.n) for one in again] == [(1.0, MEMES)] * 3
    # A second comparison asks nothing again.
    before = judges["edits/kind"].asked
    mm.compare_judges([run], model=["edits/kind"], sample=MEMES)
    assert judges["edits/kind"].asked == before
    # The ratings of wrong edits are not part of the run.
    assert mm.score(run).scores["rfs"] == run.scores["rfs"]


@pytest.mark.slow
def test_the_page_names_the_wrong_edits(
    run: mm.Run, judges: dict[str, EditJudge], tmp_path: Path
) -> None:
    assert judges
    done = mm.compare_judges([run], model=["edits/differs"], sample=3, repeats=0)
    page = done.save(tmp_path / "zh.html", "zh").read_text(encoding="utf-8")
    page = page.replace("<bdi>", "").replace("</bdi>", "")
    assert "edits/differs 放行：原图与改图互换（100%）、另一张表情包的改图（100%）" in page


@pytest.mark.slow
def test_edits_need_a_judge_and_runs_of_their_own(run: mm.Run, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "--model MODEL" in shell.refused("judge", "compare", run.folder)
    text = mm.evaluate(
        "memeintent/intent", "baseline/majority", out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=2),
    )  # fmt: skip
    with pytest.raises(InputError, match="cannot be compared in one call"):
        mm.compare_judges([run, text], model=["baseline/random"])
