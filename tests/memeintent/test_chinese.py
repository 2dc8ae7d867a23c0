"""A Chinese benchmark of intents: equal sentences score one, and characters are the tokens."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest
import sacrebleu

import memantics as mm
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_tasks
from memantics.core.data import Source
from memantics.evaluation.run import Chosen, choose
from memantics.metrics.text import bleu_4, rouge_l, split_sentences, tokenize
from tests.commands import Shell

INTENTS = {
    "1_batch_2": ("zh-001.png", "吐槽老板总在下班前开会", "吐槽老板总在下班前开会"),
    "2_batch_2": ("zh-002.png", "嘲笑自己减肥又失败了", "嘲笑别人减肥总是失败"),
    "3_batch_2": ("zh-003.png", "安慰考试没考好的朋友", "mocks the trains"),
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    (folder / "images").mkdir(parents=True)
    rows = {}
    for key, (image, intent, _) in INTENTS.items():
        shutil.copy(SAMPLE_IMAGES / "en-001.png", folder / "images" / image)
        rows[key] = {
            "img": image,
            "text": "又开会",
            "image_caption": "一个人坐着",
            "bks": "* 加班很常见",
            "intents": [intent],
        }
    (folder / "sigdial.json").write_bytes(orjson.dumps(rows))
    return folder


@pytest.mark.slow
def test_a_chinese_benchmark_scores_equal_sentences_as_equal(
    release: Path, tmp_path: Path, shell: Shell
) -> None:
    ran = shell.run("data", "add", "memeintent", release)
    assert ran.code == 0, ran
    answers = [{"image": image, "answer": said} for image, _, said in INTENTS.values()]
    path = tmp_path / "said.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, answers)))
    run = mm.evaluate("memeintent/intent", f"humans/{path}", out=tmp_path / "runs")
    # 嘲笑, 减肥 and 失败 are six characters in their order, of ten each.
    second = rouge_l("嘲笑自己减肥又失败了", "嘲笑别人减肥总是失败").f1
    assert second == pytest.approx(6 / 10)
    assert run.scores["rouge_l"].value == pytest.approx((1 + second + 0) / 3)
    # The best constant text is spelt as Chinese is.
    notes = [score.note for score in run.results.scores if score.key == "best_constant_rouge_l"]
    assert notes
    assert all(" " not in note.partition("”")[0] for note in notes)


def test_a_limit_takes_the_same_memes_in_all_tasks_of_two_languages(release: Path) -> None:
    """A task that needs another one's answers must find them."""
    rows = orjson.loads((release / "sigdial.json").read_bytes())
    for row, text in zip(rows.values(), ("no sleep", "so tired", "又开会"), strict=True):
        row["text"] = text
    (release / "sigdial.json").write_bytes(orjson.dumps(rows))
    chosen = []
    for ref in find_tasks(["memeintent"]):
        task = ref.make({}, "all", Source("release", release), None)
        assert choose(task.items(), 2, task.kinds, ["en"]) is None
        chosen.append(choose(task.items(), 2, task.kinds, ["en", "zh"]))
    assert chosen == [Chosen(frozenset({"1_batch_2", "3_batch_2"}), "language")] * 3


def test_tokens_of_chinese_are_those_of_sacrebleu() -> None:
    pairs = [
        ("吐槽老板总在下班前开会", "吐槽老板总在下班前开会"),
        ("嘲笑自己减肥又失败了。", "嘲笑别人减肥总是失败。"),
        ("吐槽iPhone太贵", "吐槽iPhone又贵又慢"),
    ]
    for own, other in pairs:
        theirs = sacrebleu.sentence_bleu(
            own, [other], tokenize="zh", smooth_method="none", lowercase=True
        )
        ours = bleu_4(tokenize(own), tokenize(other))
        assert ours == pytest.approx(theirs.score / 100)


def test_other_scripts_without_spaces_and_mixed_texts() -> None:
    assert tokenize("猫はかわいい") == list("猫はかわいい")
    assert tokenize("고양이 OK") == [*"고양이", "ok"]
    assert tokenize("用iPhone15拍的，真好") == [*"用", "iphone15", *"拍的", "，", *"真好"]
    # Words of languages with spaces stay whole.
    assert tokenize("größer naïve") == ["größer", "naïve"]
    assert split_sentences("你好！再见。") == ["你好！", "再见。"]
    assert rouge_l("猫", "犬").f1 == 0.0
