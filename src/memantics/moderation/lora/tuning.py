"""LoRA tuning of a local model: for yes/no detection, and for tasks answered in free text.

LoRA tuning trains small adapter weights and leaves the model unchanged. For free text, a training
example is a request of the task, paired with one of its reference answers. Held-out memes are
answered before and after tuning, and scored by the task itself.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson

from memantics.core.errors import InputError, StoreError
from memantics.core.files import read_regular, write_text
from memantics.core.parameters import Flag
from memantics.core.prompt import fill_template
from memantics.core.records import Item, Outcome, Score
from memantics.core.result import Result, Table
from memantics.core.task import Task, Unparsed
from memantics.models.chat import move
from memantics.moderation.card import clean_markdown
from memantics.moderation.lora import judging
from memantics.moderation.lora.judging import (
    ADAPTER,
    FACTS,
    ChatProcessor,
    Lesson,
    TuningCase,
    Wording,
    part_groups,
    rate,
    split_groups,
    write_replies,
)
from memantics.moderation.neural import machine
from memantics.moderation.neural import training as checkpoint
from memantics.moderation.neural.feeding import draw_order, mix_seed, rate_at
from memantics.moderation.neural.machine import find_versions, get_torch
from memantics.moderation.neural.seeds import hash_folder
from memantics.moderation.neural.settings import ProgressLog
from memantics.moderation.neural.training import Epoch, hold_folder, write_folder, write_whole

CARD = "CARD.md"
MERGED, RUNNING = "merged", "training"
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
REPLIES = "replies.jsonl"
_BATCH, _LONGEST = 8, 512


# The card of a tuned model: its prompt, its training data, and its evaluation.


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """Origin of the training data; ``sample`` marks the sample data (demonstration only)."""

    data: str
    licence: str = "not stated"
    languages: tuple[str, ...] = ()
    sample: bool = False


UNKNOWN = DataOrigin("not stated")


def write_card(
    folder: Path,
    model: Path,
    facts: Mapping[str, str],
    table: Table,
    origin: DataOrigin,
    invalid: str,
) -> Path:
    """Write ``CARD.md`` beside the adapter; ``invalid`` describes how invalid replies count."""
    said = {
        "Model": f"{clean_markdown(model.resolve().name)} with a LoRA adapter",
        "Data": f"{clean_markdown(origin.data)}; licence of the data:"
        f" {clean_markdown(origin.licence)}",
        "Languages of the data": ", ".join(origin.languages) or "unknown",
        **facts,
        "Selection": "none: the number of epochs is fixed, and held-out groups are not used",
        "Packages": ", ".join(f"{label} {version}" for label, version in find_versions().items()),
    }
    text = fill_template(__file__, "card.md", {}, said=said, table=table, invalid=invalid)
    return write_text(folder / CARD, text, "model card")


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings of LoRA tuning.

    Epochs and learning rate are those of the PunMemeCN paper, which gives no rank of the adapter
    matrices.
    """

    seed: Annotated[int, Flag("Random seed of split, order and initial weights.", min=0)] = 0
    epochs: Annotated[int, Flag("Number of epochs.", min=1)] = 3
    batch: Annotated[int, Flag("Memes per step.", min=1)] = 8
    portion: Annotated[
        int, Flag("Memes per forward pass; a lower number needs less memory.", min=1)
    ] = 1
    rate: Annotated[float, Flag("Maximum learning rate.")] = 1e-6
    warmup: float = 0.03
    rank: Annotated[int, Flag("LoRA rank.", min=1)] = 16
    alpha: int = 32
    dropout: float = 0.05
    precision: str = "auto"
    device: Annotated[str, Flag("Device: auto, cpu, cuda or cuda:1.")] = "auto"
    max_pixels: Annotated[
        int, Flag("Resize images with more pixels; 0 keeps all sizes.", min=0)
    ] = 0
    train_groups: Annotated[
        int | None, Flag("Number of training groups. Default: 500 of 653.", min=1)
    ] = None
    merge: Annotated[bool, Flag("Also write the merged model, for local/PATH.")] = False


@dataclass(frozen=True, slots=True)
class Tuned(Result):
    """Results of tuning: recall and F1 before and after, on held-out groups and external memes."""

    folder: Path
    before: judging.Rates
    after: judging.Rates
    external: judging.Rates | None
    history: tuple[checkpoint.Epoch, ...]
    trained_on: int

    def table(self) -> Table:
        """Show recall and F1 on each set of memes; a dash marks an undefined value."""
        parts = {"held out, before": self.before, "held out, after": self.after}
        if self.external is not None:
            parts["external, after"] = self.external
        columns = ("memes", ">n", ">TPR", ">TNR", ">F1", ">macro-F1", ">unparsed")
        return Table(columns, tuple((part, *_show(rates)) for part, rates in parts.items()))


def tune(
    model: Path,
    cases: Sequence[TuningCase],
    wording: Wording,
    tuning: Tuning,
    out: Path,
    tools: TuningTools | None = None,
) -> Tuned:
    """Train an adapter on some groups of memes; evaluate on the others before and after.

    The number of epochs is fixed; held-out groups are not used for selection. A second call
    resumes after the last complete epoch.
    """
    tools = tools or TuningTools()
    check_tuning(model, tuning)
    with checkpoint.hold_folder(out):
        return _tune(model, cases, wording, tuning, out, tools)


def check_tuning(model: Path, tuning: Tuning) -> None:
    """Raise an error for invalid settings or model folders, or missing packages."""
    if not 0 < tuning.rate < 1:
        raise InputError(
            f"{tuning.rate:g} is not a valid learning rate", hint="for example --rate 1e-4"
        )
    if tuning.seed < 0:
        raise InputError(f"the seed {tuning.seed} is negative", hint="use 0, 1, 2, …")
    judging.check_model(model)


def _tune(
    model: Path,
    cases: Sequence[TuningCase],
    wording: Wording,
    tuning: Tuning,
    out: Path,
    tools: TuningTools,
) -> Tuned:
    split = split_groups(cases, tuning.seed, tuning.train_groups)
    rows = [asdict(case) | {"image": case.image and case.image.name} for case in cases]
    mark = fingerprint(model, tuning, [wording.describe(), wording.prompt.hash, rows])
    network, conversation = open_network(model, tuning, wording)
    judge = judging.TunedJudge(network, conversation, wording)
    with network.disable_adapter():
        before = rate(judge.judge(split.valid))
    fitted = Fitting(network, conversation, split.train, tuning, mark)
    history = fitted.run(out / RUNNING, tools.say)
    verdicts = judge.judge(split.valid)
    outside = judge.judge(tools.external) if tools.external else []
    tuned = Tuned(
        out,
        before,
        rate(verdicts),
        rate(outside) if outside else None,
        history,
        len(split.train),
    )
    facts = {
        "wording": wording.describe() | {"prompt": wording.prompt.hash},
        "before": asdict(tuned.before),
        "after": asdict(tuned.after),
        "external": None if tuned.external is None else asdict(tuned.external),
    }
    save_tuned(network, model, out, tuning, facts | tools.tell(history, len(split.train), mark))
    _write_verdicts(out / "verdicts.jsonl", {"valid": verdicts, "external": outside})
    return tuned


def open_network(
    model: Path, tuning: Tuning, wording: Wording | None = None
) -> tuple[Any, judging.ChatProcessor]:
    """Open the model with a new adapter, and its chat processor."""
    device = machine.resolve_device(tuning.device, machine.Ranks())
    machine.fix_arithmetic(True, strict=False)
    base, processor, sees = judging.open_model(model, device, _precision(tuning, device))
    conversation = judging.ChatProcessor(processor, sees, wording or Wording(), tuning.max_pixels)
    machine.get_torch().manual_seed(tuning.seed)
    return add_adapter(base, tuning), conversation


@dataclass(frozen=True, slots=True)
class TuningTools:
    """Optional inputs of tuning: external test memes, progress callback and data origin."""

    external: tuple[TuningCase, ...] = ()
    say: ProgressLog = print
    origin: DataOrigin = UNKNOWN

    def tell(
        self, history: Sequence[checkpoint.Epoch], trained_on: int, mark: str
    ) -> dict[str, Any]:
        """Return the metadata stored with every tuned model."""
        return {
            **asdict(self.origin),
            "history": [asdict(epoch) for epoch in history],
            "trained_on": trained_on,
            "fingerprint": mark,
        }


def add_adapter(base: Any, tuning: Tuning) -> Any:
    """Add LoRA matrices to the projections of the language model."""
    peft: Any = importlib.import_module("peft")
    names = [
        name
        for name, module in base.named_modules()
        if name.rpartition(".")[2] in PROJECTIONS
        and hasattr(module, "weight")
        and not any(word in name for word in ("vision", "visual"))
    ]
    if not names:
        raise InputError("LoRA does not support the layers of this model", hint="use another model")
    config = peft.LoraConfig(
        r=tuning.rank,
        lora_alpha=tuning.alpha,
        lora_dropout=tuning.dropout,
        target_modules=names,
        bias="none",
    )
    return peft.get_peft_model(base, config)


class _Adapter:
    """The trainable tensors of a network, with the interface of checkpoints."""

    def __init__(self, network: Any) -> None:
        self._own = {n: p for n, p in network.named_parameters() if p.requires_grad}

    def state_dict(self) -> dict[str, Any]:
        return dict(self._own)

    def load_state_dict(self, tensors: Any, strict: bool = True) -> None:
        if strict and tensors.keys() != self._own.keys():
            raise RuntimeError("the checkpoint has other tensors than the adapter")
        with machine.get_torch().no_grad():
            for name, tensor in tensors.items():
                self._own[name].copy_(tensor)


class Fitting:
    """The training loop; the loss covers only the reply tokens."""

    def __init__(
        self,
        network: Any,
        conversation: judging.ChatProcessor,
        cases: Sequence[TuningCase | Lesson],
        tuning: Tuning,
        mark: str,
    ) -> None:
        self._network, self._conversation, self._cases = network, conversation, cases
        self._tuning, self._mark, self._torch = tuning, mark, machine.get_torch()
        self._adapter = _Adapter(network)
        self._optimiser = self._torch.optim.AdamW(
            list(self._adapter.state_dict().values()), lr=tuning.rate, weight_decay=0.0
        )
        self._steps = -(-len(cases) // tuning.batch)

    def run(self, folder: Path, say: ProgressLog) -> tuple[checkpoint.Epoch, ...]:
        """Train the remaining epochs."""
        progress = checkpoint.TrainingProgress(self._mark)
        latest = checkpoint.read_latest(folder)
        if latest is not None:
            if checkpoint.read_progress(latest).fingerprint != self._mark:
                raise StoreError(
                    f"{folder} has a tuning with other data or settings",
                    hint="choose another --out, or use the same data and settings",
                )
            progress = checkpoint.load_checkpoint(latest, self._adapter, self._optimiser)
            say(f"resuming after epoch {progress.epoch}")
        while progress.epoch < self._tuning.epochs:
            loss = self._run_epoch(progress.epoch)
            history = (*progress.history, checkpoint.Epoch(progress.epoch, loss, 0.0))
            step = progress.step + self._steps
            progress = replace(progress, epoch=progress.epoch + 1, step=step, history=history)
            checkpoint.save_checkpoint(folder, self._adapter, self._optimiser, progress)
            say(f"epoch {progress.epoch}/{self._tuning.epochs}  loss {loss:.4f}")
        return progress.history

    def _run_epoch(self, epoch: int) -> float:
        self._network.train()
        order = draw_order(tuple(range(len(self._cases))), self._tuning.seed, epoch)
        total, size = 0.0, self._tuning.batch
        for number in range(self._steps):
            rows = order[number * size : (number + 1) * size].tolist()
            total += self._step(rows, epoch * self._steps + number)
        if not np.isfinite(total):
            raise InputError("the loss is not a number", hint="use a smaller --rate")
        return total / self._steps

    def _step(self, rows: list[int], step: int) -> float:
        """Run one step on the mean loss over memes."""
        tuning = self._tuning
        self._torch.manual_seed(mix_seed(tuning.seed, step, 0))
        total = 0.0
        for start in range(0, len(rows), tuning.portion):
            part = [self._cases[row] for row in rows[start : start + tuning.portion]]
            rendered = [self._conversation.render(case) for case in part]
            batch = move(self._conversation.encode_lessons(rendered), self._network)
            loss = answer_loss(self._network, batch) / len(rows)
            loss.backward()
            total += float(loss.detach())
        rate_now = rate_at(step, self._steps * tuning.epochs, tuning.rate, tuning.warmup)
        for group in self._optimiser.param_groups:
            group["lr"] = rate_now
        self._torch.nn.utils.clip_grad_norm_(list(self._adapter.state_dict().values()), 1.0)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        return total


def answer_loss(network: Any, batch: dict[str, Any]) -> Any:
    """Sum the mean cross-entropy of each reply in a part of a batch; prompts have no loss."""
    losses, places = judging.token_losses(network, batch)
    torch = machine.get_torch()
    counts = torch.bincount(places, minlength=batch["input_ids"].shape[0])
    return (losses / counts[places]).sum()


def save_tuned(
    network: Any, model: Path, out: Path, tuning: Tuning, facts: Mapping[str, Any]
) -> None:
    """Write the adapter, its metadata and, if requested, the merged model."""
    with write_folder(out / judging.ADAPTER) as folder:
        network.save_pretrained(str(folder))
    known = {
        "model": model.resolve().name,
        **facts,
        "tuning": asdict(tuning),
        "versions": machine.find_versions(),
    }
    write_whole(out / judging.FACTS, orjson.dumps(known, option=orjson.OPT_INDENT_2))
    if tuning.merge:
        with write_folder(out / MERGED) as folder:
            network.merge_and_unload().save_pretrained(str(folder))
            copy_reading(model, folder)


def copy_reading(model: Path, target: Path) -> None:
    """Copy the tokenizer, processor and chat template into the folder of the merged model."""
    for path in sorted(model.iterdir()):
        kept = path.suffix in (".json", ".jinja", ".txt", ".model", ".tiktoken")
        if kept and path.name != "config.json" and not path.name.endswith(".index.json"):
            shutil.copyfile(path, target / path.name)


def _write_verdicts(path: Path, parts: dict[str, list[judging.LoraVerdict]]) -> None:
    lines = [
        orjson.dumps({"part": part} | asdict(verdict))
        for part, verdicts in parts.items()
        for verdict in verdicts
    ]
    write_whole(path, b"\n".join(lines) + b"\n")


def _precision(tuning: Tuning, device: Any) -> str:
    if tuning.precision != "auto":
        return tuning.precision
    return "bfloat16" if device.type == "cuda" else "float32"


def fingerprint(model: Path, tuning: Tuning, lessons: Any) -> str:
    """Hash the model, the training data and the settings, without the device."""
    settled = replace(tuning, device="", merge=False)
    return hash_folder(model, orjson.dumps([asdict(settled), *lessons]))


def _show(rates: judging.Rates) -> tuple[str, ...]:
    values = (rates.tpr, rates.tnr, rates.f1, rates.macro_f1)
    cells = ("–" if value is None else f"{value:.3f}" for value in values)
    return (f"{rates.memes:,}", *cells, str(rates.unparsed))


@dataclass(frozen=True, slots=True)
class TunedWriter(Result):
    """Results of tuning: the task's metrics on held-out memes, before and after."""

    folder: Path
    task: str
    before: tuple[Score, ...]
    after: tuple[Score, ...]
    history: tuple[Epoch, ...]
    trained_on: int
    held_out: int

    def table(self) -> Table:
        """Show the metrics over all held-out memes."""
        later = {score.key: score for score in self.after if not score.by}
        rows = [
            (score.key, f"{score.n:,}", _show_written(score), _show_written(later.get(score.key)))
            for score in self.before
            if not score.by
        ]
        return Table(("metric", ">n", ">held out, before", ">held out, after"), tuple(rows))


def tune_writer(
    model: Path, task: Task, tuning: Tuning, out: Path, tools: TuningTools | None = None
) -> TunedWriter:
    """Tune an adapter on a task's requests and gold texts, and evaluate on held-out memes."""
    check_tuning(model, tuning)
    with hold_folder(out):
        return _tune_to_write(model, task, tuning, out, tools or TuningTools())


def _tune_to_write(
    model: Path, task: Task, tuning: Tuning, out: Path, tools: TuningTools
) -> TunedWriter:
    train, valid = part_groups(list_written(task), tuning.seed, tuning.train_groups)
    told = [[item.id, item.group, item.gold] for item in (*train, *valid)]
    mark = fingerprint(
        model, tuning, [task.name, dict(task.options), dict(task.prompts), sorted(told)]
    )
    network, conversation = open_network(model, tuning)
    with network.disable_adapter():
        first = _answer(network, conversation, task, valid)
    lessons = [Lesson(task.ask(item, None), text) for item in train for text in _list_texts(item)]
    history = Fitting(network, conversation, lessons, tuning, mark).run(out / RUNNING, tools.say)
    last = _answer(network, conversation, task, valid)
    before, after = (_score(task, valid, replies) for replies in (first, last))
    facts = {
        "wording": {
            "question": task.name.rpartition("/")[2],
            "task": task.name,
            "options": dict(task.options),
            "prompts": dict(task.prompts),
        },
        "before": [asdict(score) for score in before],
        "after": [asdict(score) for score in after],
        "held_out": len(valid),
        "lessons": len(lessons),
    }
    save_tuned(network, model, out, tuning, facts | tools.tell(history, len(train), mark))
    rows = zip(valid, first, last, strict=True)
    lines = [orjson.dumps({"id": row.id, "before": one, "after": two}) for row, one, two in rows]
    write_whole(out / REPLIES, b"\n".join(lines) + b"\n")
    return TunedWriter(out, task.name, before, after, history, len(train), len(valid))


def list_written(task: Task) -> tuple[Item, ...]:
    """List the items of a task with gold answers in free text."""
    if task.needs:
        first = " and ".join(need.task for need in task.needs)
        raise InputError(
            f"{task.name} needs model answers of {first}, which cannot be used for tuning",
            hint="tune with background=none, human or retrieved, and captions=data or none",
        )
    items = tuple(item for item in task.items() if _list_texts(item))
    if not items:
        raise InputError(
            f"{task.name} has no free-text gold answers", hint="tune on memeintent/intent"
        )
    return items


def _list_texts(item: Item) -> list[str]:
    gold = item.gold if isinstance(item.gold, list) else []
    return [text for text in gold if isinstance(text, str) and text.strip()]


def _answer(
    network: Any, conversation: ChatProcessor, task: Task, items: Sequence[Item]
) -> list[str]:
    """Generate a reply to each item, up to the length limit of the task."""
    network.eval()
    replies: list[str] = []
    with get_torch().inference_mode():
        for start in range(0, len(items), _BATCH):
            asked = [task.ask(item, None) for item in items[start : start + _BATCH]]
            rows = [conversation.render(Lesson(request)) for request in asked]
            longest = asked[0].sampling.max_tokens or _LONGEST
            replies += write_replies(network, conversation, rows, longest)
    return replies


def _score(task: Task, items: Sequence[Item], replies: Sequence[str]) -> tuple[Score, ...]:
    return task.score([_read(task, *pair) for pair in zip(items, replies, strict=True)])


def _read(task: Task, item: Item, reply: str) -> Outcome:
    try:
        return Outcome(item, "answered", task.parse(reply, item.form))
    except Unparsed:
        return Outcome(item, "unparsed")


def find_writer(folder: Path) -> dict[str, Any] | None:
    """Read the metadata of a model tuned on free text; None for other folders."""
    if not (folder / FACTS).is_file():
        return None
    try:
        facts = orjson.loads(read_regular(folder / FACTS))
        writes = "task" in facts["wording"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(
            f"{folder / FACTS} cannot be read: {error}"[:200], hint="tune again"
        ) from error
    if writes and not (folder / ADAPTER).is_dir():
        raise StoreError(f"{folder} has no {ADAPTER}", hint="tune it again")
    return dict(facts) if writes else None


def _show_written(score: Score | None) -> str:
    return "–" if score is None or score.value is None else f"{score.value:.3f}"
