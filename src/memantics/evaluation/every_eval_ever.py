"""Write runs in the format of Every Eval Ever, schema 0.3.0 (https://evalevalai.com).

A run becomes one aggregate record and one file of instance records. The schema has no field for
images: the metadata of an instance have the SHA-256 of each image. Nothing unknown is invented:
fields that a run does not state are absent or ``unknown``.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from memantics.core.errors import ImageError, InputError
from memantics.core.files import replace_file
from memantics.core.images import read_bytes
from memantics.core.records import Answer, Image, Item, Message, Score
from memantics.core.registry import find_run_places, is_inside
from memantics.core.rundir import ItemLine, last_answers, read_items
from memantics.evaluation.report import find_marks
from memantics.evaluation.reports.payload import INVALID, OPEN, RIGHT, judge_answer, show_value
from memantics.evaluation.reports.runs import Run

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"
_UNSAFE = re.compile(r'[<>:"\\|?*\x00-\x1f/]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)|data$", re.IGNORECASE)
# Metrics of Memantics of which a lower value is better.
_LOWER = re.compile(r"(^|_)(brier|risk|refusals|error|flip_rate|entropy)$")
# Metrics that are proportions or F1 scores: their values are from 0 to 1.
_UNIT = re.compile(r"(^|_)(accuracy|f1|precision|recall|tpr|tnr|auroc|brier|proportion|agreement)$")
_DECODING = ("temperature", "top_p", "top_k", "max_tokens")


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who evaluated and published: names that runs do not state.

    ``developer`` is used for models without an owner in their name, ``dataset`` is the id of the
    benchmark's dataset on the Hugging Face hub.
    """

    organization: str = UNKNOWN
    developer: str = UNKNOWN
    dataset: str = ""


def write_records(run: Run, out: Path, publisher: Publisher) -> Path:
    """Write the records of a run below ``out/data``, and return the file of the aggregate record.

    The name of the file depends only on the run: a second export replaces the first.

    Raises:
        InputError: The run is not finished, or has no score.
    """
    if not run.facts.finished:
        raise InputError(f"{run.folder} is not finished", hint="run the same command again")
    scores = [score for score in run.results.scores if score.value is not None]
    if not scores:
        raise InputError(f"{run.folder} has no score", hint="score it, or leave it out")
    model = _identify_model(run, publisher)
    owner, _, name = model["id"].partition("/")
    names = (owner, name) if name else (publisher.developer, owner)
    place = PurePosixPath("data", *map(_clean, (run.task.replace("/", "_"), *names)))
    key = _name_record(run)
    moment = str(round(datetime.fromisoformat(run.facts.finished).timestamp()))
    head = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{run.task}/{model['id']}/{moment}",
    }
    lines = list(_list_instances(run, head | {"model_id": model["id"]}, _name_score(run, None)))
    body = b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in lines)
    samples = place / f"{key}_samples.jsonl"
    record: dict[str, Any] = {
        **head,
        "evaluation_timestamp": run.facts.started,
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": "Memantics",
            "source_type": "evaluation_run",
            "source_organization_name": publisher.organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "memantics", "version": run.facts.version},
        "model_info": model,
        "evaluation_results": [_show_score(run, score, publisher) for score in scores],
    }
    if lines:
        _write(out / samples, body)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": str(samples),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(body).hexdigest(),
            "total_rows": len(lines),
        }
    file = out / place / f"{key}.json"
    _write(file, orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return file


def _identify_model(run: Run, publisher: Publisher) -> dict[str, Any]:
    """Return the model; the kind before the name, such as ``openai/``, is how it was asked."""
    kind, _, name = run.model.partition("/")
    name = name.strip("/ ") or kind
    owner = name.partition("/")[0] if "/" in name else publisher.developer
    details = {
        "deployment_type": UNKNOWN,
        "model_availability": UNKNOWN,
        "memantics_model_kind": kind,
    }
    return {
        "name": name,
        "id": re.sub("/{2,}", "/", name),
        "developer": owner,
        "additional_details": details,
    }


def _name_record(run: Run) -> str:
    """Return a UUID (version 4 by its form) that is the same for the same run."""
    digest = hashlib.sha256(f"{run.facts.fingerprint} {run.facts.repeat}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _name_score(run: Run, score: Score | None) -> str:
    """Return the id of a result in its run: by default, that of the main metric."""
    parts = (run.results.main,) if score is None else (score.key, score.by, score.label)
    return ".".join(filter(None, (run.task.replace("/", "."), *parts)))


def _show_score(run: Run, score: Score, publisher: Publisher) -> dict[str, Any]:
    metric: dict[str, Any] = {
        "metric_id": score.key,
        "metric_name": score.key,
        "lower_is_better": bool(_LOWER.search(score.key)),
    }
    if score.note:
        metric["evaluation_description"] = score.note
    if _UNIT.search(score.key) and 0 <= (score.value or 0) <= 1:
        metric |= {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    details: dict[str, Any] = {"score": score.value, "uncertainty": {"num_samples": score.n}}
    if score.interval is not None:
        low, high = score.interval
        span = {"lower": low, "upper": high, "confidence_level": 0.95}
        details["uncertainty"]["confidence_interval"] = span
    if score.by:
        details["details"] = {"by": score.by, "label": score.label}
    facts = run.facts
    used = {name: value for name in _DECODING if (value := facts.decoding.get(name)) is not None}
    more = {
        "split": facts.split,
        "invalid": facts.invalid,
        "perturbation": facts.perturbation,
        "limit": "" if facts.limit is None else str(facts.limit),
        **{f"option.{name}": value for name, value in facts.options.items()},
        **{f"prompt.{name}": value for name, value in facts.prompts.items()},
        **{f"items.{status}": str(count) for status, count in run.counts.items()},
    }
    return {
        "evaluation_result_id": _name_score(run, score),
        "evaluation_name": " ".join(filter(None, (run.task, score.by, score.label))),
        "source_data": _show_data(run, publisher),
        "evaluation_timestamp": facts.started,
        "metric_config": metric,
        "score_details": details,
        "generation_config": {"generation_args": used, "additional_details": _texts(more)},
    }


def _show_data(run: Run, publisher: Publisher) -> dict[str, Any]:
    known = {name: str(value) for name, value in run.facts.data.items()}
    head = {"dataset_name": run.facts.benchmark, "additional_details": _texts(known)}
    if publisher.dataset:
        return head | {"source_type": "hf_dataset", "hf_repo": publisher.dataset}
    return head | {"source_type": "other"}


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _list_instances(run: Run, head: Mapping[str, str], result: str) -> Iterator[dict[str, Any]]:
    """Yield one record per answered item whose correctness or value is defined."""
    marks, answers = find_marks(run), last_answers(run.folder)
    places = find_run_places([run.folder])
    for line in read_items(run.folder):
        item, answer = line.item, answers.get(line.item.id)
        if answer is None:
            continue
        verdict = judge_answer(answer.status, answer.value, item.gold)
        mark = marks.get(item.id)
        if verdict == OPEN and mark is None:
            continue  # no answer is right or wrong: the record needs both fields
        right = verdict == RIGHT or (verdict == OPEN and mark == 1.0)
        score = 0.0 if verdict == INVALID else float(right) if mark is None else mark
        yield {
            **head,
            "evaluation_name": run.task,
            "evaluation_result_id": result,
            **_show_question(line),
            "output": _show_output(answer),
            "answer_attribution": _show_value(run, answer),
            "evaluation": {"score": score, "is_correct": right},
            "token_usage": _count_tokens(answer),
            "performance": {"latency_ms": answer.seconds * 1000},
            "error": None if answer.status == "answered" else f"{answer.status}: {answer.reason}",
            "metadata": _describe_item(item, places),
        }


def _show_question(line: ItemLine) -> dict[str, Any]:
    item, form = line.item, line.item.form
    raw = "\n\n".join(filter(None, (*form.context.values(), form.question)))
    options = form.fields[0].options if len(form.fields) == 1 else ()
    gold = item.gold if isinstance(item.gold, list) else [item.gold]
    reference = [show_value(value) for value in gold]
    said = hashlib.sha256("\n".join((raw, *reference)).encode()).hexdigest()
    shown = {
        "raw": raw,
        "formatted": _join(line.messages) or None,
        "reference": reference,
        "choices": [f"{option.key}: {option.text}" for option in options] or None,
    }
    return {
        "sample_id": item.id,
        "sample_hash": said,
        "interaction_type": "single_turn",
        "input": shown,
    }


def _join(messages: Sequence[Message]) -> str:
    return "\n\n".join(
        f"{message.role}: "
        + "\n".join(
            part if isinstance(part, str) else f"[image {part.path.name}]" for part in message.parts
        )
        for message in messages
    )


def _show_output(answer: Answer) -> dict[str, Any]:
    reply = answer.reply
    shown: dict[str, Any] = {"raw": [reply.text]}
    return shown | ({"reasoning_trace": [reply.reasoning]} if reply.reasoning else {})


def _show_value(run: Run, answer: Answer) -> list[dict[str, Any]]:
    if answer.status != "answered":
        return []
    method = f"memantics {run.options.get('parser', '')}".strip()
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": show_value(answer.value),
            "extraction_method": method,
            "is_terminal": True,
        }
    ]


def _count_tokens(answer: Answer) -> dict[str, int]:
    used = {"input_tokens": answer.reply.tokens_in, "output_tokens": answer.reply.tokens_out}
    thought = answer.reply.tokens_thought
    return {
        **used,
        "total_tokens": sum(used.values()),
        **({"reasoning_tokens": thought} if thought else {}),
    }


def _describe_item(item: Item, places: Sequence[Path]) -> dict[str, str]:
    """Return the tags of an item, its meme, and name and hash of each image."""
    found = {f"tag.{name}": value for name, value in item.tags.items()} | {"meme": item.group}
    for number, image in enumerate(item.images, 1):
        found[f"image_{number}"] = image.path.name
        if digest := _hash_image(image, places):
            found[f"image_{number}_sha256"] = digest
    return found


def _hash_image(image: Image, places: Sequence[Path]) -> str:
    """Return the hash of an image of the registered data; empty if it is missing or elsewhere."""
    with suppress(ImageError):
        if is_inside(image.path, places):
            return hashlib.sha256(read_bytes(image.path)).hexdigest()
    return ""


def _clean(name: str) -> str:
    """Return a name that is one portable component of a path.

    >>> _clean("qwen2:7b"), _clean(".."), _clean("a/b"), _clean("CON.x")
    ('qwen2_7b', '_', 'a_b', '_CON.x')
    """
    cleaned = _UNSAFE.sub("_", name)[:200].strip(". ") or "_"
    return f"_{cleaned}" if _RESERVED.match(cleaned) else cleaned


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data, "results")
