"""Long tables of votes: every row is the vote of one annotator on one meme."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import orjson
import pytest

from memantics.benchmarks.dataset_reader import ConfiguredMeme, ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark, find_tasks
from memantics.core.registry import find_registered, read_registry
from memantics.evaluation.datasets import add_release
from memantics.evaluation.facts import Scope
from memantics.evaluation.own_columns import LabelledColumns
from memantics.evaluation.tasks import pose_task
from tests.commands import Shell
from tests.readers import layouts as made

PEOPLE = {"p": ("F", "18"), "q": ("F", "40"), "r": ("M", "40")}
HEAD = "item_id,text,annotator,label\n"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def open_set(name: str) -> list[ConfiguredMeme]:
    release = find_benchmark(name).open(find_registered(name).source)
    assert isinstance(release, ConfiguredRelease)
    return list(release.memes)


def make_votes() -> list[dict[str, str]]:
    """Votes on twelve memes; F calls every second one bad, M none."""
    return [
        {
            "item_id": f"m{n}",
            "image": f"m{n}.png",
            "text": f"caption {n}",
            "split": ("Train", "TEST")[n // 9],
            "annotator": who,
            "label": "bad" if gender == "F" and n % 2 else "fine",
            "gender": gender,
            "age": age,
            "seconds": str(7 * n + len(who + gender + age) + ord(who)),
        }
        for n in range(12)
        for who, (gender, age) in PEOPLE.items()
    ]


def join(out: str) -> str:
    return " ".join(out.split())


def test_a_long_table_is_understood_and_says_how(tmp_path: Path) -> None:
    rows = make_votes()
    made.write_csv(tmp_path / "set/memes.csv", rows)
    made.write_images(tmp_path / "set", [made.Row(f"m{n}", "", "", "", b"x") for n in range(12)])
    out = join(Shell(tmp_path).done("data", "add", "set"))
    for said in (
        "12 memes; dataset config",
        "one vote per row: 36 votes of 3 annotators (annotator) on 12 memes (item_id)",
        "attributes of annotators: gender, age",
        "not read, since they differ between the votes on a meme: seconds",
        "values of the split column: Train = train, TEST = test",
        "splits: train 9, test 3",
        "images: 12 of 12",
        "label: fine 66.7 %, bad 33.3 %",
        "annotators: 3",
    ):
        assert said in out, out
    memes = open_set("set")
    assert [meme.id for meme in memes] == [f"m{n}" for n in range(12)]
    first = memes[1]
    assert first.labels == {"label": ("bad",)}
    assert [(v.annotator, v.values, dict(v.attributes)) for v in first.votes["label"]] == [
        ("p", ("bad",), {"gender": "F", "age": "18"}),
        ("q", ("bad",), {"gender": "F", "age": "40"}),
        ("r", ("fine",), {"gender": "M", "age": "40"}),
    ]


def test_a_shuffled_long_table_has_the_memes_of_the_sorted_one(tmp_path: Path) -> None:
    rows = make_votes()
    made.write_csv(tmp_path / "a/memes.csv", rows)
    random.Random(1).shuffle(rows)
    made.write_csv(tmp_path / "b/memes.csv", rows, ";")
    for name in "ab":
        add_release(str(tmp_path / name))
    one, other = open_set("a"), open_set("b")
    assert sorted(meme.id for meme in one) == sorted(meme.id for meme in other)
    seen = dict.fromkeys(row["item_id"] for row in rows)
    for split in ("train", "test"):  # by split, each in the order of the first row of a meme
        wanted = [name for name in seen if (int(name[1:]) < 9) is (split == "train")]
        assert [meme.id for meme in other if meme.split == split] == wanted
    votes = [
        {m.id: sorted((v.annotator, v.values) for v in m.votes["label"]) for m in memes}
        for memes in (one, other)
    ]
    assert votes[0] == votes[1]
    assert {m.id: m.labels for m in one} == {m.id: m.labels for m in other}


def test_long_and_list_forms_give_the_same_items(tmp_path: Path) -> None:
    """The aggregation is that of the other forms: ties have no label, but votes."""
    table = [("a", "xyx"), ("b", "xy"), ("c", "yyy")]
    long = [
        {"item_id": n, "text": f"t{n}", "annotator": f"p{k}", "tone": vote}
        for n, votes in table
        for k, vote in enumerate(votes)
    ]
    made.write_csv(tmp_path / "long.csv", long)
    lists = [
        {"id": n, "text": f"t{n}", "annotators": [f"p{k}" for k in range(len(v))], "tone": [*v]}
        for n, v in table
    ]
    made.write_lines(tmp_path / "lists.jsonl", lists)
    add_release(str(tmp_path / "long.csv"), columns=LabelledColumns(["tone"]))
    add_release(str(tmp_path / "lists.jsonl"), columns=LabelledColumns(votes=["tone"]))
    one, other = open_set("long"), open_set("lists")
    for each in ("id", "labels", "votes", "text", "split"):
        assert [getattr(m, each) for m in one] == [getattr(m, each) for m in other]
    assert [meme.labels["tone"] for meme in one] == [("x",), (), ("y",)]


@pytest.mark.parametrize("column", ["Worker ID", "WorkerId", "rater", "标注员"])
def test_usual_names_of_annotators_are_known_and_others_are_named(
    column: str, tmp_path: Path
) -> None:
    text = "task,text,{},label\n1,a,p,x\n1,a,q,y\n2,b,p,y\n2,b,q,y\n"
    made.write(tmp_path / "usual.csv", text.format(column))
    made.write(tmp_path / "other.csv", text.format("who"))
    shell = Shell(tmp_path)
    assert f"annotators ({column})" in join(shell.done("data", "add", "usual.csv"))
    words = ("data", "add", "other.csv", "--id", "task")
    told = shell.refused(*words)
    assert "rows with the task '1' have different labels; name the column of annotators" in told
    assert "2 annotators (who) on 2 memes (task)" in join(shell.done(*words, "--annotator", "who"))
    assert [len(meme.votes["label"]) for meme in open_set("other")] == [2, 2]


def test_a_column_of_annotators_without_repeated_ids_is_no_long_table(tmp_path: Path) -> None:
    made.write(tmp_path / "one.csv", "id,text,annotator,label\n1,a,p,x\n2,b,q,y\n3,c,p,y\n")
    assert "one vote per row" not in Shell(tmp_path).done("data", "add", "one.csv")
    assert open_set("one")[0].votes == {}


def test_an_id_of_the_vote_is_not_that_of_the_meme(tmp_path: Path) -> None:
    rows = [{"id": str(n), **row} for n, row in enumerate(make_votes())]
    made.write_csv(tmp_path / "memes.csv", rows)
    assert "on 12 memes (item_id)" in join(Shell(tmp_path).done("data", "add", "memes.csv"))


def test_rows_without_an_id_are_joined_by_their_image_or_text(tmp_path: Path) -> None:
    for name in ("image", "text"):
        text = f"{name},annotator,label\n" + "".join(
            f"t{n},{who},{'xy'[n % 2]}\n" for n in range(4) for who in "pq"
        )
        made.write(tmp_path / f"by_{name}.csv", text)
        Shell(tmp_path).done("data", "add", f"by_{name}.csv")
        assert [len(meme.votes["label"]) for meme in open_set(f"by_{name}")] == [2] * 4


def test_votes_of_one_meme_may_be_in_several_files_of_a_split(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "split"} for row in make_votes()]
    for part in range(3):
        made.write_csv(tmp_path / f"set/train-{part}.csv", rows[part::3])
    made.write_csv(tmp_path / "set/test.csv", [r | {"item_id": f"t{r['item_id']}"} for r in rows])
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "72 votes of 3 annotators (annotator) on 24 memes" in out
    assert {len(meme.votes["label"]) for meme in open_set("set")} == {3}


def test_several_columns_of_votes_a_gold_column_and_several_labels_per_vote(tmp_path: Path) -> None:
    rows = [
        {**row, "text": row["text"], "gold": "yn"[int(row["item_id"][1:]) % 2]}
        | {"tags": ["a", "b"][: 1 + (row["annotator"] == "p")], "sarcasm": row["gender"]}
        for row in make_votes()
    ]
    made.write_lines(tmp_path / "set.jsonl", rows)
    flags = [w for name in ("label", "tags", "sarcasm", "gold") for w in ("--label", name)]
    out = join(Shell(tmp_path).done("data", "add", "set.jsonl", *flags))
    assert "gold is equal in all rows of a meme: a label, not votes" in out
    first = open_set("set")[0]
    assert first.labels["gold"] == ("y",)
    assert set(first.votes) == {"label", "tags", "sarcasm"}
    assert [vote.values for vote in first.votes["tags"]] == [("a", "b"), ("a",), ("a",)]
    assert first.labels["tags"] == ("a",)


WRONG = {
    "text": ("1,a,p,x\n1,b,q,y\n", "row 2: column 'text' of item_id '1' is 'b', but 'a' in row 1"),
    "twice": (
        "1,a,p,x\n2,b,p,y\n1,a,p,y\n",
        "row 3: annotator 'p' votes a second time on '1' (first: row 1 of set.csv)",
    ),
    "nobody": ("1,a,p,x\n1,a,,y\n", "row 2: a vote has no annotator in the column 'annotator'"),
    "nothing": ("1,a,p,x\n1,a,q,y\n,b,p,x\n", "row 3: column 'item_id' is empty"),
    "one value": ("1,a,p,x\n1,a,q,x\n", "column 'label' has 1 different values"),
}


@pytest.mark.parametrize("case", WRONG)
def test_rows_that_contradict_each_other_give_one_line(case: str, tmp_path: Path) -> None:
    made.write(tmp_path / "set.csv", HEAD + WRONG[case][0])
    assert WRONG[case][1] in Shell(tmp_path).refused("data", "add", "set.csv")
    assert "set" not in read_registry()
    assert not (Shell(tmp_path).home / "datasets/set.toml").exists()


def test_rows_of_one_meme_in_two_splits_are_refused(tmp_path: Path) -> None:
    text = "item_id,text,annotator,label,split\n1,a,p,x,train\n1,a,q,y,test\n"
    made.write(tmp_path / "set.csv", text)
    assert "column 'split' of item_id '1'" in Shell(tmp_path).refused("data", "add", "set.csv")


def test_an_unanswered_row_is_no_vote(tmp_path: Path) -> None:
    made.write(tmp_path / "set.csv", HEAD + "1,a,p,x\n1,a,q,\n2,b,p,y\n3,c,,\n")
    Shell(tmp_path).done("data", "add", "set.csv")
    assert [len(meme.votes["label"]) for meme in open_set("set")] == [1, 1, 0]


def test_a_config_with_rows_needs_annotators(tmp_path: Path) -> None:
    made.write_csv(tmp_path / "memes.csv", make_votes())
    shell = Shell(tmp_path)
    shell.done("data", "add", "memes.csv")
    path = shell.home / "datasets/memes.toml"
    path.write_text(path.read_text().replace('"annotators" = "annotator", ', ""))
    assert (
        "the key rows needs the keys column and annotators"
        in shell.run("data", "check", "memes").err
    )


@pytest.mark.slow
def test_the_memory_does_not_grow_with_the_votes(tmp_path: Path) -> None:
    peaks = []
    for size in (800, 4_000):
        path = tmp_path / f"n{size}.jsonl"
        memes = size // 4
        rows = [
            {"item_id": f"m{n % memes}", "text": f"{'text ' * 40}{n % memes}", "label": "xy"[n % 2]}
            | {"annotator": f"p{n // memes}"}
            for n in range(size)
        ]
        made.write_lines(path, rows)
        del rows
        add_release(str(path))
        release = find_benchmark(path.stem).open(find_registered(path.stem).source)
        assert isinstance(release, ConfiguredRelease)
        tracemalloc.start()
        assert sum(1 for _ in release.memes) == memes
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000


def test_a_task_scores_agreement_by_annotator_group(tmp_path: Path) -> None:
    made.write_csv(tmp_path / "memes.csv", make_votes())
    add_release(str(tmp_path / "memes.csv"))
    task = pose_task(find_tasks(["memes/label_votes"])[0], {}, Scope("release", "all")).task
    items = list(task.items())
    assert len(items) == 12
    gold = items[0].gold
    assert isinstance(gold, dict)
    assert orjson.loads(orjson.dumps(gold["votes"]))[0]["attributes"] == {
        "gender": "F",
        "age": "18",
    }
