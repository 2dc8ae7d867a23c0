"""Probes find what a model rests on: planted models that only read, only see, or only guess."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from operator import sub
from pathlib import Path

import orjson
import pytest
from PIL import Image as Pillow
from pydantic import JsonValue

import memantics as mm
from memantics.benchmarks.factories import letter_field
from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.errors import DataError, InputError
from memantics.core.model import Model
from memantics.core.records import Image, Item, Reply, Request
from memantics.core.rundir import read_items
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.perturbations import halve, permute_options
from memantics.models import kinds as registered
from memantics.models.kinds import ModelKind
from memantics.understanding.vision.erasing import paint_over
from tests.commands import Shell
from tests.places import ROOT

HARM, QA = "toxicn_mm/detection", "mquest/qa"
WORDS = {"harmful": "有害", "harmless": "无害"}
FEW = 10


class Planted:
    """Answers by a function of the texts and of the bytes of the pictures that it is sent."""

    note, cacheable = "planted", False

    def __init__(self, name: str, think: Callable[[str, tuple[bytes, ...]], str]) -> None:
        self.name = name
        self._think = think

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:
        parts = [part for message in request.messages for part in message.parts]
        text = "\n".join(part for part in parts if isinstance(part, str))
        images = tuple(part.path.read_bytes() for part in parts if isinstance(part, Image))
        return Reply(self._think(text, images))

    async def close(self) -> None:
        pass


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    planted: dict[str, Model] = {}
    kind = ModelKind("planted", "planted/NAME", "", lambda name, _: planted[name])
    monkeypatch.setitem(globals(), "KIND", kind)
    monkeypatch.setitem(registered.MODEL_KINDS.ours, "planted", f"{__name__}:KIND")

    def add(name: str, think: Callable[[str, tuple[bytes, ...]], str]) -> str:
        model = Planted(f"planted/{name}", think)
        planted[model.name] = model
        return model.name

    return add


UNCACHED = mm.CallSettings(use_cache=False)
FEW_ITEMS = mm.EvaluationSettings(limit=FEW)


def items(task: str, limit: int = FEW) -> list[Item]:
    return list(pose_one(task, TaskChoiceSettings(limit=limit)).task.items())


def look(data: bytes) -> list[int]:
    """A picture as a viewer remembers it: 64 shades, which a caption hardly changes."""
    small = Pillow.open(io.BytesIO(data)).convert("L").resize((8, 8))
    return list(small.tobytes())


@pytest.mark.slow
def test_probes_tell_a_model_that_only_reads_from_one_that_only_sees(
    plant: Callable[..., str], tmp_path: Path
) -> None:
    known = items(HARM, 5)
    by_text = {item.form.context["text"]: WORDS[str(item.gold)] for item in known}
    by_look = [(look(i.images[0].path.read_bytes()), WORDS[str(i.gold)]) for i in known]

    # What each says where it knows nothing: the answer that is right least often.
    rare = min(WORDS.values(), key=list(by_text.values()).count)

    def read(text: str, _: tuple[bytes, ...]) -> str:
        return next((said for own, said in by_text.items() if own in text), rare)

    def see(_: str, images: tuple[bytes, ...]) -> str:
        shades = look(images[0])
        if min(shades) == 255:
            return rare
        return min(by_look, key=lambda own: sum(map(abs, map(sub, own[0], shades))))[1]

    found = mm.perturb(
        HARM,
        model=[plant("reader", read), plant("viewer", see)],
        perturbations=["image=blank", "caption=removed"],
        settings=mm.EvaluationSettings(limit=5),
        calls=UNCACHED,
        out=tmp_path,
    )
    said = {(own.model.rpartition("/")[2], own.perturbation): own for own in found.found}
    assert {key: own.conclusion for key, own in said.items()} == {
        ("reader", "image=blank"): "no effect of the image",
        ("viewer", "image=blank"): "answers depend on the image",
        ("reader", "caption=removed"): "answers depend on the caption",
        ("viewer", "caption=removed"): "no effect of the caption",
    }
    rows = [own.difference for own in found.found]
    assert all(row is not None and row.items == 5 for row in rows)
    assert [row and row.first for row in rows] == [1.0] * 4


def test_a_swapped_picture_is_another_memes_and_always_the_same(
    plant: Callable[..., str], tmp_path: Path
) -> None:
    known = items(QA)
    by_image = {item.images[0].path.read_bytes(): item.group for item in known}
    gold = {(item.group, item.form.question): str(item.gold) for item in known}
    seen: list[str] = []

    def see(text: str, images: tuple[bytes, ...]) -> str:
        meme = by_image.get(images[0], "")
        seen.append(meme)
        return "Answer: " + next((g for (m, q), g in gold.items() if m == meme and q in text), "A")

    name = plant("viewer", see)
    found = mm.perturb(
        QA,
        model=name,
        perturbations=["image=swapped"],
        settings=FEW_ITEMS,
        calls=UNCACHED,
        out=tmp_path,
    )
    (own,) = found.found
    assert own.conclusion == "answers depend on the image"
    assert own.difference is not None
    assert own.difference.first == 1.0
    run = mm.load_run(own.run)
    for line in read_items(run.folder):
        assert line.item.images[0].path.stem != line.item.group
    again = mm.evaluate(
        QA,
        "baseline/longest",
        out=tmp_path / "b",
        settings=mm.EvaluationSettings(limit=FEW, perturbation="image=swapped"),
    )
    pairs = [
        [(line.item.id, line.item.images) for line in read_items(each.folder)]
        for each in (run, again)
    ]
    assert pairs[0] == pairs[1]
    # A run with a perturbation never stands in one table with a plain one.
    plain = mm.evaluate(
        QA, "baseline/longest", out=tmp_path / "b", settings=mm.EvaluationSettings(limit=FEW)
    )
    assert plain.ground != again.ground
    assert "perturbation image=swapped" in mm.report(again, tmp_path / "r.md").read_text("utf-8")


def test_permuted_options_show_a_model_that_guesses_by_place(
    plant: Callable[..., str], tmp_path: Path
) -> None:
    known = items(QA, 72)
    right = {item.form.question: _right(item) for item in known}

    def know(text: str, _: tuple[bytes, ...]) -> str:
        wanted = next(own for q, own in right.items() if f"Question: {q}" in text)
        line = next(line for line in text.splitlines() if line[1:3] == ". " and line[3:] in wanted)
        return f"Answer: {line[0]}"

    first = {item.form.question: str(item.gold) for item in known}

    def place(text: str, _: tuple[bytes, ...]) -> str:
        return "Answer: " + next(g for q, g in first.items() if f"Question: {q}" in text)

    names = [plant("knower", know), plant("placer", place)]
    found = mm.perturb(
        QA, model=names, perturbations=["options=permuted"], calls=UNCACHED, out=tmp_path
    )
    said = {own.model.rpartition("/")[2]: own for own in found.found}
    assert said["knower"].conclusion == "no effect of the option order"
    assert said["placer"].conclusion == "answers depend on the option order"
    row = said["knower"].difference
    assert row is not None
    assert (row.first, row.second) == (1.0, 1.0)


def _right(item: Item) -> set[str]:
    return {option.text for option in item.form.fields[0].options if option.key == item.gold}


def test_options_keep_their_right_one_in_every_turn() -> None:
    for number in range(40):
        item = Item(f"item-{number}", "m", "C", items(QA, 1)[0].form)
        form = item.form
        field = letter_field(["a", "b", "c", "d", "e"][: 2 + number % 4])
        gold = field.options[-1].key
        item = Item(item.id, "m", gold, type(form)("?", (field,)))
        turned = permute_options(item)
        texts = {option.key: option.text for option in turned.form.fields[0].options}
        assert texts[str(turned.gold)] == field.options[-1].text
        assert list(texts.values()) != [option.text for option in field.options]


@pytest.mark.slow
def test_reworded_captions_come_from_a_table(plant: Callable[..., str], tmp_path: Path) -> None:
    heard: list[str] = []

    def hear(text: str, _: tuple[bytes, ...]) -> str:
        heard.append(text)
        return "有害"

    asked = items(HARM, 2)
    path = tmp_path / "words.jsonl"
    rows = [{"image": item.group, "text": f"换句话说{n}"} for n, item in enumerate(asked)]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    name = plant("listener", hear)
    run = mm.evaluate(
        HARM,
        name,
        out=tmp_path,
        settings=mm.EvaluationSettings(limit=2, perturbation="caption=reworded", rewordings=path),
    )
    assert run.facts.perturbation == "caption=reworded"
    assert all(any(f"换句话说{n}" in text for text in heard) for n in range(2))
    assert not any(item.form.context["text"] in text for item in asked for text in heard)
    with pytest.raises(InputError, match="--rewordings FILE"):
        mm.evaluate(
            HARM,
            name,
            out=tmp_path,
            settings=mm.EvaluationSettings(limit=2, perturbation="caption=reworded"),
        )


def test_what_a_model_knows_by_heart(plant: Callable[..., str], tmp_path: Path) -> None:
    known = {halve(item.form.context["text"])[0]: item.form.context["text"] for item in items(HARM)}
    bytes_of = {item.images[0].path.read_bytes(): item.group for item in items(HARM)}

    def recall(text: str, images: tuple[bytes, ...]) -> str:
        if images:
            return bytes_of[images[0]]
        return next(halve(whole)[1] for head, whole in known.items() if head in text)

    def guess(_: str, images: tuple[bytes, ...]) -> str:
        return "zh-999" if images else "我不知道"

    names = [plant("leaked", recall), plant("fresh", guess)]
    found = mm.perturb(
        HARM,
        model=names,
        perturbations=["contamination=caption", "contamination=id"],
        settings=FEW_ITEMS,
        calls=UNCACHED,
        out=tmp_path,
    )
    shares = {(own.model.rpartition("/")[2], own.perturbation): own.recalled for own in found.found}
    assert shares["leaked", "contamination=caption"] == shares["leaked", "contamination=id"] == 1.0
    assert shares["fresh", "contamination=caption"] == shares["fresh", "contamination=id"] == 0.0
    # Scoring again needs no data.
    assert mm.score(found.found[0].run).scores["recalled"].value == 1.0


TAGGED = """
from dataclasses import replace


def tag(setup):
    task = PLAIN.make_task(setup)
    names = {"en-001": "Human Check", "en-002": "", "en-003": "Slow Parrot"}

    def items():
        for item in task.items():
            yield replace(item, tags={"template": names.get(item.group, "")})

    return replace(task, items=items)


PLAIN = PLUGIN
PLUGIN = replace(PLAIN, make_task=tag)
"""


def test_templates_known_by_heart_where_the_data_name_them(
    plant: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples" / "meanings", tmp_path / "own" / "meanings")
    plugin = tmp_path / "own" / "meanings" / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + TAGGED, encoding="utf-8")
    monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(tmp_path / "own"))
    seen: list[str] = []

    def recall(text: str, images: tuple[bytes, ...]) -> str:
        seen.append(text)
        known = (SAMPLE_IMAGES / "en-001.png").read_bytes()
        return "human check" if images == (known,) else "Distracted Parrot"

    model = plant("fan", recall)
    found = mm.perturb(
        "meanings",
        model=model,
        perturbations=["contamination=template"],
        calls=UNCACHED,
        out=tmp_path,
    )
    (own,) = found.found
    # Two memes have a template's name; of these one is told, whatever its case.
    assert len(seen) == 2
    assert all("Which meme template is this?" in text for text in seen)
    assert own.recalled == 0.5
    assert mm.score(own.run).scores["recalled"].n == 2
    with pytest.raises(DataError, match="the data set does not name the template of each meme"):
        mm.evaluate(
            QA,
            model,
            out=tmp_path,
            settings=mm.EvaluationSettings(limit=2, perturbation="contamination=template"),
        )


def test_the_command(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    base = ["perturb", QA, "--model", "baseline/longest", "--limit", "6"]
    ran = shell.run(*base, "--perturb", "image=blank", "--perturb", "options=permuted", "--json")
    assert ran.code == 0, ran
    found = orjson.loads(ran.out)["found"]
    # The longest option stays the longest, whatever is shown and wherever it stands.
    assert [one["difference"]["difference"] for one in found] == [0.0, 0.0]
    assert "unknown perturbation 'colour'" in shell.refused(*base, "--perturb", "colour=red")
    assert "unknown value for the perturbation image: 'gone'" in shell.refused(
        *base, "--perturb", "image=gone"
    )


def test_painting_over_takes_the_colour_around() -> None:
    picture = Pillow.new("RGB", (100, 60), (10, 200, 30))
    picture.paste((0, 0, 0), (30, 20, 70, 40))
    paint_over(picture, (30, 20, 70, 40))
    assert picture.getcolors() == [(6000, (10, 200, 30))]
    small = Pillow.new("RGB", (8, 8), (1, 2, 3))
    paint_over(small, (0, 0, 8, 8))
    assert small.getcolors() == [(64, (1, 2, 3))]
