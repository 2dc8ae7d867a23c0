"""How a published value was obtained, and how a run differs from it.

A run is compared with a paper only if its data, items, options, prompts and decoding parameters are
those that the paper states. Otherwise the differences are listed in words. What the paper does not
state is unknown, which also prevents a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks.published import PublishedRow
from memantics.core.records import Sampling
from memantics.core.rundir import RunFacts

# Returns the prompt hashes of a run's options on the registered data, or why they are unknown.
PromptFinder = Callable[[RunFacts], Mapping[str, str] | str]

# Decoding parameters, and the value that has no effect if there is one.
_NEUTRAL: Mapping[str, JsonValue] = {
    "temperature": None,
    "max_tokens": None,
    "top_p": 1,
    "top_k": None,
    "min_p": 0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "repetition_penalty": 1,
    "reasoning_effort": None,
}
_NAMES = {
    "max_completion_tokens": "max_tokens",
    "answer_tokens": "max_tokens",
    "repeat_penalty": "repetition_penalty",
}
# Settings of a model that change its answers and that no paper states.
_SETTINGS = (
    "arguments",
    "image_detail",
    "max_pixels",
    "template",
    "thinking_tokens",
    "top_logprobs",
)
# Fields of a request that do not change the distribution of its answer.
_HARMLESS = frozenset(
    {
        "logprobs",
        "metadata",
        "priority",
        "prompt_cache_key",
        "safety_identifier",
        "seed",
        "service_tier",
        "store",
        "user",
    }
)
_WORDINGS = {"": "ours", "official": "the authors' prompts"}


def find_decoding(sampling: Sampling, identity: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the decoding parameters of a request after the model's settings replaced some.

    ``identity`` is the identity of the model; ``None`` is the server's default. Other fields that
    the user added to the request, such as ``stop``, count as decoding parameters.

    >>> find_decoding(Sampling(0.0), {"settings": {"extra": {"temperature": 1.5, "top_p": 0.9}}})
    {'temperature': 1.5, 'max_tokens': None, 'top_p': 0.9}
    """
    found: dict[str, JsonValue] = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
    }
    settings = identity.get("settings")
    inner = settings if isinstance(settings, dict) else {}
    for place in (identity, inner):
        for name, value in place.items():
            key = _NAMES.get(name, name)
            if (key in _NEUTRAL and value is not None) or (key in _SETTINGS and value):
                found[key] = value
    extra = inner.get("extra")
    for name, value in (extra if isinstance(extra, dict) else {}).items():
        if (key := _NAMES.get(name, name)) in _NEUTRAL or name not in _HARMLESS:
            found[key] = value
    return found


def list_differences(
    facts: RunFacts,
    row: PublishedRow,
    checksum: str = "",
    prompts: PromptFinder | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
    rescored: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield in words how a run differs from a published row, apart from the number of items.

    Args:
        facts: The settings of the run.
        row: The published row.
        checksum: Identity of the registered data; an empty one matches any.
        prompts: Function that finds the prompt hashes of the row's wording on these data.
        defaults: Options of the task and their defaults, and its policy for invalid answers.
        rescored: Options and policy of the scoring that are not those of the run.
    """
    facts = replace(facts, options={**facts.options, **(rescored or {})})
    if checksum and facts.data.get("checksum") not in (None, checksum):
        yield "data: the run uses another copy than the registered one"
    yield from _compare_items(facts, row)
    for name, value in {**row.options, **row.protocol}.items():
        if name != "wording" and (used := facts.options.get(name)) != value:
            yield f"{name}: {'not set' if used is None else used} instead of {value}"
    yield from _compare_defaults(facts, row, defaults or {})
    yield from _compare_wording(facts, row, prompts)
    yield from _compare_decoding(facts, row)


def _compare_defaults(
    facts: RunFacts, row: PublishedRow, defaults: Mapping[str, str]
) -> Iterator[str]:
    """Compare the options that the row does not name: printed commands leave them at their default.

    A run without the option, which is of an earlier version, has the default.
    """
    named = {"wording", *row.options, *row.protocol, *row.free}
    used = {"invalid": facts.invalid, **facts.options}
    for name, value in defaults.items():
        if name not in named and used.get(name, value) not in ("", value):
            yield f"{name}: {used[name]} instead of {value}"


def _compare_items(facts: RunFacts, row: PublishedRow) -> Iterator[str]:
    if row.split not in ("", facts.split):
        yield f"split: {facts.split} instead of {row.split}"
    if facts.limit is not None:
        yield f"items: at most {facts.limit}"
    if facts.sample is not None:
        yield f"items: a sample of {facts.sample}"
    if facts.perturbation:
        yield f"items: changed by the perturbation {facts.perturbation}"
    if facts.imported:
        yield "answers: imported, so prompts and decoding parameters are unknown"


def _compare_wording(
    facts: RunFacts, row: PublishedRow, find: PromptFinder | None
) -> Iterator[str]:
    """Compare the source of the prompts, then their hashes."""
    used = facts.wording or ("official" if facts.options.get("wording") == "official" else "")
    said = _WORDINGS.get(used, used)
    if row.wording == "unstated":
        yield f"wording: {said}; unknown in the paper, which does not state its prompts"
    elif row.wording == "printed":
        yield f"wording: {said}; the paper prints other prompts, which were not released as files"
    elif row.wording != "none":
        wanted = "official" if row.wording == "official" else ""
        if used != wanted:
            yield f"wording: {said} instead of {_WORDINGS[wanted]}"
        elif find is None:
            yield "prompts: unknown, since the data are not registered"
        elif isinstance(known := find(facts), str):
            yield f"prompts: unknown, since {known}"
        elif other := sorted(
            name
            for name in known.keys() | facts.prompts.keys()
            if known.get(name) != facts.prompts.get(name)
        ):
            yield f"prompts: other text than in the registered data ({', '.join(other)})"


def _compare_decoding(facts: RunFacts, row: PublishedRow) -> Iterator[str]:
    if row.wording == "none":
        return
    if row.decoding is None:
        yield "decoding: unknown in the paper, which does not state it"
        return
    if not facts.decoding:
        yield "decoding: unknown, since this run does not record it (run it again)"
        return
    for name in dict.fromkeys([*_NEUTRAL, *facts.decoding, *row.decoding]):
        used = facts.decoding.get(name, _NEUTRAL.get(name))
        stated = row.decoding.get(name, _NEUTRAL.get(name))
        if used != stated and not (name == "top_p" and used in (None, 1)):
            yield f"{name}: {_show(used)} instead of {_show(stated)}"


def _show(value: JsonValue) -> str:
    """Format a decoding parameter.

    >>> _show(0.0), _show(1.5), _show(900), _show(None)
    ('0', '1.5', '900', "the server's default")
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "the server's default" if value is None else f"{value:g}" if number else str(value)
