"""Dataset configs: other sets of the field are read, checked and learnt from a few lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import orjson
import pytest

from memantics.benchmarks.dataset_config import read_dataset_config
from memantics.benchmarks.dataset_reader import open_dataset_config
from memantics.benchmarks.dataset_tasks import make_card, survey_dataset_config
from memantics.benchmarks.registry import find_benchmark, find_benchmarks, find_dataset_configs
from memantics.core.data import Source
from memantics.core.errors import DataError, UnknownName
from memantics.evaluation.datasets import (
    Survey,
    add_release,
    describe_found,
    list_benchmarks,
    load_dataset,
    survey_data,
)
from memantics.evaluation.evaluate import EvaluationSettings, evaluate
from memantics.moderation.classifier import Classifier, ClassifierOptions, find_labelled
from tests.commands import Shell
from tests.places import ROOT, SHARED_DATA, needs_shared_data

FIRST = ("fine_grained_hateful_memes", "harm_c", "harm_p", "harmeme", "hateful_memes", "mami")
LATER = (
    *("armeme", "memotion", "multioff", "pridemm", "multi3hate", "guardharmem", "toxictags"),
    *("goat_harmfulness", "goat_hatefulness", "goat_misogyny", "goat_offensiveness"),
    *("goat_sarcasm", "memexplain_ar", "memexplain_en", "chineseharm_bench", "harmeme_templates"),
)
LATEST = (
    *("memelens", "memereason_hateful", "memereason_armeme", "exist_2024", "exist_2025"),
    *("exist_2026", "semeval2021_task6", "semeval2021_task6_spans", "semeval2024_task4"),
    *("memecap", "checkthat_2024_task4", "dankmemes_task1", "dankmemes_task2", "unsafebench"),
    *("ra_hmd_fb", "ra_hmd_harmeme", "ra_hmd_harmp", "ra_hmd_mami", "memotion3"),
)
NAMES = tuple(sorted((*FIRST, *LATER, *LATEST)))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))


def make_release(name: str, folder: Path, count: int = 40) -> Path:
    """Rows of our own in the format of a release."""
    folder.mkdir(exist_ok=True)
    rows: list[dict[str, object]] = []
    for n in range(count):
        bad = n % 3 == 0
        own: dict[str, object] = {"id": n, "text": f"{'go home you' if bad else 'nice day'} {n}"}
        if name == "hateful_memes":
            own |= {"img": f"img/{n}.png", "label": int(bad)}
        elif name == "fine_grained_hateful_memes":
            own |= {"img": f"img/{n}.png", "gold_hate": ["hateful" if bad else "not_hateful"]}
            own |= {"gold_pc": ["race", "sex"] if bad else ["pc_empty"]}
            own |= {"gold_attack": ["slurs"] if bad else ["attack_empty"]}
        else:
            labels = ["very harmful", "individual"] if bad else ["not harmful"]
            own |= {"image": f"{n}.png", "labels": labels}
        rows.append(own)
    if name == "mami":
        kinds = ("shaming", "stereotype", "objectification", "violence")
        table = [["file_name", "misogynous", *kinds, "Text Transcription"]]
        for row in rows:
            flag = "1" if "home" in str(row["text"]) else "0"
            table.append([f"{row['id']}.jpg", flag, "0", flag, "0", "0", str(row["text"])])
        lines = ["\t".join(own) for own in table]
        (folder / "training.csv").write_text("\n".join(lines), "utf-8")
    else:
        suffix = "json" if name.startswith("fine") else "jsonl"
        write_lines(folder / f"train.{suffix}", rows)
    return folder


def test_dataset_configs_are_a_few_lines_each_and_no_part_of_the_suite() -> None:
    # Minimal pairs are made here; tests/construction/test_pairs.py builds, adds and asks them.
    assert tuple(sorted(find_dataset_configs().keys() - {"pairs"})) == NAMES
    assert not set(NAMES) & set(find_benchmarks())
    for own in find_dataset_configs().values():
        assert own.dataset_config is not None
        assert len(own.dataset_config.read_text("utf-8").splitlines()) < 55
        assert own.card.release is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_a_release_is_checked_learnt_and_listed(name: str, tmp_path: Path) -> None:
    survey = add_release(name, make_release(name, tmp_path / "data"))
    assert survey.found.records == 40
    assert survey.found.images_found == 0
    assert survey.found.images_expected == 40
    assert {row.verdict for row in survey.statistics} <= {"not compared", "not recomputable"}
    assert name in {own.name for own in list_benchmarks()}
    label = next(iter(find_benchmark(name).plugin.labels))
    data = find_labelled(f"{name}/{label}", split="train")
    assert len(data.examples) == 40
    assert not data.sample
    made = Classifier.train(f"{name}/{label}", ClassifierOptions(preset="words"))
    wanted = {"hateful": "hateful", "harm": "very harmful", "misogynous": "misogynous"}[label]
    assert made.predict(["go home you fool"])[0].label == wanted


def test_labels_mean_what_the_release_means(tmp_path: Path) -> None:
    for name, label, wanted in (
        ("hateful_memes", "hateful", {("hateful",), ("not hateful",)}),
        ("fine_grained_hateful_memes", "category", {("race", "sex"), ()}),
        ("harm_c", "target", {("individual",), ()}),
        ("mami", "kind", {("stereotype",), ()}),
        ("mami", "misogynous", {("misogynous",), ("not misogynous",)}),
    ):
        benchmark = find_benchmark(name)
        release = benchmark.open(Source("release", make_release(name, tmp_path / name)))
        found = {own.labels for own in benchmark.plugin.labels[label].read(release)}
        assert found == wanted, name


def test_tasks_can_be_run_and_scored(tmp_path: Path) -> None:
    add_release("hateful_memes", make_release("hateful_memes", tmp_path / "data"))
    data = load_dataset("hateful_memes/hateful", split="train")
    assert len(data) == 40
    assert data.rows()[0]["options"] == ["A. not hateful", "B. hateful"]
    assert data.rows()[0]["gold"] == "B"
    run = evaluate(
        "hateful_memes/hateful",
        "baseline/majority",
        out=tmp_path / "runs",
        settings=EvaluationSettings(split="train"),
    )
    assert run.scores["accuracy"].value == pytest.approx(26 / 40)
    always = 2 * 26 / (26 + 40) / 2
    assert run.scores["macro_f1"].value == pytest.approx(always)


def test_what_is_not_as_the_dataset_config_says_is_named(tmp_path: Path) -> None:
    benchmark = find_benchmark("hateful_memes")
    with pytest.raises(DataError, match="Hateful Memes was not found"):
        benchmark.open(Source("release", tmp_path))
    write_lines(tmp_path / "train.jsonl", [{"id": 1, "text": "x", "img": "1.png", "label": 2}])
    with pytest.raises(DataError, match="unknown value '2'"):
        benchmark.open(Source("release", tmp_path))
    write_lines(tmp_path / "train.jsonl", [{"id": 1, "text": "x"}])
    with pytest.raises(DataError, match="no column 'img'"):
        benchmark.open(Source("release", tmp_path))
    twice: dict[str, object] = {"id": 1, "text": "x", "img": "1.png", "label": 1}
    write_lines(tmp_path / "train.jsonl", [twice, twice])
    release = benchmark.open(Source("release", tmp_path))
    assert [skip.row for skip in benchmark.survey(release).skips] == ["2"]
    with pytest.raises(DataError, match="memantics data add hateful_memes"):
        find_labelled("hateful_memes/hateful")
    bad = tmp_path / "mine.toml"
    bad.write_text("title = 'x'", "utf-8")
    with pytest.raises(DataError, match="mine"):
        read_dataset_config(bad)


def test_a_dataset_config_of_ones_own_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = next(
        own.dataset_config for own in find_dataset_configs().values() if own.card.name == "mami"
    )
    assert shipped is not None
    (tmp_path / "mine.toml").write_bytes(shipped.read_bytes())
    monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(tmp_path))
    assert find_benchmark("mine").card.title == "MAMI"
    monkeypatch.delenv("MEMANTICS_BENCHMARKS")
    with pytest.raises(UnknownName, match="benchmark"):
        find_benchmark("mine")


@pytest.mark.parametrize("name", ["memeintent", "mquest", "punmemecn", "toxicn_mm", "mer_bench"])
def test_values_of_the_sample_are_not_compared_with_the_paper(name: str) -> None:
    verdicts = {row.verdict for row in survey_data(name, "sample").statistics}
    assert "not compared" in verdicts
    assert not verdicts & {"reproduced", "differs"}


@pytest.mark.slow
@needs_shared_data
def test_values_of_a_part_of_a_release_are_not_compared_with_the_paper() -> None:
    survey = add_release("memeintent", SHARED_DATA / "memeintent")
    rows = {row.key: row for row in survey.statistics}
    deviation = rows["words.sd"]
    assert deviation.verdict == "not compared"
    assert "truncates" not in deviation.note


@pytest.mark.slow
@needs_shared_data
def test_the_fine_grained_release_is_read_whole() -> None:
    survey = add_release("fine_grained_hateful_memes", SHARED_DATA / "hateful_memes")
    assert survey.found.records == 8500
    assert {row.verdict for row in survey.statistics} == {"reproduced"}
    attacks = find_labelled("fine_grained_hateful_memes/attack")
    counts = {name: sum(name in gold for gold in attacks.gold) for name in attacks.labels.classes}
    assert counts["dehumanizing"] == 1318
    assert counts["exclusion"] == 114


def test_a_set_of_captions_alone_is_added_asked_and_has_no_metrics_to_compare(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: Shell
) -> None:
    own = ROOT / "examples" / "own_set"
    added = shell.run("data", "add", "moderated", str(own / "data"), MEMANTICS_BENCHMARKS=str(own))
    assert added.code == 0, added.err
    first, *_ = lines = [line.strip() for line in added.out.splitlines()]
    assert first == "Moderated memes: 24"
    assert "memes 24, split train 18, split test 6" in lines
    assert not any("figures" in line or "images" in line for line in lines)
    monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(own))
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    run = evaluate("moderated/verdict", "baseline/majority", out=tmp_path / "runs")
    assert sum(run.counts.values()) == 6  # the split ``test``


def test_a_dataset_config_may_have_no_column_of_images(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "own_set" / "moderated.toml").read_text(encoding="utf-8")
    path = tmp_path / "plain.toml"
    path.write_text(text.replace(', image = "image"', ""), encoding="utf-8")
    dataset_config = read_dataset_config(path)
    write_lines(tmp_path / "test.jsonl", [{"id": "a", "text": "x", "decision": 1}])
    release = open_dataset_config(dataset_config, Source("release", tmp_path))
    found = survey_dataset_config(release)
    assert (found.images_expected, found.notes) == (0, ())
    assert make_card("plain", dataset_config).task[0].splits == ("test", "train", "all")


@pytest.mark.parametrize(
    ("records", "part"), [(8_499, True), (8_500, False), (9_140, False)], ids=str
)
def test_only_a_copy_with_less_than_the_release_is_a_part(records: int, part: bool) -> None:
    """Fine-grained Hateful Memes has development memes that its paper does not count."""
    found = SimpleNamespace(
        records=records, counts={}, images_expected=0, repairs={}, skips=(), notes=()
    )
    card = SimpleNamespace(title="T", release=SimpleNamespace(complete=8_500))
    survey = SimpleNamespace(found=found, data="release", benchmark=SimpleNamespace(card=card))
    first = next(describe_found(cast("Survey", survey)))
    assert ("incomplete" in first) is part


FLAGS = """title = "flags"
summary = "x"
languages = ["en"]
source = "x"
licence = "x"
citation = "x"
files.train = ["train.csv"]
files.test = ["test.csv"]
columns = { id = "id", text = "text" }
[label.kind]
what = "kind"
flags = ["insult", "threat"]
several = true
question = "Which fit?"
"""


def test_a_flag_without_a_column_is_an_error_and_not_unset(tmp_path: Path) -> None:
    made = tmp_path / "home/datasets/flagged.toml"
    made.parent.mkdir(parents=True)
    made.write_text(FLAGS)
    folder = tmp_path / "set"
    folder.mkdir()
    shell = Shell(tmp_path)

    def write(split: str, *columns: str) -> None:
        names = ("id", "text", *columns)
        cells = [f"{split}{n},t" + f",{n % 2}" * len(columns) for n in range(4)]
        (folder / f"{split}.csv").write_text("\n".join([",".join(names), *cells]))

    write("train", "insult", "threat")
    write("test")  # an unlabelled split
    shell.done("data", "add", "flagged", "set")
    write("test", "insult", "Threat")
    told = (
        "test.csv: the flag column 'threat' is not in the table; its columns are id, text, insult"
    )
    assert told in shell.refused("data", "add", "flagged", "set")
    write("train")
    write("test")
    told = "train.csv: the flag column 'insult' is not in the table"
    assert told in shell.refused("data", "add", "flagged", "set")
