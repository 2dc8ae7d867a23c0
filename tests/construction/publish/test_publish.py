"""Published benchmarks run at once, and their files are what they say they are."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.benchmarks.memeintent.write import write_intents
from memantics.benchmarks.mquest.write import write_questions
from memantics.benchmarks.punmemecn.write import write_puns
from memantics.benchmarks.writing import gather_memes
from memantics.construction.publish.datacard import describe_contents, describe_review, read_rai
from memantics.construction.publish.tables import CardSection
from memantics.core.errors import DataError, InputError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    read_review,
    write_annotations,
)
from memantics.core.samples import SampleMeme, image_path, read_samples
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes

KINDS = {"targeted": "targeted", "sexual": "innuendo", "offence": "offence"}


def label(meme: SampleMeme) -> dict[str, JsonValue]:
    if not meme.harm.harmful:
        return {"harmful": "no"}
    kind = KINDS.get(meme.harm.type, "dispirited")
    values: dict[str, JsonValue] = {"harmful": "yes", "type": kind, "modality": "fusion"}
    return values | ({"target": "age"} if kind == "targeted" else {})


def vote(folder: Path, count: int) -> Path:
    """A queue of harms on which three people voted; the first meme was dropped."""
    memes = pick_memes("zh", count)
    queue = make_queue(folder / "queue", "label-by-vote", memes)
    judge(
        queue, "label-by-vote", {meme.id: label(meme) for meme in memes}, frozenset({memes[0].id})
    )
    return queue


@pytest.fixture
def harms(tmp_path: Path) -> Path:
    return vote(tmp_path, 4)


@dataclass(frozen=True)
class Published:
    """A publication that several tests only look at."""

    shell: Shell
    said: str

    @property
    def folder(self) -> Path:
        return self.shell.folder / "published" / "office_harm"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Published:
    shell = Shell(tmp_path_factory.mktemp("office"))
    queue = vote(shell.folder, 43)
    rai = shell.folder / "rai.toml"
    rai.write_text('dataBiases = ["Drawn from one forum."]\n', encoding="utf-8")
    words = ("--name", "office_harm", "--licence", "CC0-1.0", "--rai", rai)
    said = shell.done("publish", queue, *words)
    return Published(shell, said)


def test_a_vote_becomes_a_benchmark_that_runs(office: Published) -> None:
    assert "42 memes" in office.said
    told = " ".join(office.said.split())
    assert "lacks RAI fields (give --rai FILE): dataUseCases, dataLimitations" in told
    assert "memantics run office_harm" in office.said
    told = office.shell.done("run", "office_harm/detection", "-m", "fake/keys")
    assert "sample" not in told
    (run,) = (office.shell.folder / "runs").iterdir()
    facts = json.loads((run / "run.json").read_text())
    assert (facts["task"], facts["data"]["kind"]) == ("office_harm/detection", "release")
    assert len((run / "items.jsonl").read_text().splitlines()) == 42


def test_wrong_rai_fields_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rai.toml"
    for text in ("dataBias = 'a'", "dataBiases = 3", "dataBiases = []", "dataBiases = ''", "= 1"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            read_rai(file)
    file.write_text("dataLimitations = 'Only one language.'", encoding="utf-8")
    assert read_rai(file) == {"dataLimitations": "Only one language."}


def test_the_card_tells_review_and_audit(office: Published) -> None:
    card = (office.folder / "README.md").read_text()
    assert "| kept | 42 |" in card
    assert "| dropped: not understood | 1 |" in card
    assert "Krippendorff's alpha, harmful | 1.000 (n = 43)" in card
    assert "## Audit" in card
    assert "## Models that drafted the records" in card
    assert "The queue records no model: the user supplied its items." in card
    assert "Content warning" in card


def test_parquet_holds_images_and_labels(office: Published) -> None:
    import pyarrow.parquet as pq

    folder = office.folder / "parquet"
    memes = pq.read_table(folder / "memes.parquet").to_pylist()
    labels = pq.read_table(folder / "labels.parquet").to_pylist()
    assert len(memes) == 42
    assert {row["meme"] for row in labels} == {row["id"] for row in memes}
    assert all(row["image"]["bytes"].startswith(b"\x89PNG") for row in memes)


def test_the_folder_loads_without_naming_a_part_and_images_are_joined(
    office: Published, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    where = str(tmp_path / "cache")
    loaded = datasets.load_dataset(str(office.folder), split="train", cache_dir=where)
    assert len(loaded) == 42
    first = loaded[0]
    assert first["image"].size[0] > 0
    assert [row["meme"] for row in first["labels"]] == [first["id"]]
    alone = datasets.load_dataset(str(office.folder), "labels", split="train", cache_dir=where)
    assert alone[0] == first["labels"][0]


@pytest.mark.slow
def test_a_published_benchmark_is_in_the_suite_only_when_it_is_named(office: Published) -> None:
    shell = office.shell
    told = shell.done("run", "suite", "-m", "fake/keys", "--sample", "1", "--dry-run", "--json")
    assert "office_harm" not in told
    both = ("run", "suite", "office_harm", "-m", "fake/keys", "--sample", "1", "--dry-run")
    assert "office_harm/detection" in shell.done(*both, "--json")


@pytest.mark.slow
def test_intents_are_published_in_their_family(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("en", 36) if meme.intents][:6]
    queue = make_queue(tmp_path / "queue", "collect-and-edit", memes)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {"intents": list(meme.intents), "background": list(meme.background)}
        for meme in memes
    }
    judge(queue, "collect-and-edit", values)
    shell.done("publish", str(queue), "--name", "my_intents", "--licence", "CC0-1.0")
    shell.done("run", "my_intents/intent", "-m", "fake/echo")
    (run,) = (shell.folder / "runs").glob("my-intents-*")
    items = [json.loads(line)["item"] for line in (run / "items.jsonl").read_text().splitlines()]
    assert len(items) == len(memes)
    rows = json.loads(
        (shell.folder / "published" / "my_intents" / "data" / "sigdial.json").read_text()
    )
    assert [row["intents"] for row in rows.values()] == [list(meme.intents) for meme in memes]
    # Statistics of one's own: as the paper's Section 3.3 gives them.
    told = json.loads(shell.done("data", "stats", "my_intents", "--json"))["statistics"]
    metrics = {row["key"]: row["value"] for row in told}
    words = [len(i.removeprefix("the meme ").split()) for meme in memes for i in meme.intents]
    assert metrics["words.mean"] == round(sum(words) / len(words), 3)
    facts = [len(meme.background) for meme in memes]
    assert metrics["background.mean"] == round(sum(facts) / len(facts), 3)
    page = shell.done("paper", "my_intents", run, "--annotations", queue, "--format", "md")
    assert "Words per intent, mean" in page


def test_drafted_intents_are_published_as_they_are(shell: Shell, tmp_path: Path) -> None:
    """The queue of a build says all that the format asks for: text, description, whole clauses."""
    shell.done("build", "intents", "sample", "-m", "fake/drafter", "--limit", "3")
    queue = "builds/sample/queue-intents"
    shell.done("publish", queue, "--name", "mine", "--licence", "CC0-1.0", "--unreviewed")
    rows = json.loads((shell.folder / "published/mine/data/sigdial.json").read_text())
    memes = read_samples()[:3]
    assert [(row["text"], row["image_caption"]) for row in rows.values()] == [
        (meme.text, meme.description) for meme in memes
    ]
    # These memes are Chinese: no English prefix stands before their intents.
    said = [own for row in rows.values() for own in row["intents"]]
    assert len(said) >= 3
    assert not [own for own in said if not own.strip() or own.startswith("the meme")]


def test_what_the_format_cannot_hold_is_left_out_and_counted(tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("en", 36) if meme.intents][:4]
    blank = [
        memes[0].model_copy(update={"text": " "}),
        memes[1].model_copy(update={"description": ""}),
        *memes[2:],
    ]
    queue = make_queue(tmp_path / "queue", "collect-and-edit", blank)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {"intents": list(meme.intents)} for meme in memes
    }
    judge(queue, "collect-and-edit", values | {memes[3].id: {"intents": []}})
    made = write_intents(read_review(queue, None))
    assert [meme.id for meme in made.memes] == [memes[2].id]
    assert made.skipped == {
        "no printed text": 1,
        "no description of the image": 1,
        "no intent": 1,
    }
    assert ("left out: no intent", "1") in describe_contents(made).rows


def test_puns_are_published_in_their_family(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:8]
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values: dict[str, dict[str, JsonValue]] = {}
    for meme in memes:
        assert meme.pun
        is_pun = meme.pun.is_pun and bool(meme.pun.reading)
        values[meme.id] = {
            "caption": meme.pun.caption,
            "pun": "yes" if is_pun else "no",
            "sentiment_target": "self",
            "sentiment_type": "negative",
            "explanation": meme.explanation,
        }
        if is_pun:
            values[meme.id] |= {"pun_word": meme.pun.caption, "homophone": meme.pun.reading}
    judge(queue, "pun-form", values)
    shell.done("publish", str(queue), "--name", "my_puns", "--licence", "CC0-1.0")
    shell.done("run", "my_puns/detection", "-m", "fake/keys")


def pun_values(meme: SampleMeme) -> dict[str, JsonValue]:
    """What people say of a meme in the pun form."""
    assert meme.pun
    is_pun = meme.pun.is_pun and bool(meme.pun.reading)
    values: dict[str, JsonValue] = {
        "caption": meme.pun.caption,
        "pun": "yes" if is_pun else "no",
        "sentiment_target": "self",
        "sentiment_type": "negative",
        "explanation": meme.explanation,
    }
    if is_pun:
        values |= {"pun_word": meme.pun.caption, "homophone": meme.pun.reading}
    return values


@pytest.mark.slow
def test_puns_with_hard_negatives_are_groups_of_three(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun]
    puns = [m for m in memes if m.pun and m.pun.is_pun and m.pun.reading][:2]
    others = [m for m in memes if m.pun and not m.pun.is_pun][:5]
    queue = make_queue(tmp_path / "queue", "pun-form", [*puns, *others])
    judge(queue, "pun-form", {meme.id: pun_values(meme) for meme in (*puns, *others)})
    shell.done("build", "hard-negatives", queue)
    rows = [json.loads(line) for line in (queue / "hard-negatives.jsonl").read_text().splitlines()]
    assert [row["pun"] for row in rows] == [meme.id for meme in puns]
    used = [row[kind] for row in rows for kind in ("similar_image", "similar_text")]
    assert len(set(used)) == 4
    assert set(used) <= {meme.id for meme in others}
    said = shell.done("publish", queue, "--name", "threes", "--licence", "CC0-1.0")
    assert "left out: memes not in a group of three: 1" in said
    meta = json.loads((shell.folder / "published/threes/data/_Meta.json").read_text())
    assert sorted(meta) == [
        f"CN0000{n}{role}.png" for n in (1, 2) for role in ("", ".similar_image", ".similar_text")
    ]
    texts = {meme.id: meme.pun.caption for meme in others if meme.pun}
    assert meta["CN00001.similar_text.png"]["caption_1"] == texts[rows[0]["similar_text"]]
    few = make_queue(tmp_path / "few", "pun-form", [*puns, others[0]])
    judge(few, "pun-form", {meme.id: pun_values(meme) for meme in (*puns, others[0])})
    assert "2 puns and 1 memes without a pun are too few" in shell.refused(
        "build", "hard-negatives", few
    )


def test_a_folder_that_people_judged_as_it_was_is_published(shell: Shell, tmp_path: Path) -> None:
    """No command makes queues of labels: 'memantics annotate FOLDER --workflow …' needs none."""
    memes = pick_memes("zh", 5)
    folder = tmp_path / "memes"
    folder.mkdir()
    lines = []
    for meme in memes:
        (folder / meme.file).write_bytes(image_path(meme.id).read_bytes())
        line = {"id": meme.id, "image": meme.file, "text": meme.text, "template_cluster": "keys"}
        lines.append(json.dumps(line))
    (folder / "memes.jsonl").write_text("\n".join(lines))
    captions = [
        {"id": meme.id, "text_caption": meme.meaning, "image_caption": meme.description}
        for meme in memes[:4]
    ]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, captions)))
    named = ("--name", "mine", "--licence", "CC0-1.0")
    assert "--annotations" in shell.refused("publish", folder, *named)
    judge(tmp_path, "label-by-vote", {meme.id: label(meme) for meme in memes})
    said = shell.done("publish", folder, *named, "--annotations", tmp_path / "annotations.jsonl")
    assert "4 memes" in said
    assert "left out: no description of the image: 1" in said
    data = shell.folder / "published" / "mine" / "data"
    rows = json.loads((data / "test_data_discription_2.0.json").read_text())
    assert [row["text"] for row in rows] == [meme.text for meme in memes[:4]]
    told = [json.loads(line) for line in (data / "metadata.jsonl").read_text().splitlines()]
    assert {(row["language"], row["template_cluster"]) for row in told} == {("zh", "keys")}


def test_chats_alone_are_no_questions(tmp_path: Path) -> None:
    """Both are judged by one workflow, and only one of them is a benchmark by itself."""
    queue = make_queue(tmp_path / "queue", "validate", pick_memes("en", 1))
    with pytest.raises(DataError, match=r"is not a queue of questions; chats .* --chats"):
        write_questions(read_review(queue, None, unreviewed=True))


def test_unreviewed_drafts_need_a_word(shell: Shell, tmp_path: Path) -> None:
    memes = pick_memes("en", 2)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    line = shell.refused("publish", str(queue), "--name", "drafts", "--licence", "CC0-1.0")
    assert "--unreviewed" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "Bad Name"), "is not valid"),
        (("--name", "mquest"), "already exists"),
        (("--name", "fine", "--out", "taken"), "contains other files, such as mine.txt"),
        (("--name", "file", "--out", "taken"), "is a file"),
    ],
)
def test_bad_wishes_are_refused(
    shell: Shell, harms: Path, arguments: tuple[str, ...], said: str
) -> None:
    (shell.folder / "taken" / "fine").mkdir(parents=True)
    (shell.folder / "taken" / "fine" / "mine.txt").write_text("precious")
    (shell.folder / "taken" / "file").write_text("precious")
    assert said in shell.refused("publish", str(harms), "--licence", "CC0-1.0", *arguments)
    assert (shell.folder / "taken" / "fine" / "mine.txt").read_text() == "precious"
    assert (shell.folder / "taken" / "file").read_text() == "precious"


def test_publishing_again_replaces_ones_own_and_nothing_else(shell: Shell, harms: Path) -> None:
    publish = ("publish", harms, "--name", "mine", "--licence", "CC0-1.0", "--version")
    folder = shell.folder / "published" / "mine"
    for version in ("1.0.0", "1.1.0"):
        shell.done(*publish, version)
    assert '"1.1.0"' in (folder / "card.toml").read_text()
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]
    (folder / "notes.txt").write_text("precious")
    assert "such as notes.txt" in shell.refused(*publish, "1.2.0")
    assert (folder / "notes.txt").read_text() == "precious"


def test_what_cannot_be_read_back_takes_no_place(shell: Shell, harms: Path) -> None:
    lines = (harms / "items.jsonl").read_text()
    (harms / "items.jsonl").write_text(lines.replace('"text":"', '"text":"' + 20_000 * "很"))
    said = shell.refused("publish", harms, "--name", "mine", "--licence", "CC0-1.0")
    assert "nothing was published" in said
    assert list((shell.folder / "published").iterdir()) == []
    assert "mine" not in shell.done("data", "list")


def test_whoever_settles_a_tie_is_no_annotator(tmp_path: Path) -> None:
    """Two of three said yes; the adjudicator saw that, so her vote says nothing on agreement."""
    memes = pick_memes("zh", 2)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    said = {memes[0].id: ("yes", "no"), memes[1].id: ("no", "no")}

    def review(adjudicated: bool) -> CardSection:
        annotations = []
        for name, values in said.items():
            votes = [
                IndividualAnnotation(annotator=f"p{place}", stage="label", values={"harmful": own})
                for place, own in enumerate(values)
            ]
            if adjudicated:
                votes.append(
                    IndividualAnnotation(
                        annotator="p9", stage="adjudicate", values={"harmful": "yes"}
                    )
                )
            annotations.append(
                AggregatedAnnotation(
                    item=name,
                    group=name,
                    workflow="label-by-vote",
                    kept=True,
                    values={"harmful": values[0]},
                    annotations=votes,
                )
            )
        write_annotations(queue / "annotations.jsonl", annotations)
        return describe_review(read_review(queue, None))

    def agreement(section: CardSection) -> str:
        return dict(section.rows)["Krippendorff's alpha, harmful"]

    assert agreement(review(adjudicated=True)) == agreement(review(adjudicated=False))
    assert dict(review(adjudicated=True).rows)["people"] == "3"


READ = """
import itertools, json, sys
import mlcroissant
data = mlcroissant.Dataset("croissant.json")
assert not data.metadata.issues.errors, data.metadata.issues.errors
assert not data.metadata.issues.warnings, data.metadata.issues.warnings
assert data.metadata.ctx.conforms_to.value.endswith("/1.1")
assert data.metadata.data_annotation_protocol, "no RAI fields"
assert data.metadata.data_biases == ["Drawn from one forum."], data.metadata.data_biases
first = next(iter(data.records("memes")))
labels = list(data.records("labels"))
print(first["memes/id"].decode(), first["memes/image"].size[0] > 0, len(labels))
"""


def test_croissant_is_read_by_its_own_library(office: Published) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=office.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["True", "42"]


@pytest.mark.slow
def test_chats_join_the_puns_that_they_are_about(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:8]
    folder = tmp_path / "memes"
    folder.mkdir()
    lines = []
    for meme in memes:
        (folder / meme.file).write_bytes(image_path(meme.id).read_bytes())
        notes = {"meaning": meme.meaning, "description": meme.description}
        line = {"id": meme.id, "image": meme.file, "text": meme.text, "language": "zh"}
        lines.append(json.dumps(line | {"notes": notes}))
    (folder / "memes.jsonl").write_text("\n".join(lines))
    ran = shell.run("build", "chats", folder, "-m", "fake/drafter", "--out", "chats")
    assert ran.code in (0, 1), ran
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {
            "caption": meme.text,
            "pun": "yes",
            "pun_word": meme.text,
            "homophone": meme.text,
            "explanation": "",
        }
        for meme in memes
    }
    judge(queue, "pun-form", values)
    publish = ("publish", queue, "--name", "spoken", "--licence", "CC0-1.0", "--unreviewed")
    spoken = shell.folder / "chats" / "queue-chats"
    _, items = read_queue(spoken)
    edited = "A: 今天怎么样\n乙：还不错，你呢"
    kept = [
        AggregatedAnnotation(
            item=own.id,
            group=own.group,
            workflow="edit-chats",
            kept=True,
            values={"turns": edited} if place == 0 else {},
        )
        for place, own in enumerate(items)
    ]
    write_annotations(spoken / "annotations.jsonl", kept)
    shell.done(*publish, "--chats", "chats")
    data = shell.folder / "published" / "spoken" / "data"
    chats = json.loads((data / "_Chat(hard).json").read_text())
    assert chats
    histories = [chat["chat_history"] for chat in chats.values()]
    assert sum(own[:-1] == ["甲：今天怎么样", "乙：还不错，你呢"] for own in histories) == 1
    shell.done("run", "spoken/chat", "-m", "fake/keys")
    wrong = kept[0].model_copy(update={"values": {"turns": "nobody speaks"}})
    write_annotations(spoken / "annotations.jsonl", [wrong, *kept[1:]])
    assert "does not begin with a speaker" in shell.refused(*publish, "--chats", "chats")


@pytest.mark.slow
def test_a_published_set_inherits_no_draw_and_no_figure_of_its_family(
    shell: Shell, tmp_path: Path
) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun]
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values = {meme.id: pun_values(meme) for meme in memes}
    first = next(name for name, own in values.items() if own["pun"] == "yes")
    values[first]["sentiment_target"] = "both"  # the only one: the authors would ask it 400 times
    judge(queue, "pun-form", values)
    said = shell.done("publish", queue, "--name", "own_puns", "--licence", "CC0-1.0")
    puns = sum(own["pun"] == "yes" for own in values.values())
    assert puns >= 8
    assert f"{len(memes)} labels" in said
    assert " puns" not in said.partition("in the format")[0]
    for task in ("ocr", "pinyin", "sentiment"):
        listed = shell.done("run", f"own_puns/{task}", "-m", "baseline/constant", "--json")
        counts = json.loads(listed)[0]
        folder = Path(counts["folder"])
        items = (shell.folder / folder / "items.jsonl").read_text().splitlines()
        assert len(items) == puns, task
    card = (shell.folder / "published/own_puns/README.md").read_text(encoding="utf-8")
    assert 'language: ["zh"]' in card
    assert "published values" not in card
    assert f"| annotated | {len(memes)} |" in card
    assert f"| labels | {len(memes)} |" in card
    assert "| labels by pun |" in card
    assert "labels by pun_word" not in card


def test_the_language_of_a_card_is_that_of_its_memes(tmp_path: Path) -> None:
    memes = pick_memes("zh", 2)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    lines = [json.loads(line) for line in (queue / "items.jsonl").read_text().splitlines()]
    for line in lines:
        del line["hidden"]["language"]
    (queue / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    judge(queue, "label-by-vote", {meme.id: label(meme) for meme in memes})
    found = gather_memes(read_review(queue, None))
    assert {meme.language for meme in found.values()} == {"zh"}


def test_annotations_under_several_guidelines_are_counted(tmp_path: Path) -> None:
    memes = pick_memes("zh", 1)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    own = label(memes[0])
    votes = [
        IndividualAnnotation(annotator=f"p{n}", stage="label", values=own, guideline=1 + (n > 1))
        for n in (1, 2, 3)
    ]
    write_annotations(
        queue / "annotations.jsonl",
        [
            AggregatedAnnotation(
                item=memes[0].id, group=memes[0].id, workflow="label-by-vote", kept=True,
                values=own, annotations=votes,
            )
        ],
    )  # fmt: skip
    rows = dict(describe_review(read_review(queue, None)).rows)
    assert rows["answers under guideline version 1"] == "1 of 3"
    assert rows["answers under guideline version 2"] == "2 of 3"


def test_all_annotations_that_cannot_be_published_are_listed_at_once(tmp_path: Path) -> None:
    memes = [m for m in pick_memes("zh", 43) if m.pun and m.pun.is_pun and m.pun.reading][:3]
    queue = make_queue(tmp_path / "queue", "pun-form", memes)
    values = {meme.id: pun_values(meme) for meme in memes}
    values[memes[0].id]["pun_word"] = "absent"
    values[memes[1].id]["homophone"] = ""
    values[memes[2].id]["caption"] = ""
    judge(queue, "pun-form", values)
    with pytest.raises(DataError) as caught:
        write_puns(read_review(queue, None))
    told = str(caught.value)
    assert "3 annotations cannot be published" in told
    assert f"{memes[0].id}: pun word 'absent' is not in its caption" in told
    assert f"{memes[1].id}: no homophone" in told
    assert f"{memes[2].id}: no caption" in told
