"""One table of texts and images through every interface that a verdict comes out of."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from memantics.core.errors import MemanticsError
from memantics.core.memes import Meme
from memantics.core.waiting import run_sync
from memantics.models.embedded import ocr
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example, Type
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.storage import load_with_card, save
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.serve.settings import ServedModels, ServeSettings
from memantics.workbench.analyze import Analyses, analyze, analyze_memes
from memantics.workbench.studio import HarmFound
from tests.commands import Shell
from tests.hostile.test_bounds import draw_lines
from tests.scale.inline import InlineEngine
from tests.screen.test_domain import CRUEL, FAR, FONTS, KIND
from tests.serve.site import Site, data_url, serving

TYPES: tuple[Type, ...] = ("targeted", "offence")


@dataclass(frozen=True)
class Said:
    """What a interface tells of a meme; ``reason`` is why there is no verdict, or no clear one."""

    outcome: str
    probability: float | None = None
    type: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Interfaces:
    detector: Path
    site: Site
    shell: Shell
    folder: Path


def tell(label: str | None, chance: float | None, kind: str | None, outside: object) -> Said:
    """A verdict of a interface that has no third label beside harmless and harmful."""
    assert label is not None
    assert chance is not None
    if outside and label != "harmful":
        return Said("review", round(chance, 6), "", OUTSIDE_NOTE)
    kind = kind if label == "harmful" and kind != "none" else ""
    return Said(label, round(chance, 6), kind or "")


@pytest.fixture(scope="module")
def middle() -> str:
    """A text whose chance is made the threshold."""
    return KIND[0] + CRUEL[1]


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory, middle: str) -> Path:
    draw = random.Random(3)
    examples = [
        Example(
            f"{n}{place}",
            draw.choice(texts) + draw.choice(texts),
            label=int(texts is CRUEL),
            type=TYPES[place] if texts is CRUEL else "none",
        )
        for n in range(40)
        for place, texts in enumerate((CRUEL, CRUEL, KIND, KIND)[:: 1 if n % 2 else 2])
        if place < 2
    ]
    file = tmp_path_factory.mktemp("detector") / "detector.zip"
    Detector.train(examples, "ridge").save(file)
    made, card = load_with_card(file)
    (said,) = made.predict([Example("", middle)])
    save(replace(made, decision=replace(made.decision, threshold=said.probability)), file, card)
    return file


@pytest.fixture(scope="module")
def interfaces(detector: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interfaces]:
    folder = tmp_path_factory.mktemp("interfaces")
    models = ServedModels(detector=detector, attributes=(f"TOXICITY={detector}",))
    settings = ServeSettings(models=models, state=folder / "state")
    with serving(settings, folder / "served") as site:
        yield Interfaces(detector, site, Shell(folder), folder)


def read_row(row: dict[str, Any]) -> Said:
    if row["status"] != "scored":
        assert row["probability"] is row["type"] is row["unseen_ngram_rate"] is None
        assert row["label"] == "review"
        return Said(row["status"], reason=row["reason"])
    if row["label"] == "review":
        return tell("harmless", row["probability"], "", row["out_of_domain"])
    return tell(row["label"], row["probability"], row["type"], outside=False)


def screen_all(interfaces: Interfaces, source: Path) -> dict[str, Said]:
    settings = ScreenSettings(detector=interfaces.detector, readings="none")
    out = interfaces.folder / f"screened-{source.name}"
    screen(source, settings, out=out, engine=InlineEngine())
    return {row["id"]: read_row(row) for row in read_rows(out)}


def read_moderation(answer: Any) -> Said:
    if answer.status_code == 400:
        return Said("refused")
    (result,) = answer.json()["results"]
    (verdict,) = result["verdicts"]
    assert result["status"] == verdict["status"]
    if verdict["status"] != "scored":
        assert (result["flagged"], result["reason"]) == (True, verdict["reason"])
        return Said(verdict["status"], reason=verdict["reason"])
    assert result["flagged"] == (verdict["label"] == "harmful" or bool(verdict["review"]))
    assert result["category_scores"]["harmful"] == verdict["probability"]
    said = tell(*(verdict[name] for name in ("label", "probability", "type", "out_of_domain")))
    assert said.reason == result["reason"] == verdict["review"]
    return said


def moderate(interfaces: Interfaces, given: object) -> Said:
    with interfaces.site.client() as client:
        return read_moderation(client.post("/v1/moderations", json={"input": given}))


def ask_studio(
    interfaces: Interfaces, text: str, language: str = "", unread: int = 0, other_text: str = ""
) -> Said:
    asked = {"text": text, "language": language, "unread": unread, "other_text": other_text}
    with interfaces.site.client(**{"x-memantics": "studio"}) as client:
        answer = client.post("/studio/harm", json=asked)
    if answer.status_code in (400, 422):
        return Said("refused")
    found = HarmFound(**answer.json())
    if found.status != "scored":
        return Said(found.status, reason=found.reason)
    label = "harmful" if found.harmful else "harmless"
    said = tell(label, found.probability, found.type, found.outside)
    assert said.reason == found.reason
    return said


def read_analysis(done: Analyses) -> Said:
    if done.refused:
        return Said("failed", reason=str(done.refused[0]))
    (found,) = done
    if not found.harms:
        reasons = {gap.part: gap.reason for gap in found.missing}
        return Said("not_scored", reason=reasons["harm by a detector"])
    (harm,) = found.harms
    label = "harmful" if harm.harmful else "harmless"
    return tell(label, harm.score, harm.type, OUTSIDE_NOTE in harm.reason)


def analyze_all(interfaces: Interfaces, texts: dict[str, str]) -> dict[str, Said]:
    """Texts that are given with a picture on which nothing can be read."""
    blank = interfaces.folder / "empty.png"
    Image.new("RGB", (64, 64), "white").save(blank)
    return {
        name: read_analysis(
            run_sync(analyze_memes([Meme(name, blank, text)], detector=interfaces.detector))
        )
        for name, text in texts.items()
    }


def predict_all(interfaces: Interfaces, source: Path) -> dict[str, Said]:
    words = ("detector", "predict", interfaces.detector, "--data", source, "--json")
    return {said["id"]: read_prediction(said) for said in json.loads(interfaces.shell.done(*words))}


def read_prediction(said: dict[str, Any]) -> Said:
    if said["not_scored"]:
        return Said("not_scored", reason=said["not_scored"])
    label = "harmful" if said["label"] else "harmless"
    return tell(label, said["probability"], said["type"], said["out_of_domain"])


def ask_python(interfaces: Interfaces, item: Example | Path) -> Said:
    try:
        (verdict,) = Detector.load(interfaces.detector).verdicts([item])
    except MemanticsError as error:
        return Said("failed", reason=str(error))
    if verdict.status != "scored":
        return Said(verdict.status, reason=verdict.reason)
    outside = bool(verdict.out_of_domain)
    assert verdict.outcome == (
        "review" if outside and verdict.label == "harmless" else verdict.label
    )
    return tell(verdict.label, verdict.probability, verdict.type, outside)


def test_a_text_gets_the_same_verdict_at_every_door(interfaces: Interfaces, middle: str) -> None:
    reasons = {
        "empty": "the text is empty",
        "foreign": (
            "the text is in en, a script without training texts; the detector was trained on zh"
        ),
        "name": "the text is the name of an image file, which was not opened",
    }
    texts = {
        "empty": "  ",
        "foreign": "you are all so stupid",
        "untold": "1450 ???",
        "name": f"{KIND[0]}.png?size=2",
        "harmful": CRUEL[0] + CRUEL[1],
        "harmless": KIND[0] + KIND[1],
        "at": middle,
        "far": FAR,
    }
    source = interfaces.folder / "table.jsonl"
    rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    source.write_text("\n".join(rows), encoding="utf-8")
    found = {
        "screen": screen_all(interfaces, source),
        "predict": predict_all(interfaces, source),
        "python": {
            name: ask_python(interfaces, Example(name, text)) for name, text in texts.items()
        },
        "http": {name: moderate(interfaces, text) for name, text in texts.items()},
        "studio": {name: ask_studio(interfaces, text) for name, text in texts.items()},
        "analyze": analyze_all(interfaces, texts),
    }
    expected, unlike = found["python"], ("far", "untold")
    threshold = Detector.load(interfaces.detector).threshold
    for name in unlike:  # a doubt never lowers a verdict
        chance = expected[name].probability or 0.0
        assert (expected[name].outcome == "harmful") == (round(chance, 6) >= round(threshold, 6))
    assert {name: said.reason for name, said in expected.items()} == {
        **dict.fromkeys(texts, ""),
        **reasons,
        **{name: OUTSIDE_NOTE for name in unlike if expected[name].outcome == "review"},
    }
    clear = {name: expected[name].outcome for name in ("harmful", "harmless", "at")}
    assert clear == {"harmful": "harmful", "harmless": "harmless", "at": "harmful"}
    assert expected["harmful"].type in TYPES
    assert "empty" not in found["predict"]
    # What stands on a picture may look like the name of a file, and is read where it is not given.
    for interface in ("studio", "analyze"):
        assert found[interface].pop("name").outcome != "not_scored"
        assert found[interface].pop("empty").reason == "no text was found in the image"
    for interface, said in found.items():
        assert said == {name: expected[name] for name in said}, interface
        assert len(said) >= len(texts) - 3, interface


def test_an_attribute_has_the_probability_of_the_verdict(
    interfaces: Interfaces, middle: str
) -> None:
    """Perspective's format has one number per attribute; a text that is not scored has none."""
    texts = {"harmful": CRUEL[0] + CRUEL[1], "harmless": KIND[0], "at": middle, "far": FAR}
    texts |= {"untold": "1450 ???", "foreign": "you are all so stupid", "empty": "  "}
    source = interfaces.folder / "comments.jsonl"
    rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    source.write_text("\n".join(rows), encoding="utf-8")
    screened = screen_all(interfaces, source)
    with interfaces.site.client() as client:
        for name, text in texts.items():
            body = {"comment": {"text": text}, "requestedAttributes": {"TOXICITY": {}}}
            answer = client.post("/v1alpha1/comments:analyze", json=body)
            if screened[name].probability is None:
                assert answer.status_code == 400, name
                assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"
                continue
            scores = answer.json()["attributeScores"]["TOXICITY"]
            assert round(scores["summaryScore"]["value"], 6) == screened[name].probability, name


@pytest.mark.slow
def test_a_stored_operating_point_holds_at_every_door_and_a_flag_wins(
    detector: Path, middle: str, tmp_path: Path
) -> None:
    """The text that was harmful at the trained threshold is now harmless, and for a person."""
    file = tmp_path / "set.zip"
    file.write_bytes(detector.read_bytes())
    chance = Detector.load(file).threshold
    words = (
        "--threshold",
        f"{chance + 0.01:.6f}",
        "--review-range",
        f"{chance - 0.02:.4f}..0.99999",
    )
    shell = Shell(tmp_path)
    assert "human review" in shell.done("detector", "set", file, *words)
    texts = {"at": middle, "harmless": KIND[0] + KIND[1]}
    source = tmp_path / "table.jsonl"
    rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    source.write_text("\n".join(rows), encoding="utf-8")
    found: dict[str, list[tuple[bool, bool]]] = {}  # at each interface: harmful, and for a person
    made = json.loads(shell.done("detector", "predict", file, "--data", source, "--json"))
    found["predict"] = [(bool(said["label"]), bool(said["review"])) for said in made]
    said = Detector.load(file).verdicts(list(texts.values()))
    found["python"] = [(one.label == "harmful", bool(one.review)) for one in said]
    settings = ScreenSettings(detector=file, readings="none")
    screen(source, settings, out=tmp_path / "s", engine=InlineEngine())
    screened = list(read_rows(tmp_path / "s"))
    assert [row["label"] for row in screened] == ["review", "harmless"]
    assert "is in the review band" in screened[0]["reason"]
    Image.new("RGB", (64, 64), "white").save(tmp_path / "empty.png")
    memes = [Meme(name, tmp_path / "empty.png", text) for name, text in texts.items()]
    harms = [found.harms[0] for found in run_sync(analyze_memes(memes, detector=file))]
    found["analyze"] = [(harm.harmful, "is in the review band" in harm.reason) for harm in harms]
    served = ServeSettings(models=ServedModels(detector=file), state=tmp_path / "state")
    with serving(served, tmp_path / "served") as site:
        interfaces = Interfaces(file, site, shell, tmp_path)
        with site.client() as client:
            answer = client.post("/v1/moderations", json={"input": list(texts.values())}).json()
        told = [result["verdicts"][0] for result in answer["results"]]
        found["http"] = [(one["label"] == "harmful", bool(one["review"])) for one in told]
        asked = [ask_studio_raw(interfaces, text) for text in texts.values()]
        found["studio"] = [(one.harmful, bool(one.reason)) for one in asked]
        assert {round(one.threshold or 0, 6) for one in asked} == {round(chance + 0.01, 6)}
    assert all(said == [(False, True), (False, False)] for said in found.values()), found
    for given, label in (
        (replace(settings, threshold=chance), "harmful"),
        # The gap between the range and the threshold belongs to the review band.
        (replace(settings, review_range=(chance, chance + 0.001)), "review"),
    ):
        out = tmp_path / f"s-{label}"
        screen(source, given, out=out, engine=InlineEngine())
        assert [row["label"] for row in read_rows(out)] == [label, "harmless"]
    shell.done("detector", "set", file, "--clear")
    assert Detector.load(file).point == OperatingPoint(chance)


def ask_studio_raw(interfaces: Interfaces, text: str) -> HarmFound:
    with interfaces.site.client(**{"x-memantics": "studio"}) as client:
        answer = client.post("/studio/harm", json={"text": text, "language": "", "unread": 0})
    return HarmFound(**answer.json())


def draw_meme(path: Path, text: str) -> Path:
    image = Image.new("RGB", (640, 200), "white")
    font = ImageFont.truetype(FONTS / "NotoSansSC-Regular-subset.otf", 44)
    ImageDraw.Draw(image).text((20, 60), text, fill="black", font=font)
    image.save(path)
    return path


def look_through(interfaces: Interfaces, image: Path) -> dict[str, Said]:
    """An image through every interface; what ends as an error is told by its first line."""

    def predict() -> Said:
        done = interfaces.shell.run("detector", "predict", interfaces.detector, image, "--json")
        if done.code == 2:
            return Said("failed", reason=" ".join(done.err.split()))
        return read_prediction(json.loads(done.out)[0])

    def see() -> Said:
        with interfaces.site.client(**{"x-memantics": "studio"}) as client:
            answer = client.post("/studio/text", content=image.read_bytes())
        if answer.status_code != 200:
            return Said("failed", reason=answer.text)
        found = answer.json()
        return ask_studio(
            interfaces, found["text"], found["language"], found["unread"], found["other_text"]
        )

    part = {"type": "image_url", "image_url": {"url": data_url(image.read_bytes())}}
    ways: dict[str, Callable[[], Said]] = {
        "screen": lambda: next(iter(screen_all(interfaces, image).values())),
        "http": lambda: moderate(interfaces, [part]),
        "studio": see,
        "analyze": lambda: read_analysis(analyze([image], detector=interfaces.detector)),
        "predict": predict,
        "python": lambda: ask_python(interfaces, image),
    }
    return {name: way() for name, way in ways.items()}


@pytest.mark.slow
def test_text_of_the_scene_is_judged_alike_at_every_door(interfaces: Interfaces) -> None:
    """The caption is kind; what stands small in the picture is not."""
    image = Image.new("RGB", (760, 560), "#dcd6c8")
    pen, face = ImageDraw.Draw(image), FONTS / "NotoSansSC-Regular-subset.otf"
    pen.text((30, 430), KIND[0], fill="white", font=ImageFont.truetype(face, 88), stroke_width=5)
    for place, text in enumerate((CRUEL[0], CRUEL[1])):
        pen.text((60 + 300 * place, 120), text, fill="#6b6b6b", font=ImageFont.truetype(face, 20))
    path = interfaces.folder / "sign.png"
    image.save(path)
    (said,) = set(look_through(interfaces, path).values())
    (row,) = read_rows(interfaces.folder / f"screened-{path.name}")
    assert row["other_text"], "nothing was taken for the scene: this picture shows nothing"
    assert said.outcome in ("harmful", "review", "harmless")


@pytest.mark.slow
def test_one_table_of_texts_and_images_gets_the_same_verdicts_by_default(
    interfaces: Interfaces,
) -> None:
    """Small lettering, for which the OCR profile ``fast`` may read another text, is included."""
    folder = interfaces.folder / "mixed"
    folder.mkdir()
    rows: dict[str, tuple[str, Path | None]] = {
        "kind": (KIND[0] + KIND[1], None),
        "cruel": (CRUEL[0] + CRUEL[1], None),
    }
    face = FONTS / "NotoSansSC-Regular-subset.otf"
    for number, (text, size) in enumerate(
        (text, size) for text in (CRUEL[0] + CRUEL[1], KIND[1]) for size in (12, 16, 44)
    ):
        image = Image.new("RGB", (640, 360), "#eee6d0")
        pen = ImageDraw.Draw(image)
        pen.ellipse((380, 40, 600, 200), outline="black", width=5)  # a shape like a letter
        pen.text((20, 260), text, fill="black", font=ImageFont.truetype(face, size))
        path = folder / f"{number}.png"
        image.save(path)
        rows[f"image-{number}"] = ("", path)
    lines = [
        json.dumps({"id": name, "text": text} | ({"image": drawn.name} if drawn else {}))
        for name, (text, drawn) in rows.items()
    ]
    (folder / "table.jsonl").write_text("\n".join(lines), encoding="utf-8")
    screened = screen_all(interfaces, folder / "table.jsonl")
    served = {}
    for name, (text, drawn) in rows.items():
        url = data_url(drawn.read_bytes()) if drawn else ""
        part = {"type": "image_url", "image_url": {"url": url}}
        served[name] = moderate(interfaces, [part] if drawn else text)
    assert screened == served
    assert ScreenSettings().ocr == ocr.RapidReader().profile == "thorough"
    assert {said.outcome for said in served.values()} >= {"harmful", "harmless"}


@pytest.mark.slow
def test_an_image_gets_the_same_verdict_at_every_door(
    interfaces: Interfaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("harmful", CRUEL[0] + CRUEL[1]), ("harmless", KIND[0] + KIND[1])):
        found = look_through(interfaces, draw_meme(interfaces.folder / f"{name}.png", text))
        (said,) = set(found.values())
        assert said.outcome == name
    monkeypatch.setattr(ocr, "MOST_REGIONS", 2)
    damaged, blank = interfaces.folder / "damaged.png", interfaces.folder / "blank.png"
    damaged.write_bytes(draw_meme(interfaces.folder / "whole.png", KIND[0]).read_bytes()[:300])
    Image.new("RGB", (64, 64), "white").save(blank)
    crowded = draw_lines(interfaces.folder / "crowded.png", 3, 1, 40, 640)
    unread = "1 region of text was not read"
    script = "the text is in en, a script without training texts"
    for image, status, reason in (
        (blank, "not_scored", "no text was found in the image"),
        (crowded, "not_scored", script),
        (damaged, "failed", ""),
    ):
        found = look_through(interfaces, image)
        # Of files that are named one by one, those that cannot be judged are errors.
        refused = {name: found.pop(name) for name in ("predict", "python")}
        assert {said.outcome for said in refused.values()} == {"failed"}, image
        told = unread if image == crowded else reason.removesuffix(" the image")
        assert all(told in said.reason for said in refused.values())
        assert {said.outcome for said in found.values()} == {status}, (image, found)
        assert all(reason in said.reason for said in found.values()), (image, found)
