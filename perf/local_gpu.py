"""``python -m perf.local_gpu [--device cuda] [--small]``: local models on a GPU, measured.

Weights are random and made here, so nothing is downloaded; a model of random weights never ends a
text by itself, so every answer has the same length and rates can be compared. Prints one JSON
object: agreement with the CPU in float32, throughput by batch size in bfloat16, what happens when
memory runs out, and a whole run of the command line.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image as Pillow
from tests.local import tiny

from memantics.core.records import Form, Image, Message, Reply, Request, Sampling
from memantics.models.chat import move
from memantics.models.local.model import LocalModel, RequestBatcher
from memantics.models.local.runtime import Runtime
from memantics.models.local.settings import LocalSettings, find_versions

QUESTION = "What is this meme about, and whom does it make fun of? Answer in two sentences. "
PARTS = ("kinds", "float32", "throughput", "memory", "commands")


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of all parts."""

    device: str
    layers: int
    width: int
    depth: int
    requests: int
    tokens: int
    batches: tuple[int, ...]


def make_model(folder: Path, plan: Plan, layers: int, dtype: str) -> Path:
    """Return a Qwen2-VL of the given size: with 28 layers of 1,536 it is the 2B one."""
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    tiny.make_qwen2_vl(folder)
    config = transformers.AutoConfig.from_pretrained(str(folder))
    text, heads = config.text_config, plan.width // 128
    rope = {"rope_type": "default", "mrope_section": [16, 24, 24], "rope_theta": 1_000_000.0}
    text.update(
        {
            "vocab_size": 151_936,
            "hidden_size": plan.width,
            "intermediate_size": plan.width * 35 // 6,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "head_dim": 128,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32_768,
            "rope_parameters": rope,
            "layer_types": ["full_attention"] * layers,
        }
    )
    config.vision_config.update(
        {"depth": plan.depth, "embed_dim": 1280, "num_heads": 16, "hidden_size": plan.width}
    )
    torch.manual_seed(1)
    with torch.device(plan.device):
        model = transformers.AutoModelForImageTextToText.from_config(
            config, dtype=getattr(torch, dtype)
        )
    model.save_pretrained(folder)
    # The tiny model's processor shrinks images to 16 tokens; real ones keep them.
    place = folder / "preprocessor_config.json"
    facts = json.loads(place.read_text(encoding="utf-8"))
    facts["size"] = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}
    place.write_text(json.dumps(facts), encoding="utf-8")
    return folder


def draw_requests(folder: Path, count: int, tokens: int) -> list[Request]:
    """Questions about noise of the size of a meme; texts and images differ in length and size."""
    chance = random.Random(7)
    made = []
    for number in range(count):
        size = (chance.randrange(400, 640), chance.randrange(400, 640))
        path = folder / f"{number}.png"
        Pillow.frombytes("RGB", size, chance.randbytes(size[0] * size[1] * 3)).save(path)
        text = QUESTION + "Look closely. " * (number % 5)
        message = Message("user", (Image(path), text))
        made.append(Request((message,), Form("", ()), Sampling(0.0, tokens)))
    return made


def compare_with_cpu(folder: Path, requests: Sequence[Request], device: str) -> dict[str, Any]:
    """Return the first logits and the answers of both, in float32."""
    torch: Any = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    logits, replies, alone = {}, {}, []
    for place in ("cpu", device):
        runtime = Runtime(folder, LocalSettings(device=place, dtype="float32"))
        turns = [runtime.prepare(request) for request in requests]
        inputs = runtime.dialogue.encode([turn.prompt for turn in turns])
        with torch.inference_mode():
            found = runtime._model(**move(inputs, runtime._model))
        logits[place] = found.logits[:, -1].float().cpu()
        replies[place] = runtime.generate(turns, lambda: False)
        if place == device:
            alone = [runtime.generate([turn], lambda: False)[0] for turn in turns]
    off = (logits[device] - logits["cpu"]).norm() / logits["cpu"].norm()
    return {
        "requests": len(requests),
        "relative_logit_difference": float(off),
        "same_first_token": _share(logits["cpu"].argmax(-1).tolist(), logits[device].argmax(-1)),
        "same_answer_as_cpu": _share(replies["cpu"], replies[device]),
        "same_answer_alone_and_in_batch": _share(replies[device], alone),
    }


def _share(first: Any, second: Any) -> float:
    pairs = list(zip(first, second, strict=True))
    return sum(bool(a == b) for a, b in pairs) / len(pairs)


class Timed:
    """A runtime that notes how long preparing and generating took."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.prepared = self.encoded = self.whole = 0.0
        self.sizes: list[int] = []
        encode = runtime.dialogue.encode

        def timed_encode(prompts: Any) -> Any:
            begin = time.perf_counter()
            found = encode(prompts)
            self.encoded += time.perf_counter() - begin
            return found

        runtime.dialogue.encode = timed_encode  # type: ignore[method-assign]

    def prepare(self, request: Request) -> Any:
        """As the runtime."""
        begin = time.perf_counter()
        turn = self.runtime.prepare(request)
        self.prepared += time.perf_counter() - begin
        return turn

    def generate(self, turns: Any, stop: Callable[[], bool]) -> list[Reply]:
        """As the runtime."""
        begin = time.perf_counter()
        replies = self.runtime.generate(turns, stop)
        self.whole += time.perf_counter() - begin
        self.sizes.append(len(turns))
        return replies


async def ask(batcher: RequestBatcher, requests: Sequence[Request]) -> list[Reply]:
    """Return all at once, as the engine does with enough concurrency."""
    return await asyncio.gather(
        *(asyncio.wrap_future(batcher.submit(request)) for request in requests)
    )


def measure(runtime: Runtime, requests: Sequence[Request], size: int) -> dict[str, Any]:
    """Return one batch size: requests and tokens a second, and where the time went."""
    torch: Any = importlib.import_module("torch")
    encode = runtime.dialogue.encode
    timed = Timed(runtime)
    batcher = RequestBatcher(lambda: timed, size)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    replies = asyncio.run(ask(batcher, requests))
    seconds = time.perf_counter() - begin
    batcher.close()
    runtime.dialogue.encode = encode  # type: ignore[method-assign]
    written = sum(reply.tokens_out for reply in replies)
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    return {
        "batch": size,
        "mean_batch": round(sum(timed.sizes) / len(timed.sizes), 2),
        "requests": len(requests),
        "seconds": round(seconds, 3),
        "requests_per_second": round(len(requests) / seconds, 3),
        "tokens_out_per_second": round(written / seconds, 1),
        "tokens_in_mean": round(sum(r.tokens_in for r in replies) / len(replies), 1),
        "share_decoding_images": round(timed.prepared / seconds, 4),
        "share_processor": round(timed.encoded / seconds, 4),
        "peak_gib": round(peak, 2),
    }


def run_out_of_memory(folder: Path, requests: Sequence[Request], device: str) -> dict[str, Any]:
    """Return a batch that cannot fit: all must be answered, in smaller ones."""
    torch: Any = importlib.import_module("torch")
    runtime = Runtime(folder, LocalSettings(device=device, dtype="bfloat16"))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    room = torch.cuda.memory_allocated() + (3 << 29)
    torch.cuda.set_per_process_memory_fraction(room / total)
    batcher = RequestBatcher(lambda: runtime, len(requests))
    try:
        replies = asyncio.run(ask(batcher, requests))
    finally:
        batcher.close()
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {
        "asked": len(requests),
        "answered": len(replies),
        "batch_at_first": len(requests),
        "batch_at_last": batcher.size,
    }


def run_commands(folder: Path, out: Path, plan: Plan) -> dict[str, Any]:
    """Return the command line over the sample data."""
    line = [sys.executable, "-m", "memantics.cli.main", "run", "mquest", "--data", "sample"]
    line += [
        "--model",
        f"local/{folder}",
        "--param",
        f"device={plan.device}",
        "--param",
        "batch=32",
    ]
    line += ["--limit", str(plan.requests)]
    line += ["--param", "max_tokens=32", "--out", str(out), "--json", "--no-cache"]
    begin = time.perf_counter()
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    seconds = round(time.perf_counter() - begin, 2)
    if done.returncode:
        return {"exit": done.returncode, "error": done.stderr[-1000:]}
    counts = [run["scores"]["counts"] for run in json.loads(done.stdout)]
    return {"exit": 0, "seconds": seconds, "counts": counts}


def try_kinds(folder: Path, requests: Sequence[Request], device: str) -> dict[str, Any]:
    """Return every tiny model on this device: answered alone and together."""

    async def answers(model: LocalModel) -> tuple[list[Reply], list[Reply]]:
        shown = [r for r in requests if model_sees or not r.messages[0].parts[:-1]]
        together = await asyncio.gather(*(model.answer(request) for request in shown))
        alone = [await model.answer(request) for request in shown]
        await model.close()
        return list(together), alone

    found: dict[str, Any] = {}
    for name, make in tiny.MAKERS.items():
        model_sees = name not in tiny.BLIND
        try:
            made = make(folder / name)
            settings = LocalSettings(device=device, dtype="float32")
            together, alone = asyncio.run(answers(LocalModel(f"local/{made}", settings)))
            found[name] = _share(together, alone) if together else "no requests"
        except Exception as error:  # noqa: BLE001 - one kind's failure is a finding
            found[name] = f"{type(error).__name__}: {error}"[:200]
    return found


def compare_with_plain(runtime: Runtime, requests: Sequence[Request]) -> dict[str, Any]:
    """One batch through ``generate`` as it is, and through ours: what rows of their own cost."""
    turns = [runtime.prepare(request) for request in requests]
    inputs = runtime.dialogue.encode([turn.prompt for turn in turns])
    model = runtime._model
    moved = move(inputs, runtime._model)
    limit = turns[0].limit

    def plain() -> None:
        model.generate(**moved, do_sample=False, max_new_tokens=limit, min_new_tokens=limit)

    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(3):
        for name, call in (("plain", plain), ("ours", lambda: runtime.generate(turns, bool))):
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    return {
        "batch": len(turns),
        **{f"{name}_ms_per_step": round(min(s) / limit * 1000, 2) for name, s in seconds.items()},
    }


def run(plan: Plan, parts: Sequence[str]) -> dict[str, Any]:
    """Return the parts, as one object."""
    torch: Any = importlib.import_module("torch")
    found: dict[str, Any] = {"versions": find_versions()}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "images").mkdir()
        requests = draw_requests(folder / "images", plan.requests, plan.tokens)
        few = [Request(r.messages, r.form, Sampling(0.0, 16)) for r in requests[:6]]
        text = Message("user", ("Hello there",))
        mixed = [*few[:3], Request((text,), Form("", ()), Sampling(0.0, 16))]
        if "kinds" in parts:
            _note(found, "kinds", lambda: try_kinds(folder, mixed, plan.device))
        if "float32" in parts:
            small = make_model(folder / "small", plan, max(1, plan.layers // 7), "float32")
            _note(found, "float32", lambda: compare_with_cpu(small, few, plan.device))
        large = make_model(folder / "large", plan, plan.layers, "bfloat16")
        if "throughput" in parts:
            _measure_all(found, large, requests, plan)
        if "memory" in parts and plan.device.startswith("cuda"):
            _note(found, "memory", lambda: run_out_of_memory(large, requests[:64], plan.device))
        if "commands" in parts:
            _note(found, "commands", lambda: run_commands(large, folder / "runs", plan))
    return found


def _measure_all(
    found: dict[str, Any], large: Path, requests: Sequence[Request], plan: Plan
) -> None:
    runtime = Runtime(large, LocalSettings(device=plan.device, dtype="bfloat16"))
    found["parameters"] = sum(p.numel() for p in runtime._model.parameters())
    measure(runtime, requests[:2], 2)
    for number, size in enumerate((*plan.batches, plan.batches[-1])):
        asked = requests[: max(4, 4 * size)]
        key = f"batch {size}" + (" again" if number == len(plan.batches) else "")
        _note(found, key, lambda s=size, r=asked: measure(runtime, r, s))  # type: ignore[misc]
    _note(found, "plain", lambda: compare_with_plain(runtime, requests[:8]))


def _note(found: dict[str, Any], key: str, make: Callable[[], Any]) -> None:
    """Keep what was measured before something else goes wrong."""
    begin = time.perf_counter()
    try:
        found[key] = make()
    except Exception as error:  # noqa: BLE001 - a lent GPU is not asked twice lightly
        found[key] = f"{type(error).__name__}: {error}"[:2000]
    print(f"{key}: {time.perf_counter() - begin:.1f} s {found[key]}", file=sys.stderr, flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="only to see that it runs")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = parser.parse_args()
    plan = Plan(given.device, 28, 1536, 32, 256, 64, (1, 4, 8, 16, 32, 64, 128))
    if given.small:
        plan = Plan(given.device, 2, 256, 1, 6, 4, (1, 4))
    print(json.dumps(run(plan, given.parts), indent=2))


if __name__ == "__main__":
    main()
