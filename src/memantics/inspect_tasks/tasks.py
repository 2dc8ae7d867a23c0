"""Evaluation tasks for ``inspect list tasks``, which parses this file without running it.

Tasks of benchmarks in ``MEMANTICS_BENCHMARKS`` are registered when this module is loaded. ``inspect
eval`` knows them, but ``inspect list tasks`` does not show them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspect_ai import Task, task

from memantics.core.errors import InputError
from memantics.evaluation import list_task_names, name_task
from memantics.inspect_tasks.build import explain, make_task


@task
def memeintent_intent(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """MemeIntent: Intent description."""
    return _make("memeintent/intent", data, split, invalid, **options)


@task
def memeintent_background(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """MemeIntent: Background knowledge."""
    return _make("memeintent/background", data, split, invalid, **options)


@task
def memeintent_caption(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """MemeIntent: Image description."""
    return _make("memeintent/caption", data, split, invalid, **options)


@task
def mer_bench_judge(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """MER-Bench: Judging a reappraisal."""
    return _make("mer_bench/judge", data, split, invalid, **options)


@task
def mquest_qa(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """M-QUEST: Multiple-choice questions."""
    return _make("mquest/qa", data, split, invalid, **options)


@task
def punmemecn_detection(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Pun detection."""
    return _make("punmemecn/detection", data, split, invalid, **options)


@task
def punmemecn_sentiment(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Sentiment of puns."""
    return _make("punmemecn/sentiment", data, split, invalid, **options)


@task
def punmemecn_chat(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Meme for a chat."""
    return _make("punmemecn/chat", data, split, invalid, **options)


@task
def punmemecn_ocr(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Reading the caption."""
    return _make("punmemecn/ocr", data, split, invalid, **options)


@task
def punmemecn_pinyin(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Pinyin of the caption."""
    return _make("punmemecn/pinyin", data, split, invalid, **options)


@task
def punmemecn_harmful(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Harm behind puns."""
    return _make("punmemecn/harmful", data, split, invalid, **options)


@task
def punmemecn_punchline(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """PunMemeCN: Naming the homophone."""
    return _make("punmemecn/punchline", data, split, invalid, **options)


@task
def toxicn_mm_detection(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """ToxiCN MM: Harmful or not."""
    return _make("toxicn_mm/detection", data, split, invalid, **options)


@task
def toxicn_mm_type(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """ToxiCN MM: Type of harm."""
    return _make("toxicn_mm/type", data, split, invalid, **options)


@task
def toxicn_mm_target(
    data: str | None = None, split: str | None = None, invalid: str | None = None, **options: Any
) -> Task:
    """ToxiCN MM: Whom it targets (labels 2.0)."""
    return _make("toxicn_mm/target", data, split, invalid, **options)


def _make(
    name: str, data: str | None, split: str | None, invalid: str | None, **options: Any
) -> Task:
    try:
        return make_task(name, data, split, invalid, options)
    except InputError as error:
        raise explain(error) from error


def _register(name: str) -> Callable[..., Task]:
    """Register an Inspect task that is not declared in this file."""

    def made(
        data: str | None = None,
        split: str | None = None,
        invalid: str | None = None,
        **options: Any,
    ) -> Task:
        return _make(name, data, split, invalid, **options)

    found: Callable[..., Task] = task(name=name_task(name))(made)
    return found


OTHERS = {name: _register(name) for name in list_task_names() if name_task(name) not in globals()}
