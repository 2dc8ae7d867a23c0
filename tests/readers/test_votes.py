"""Votes of annotators: read, asked for, scored, and compared between groups."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import orjson
import pytest

from memantics.benchmarks.dataset_votes import gather_votes
from memantics.benchmarks.registry import find_benchmark, find_tasks
from memantics.core.errors import InputError
from memantics.core.records import Item, Outcome, Score
from memantics.core.registry import find_registered
from memantics.core.task import Task, Unparsed
from memantics.evaluation.datasets import add_release
from memantics.evaluation.facts import Scope
from memantics.evaluation.own_columns import LabelledColumns
from memantics.evaluation.tasks import pose_task
from memantics.models.baseline import open_baseline
from memantics.moderation.data import find_examples
from memantics.moderation.kernel import make_targets
from tests.commands import Shell
from tests.places import ROOT

PEOPLE = (("a", "F"), ("b", "F"), ("c", "M"), ("d", "M"))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def write_set(folder: Path, *, several: bool = False) -> Path:
    """Two groups that disagree: F calls every second meme rude, M calls none rude."""
    draw, rows = random.Random(0), {}
    for n in range(40):
        votes = [
            ("rude" if gender == "F" and n % 2 and draw.random() < 0.9 else "fine")
            for _, gender in PEOPLE
        ]
        rows[f"m{n}"] = {
            "text": f"caption {n}",
            "annotators": [name for name, _ in PEOPLE],
            "gender_annotators": [gender for _, gender in PEOPLE],
            "tone": [[vote, "loud"] if vote == "rude" else [vote] for vote in votes]
            if several
            else votes,
        }
    folder.mkdir()
    (folder / "test.json").write_bytes(orjson.dumps(rows))
    return folder


def add(folder: Path) -> None:
    add_release(str(folder), columns=LabelledColumns(votes=["tone"]))


def make_task(name: str, options: dict[str, str] | None = None) -> Task:
    return pose_task(find_tasks([name])[0], options or {}, Scope("release", "test")).task


def score(task: Task, value: object) -> dict[tuple[str, str, str], Score]:
    outcomes = [Outcome(item, "answered", value(item)) for item in task.items()]  # type: ignore[operator]
    return {(row.key, row.by, row.label): row for row in task.score(outcomes)}


def test_a_perfect_and_a_uniform_prediction(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set"))
    task = make_task("set/tone_votes")

    def truth(item: Item) -> dict[str, float]:
        (meme,) = gather_votes([Outcome(item, "answered", {})], several=False)
        return dict(meme.gold)

    perfect = score(task, truth)
    assert perfect["icm_soft_norm", "", ""].value == pytest.approx(1)
    assert perfect["manhattan", "", ""].value == 0
    assert perfect["jensen_shannon", "", ""].value == pytest.approx(0)
    assert perfect["accuracy", "", ""].value == 1
    even = score(task, lambda _: {"fine": 0.5, "rude": 0.5})
    assert even["icm_soft_norm", "", ""].value < 1  # type: ignore[operator]
    assert even["cross_entropy", "", ""].value > perfect["cross_entropy", "", ""].value  # type: ignore[operator]
    assert even["vote_probability", "", ""].value == 0.5


def test_a_model_that_agrees_with_one_group_is_told_apart(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set"))
    found = score(make_task("set/tone_votes"), lambda _: {"fine": 0.9, "rude": 0.1})
    women, men = (found["vote_probability", "gender", group] for group in "FM")
    assert women.value < men.value == pytest.approx(0.9)  # type: ignore[operator]
    assert (women.n, men.n) == (80, 80)
    gap = found["group_difference", "gender", "F − M"]
    assert gap.n == 40
    assert gap.high < 0  # type: ignore[operator]
    assert gap.note.startswith("p = 0.000")
    same = score(make_task("set/tone_votes"), lambda _: {"fine": 0.5, "rude": 0.5})
    flat = same["group_difference", "gender", "F − M"]
    assert flat.value == 0
    assert flat.note.startswith("p = 1.000")


def test_an_invalid_answer_counts_as_equal_probabilities(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set"))
    task = make_task("set/tone_votes")
    refused = task.score([Outcome(item, "refused") for item in task.items()])
    values = {row.key: row.value for row in refused if not row.by}
    assert values["vote_probability"] == 0.5
    assert values["accuracy"] == 0
    assert values["icm_soft_norm"] is not None
    assert task.score(())[0].value is None


def test_replies_are_read_and_refused(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set"))
    task = make_task("set/tone_votes")
    form = next(iter(task.items())).form
    read = task.parse('Sure: {"Fine": 60, "rude": 20}', form)
    assert read == pytest.approx({"fine": 0.75, "rude": 0.25})
    for text, said in (
        ("yes", "no JSON object"),
        ('{"fine": 50}', "no value for rude"),
        ('{"fine": 150, "rude": 0}', "not between 0 and 100"),
        ('{"fine": true, "rude": 0}', "not a number"),
        ('{"fine": 0, "rude": 0}', "all percentages are 0"),
    ):
        with pytest.raises(Unparsed, match=said):
            task.parse(text, form)


def test_samples_are_joined_by_meme(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set"))
    task = make_task("set/tone_votes", {"ask": "samples", "samples": "4"})
    items = list(task.items())
    assert len(items) == 160
    assert items[3].id == "m0#4"
    request = task.ask(items[3], None)
    assert (request.sampling.temperature, request.sampling.seed) == (1.0, 4)
    keys = {option.text: option.key for option in items[0].form.fields[0].options}
    replies = [keys["rude"], keys["fine"], keys["fine"], keys["fine"]]
    outcomes = [
        Outcome(item, "answered", task.parse(replies[n], item.form))
        for n, item in enumerate(items[:4])
    ]
    (meme,) = gather_votes(outcomes, several=False)
    assert meme.said == pytest.approx({"fine": 0.75, "rude": 0.25})


def test_several_labels_per_annotator(tmp_path: Path) -> None:
    add(write_set(tmp_path / "set", several=True))
    task = make_task("set/tone_votes")
    found = score(task, lambda _: {"fine": 1.0, "rude": 0.0, "loud": 0.0})
    assert found["vote_probability", "gender", "M"].value == 1
    assert found["vote_probability", "gender", "F"].value < 1  # type: ignore[operator]
    items = list(task.items())
    assert {field.name for field in items[0].form.fields} == {"fine", "loud", "rude"}
    reply = asyncio.run(open_baseline("baseline/majority").answer(task.ask(items[0], None)))
    value = task.parse(reply.text, items[0].form)
    assert isinstance(value, dict)
    assert value["fine"] > value["loud"] > 0  # type: ignore[operator]


@pytest.mark.parametrize("method", ["majority", "dawid_skene", "mace"])
def test_labels_by_majority_dawid_skene_and_mace(method: str, tmp_path: Path) -> None:
    rows = [
        {"id": f"m{n}", "text": "x", "tone": [true] * 2 + [random.Random(n).choice("ab")] * 1}
        for n, true in enumerate("ab" * 15)
    ]
    for row in rows:
        row["annotators"] = ["p", "q", "r"]
    (tmp_path / "set").mkdir()
    (tmp_path / "set/test.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    add(tmp_path / "set")
    config = Shell(tmp_path).home / "datasets/set.toml"
    text = config.read_text().replace('"column" =', f'"aggregate" = "{method}", "column" =')
    config.write_text(text)
    release = find_benchmark("set").open(find_registered("set").source)
    labels = {meme.id: meme.labels["tone"] for meme in release.memes}  # type: ignore[attr-defined]
    assert labels == {f"m{n}": (true,) for n, true in enumerate("ab" * 15)}
    assert len(list(make_task("set/tone").items())) == 30


def test_the_votes_of_the_annotation_app_need_no_conversion(tmp_path: Path) -> None:
    table = "item,text,harmful,harmful:P01,harmful:P02,harmful:P03\n"
    table += "m1,go away,yes,yes,yes,no\nm2,hello,no,no,,no\n"
    (tmp_path / "data.csv").write_text(table)
    add_release(str(tmp_path / "data.csv"), columns=LabelledColumns(["harmful"]))
    release = find_benchmark("data").open(find_registered("data").source)
    first, second = release.memes  # type: ignore[attr-defined]
    assert [(v.annotator, v.values) for v in first.votes["harmful"]] == [
        ("P01", ("yes",)),
        ("P02", ("yes",)),
        ("P03", ("no",)),
    ]
    assert len(second.votes["harmful"]) == 2  # one annotator did not answer
    assert first.labels["harmful"] == ("yes",)
    assert {item.id for item in make_task("data/harmful_votes").items()} == {"m1", "m2"}


@pytest.mark.slow
def test_the_tutorial_on_disagreement_gives_a_table_by_annotator_group(tmp_path: Path) -> None:
    """The commands of the page, as written; the example is copied, so that paths are the same."""
    shell = Shell(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = (ROOT / "docs/tutorials/disagreement.md").read_text(encoding="utf-8")
    out = {}
    for block in page.split("```console\n")[1:]:
        for line in block.split("```")[0].splitlines():
            words = line.removeprefix("$ memantics ").split()
            folders = [w for w in words if w.endswith("/*")]
            for word in folders:
                place = words.index(word)
                words[place : place + 1] = sorted(map(str, tmp_path.glob(word)))
            out[words[0], words[-1]] = shell.done(*words)
    table = out["report", "markdown"]
    for row in ("age: 18-22", "age: 46+", "gender: F", "gender: M", "gender: F − M"):
        assert row in table.replace("\\", "")
    page = (tmp_path / "disagreement.html").read_text(encoding="utf-8")
    assert "annotators: mean" in page
    assert page.index("20–40 %") < page.index("80–100 %")


def test_a_detector_trains_on_the_proportions_of_annotators(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.done("data", "add", ROOT / "examples/disagreement", "--votes", "tone")
    found = find_examples("disagreement/tone_votes=mean", "train")
    hard = find_examples("disagreement/tone=mean", "train")
    assert found.notes[-1] == "targets are the proportions of annotators"
    # Captions with as many votes for each label have no label, but a proportion.
    ties = [example for example in found.examples if example.proportion == 0.5]
    assert len(found.examples) == 60 == len(hard.examples) + len(ties)
    targets = make_targets(found.examples)
    shares = [example.proportion for example in found.examples]
    assert targets.signs[:, 0].tolist() == pytest.approx(
        [2 * p - 1 for p in shares if p is not None]
    )
    assert make_targets(hard.examples).signs[:, 0].tolist().count(-1.0) > 0
    with pytest.raises(InputError, match="unknown value of disagreement/tone: 'rude'"):
        find_examples("disagreement/tone_votes=rude", "train")


@pytest.mark.slow
def test_a_trained_detector_says_that_it_learned_from_votes(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.done("data", "add", ROOT / "examples/disagreement", "--votes", "tone")
    words = ("--data", "disagreement/tone_votes=mean", "--out", "mean.zip", "--preset", "ridge")
    shell.done("detector", "train", *words)
    out = shell.done("detector", "predict", "mean.zip", "nobody asked for your opinion", "--json")
    rude = orjson.loads(out)[0]
    out = shell.done("detector", "predict", "mean.zip", "my cat fixed the printer", "--json")
    kind = orjson.loads(out)[0]
    assert rude["probability"] > kind["probability"]


def test_memes_of_one_group_have_votes_of_their_own(tmp_path: Path) -> None:
    """A group is a cluster of intervals; its memes are not samples of one answer."""
    rows = [
        {"id": f"m{n}", "text": "x", "series": f"s{n // 2}", "tone": [vote] * 2}
        for n, vote in enumerate(["rude", "fine"] * 6)
    ]
    for row in rows:
        row["annotators"] = ["p", "q"]
    (tmp_path / "set").mkdir()
    (tmp_path / "set/test.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    add(tmp_path / "set")
    config = Shell(tmp_path).home / "datasets/set.toml"
    text = config.read_text().replace('columns = { "id"', 'columns = { "group" = "series", "id"')
    config.write_text(text)
    task = make_task("set/tone_votes")
    items = list(task.items())
    assert {item.group for item in items} == {f"s{n}" for n in range(6)}
    memes = gather_votes([Outcome(item, "answered", {}) for item in items], several=False)
    assert [meme.gold["rude"] for meme in memes] == [1.0, 0.0] * 6
    truth = {meme.id: dict(meme.gold) for meme in memes}
    found = score(task, lambda item: truth[item.id])
    assert found["manhattan", "", ""].value == 0
    assert found["accuracy", "", ""].n == 12
    assert found["vote_probability", "", ""].value == 1
