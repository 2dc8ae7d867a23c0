"""A tiny vision-language model with random weights learns to answer, by LoRA alone."""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memantics.core.errors import ImageError, InputError, MissingExtra, StoreError
from memantics.models.local.model import LocalModel
from memantics.models.local.settings import LocalSettings
from memantics.moderation.lora.judging import (
    ChatProcessor,
    TunedJudge,
    TuningCase,
    Wording,
    open_model,
)
from memantics.moderation.lora.tuning import Tuning, TuningTools, add_adapter, answer_loss, tune
from memantics.moderation.neural import machine as neural_packages
from tests.local import tiny

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning:peft")]
QUICK = Tuning(epochs=4, batch=4, portion=2, rate=2e-2, rank=4, alpha=8, dropout=0.0, device="cpu")


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        for name in ("torch", "transformers", "peft"):
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed (extra detector)")
        if kind not in made:
            made[kind] = tiny.MAKERS[kind](tmp_path_factory.mktemp(kind))
        return made[kind]

    return get


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tools(said: list[str] | None = None, external: tuple[TuningCase, ...] = ()) -> TuningTools:
    listen = (lambda _: None) if said is None else said.append
    return TuningTools(external, listen)


def draw_cases(folder: Path, groups: int = 13) -> tuple[TuningCase, ...]:
    """Whether a meme is one shows in its colour and its caption."""
    folder.mkdir(parents=True, exist_ok=True)
    chance, made = random.Random(2), []
    for group in range(groups):
        for kind in ("pun", "plain"):
            path = folder / f"{group}-{kind}.png"
            shade = (230, 30, 30) if kind == "pun" else (30, 30, 230)
            Pillow.new("RGB", (chance.randrange(28, 40), 30), shade).save(path)
            words = ("yu" if kind == "pun" else "ab") * 2
            made.append(TuningCase(path.stem, str(group), kind == "pun", words, f"{words}.", path))
    return tuple(made)


# Of the Qwen family only that it can be tuned: its random weights are far from any answer.
@pytest.mark.parametrize(("kind", "epochs"), [("qwen2_vl", 1), ("llava", 6)])
def test_a_model_learns_to_answer(
    kind: str, epochs: int, make: Callable[[str], Path], tmp_path: Path
) -> None:
    cases = draw_cases(tmp_path / "images")
    outside = tuple(replace(case, id=f"x{case.id}") for case in cases if not case.label)
    tuned = tune(
        make(kind),
        cases,
        Wording("pun", "caption", "en"),
        replace(QUICK, epochs=epochs, merge=True),
        tmp_path / "out",
        tools(external=outside),
    )
    losses = [epoch.loss for epoch in tuned.history]
    assert len(losses) == epochs
    if kind == "llava":
        assert losses[-1] < 0.5 * losses[0]
        assert tuned.after.tpr is not None
        assert tuned.after.tnr is not None
        assert tuned.after.tpr + tuned.after.tnr > 1.5
    assert tuned.after.unparsed == 0
    assert tuned.external is not None
    assert (tuned.external.tpr, tuned.external.memes) == (None, len(outside))
    facts = json.loads((tmp_path / "out" / "tuning.json").read_text())
    assert facts["after"]["tpr"] == tuned.after.tpr
    assert (tmp_path / "out" / "adapter" / "adapter_model.safetensors").is_file()
    assert not list((tmp_path / "out").rglob("*.bin"))
    # The merged folder is a model like any other: local/PATH opens it.
    merged = tmp_path / "out" / "merged"
    assert LocalModel(f"local/{merged}", LocalSettings(device="cpu")).identity
    torch = importlib.import_module("torch")
    model, processor, sees = open_model(merged, torch.device("cpu"), "float32")
    wording = Wording("pun", "caption", "en")
    judge = TunedJudge(model, ChatProcessor(processor, sees, wording), wording)
    kept = read_lines(tmp_path / "out" / "verdicts.jsonl")
    scores = {row["id"]: row["score"] for row in kept if row["part"] == "valid"}
    chosen = [case for case in cases if case.id in scores]
    for verdict in judge.judge(chosen):
        assert verdict.score == pytest.approx(scores[verdict.id], abs=1e-3)


def test_questions_teach_nothing(make: Callable[[str], Path], tmp_path: Path) -> None:
    """Labels stand on the answers' tokens alone, whatever the batch."""
    torch = importlib.import_module("torch")
    device = torch.device("cpu")
    model, processor, sees = open_model(make("llava"), device, "float32")
    wording = Wording("pun", "reasons", "zh")
    talk = ChatProcessor(processor, sees, wording)
    cases = draw_cases(tmp_path)[:3]
    rows = [talk.render(replace(case, reason="因为" * (2 * n))) for n, case in enumerate(cases)]
    batch = talk.encode_lessons(rows)
    for place, row in enumerate(rows):
        taught = batch["labels"][place]
        text = talk.tokenizer.decode(taught[taught != -100].tolist())
        assert text == row.answer
        assert text.endswith(tiny.END), "the end is learnt, too"
    with torch.inference_mode():
        together = float(answer_loss(model, dict(batch)))
        alone = sum(float(answer_loss(model, talk.encode_lessons([row]))) for row in rows)
    assert together == pytest.approx(alone, rel=1e-4)


def test_only_the_adapter_is_trained(make: Callable[[str], Path]) -> None:
    torch = importlib.import_module("torch")
    model, _, _ = open_model(make("qwen2_vl"), torch.device("cpu"), "float32")
    network = add_adapter(model, QUICK)
    trained = [name for name, p in network.named_parameters() if p.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)
    assert not any("visual" in name for name in trained), "the eyes stay as they are"


def test_it_goes_on_behind_the_last_epoch(make: Callable[[str], Path], tmp_path: Path) -> None:
    cases, wording = draw_cases(tmp_path / "images"), Wording("harm", "image", "en")
    model, tuning = make("llava"), replace(QUICK, epochs=2, dropout=0.1)
    whole = tune(model, cases, wording, tuning, tmp_path / "whole", tools())

    class Stopped(Exception):
        pass

    def stop(line: str) -> None:
        raise Stopped

    hurt = tmp_path / "hurt"
    with pytest.raises(Stopped):
        tune(model, cases, wording, tuning, hurt, replace(tools(), say=stop))
    said: list[str] = []
    again = tune(model, cases, wording, tuning, hurt, tools(said))
    assert said[0] == "resuming after epoch 1"
    assert again.history == whole.history
    assert again.after == whole.after
    one, other = (
        (folder / "adapter" / "adapter_model.safetensors").read_bytes()
        for folder in (tmp_path / "whole", hurt)
    )
    assert one == other
    with pytest.raises(StoreError, match="other data or settings"):
        tune(model, cases, wording, replace(tuning, rank=2), hurt, tools())


def test_a_model_that_reads_alone(make: Callable[[str], Path], tmp_path: Path) -> None:
    """Without eyes the caption is all there is; replies that are written are parsed."""
    cases = tuple(replace(case, image=None) for case in draw_cases(tmp_path / "images"))
    wording = Wording("pun", "reasons", "en")
    tuning = replace(QUICK, epochs=1)
    tuned = tune(make("llama"), cases, wording, tuning, tmp_path / "out", tools())
    assert tuned.after.memes == 6
    rows = read_lines(tmp_path / "out" / "verdicts.jsonl")
    assert all(row["score"] is None for row in rows)


def test_what_cannot_be_tuned_is_refused(
    make: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, wording = draw_cases(tmp_path / "images"), Wording()
    with pytest.raises(InputError, match=r"config\.json is missing"):
        tune(tmp_path, cases, wording, QUICK, tmp_path / "out", tools())
    model = make("llava")
    blind = tuple(replace(case, image=None) for case in cases)
    with pytest.raises(InputError, match="has no image"):
        tune(model, blind, wording, QUICK, tmp_path / "a", tools())
    lost = tuple(replace(case, image=tmp_path / "nowhere.png") for case in cases)
    with pytest.raises(ImageError, match="missing"):
        tune(model, lost, wording, QUICK, tmp_path / "b", tools())
    monkeypatch.setattr(neural_packages, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"memantics\[detector\]"):
        tune(model, cases, wording, QUICK, tmp_path / "c", tools())
