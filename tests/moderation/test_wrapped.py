"""Classifiers from elsewhere as detectors, with tiny random weights of three architectures."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memantics as mm
from memantics.core.errors import InputError, MemanticsError
from memantics.core.memes import Meme
from memantics.core.rundir import last_answers
from memantics.core.samples import IMAGES, read_samples
from memantics.core.waiting import run_sync
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.identity import NEEDS_IMAGE, list_identity_sentences
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.subjects import NO_PICTURE
from memantics.moderation.wrapped import LabelMap, WrappedJudge, make_probabilities, wrap_folder
from memantics.serve.settings import ServedModels, ServeSettings
from memantics.understanding.vision.roles import read_image_text
from memantics.workbench.analyze import analyze_memes
from tests.commands import Shell
from tests.moderation.classifiers import MAPS, make_classifier
from tests.scale.inline import InlineEngine
from tests.serve.site import data_url, serving
from tests.tolerances import same

pytestmark = pytest.mark.slow
KINDS = tuple(MAPS)
Wrap = Callable[[str], Path]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The English memes of the sample data with labels by turns, their pictures beside."""
    folder = tmp_path_factory.mktemp("rows")
    memes = [meme for meme in read_samples() if meme.language == "en"][:24]
    (folder / "images").mkdir()
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "text", "image", "label"))
        for place, meme in enumerate(memes):
            name = f"images/{meme.id}.png"
            (folder / name).write_bytes((IMAGES / f"{meme.id}.png").read_bytes())
            rows.writerow((meme.id, meme.text, name, ("harmless", "harmful")[place % 2]))
    return folder / "rows.csv"


@pytest.fixture(scope="module")
def wrap(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Wrap:
    """The file of a wrapped classifier of a kind, calibrated by the command."""
    folder = tmp_path_factory.mktemp("wrapped")

    def make(kind: str) -> Path:
        file = folder / f"{kind}.json"
        if not file.exists():
            make_classifier(kind, folder / kind)
            (folder / f"{kind}.toml").write_text(MAPS[kind], encoding="utf-8")
            words = ("detector", "wrap", folder / kind, "--map", folder / f"{kind}.toml")
            said = Shell(folder).done(*words, "--data", table, "--out", file)
            assert "On rows held out from calibration" in said
        return file

    return make


def open_wrapped_judge(file: Path) -> WrappedJudge:
    machine = Detector.load(file).machine
    assert isinstance(machine, WrappedJudge)
    return machine


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_the_network_s_log_odds_calibrated(
    kind: str, wrap: Wrap, table: Path
) -> None:
    """Against transformers' own logits, worked out by hand from the map."""
    judge = open_wrapped_judge(wrap(kind))
    examples = read_table(table)[:4]
    said = judge.predict(examples)
    for example, one in zip(examples, said, strict=True):
        (logits,) = judge.score([example])
        powers = dict(zip(judge.classifier.labels, np.exp(logits).tolist(), strict=True))
        meant = judge.file.meanings.meanings
        kind_of = {name: value for name, value in meant.items() if value != "ignore"}
        harm = sum(powers[name] for name, value in kind_of.items() if value != "harmless")
        rest = sum(powers[name] for name, value in kind_of.items() if value == "harmless")
        odds = judge.file.slope * math.log(harm / rest) + judge.file.shift
        assert same(one.probability, 1 / (1 + math.exp(-odds)))
        for name, value in kind_of.items():
            if value not in ("harmless", "harmful"):
                assert same(one.types[value], one.probability * powers[name] / harm)
        if one.types:
            assert one.types["none"] == 1 - one.probability
    card = judge.card
    assert card["examples"] == 24
    assert card["held_out_scores"]
    assert card["languages"] == (["en"] if judge.reads_texts else card["languages"])
    assert f"{said[0].probability:.9f}" == f"{judge.predict(examples[:1])[0].probability:.9f}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_card_has_false_positive_rates_by_group_or_says_why_not(kind: str, wrap: Wrap) -> None:
    judge = open_wrapped_judge(wrap(kind))
    page = wrap(kind).with_suffix(".json.card.md").read_text(encoding="utf-8")
    if judge.sees_images:
        assert NEEDS_IMAGE in page
        assert not judge.card["identity"]
        return
    sentences = list_identity_sentences("en")
    said = judge.predict([Example(str(n), own.text) for n, own in enumerate(sentences)])
    flagged = sum(one.probability >= judge.card["threshold"] for one in said)
    assert f"| en | all groups | 336 | {100 * flagged / 336:.1f} |" in page
    assert judge.card["identity"][0]["flagged"]["value"] == pytest.approx(flagged / 336)
    assert len(judge.card["identity"]) == 29


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrapped_classifier_is_measured_compared_and_set_like_ours(
    kind: str, wrap: Wrap, table: Path, tmp_path: Path
) -> None:
    file = wrap(kind)
    shell = Shell(tmp_path)
    found = json.loads(shell.done("detector", "eval", file, "--data", table, "--json"))
    assert found["metrics"]["count"] == 24
    assert "trained on these files" in found["notes"][0]
    shell.done("detector", "train", "--data", table, "--out", "ours.zip")
    assert "macro-F1" in shell.done("detector", "compare", file, "ours.zip", "--data", table)
    card = shell.done("detector", "info", file)
    assert "Platt's scaling" in card
    assert "Metrics of harmful memes by threshold" in card or "## Thresholds" in card
    copy = file.with_name(f"{kind}-set.json")  # beside the folder that it names
    copy.write_bytes(file.read_bytes())
    chances = [one.probability for one in Detector.load(copy).say(read_table(table))]
    middle = sorted(chances)[12]
    shell.done(
        "detector", "set", copy, "--threshold", f"{middle:.12f}", "--review-range", "0.2..0.3"
    )
    detector = Detector.load(copy)
    said = detector.say(read_table(table))
    assert sum(one.label for one in said) == sum(chance >= middle for chance in chances) >= 12
    assert detector.point.review_range == (0.2, 0.3)
    shell.done("detector", "set", copy, "--clear")
    assert Detector.load(copy).point.threshold == detector.threshold
    refused = shell.refused(
        "detector", "retrain", file, "--annotations", "none.jsonl", "--data", table
    )
    assert "is a neural network" in refused


def read_table(table: Path) -> tuple[Example, ...]:
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return tuple(
        Example(
            r["id"], r["text"], image=table.parent / r["image"], label=int(r["label"] == "harmful")
        )
        for r in rows
    )


def judge_at_doors(file: Path, table: Path, folder: Path) -> dict[str, dict[str, float | None]]:
    """The chance of three real pictures at each door; their texts are read by OCR everywhere."""
    with open_reader() as ocr:
        files = sorted((table.parent / "images").iterdir())
        # Where the scene holds text as well, screening also judges all of it.
        plain = (f for f in files if not read_image_text(ocr, f.read_bytes(), f.name).other_text)
        images = list(islice(plain, 3))
    found: dict[str, dict[str, float | None]] = {}
    source = folder / "few"
    source.mkdir()
    for image in images:
        (source / image.name).write_bytes(image.read_bytes())
    settings = ScreenSettings(detector=file, readings="none", ocr="thorough")
    screen(source, settings, out=folder / "screened", engine=InlineEngine())
    found["screen"] = {
        Path(row["id"]).stem: row["probability"] for row in read_rows(folder / "screened")
    }
    verdicts = Detector.load(file).verdicts(images)
    found["python"] = {i.stem: v.probability for i, v in zip(images, verdicts, strict=True)}
    shell = Shell(folder)
    told = json.loads(shell.done("detector", "predict", file, *images, "--json"))
    found["predict"] = {i.stem: p["probability"] for i, p in zip(images, told, strict=True)}
    memes = [Meme(image.stem, image) for image in images]
    seen = run_sync(analyze_memes(memes, detector=file))
    found["analyze"] = {m.stem: one.harms[0].score for m, one in zip(images, seen, strict=True)}
    served = ServeSettings(models=ServedModels(detector=file), state=folder / "state")
    with serving(served, folder / "served") as site, site.client() as client:
        found["http"] = {}
        for image in images:
            url = {"url": data_url(image.read_bytes())}
            body = {"input": [{"type": "image_url", "image_url": url}]}
            (result,) = client.post("/v1/moderations", json=body).json()["results"]
            found["http"][image.stem] = result["verdicts"][0]["probability"]
        (text,) = client.post("/v1/moderations", json={"input": "good day"}).json()["results"]
        assert text["status"] == ("not_scored" if "image" in file.stem else "scored")
        assert text["reason"] == (NO_PICTURE if "image" in file.stem else "")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_door_gives_one_verdict_on_real_pictures(
    kind: str, wrap: Wrap, table: Path, tmp_path: Path
) -> None:
    found = judge_at_doors(wrap(kind), table, tmp_path)
    expected = found["python"]
    assert len(set(expected.values())) == 3
    for door, said in found.items():
        assert said.keys() == expected.keys(), door
        for name, chance in said.items():
            assert chance is not None, door
            assert same(chance, expected[name]), (door, name)


@pytest.mark.parametrize("kind", KINDS)
def test_hiding_words_or_parts_of_the_picture_explains(
    kind: str, wrap: Wrap, table: Path, tmp_path: Path
) -> None:
    detector = Detector.load(wrap(kind))
    example = replace(read_table(table)[0], text="you are bad, go away")
    why = detector.explain(example)
    words = [part for part in why.parts if part.field == "text"]
    regions = [part for part in why.parts if part.field == "image"]
    assert [part.text for part in words] == (
        ["you", "are", "bad", "go", "away"] if kind != "image" else []
    )
    assert len(regions) == (0 if kind == "text" else 16)
    for part in words:
        (without,) = detector.machine.predict(
            [replace(example, text=example.text[: part.start] + example.text[part.end :])]
        )
        odds = math.log(without.probability / (1 - without.probability))
        assert same(part.contribution, why.score - odds)
    assert why.sense.startswith("each value is the score drop")
    page = detector.save_explanation(tmp_path / "why.html", example, why)
    assert "when that part is hidden" in page.read_text(encoding="utf-8")
    source = tmp_path / "few"
    source.mkdir()
    assert example.image is not None
    (source / "meme.png").write_bytes(example.image.read_bytes())
    settings = ScreenSettings(detector=wrap(kind), readings="none", explain=True, threshold=0.0)
    screen(source, settings, out=tmp_path / "s", engine=InlineEngine())
    (row,) = read_rows(tmp_path / "s")
    assert row["label"] == "harmful"
    assert row["attributions"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers_tasks_at_its_operating_point(kind: str, wrap: Wrap, tmp_path: Path) -> None:
    file = wrap(kind).with_name(f"{kind}-run.json")
    file.write_bytes(wrap(kind).read_bytes())
    items = list(pose_one("toxicn_mm/detection", TaskChoiceSettings(limit=4)).task.items())
    memes = [Example(i.id, i.form.context["text"], image=i.images[0].path) for i in items]
    chances = {one.id: one.probability for one in Detector.load(file).machine.predict(memes)}
    middle = sorted(chances.values())[2]
    Shell(tmp_path).done("detector", "set", file, "--threshold", f"{middle:.12f}")
    run = mm.evaluate(
        "toxicn_mm/detection",
        f"detector/{file}",
        out=tmp_path / "r",
        settings=mm.EvaluationSettings(limit=4),
    )
    said = {name: answer.value for name, answer in last_answers(run.folder).items()}
    assert said == {n: "harmful" if c >= middle else "harmless" for n, c in chances.items()}
    assert set(said.values()) == {"harmful", "harmless"}


def test_several_labels_may_hold_and_one_logit_stands_for_itself(tmp_path: Path) -> None:
    folder = make_classifier("text", tmp_path / "m", problem_type="multi_label_classification")
    meanings = LabelMap(
        labels={"nice": "harmless", "rude": "offence", "lewd": "sexual", "odd": "ignore"}
    )
    judge = wrap_folder(folder, meanings, "map")
    logits = np.array([[5.0, 0.0, 0.0, 9.0], [0.0, -800.0, -800.0, 0.0], [0.0, 800.0, 1.0, 0.0]])
    odds, shares = judge.weigh(logits)
    chances = make_probabilities(odds)
    assert same(float(chances[0]), 0.75)  # neither of two even chances holds with a quarter
    assert chances[1] < 1e-12
    assert chances[2] == 1.0
    assert np.isfinite(odds).all()
    assert same(float(shares["offence"][0]), 0.5)
    one = make_classifier("text", tmp_path / "one", id2label={0: "toxic"})
    judge = wrap_folder(one, LabelMap(labels={"toxic": "harmful"}), "map")
    assert same(
        float(make_probabilities(judge.weigh(np.array([[0.3]]))[0])[0]), 1 / (1 + math.exp(-0.3))
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[labels]\nnice = "harmless"\n', "lacks 'lewd'"),
        (MAPS["text"] + 'more = "harmful"\n', "unknown label 'more'"),
        (MAPS["text"].replace("offence", "evil"), "labels.rude"),
        ("[labels", "cannot be read"),
        (MAPS["text"].replace("offence", "ignore").replace("sexual", "ignore"), "needs harmless"),
        (MAPS["image-text"], "has labels, not prompts"),
        (MAPS["text"], "the languages of the classifier are unknown"),
    ],
)
def test_maps_that_do_not_fit_are_refused_in_one_line(
    text: str, problem: str, tmp_path: Path
) -> None:
    make_classifier("text", tmp_path / "model")
    (tmp_path / "labels.toml").write_text(text, encoding="utf-8")
    said = Shell(tmp_path).refused("detector", "wrap", "model", "--map", "labels.toml")
    assert problem in said
    assert not (tmp_path / "wrapped.json").exists()


def test_pickles_foreign_code_and_changed_folders_are_refused(tmp_path: Path) -> None:
    folder = make_classifier("text", tmp_path / "model")
    (tmp_path / "labels.toml").write_text('languages = ["en"]\n' + MAPS["text"], encoding="utf-8")
    shell = Shell(tmp_path)
    words = ("detector", "wrap", "model", "--map", "labels.toml")
    assert "not calibrated" in shell.done(*words)
    assert Detector.load(tmp_path / "wrapped.json").languages == ("en",)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("model", "wrapped.json"):
        (tmp_path / name).rename(moved / name)
    assert Detector.load(moved / "wrapped.json").predict("go away")[0].probability > 0
    folder = moved / "model"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"dropout": 0.3}), encoding="utf-8")
    with pytest.raises(MemanticsError, match="changed since"):
        Detector.load(moved / "wrapped.json")
    words = ("detector", "wrap", str(folder), "--map", "labels.toml")
    other = config | {"architectures": ["BertForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(other), encoding="utf-8")
    assert "is not a classifier (BertForMaskedLM)" in shell.refused(*words)
    ours = config | {"model_type": "mine", "auto_map": {"AutoConfig": "code.Config"}}
    (folder / "config.json").write_text(json.dumps(ours), encoding="utf-8")
    (folder / "code.py").write_text("raise SystemExit('ran')", encoding="utf-8")
    assert "cannot be loaded" in shell.refused(*words)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "contains no *.safetensors" in shell.refused(*words)
    (folder / "pytorch_model.bin").unlink()
    damaged: dict[str, Any] = json.loads((moved / "wrapped.json").read_text(encoding="utf-8"))
    damaged["slope"] = "steep"
    (moved / "wrapped.json").write_text(json.dumps(damaged), encoding="utf-8")
    with pytest.raises(MemanticsError, match="is damaged: slope"):
        Detector.load(moved / "wrapped.json")


def test_too_few_rows_and_rows_without_pictures_are_refused(tmp_path: Path) -> None:
    make_classifier("image", tmp_path / "model")
    (tmp_path / "labels.toml").write_text(MAPS["image"], encoding="utf-8")
    rows = "text,label\n" + "".join(f"good day {n},{n % 2}\n" for n in range(8))
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    words = ("detector", "wrap", "model", "--map", "labels.toml", "--data", "rows.csv")
    assert "8 memes have no image" in Shell(tmp_path).refused(*words)
    few = "".join(line for line in rows.splitlines(keepends=True)[:8])
    (tmp_path / "rows.csv").write_text(few, encoding="utf-8")
    assert "7 rows are too few" in Shell(tmp_path).refused(*words)
    with pytest.raises(InputError, match="is not a classifier"):
        wrap_folder(make_classifier("image-text", tmp_path / "clip"), LabelMap(), "map")
