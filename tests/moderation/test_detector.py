"""The public ``Detector``: what a person does with it from Python."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image as Pillow

from memantics.core.errors import ImageError, InputError
from memantics.core.lines import ImageReading, TextLine
from memantics.core.records import Field, Form, Image, Message, Option, Request
from memantics.models.embedded import ocr
from memantics.moderation import data as detector_data
from memantics.moderation.answering import DetectorModel
from memantics.moderation.card import SAMPLE_NOTE
from memantics.moderation.data import looks_like_path, read_sample_examples
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.fast import train
from memantics.moderation.heads import find_preset
from memantics.moderation.judges import read_images
from memantics.moderation.training import TrainOptions
from tests.moderation.commands import run
from tests.moderation.samples import make_examples


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.train(make_examples(160))


def test_without_a_release_the_sample_pack_is_taken_and_says_so() -> None:
    made = Detector.train("toxicn_mm", preset="ridge")
    assert made.sample
    assert made.note == SAMPLE_NOTE
    assert made.trained_on is not None
    assert "sample data" in made.trained_on.name
    assert made.held_out is not None
    assert "macro-f1" in made.held_out._repr_html_()
    assert "sample data" in made._repr_html_()


def test_trained_saved_loaded_and_asked(detector: Detector, tmp_path: Path) -> None:
    assert not detector.sample
    assert detector.note == ""
    detector.save(tmp_path / "d.zip")
    assert (tmp_path / "d.card.md").is_file()
    again = Detector.load(str(tmp_path / "d.zip"))
    texts = [e.text for e in make_examples(60, seed=5)]
    assert again.predict(texts) == detector.predict(texts)
    assert [p.id for p in again.predict(texts)] == [str(n) for n in range(1, 61)]
    assert again.card["examples"] == 160
    assert again.predict("我们买苦瓜")[0].to_dict()["label"] in (0, 1)
    assert again.predict([]) == []
    again.save(tmp_path / "e.zip")
    assert (tmp_path / "e.zip").read_bytes() == (tmp_path / "d.zip").read_bytes()


def test_metrics_and_reasons(detector: Detector) -> None:
    unseen = make_examples(80, seed=7)
    found = detector.evaluate(unseen)
    assert (found.find("macro_f1") or 0) > 0.9
    assert found.to_dict()["count"] == 80
    bitter = next(e for e in unseen if e.label)
    why = detector.explain(bitter)
    assert why.prediction == detector.predict(bitter)[0]
    assert abs(why.gap) < 1e-4
    assert "probability of harm" in why._repr_html_()
    other = Detector.train(make_examples(160), preset="ridge")
    both = detector.compare(other, unseen)
    assert both.count == 80
    assert "jackknife over memes" in both._repr_html_()
    with pytest.raises(InputError, match="no text to"):
        detector.explain(" ")
    with pytest.raises(InputError, match="has no label"):
        detector.evaluate([replace(bitter, label=None)])


def test_a_network_is_not_trained_in_passing() -> None:
    with pytest.raises(
        InputError, match="is a neural network; use memantics detector train-neural"
    ):
        Detector.train(make_examples(40), preset="mke")
    with pytest.raises(InputError, match="--embedder has no effect"):
        Detector.train(make_examples(40), "ridge", TrainOptions(embedder=Path("x")))


def test_the_sample_detector_is_the_one_that_the_pack_trains() -> None:
    data = read_sample_examples()
    shipped = Detector.load_sample()
    assert (shipped.name, shipped.sample, shipped.note) == ("sample", True, SAMPLE_NOTE)
    assert shipped.has_seen(data), "regenerate the sample data with 'python -m sample_data'"
    trained = train(data.examples, find_preset("ridge"))
    said = shipped.predict(data)
    assert len({one.label for one in said}) == 2
    for ours, theirs in zip(said, trained.predict(data.examples), strict=True):
        assert ours.label == theirs.label
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-6)
        assert ours.types == pytest.approx(theirs.types, abs=1e-6)


class Reader:
    """Reads a bitter word in every image that is decoded, nothing in a black one."""

    version = "reader-1"

    def __init__(self, profile: str = "thorough") -> None:
        del profile

    def read(self, data: bytes, name: str) -> ImageReading:
        from memantics.core.images import decode

        dark = decode(data, name).convert("L").getextrema() == (0, 0)
        return ImageReading(() if dark else (TextLine("我们买苦瓜酸菜", (0, 0, 9, 9), 1.0),))


class SignReader(Reader):
    """Reads a harmless caption, and bitter words on a small sign below it."""

    def read(self, data: bytes, name: str) -> ImageReading:
        caption = TextLine("今天天气真好", (40, 20, 560, 100), 1.0)
        return ImageReading((caption, TextLine("我们买苦瓜酸菜", (520, 350, 580, 362), 0.8)))


def test_caption_and_all_text_are_judged_alike_through_every_door(
    detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graver verdict stands; the feature ``ocr`` is every line, whatever its role."""
    monkeypatch.setattr(ocr, "RapidReader", SignReader)
    path, file = tmp_path / "meme.png", tmp_path / "d.zip"
    Pillow.new("RGB", (600, 400), "white").save(path)
    detector.save(file)
    (example,) = detector.prepare(path)
    assert example.text == "今天天气真好"
    assert example.printed == "今天天气真好\n我们买苦瓜酸菜"
    assert not detector.predict("今天天气真好")[0].label
    (whole,) = detector.predict(example.printed)
    assert whole.label
    (read,) = detector.predict(path)
    assert (read.label, read.probability) == (1, whole.probability)
    options = (Option("A", "harmless"), Option("B", "harmful"))
    form = Form("?", (Field("verdict", "choice", options),))
    request = Request((Message("user", (Image(path),)),), form)
    reply = asyncio.run(DetectorModel(f"detector/{file}").answer(request))
    assert (reply.text, reply.served_by) == ("B", f"{whole.probability:.4f}")
    (seen,), missed = read_images([Example("m", "given", image=path)])
    assert (seen.text, seen.ocr, missed) == ("given", example.printed, 0)


def test_a_path_is_read_or_refused_and_never_judged_as_a_text(
    detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "RapidReader", Reader)
    monkeypatch.chdir(tmp_path)
    Pillow.new("RGB", (32, 32), "white").save("meme.png")
    Pillow.new("RGB", (32, 32), "black").save("blank.png")
    Path("memes").mkdir()
    Path("rows.csv").write_text("text\nhi\n")
    Path("notes").write_text("no image")
    (read,) = detector.predict("我们买苦瓜酸菜")
    for item in ("meme.png", "./meme.png", str(tmp_path / "meme.png"), Path("meme.png")):
        assert detector.predict(item)[0] == read, item
    assert detector.explain("meme.png").prediction.probability == read.probability
    detector.save("d.zip")
    assert json.loads(run("predict", "d.zip", "meme.png", "--json"))[0] == read.to_dict()
    for item, problem in (
        ("memes", "memes is a directory, not a text"),
        ("gone.jpg", "no such file: gone.jpg; check the path"),
        ("gone/", "no such file: gone/"),
        (Path("蒸多鱼"), "no such file: 蒸多鱼"),
        ("rows.csv", "rows.csv is a table, not a text; use --data rows.csv"),
        ("blank.png", "no text was found in the image blank.png"),
    ):
        with pytest.raises(InputError, match=problem):
            detector.predict(item)
        if isinstance(item, str):
            with pytest.raises(InputError, match=problem):
                run("predict", "d.zip", item)
    with pytest.raises(ImageError, match="notes"):
        detector.predict("notes")


@pytest.mark.parametrize(
    "text",
    ["", " ", "今天/明天", "and/or", "a.b", "png", "你好.", "/s", "a\nb.png", "x" * 2000],
)
def test_a_caption_is_a_text(text: str) -> None:
    assert not looks_like_path(text)


def test_names_that_stand_for_data() -> None:
    assert detector_data.find_examples("sample").sample
    assert detector_data.find_examples(None).sample
    with pytest.raises(InputError, match="no data at nowhere"):
        detector_data.find_examples("nowhere")
    assert detector_data.find_examples([Example("1", "hi")]).examples[0].text == "hi"


@pytest.mark.parametrize(
    ("pieces", "preset"),
    [
        (("今晚又失眠了", "大家都去死吧"), "fast"),
        (("I am so glad to be here", "you are so stupid"), "words"),
    ],
)
def test_a_preset_is_chosen_by_the_language_of_the_texts(
    pieces: tuple[str, str], preset: str
) -> None:
    examples = [Example(str(n), f"{pieces[n % 2]} {n // 2}", label=n % 2) for n in range(24)]
    chosen, named = (Detector.train(examples, name) for name in ("auto", preset))
    assert chosen.name == named.name == f"preset {preset}"
    said, again = (made.predict(pieces) for made in (chosen, named))
    assert said == again
    assert [one.name for one in said] == ["harmless", "harmful"]
