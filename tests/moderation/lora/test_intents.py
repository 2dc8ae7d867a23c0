"""A tiny model with random weights learns to write intents, and answers the task it learnt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import InputError, StoreError
from memantics.core.records import Image
from memantics.core.samples import image_path, read_samples
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.tuning import WriterOptions, tune_intents
from memantics.models.local.model import LocalModel
from memantics.moderation.judges import open_judge
from memantics.moderation.lora.tuning import list_written
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.local import tiny
from tests.moderation.lora.test_tuning import QUICK

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning:peft")]
TASK = "memeintent/intent"
BRIEF = {"max_tokens": "12"}
FAST = replace(QUICK, epochs=1, rank=2, alpha=4, train_groups=3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "peft"):
        pytest.importorskip(name)
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def test_a_tuned_writer_is_run_and_scored(shell: Shell) -> None:
    base = tiny.MAKERS["llava"](shell.folder / "base")
    learnt = ("--set", "background=human", "--set", "max_tokens=12", "--data", "sample")
    tune_it = ("detector", "tune", base, "--question", "intent", *learnt, "--device", "cpu")
    said = shell.done(
        *tune_it, "--train-groups", "6", "--epochs", "4", "--batch", "4", "--portion", "4",
        "--rate", "2e-2", "--out", "tuned",
    )  # fmt: skip
    assert "rouge_l" in said
    facts = json.loads((shell.folder / "tuned" / "tuning.json").read_bytes())
    losses = [epoch["loss"] for epoch in facts["history"]]
    assert losses[-1] < 0.9 * losses[0], "it learns what annotators wrote"
    assert facts["wording"]["options"]["background"] == "human"
    assert (facts["languages"], facts["sample"], facts["trained_on"]) == (["en"], True, 6)
    assert facts["lessons"] >= 6, "each intent of a meme is a lesson"
    card = (shell.folder / "tuned" / "CARD.md").read_text(encoding="utf-8")
    assert "as memeintent/intent asks with background=human, max_tokens=12" in card
    assert "Languages of the data: en." in card
    kept = (shell.folder / "tuned" / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) == facts["held_out"]

    shell.done("run", TASK, "--model", "detector/tuned", *learnt, "--limit", "3")
    run = mm.load_run(next((shell.folder / "runs").glob("memeintent-intent-detector*")))
    assert run.scores["rouge_l"].n == 3
    assert run.counts["failed"] == 0
    assert run.model == "detector/tuned"
    # What it wrote when it was judged, it writes again when it is run.
    written = {row["id"]: row["after"] for row in map(json.loads, kept)}
    answers = [json.loads(x) for x in (run.folder / "answers.jsonl").read_text().splitlines()]
    replies = {row["item"]: row["reply"]["text"] for row in answers}
    again = [(text, written[item]) for item, text in replies.items() if item in written]
    assert again
    assert all(one == other for one, other in again)
    shell.done("run", TASK, "--model", "local/tuned/adapter", *learnt, "--limit", "1")


def test_the_lessons_are_the_task_s_own_requests(tmp_path: Path) -> None:
    """With background in the prompt or without it, with the image or without it."""
    task = pose_one(TASK, TaskChoiceSettings("sample", options={"background": "human"})).task
    item = next(own for own in list_written(task) if own.tags["background"] == "given")
    parts = [part for message in task.ask(item, None).messages for part in message.parts]
    assert isinstance(parts[0], Image)
    assert "What one should know" in str(parts[1])
    base = tiny.MAKERS["llama"](tmp_path / "base")
    options = {**BRIEF, "role": "text"}
    done = tune_intents(
        WriterOptions(base, FAST, tmp_path / "out", "sample", None, options), lambda _: None
    )
    assert done.tuned.trained_on == 3
    with pytest.raises(InputError, match="was tuned for memeintent/intent"):
        open_judge(tmp_path / "out")
    with pytest.raises(InputError, match="generates answers, so it has no verdicts"):
        mm.paper("memeintent", data="sample", detectors=tmp_path / "out")
    adapter = tmp_path / "out" / "adapter"
    other = LocalModel(f"local/{adapter}").identity
    assert other["checkpoint"] != LocalModel(f"local/{base}").identity["checkpoint"]
    base.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="which is missing"):
        LocalModel(f"local/{adapter}")
    (tmp_path / "out" / "tuning.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be read"):
        mm.evaluate(
            TASK,
            f"detector/{tmp_path / 'out'}",
            out=tmp_path / "runs",
            settings=mm.EvaluationSettings(limit=1),
        )


def test_a_published_set_of_intents_is_learnt_from(shell: Shell, tmp_path: Path) -> None:
    memes = [meme for meme in pick_memes("en", 36) if meme.intents][:5]
    queue = make_queue(tmp_path / "queue", "collect-and-edit", memes)
    judge(queue, "collect-and-edit", {meme.id: {"intents": [*meme.intents]} for meme in memes})
    shell.done("publish", queue, "--name", "mine", "--licence", "CC0-1.0")
    base = tiny.MAKERS["llama"](shell.folder / "base")
    shell.done(
        "detector", "tune", base, "--question", "intent", "--data", "mine", "--set", "role=text",
        "--set", "max_tokens=8", "--epochs", "1", "--rank", "2", "--device", "cpu",
        "--out", "tuned",
    )  # fmt: skip
    facts = json.loads((shell.folder / "tuned" / "tuning.json").read_bytes())
    assert facts["wording"]["task"] == "mine/intent"
    assert (facts["trained_on"], facts["held_out"], facts["sample"]) == (4, 1, False)
    assert facts["licence"] == "CC0-1.0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "background=auto"), "needs model answers of memeintent/background"),
        (("--style", "image"), "--style cannot be used with --question intent"),
        (("--data", "punmemecn"), "intent"),
        (("--train-groups", "9999"), "are too few for"),
    ],
)
def test_what_cannot_be_learnt_is_one_line(
    words: tuple[str, ...], message: str, shell: Shell
) -> None:
    base = tiny.MAKERS["llama"](shell.folder / "base")
    start = ("detector", "tune", base, "--question", "intent", "--set", "role=text")
    assert message in shell.refused(*start, *words)
    assert "cannot be used with --question harm" in shell.refused(
        "detector", "tune", base, "--question", "harm", "--set", "role=text"
    )


def write_memecap(folder: Path) -> Path:
    """Files in the form of MemeCap's: bare NaN, a blank in a name, a row without a caption."""
    (folder / "memes").mkdir(parents=True)
    rows: list[dict[str, object]] = []
    for number, meme in enumerate(read_samples()[:6]):
        name = f"memes_{number}.png"
        (folder / "memes" / name).write_bytes(image_path(meme.id).read_bytes())
        rows.append(
            {
                "category": "memes",
                "img_captions": [meme.description],
                "meme_captions": [f"Meme poster {meme.intents[0].removeprefix('the meme ')}"],
                "title": "a title",
                "img_fname": f"{name} ",
                "metaphors": [{"metaphor": "a thing", "meaning": "another"}],
                "post_id": f"p{number}",
            }
        )
    rows.append({"img_fname": "x.png", "post_id": "x", "img_captions": [float("nan")]})
    (folder / "memes-trainval.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def test_memecap_is_learnt_as_intents(shell: Shell) -> None:
    """The paper's own fine-tuning: a model that reads, told what the picture shows."""
    base = tiny.MAKERS["llama"](shell.folder / "base")
    said = shell.done(
        *("detector", "tune", base, "--question", "intent", "--device", "cpu", "--out", "tuned"),
        *("--data", write_memecap(shell.folder / "meme-cap"), "--set", "role=text"),
        *("--set", "max_tokens=8", "--train-groups", "4", "--epochs", "1", "--rank", "2"),
    )
    assert "rouge_l" in said
    facts = json.loads((shell.folder / "tuned" / "tuning.json").read_bytes())
    assert (facts["trained_on"], facts["held_out"]) == (4, 2)
    card = (shell.folder / "tuned" / "CARD.md").read_text(encoding="utf-8")
    assert "MemeCap, release, split train" in card
    assert "not a MemeIntent release" in shell.refused("data", "add", "memeintent", "meme-cap")
