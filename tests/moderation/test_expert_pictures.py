"""Classifiers that see pictures through a vision model, and that read captions by any model."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

import memantics as mm
from memantics.cli.main import make_app
from memantics.core.errors import DataError, InputError
from memantics.models.embedders import LocalImageEncoder
from memantics.moderation import classifier as classifiers
from memantics.moderation.classifier import Classifier, ClassifierOptions, find_labelled
from memantics.moderation.examples import Example
from memantics.moderation.heads import SeeingEmbedder
from tests.metrics.tiny_models import make_image_encoder

WORDS = ("when", "my", "the", "cat", "sees", "monday", "coffee", "again")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_image_encoder(tmp_path_factory.mktemp("clip"))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Siglip", "ChineseCLIP"])
def test_other_families_of_vision_models_do_too(family: str, memes: Path, tmp_path: Path) -> None:
    encoder = make_image_encoder(tmp_path / family, family)
    seeing = Classifier.train(f"{memes}/light", ClassifierOptions("words", pictures=encoder))
    assert seeing.held_out is not None
    assert (seeing.held_out.find("accuracy") or 0) > 0.9
    again = mm.Classifier.load(seeing.save(tmp_path / "light.zip"), pictures=encoder)
    pictures = [Example(n, "the cat sees", image=memes.parent / f"{n}.png") for n in "12"]
    assert [one.label for one in again.predict(pictures)] == ["day", "night"]


@pytest.fixture(scope="module")
def memes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words say nothing of the light: the picture alone does."""
    folder, pick = tmp_path_factory.mktemp("memes"), random.Random(2)
    rows = []
    for number in range(40):
        light = number % 2
        tone = (230 if light else 20) + pick.randrange(20)
        Image.new("RGB", (40, 40), (tone, tone, tone)).save(folder / f"{number}.png")
        said = " ".join(pick.sample(WORDS, 4)) + f" {number}"
        row = {"id": str(number), "text": said, "light": "day" if light else "night"}
        rows.append(row | {"image": f"{number}.png"})
    table = folder / "memes.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return table


@pytest.mark.slow
def test_the_picture_tells_what_words_do_not(memes: Path, clip: Path, tmp_path: Path) -> None:
    blind = Classifier.train(f"{memes}/light", ClassifierOptions("words"))
    seeing = Classifier.train(f"{memes}/light", ClassifierOptions("words", pictures=clip))
    assert blind.held_out is not None
    assert seeing.held_out is not None
    assert (blind.held_out.find("accuracy") or 0) < 0.7
    assert (seeing.held_out.find("accuracy") or 0) > 0.95
    place = seeing.save(tmp_path / "light.zip")
    again = mm.Classifier.load(place, pictures=clip)
    bright = Example("x", "the cat sees", image=memes.parent / "1.png")
    dark = Example("y", "the cat sees", image=memes.parent / "2.png")
    assert [own.label for own in again.predict([bright, dark])] == ["day", "night"]
    assert again.predict([bright]) == seeing.predict([bright])
    why = again.explain(bright)
    assert abs(why.gap) < 1e-3
    assert max(why.parts, key=lambda part: part.contribution).field == "picture"


@pytest.mark.slow
def test_the_same_vision_model_is_needed(memes: Path, clip: Path, tmp_path: Path) -> None:
    place = Classifier.train(f"{memes}/light", ClassifierOptions("words", pictures=clip)).save(
        tmp_path / "light.zip"
    )
    with pytest.raises(InputError, match="needs the encoder local/"):
        mm.Classifier.load(place).predict("the cat sees")
    with pytest.raises(InputError, match="which other commands cannot open"):
        classifiers.use_classifier(place)


@pytest.mark.slow
def test_missing_and_broken_pictures_are_zeros(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    Image.new("RGB", (40, 40), "red").save(tmp_path / "red.png")
    seer = SeeingEmbedder(None, LocalImageEncoder(clip))
    rows = seer.see([None, tmp_path / "broken.png", tmp_path / "red.png"])
    assert rows.shape == (3, 8)
    assert not rows[:2].any()
    assert rows[2] @ rows[2] == pytest.approx(1, abs=1e-5)


def test_a_set_without_pictures_has_no_use_for_a_vision_model(clip: Path, tmp_path: Path) -> None:
    table = tmp_path / "words.csv"
    lines = ["text,mood", *(f"{WORDS[n % 8]} {n},{'ab'[n % 2]}" for n in range(20))]
    table.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="no meme has an image"):
        Classifier.train(f"{table}/mood", ClassifierOptions("words", pictures=clip))


def test_captions_by_a_model_tell_what_words_do_not(memes: Path, tmp_path: Path) -> None:
    captions = tmp_path / "captions.jsonl"
    rows = [
        {
            "id": str(number),
            "text_caption": "",
            "image_caption": f"a {'bright' if number % 2 else 'dark'} sky",
        }
        for number in range(40)
    ]
    captions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told = Classifier.train(f"{memes}/light", ClassifierOptions("words", captions=captions))
    assert told.held_out is not None
    assert (told.held_out.find("accuracy") or 0) > 0.95
    assert told.trained_on is not None
    assert "40 of 40 memes have new captions" in told.trained_on.notes[-1]
    place = told.save(tmp_path / "told.zip")
    command = ["classifier", "eval", f"{memes}/light", "--classifier", str(place), "--json"]
    done = CliRunner().invoke(make_app(), [*command, "--captions", str(captions)])
    assert done.exit_code == 0, done.output
    captions.write_text('{"id": "no such meme", "text_caption": "x", "image_caption": "y"}')
    with pytest.raises(DataError, match="has no id of"):
        find_labelled(f"{memes}/light", captions=captions)
