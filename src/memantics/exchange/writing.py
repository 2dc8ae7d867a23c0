"""A task in the files of other tools, with our own prompts: a cluster's tool can do the asking.

===============  ==================================================================
``openai-batch``  requests as OpenAI's batch interface takes them, in files of its size
``lmms-eval``     a folder for ``--include_path``: ``TASK.yaml``, ``utils.py``, data, images
``lm-eval``       the same for lm-eval's multimodal models
``vlmevalkit``    ``TASK.tsv`` for ``$LMUData``: images inside, the prompt as its question
===============  ==================================================================
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal, get_args

import orjson

from memantics.core.errors import InputError, require_known
from memantics.core.images import probe, read_bytes
from memantics.core.journal import refuse_unwritable, replace_file, whole_file
from memantics.core.records import Image, Item, Message, Request
from memantics.models.wire import WireSettings, encode_base64, encode_request

TaskFormat = Literal["openai-batch", "lmms-eval", "lm-eval", "vlmevalkit"]
TASK_FORMATS: tuple[TaskFormat, ...] = get_args(TaskFormat)
Asked = Iterable[tuple[Item, Request]]
# What OpenAI takes in one file.
_BATCH_LINES, _BATCH_BYTES = 50_000, 190_000_000
# The files of lmms-eval and lm-eval: ours to fill.
_HARNESS = Path(__file__).with_name("harness")


def write_task(
    name: str, kind: TaskFormat, out: Path, asked: Asked, server: tuple[str, WireSettings]
) -> tuple[Path, ...]:
    """Write a task's files into a folder; ``server`` is the model's name and its settings."""
    require_known("format", kind, TASK_FORMATS)
    stem = "memantics_" + name.replace("/", "_")
    with refuse_unwritable(out):
        out.mkdir(parents=True, exist_ok=True)
        if kind == "openai-batch":
            return tuple(_write_batch(out, asked, *server))
        if kind == "vlmevalkit":
            return (_write_table(out / f"{stem}.tsv", asked),)
        return _write_folder(out, stem, kind, asked)


def _write_batch(out: Path, asked: Asked, model: str, wire: WireSettings) -> Iterator[Path]:
    if not model:
        raise InputError("requests need a model", hint="name it as the server does: --model NAME")
    lines: list[bytes] = []
    size = number = 0

    def write() -> Path:
        path = out / f"batch-{number:03}.jsonl"
        replace_file(path, b"".join(lines))
        return path

    for item, request in asked:
        body = encode_request(model, request, wire)
        head = orjson.dumps({"custom_id": item.id, "method": "POST", "url": "/v1/chat/completions"})
        line = head[:-1] + b',"body":' + body + b"}\n"
        if lines and (len(lines) >= _BATCH_LINES or size + len(line) > _BATCH_BYTES):
            number += 1
            yield write()
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    number += 1
    yield write()


def _read_turn(item: Item, request: Request) -> tuple[list[Image], str]:
    """The images and the text of a request of one turn."""
    turns: tuple[Message, ...] = request.messages
    if len(turns) != 1:
        raise InputError(
            f"the requests have {len(turns)} turns (item {item.id}), and this format one",
            hint="export with --format openai-batch, or without examples and system prompt",
        )
    parts = turns[0].parts
    texts = [part for part in parts if isinstance(part, str)]
    return [part for part in parts if isinstance(part, Image)], "\n\n".join(texts)


def _show_gold(item: Item) -> str:
    return item.gold if isinstance(item.gold, str) else orjson.dumps(item.gold).decode()


def _write_table(path: Path, asked: Asked) -> Path:
    """VLMEvalKit numbers its rows; our id stands beside, and comes back with the predictions."""

    def write(file: IO[str]) -> None:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(["index", "id", "meme", "image", "question", "answer"])
        for number, (item, request) in enumerate(asked, 1):
            images, text = _read_turn(item, request)
            data = [encode_base64(read_bytes(image.path)).decode() for image in images]
            shown = data[0] if len(data) == 1 else repr(data)
            rows.writerow([number, item.id, item.group, shown, text, _show_gold(item)])

    return _write_text(path, write)


def _write_folder(out: Path, stem: str, kind: TaskFormat, asked: Asked) -> tuple[Path, ...]:
    (out / "images").mkdir(exist_ok=True)
    limits: set[int] = set()

    def write(file: IO[str]) -> None:
        for number, (item, request) in enumerate(asked):
            images, text = _read_turn(item, request)
            names = [_copy_image(out, number, place, image) for place, image in enumerate(images)]
            limits.add(request.sampling.max_tokens or 1024)
            record = {
                "id": item.id,
                "meme": item.group,
                "images": names,
                "prompt": text,
                "question": item.form.question,
                "gold": _show_gold(item),
            }
            file.write(orjson.dumps(record).decode() + "\n")

    data = _write_text(out / "data.jsonl", write)
    multimodal = kind == "lm-eval"
    tool = "lm_eval --model hf-multimodal" if multimodal else "lmms_eval --model MODEL"
    body = (
        (_HARNESS / "task.yaml")
        .read_text(encoding="utf-8")
        .format(
            command=f"{tool} --tasks {stem} --include_path . --log_samples --output_path results",
            name=stem,
            image="doc_to_image" if multimodal else "doc_to_visual",
            text="doc_to_text_with_marks" if multimodal else "doc_to_text",
            tokens="gen_toks" if multimodal else "new_tokens",
            limit=max(limits, default=1024),
        )
    )
    replace_file(out / f"{stem}.yaml", body.encode())
    replace_file(out / "utils.py", (_HARNESS / "utils.txt").read_bytes())
    return (out / f"{stem}.yaml", out / "utils.py", data)


def _copy_image(out: Path, number: int, place: int, image: Image) -> str:
    """An image beside the records, under a number: ids may hold what file names cannot."""
    data = read_bytes(image.path)
    ending = probe(data, image.path.name).mime.rpartition("/")[2]
    name = f"images/{number:06}-{place}.{ending}"
    replace_file(out / name, data)
    return name


def _write_text(path: Path, write: Callable[[IO[str]], None]) -> Path:
    """A text file that takes its name only when it is complete."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        write(text)
        text.detach()
    return path
