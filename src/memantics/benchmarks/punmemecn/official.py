"""The authors' prompts, parsed from ``utils/eval/task.py`` in the user's clone.

The script is not executed. Its functions choose a text by language and prompt number; this module
follows the same branches, and expressions in a text become placeholders.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.parsing import find_function, parse_file, read_text
from memantics.benchmarks.published import PublishedRow
from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.core.data import Source, read_json, toml_beside
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt

SCRIPT = "utils/eval/task.py"
# The data are in data/pun_meme/cn of a clone; the user may register either folder.
_DEPTH = 3
_FUNCTIONS = {
    "detection": "vlm_pun_meme_detection",
    "sentiment": "vlm_pun_meme_sentiment_analysis",
    "chat": "vlm_chat_driven_meme_response",
    "ocr": "vlm_image_OCR",
    "pinyin": "vlm_caption_pinyin",
    "harmful": "vlm_harmful_meme_detection",
}
_EXAMPLES = frozenset("34567")
_PINYIN = frozenset("57")


def official_prompts(source: Source, options: Mapping[str, str]) -> dict[str, Prompt]:
    """Return the authors' prompt of each task, named ``official_TASK.LANGUAGE``.

    ``options`` give the language and, if a task has several prompts, the prompt number.
    Placeholders of the item are ``caption``, ``pinyin``, ``history``; those of few-shot examples
    have a number.
    """
    place = find_script(source)
    tree, language = parse_file(place), options["language"]
    number = options.get("prompt", "1")
    found: dict[str, Prompt] = {}
    for task, name in _FUNCTIONS.items():
        function = find_function(tree, name)
        text = function and _read_prompt(function, language, number)
        if text:
            found[f"official_{task}.{language}"] = Prompt(f"official_{task}.{language}", text)
    if not found:
        raise DataError(place, "does not contain the prompts in the expected form")
    return found


def find_script(source: Source) -> Path:
    """Return the authors' script in a registered clone; raise an error if there is none."""
    places = (root / SCRIPT for root in list_roots(source.root))
    place = next((path for path in places if path.is_file()), None)
    if source.kind != "release" or place is None:
        raise DataError(
            source.root,
            f"wording=official needs {SCRIPT}, which is not in this folder",
            hint="register a clone of the official repository: memantics data add punmemecn DIR",
        )
    return place


def list_roots(folder: Path) -> tuple[Path, ...]:
    """Return the possible roots of the clone that contains a data folder."""
    return (folder, *folder.resolve().parents[:_DEPTH])


def write_official(prompt: Prompt, values: Mapping[str, str]) -> str:
    r"""Fill the placeholders of a prompt and strip each line, as the authors do.

    >>> write_official(Prompt("p", "Read.\n   Caption: $caption\n"), {"caption": "x", "n": "1"})
    'Read.\nCaption: x'
    """
    return strip_lines(prompt.fill(**{n: values[n] for n in prompt.placeholders if n in values}))


def strip_lines(text: str) -> str:
    """Strip the lines of a text, and empty lines around it."""
    return "\n".join(line.strip() for line in text.split("\n")).strip("\n")


def asked_keys(prompt: Prompt, count: int) -> tuple[str, ...]:
    """Return the keys of the JSON object that a prompt requests, in order.

    >>> asked_keys(Prompt("p", 'Reply {"Whom": "XXX", "How": "XXX"}.'), 2)
    ('Whom', 'How')
    """
    keys = tuple(dict.fromkeys(re.findall(r'"([^"$]+)": "', prompt.text)))
    if len(keys) != count:
        raise DataError(prompt.name, f"asks for {len(keys)} keys instead of {count}")
    return keys


def _read_prompt(function: ast.FunctionDef, language: str, number: str) -> str | None:
    """Return definition and instruction of a prompt, or its single text without a definition."""
    facts = _know(language, number)
    placeholders = _list_placeholders()
    for inner in function.body:
        if isinstance(inner, ast.FunctionDef):
            placeholders |= _read_parts(inner, facts, number)
    nodes = _follow(function.body, facts)
    names = ("pun_meme_definition", "instruction") if "instruction" in nodes else ("task_prompt",)
    texts = [_read(nodes[name], placeholders) if name in nodes else None for name in names]
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def _know(language: str, number: str) -> dict[str, bool]:
    """Return which conditions of the authors' script hold for these options."""
    facts = {f"prompt_mode == {mode}": str(mode) == number for mode in range(1, 8)}
    facts["language == 'cn'"] = language == "zh"
    facts["'pinyin' in mode[prompt_mode]"] = number in _PINYIN
    facts["not one_shot"] = True
    return facts


def _list_placeholders() -> dict[str, str]:
    """Return the placeholder for each expression in the authors' script."""
    placeholders = {"caption": "$caption", "caption4": "$caption"}
    placeholders |= {f"caption{n}": f"$caption{n}" for n in (1, 2, 3)}
    for name in ("captions", "example_captions"):
        placeholders |= {f"{name}[{n}]": f"$caption{n}" for n in range(1, 9)}
    sounds = {
        f"py({name})": placeholder.replace("caption", "pinyin")
        for name, placeholder in placeholders.items()
    }
    feelings = {f"json_sentiment(sent{n}, language=language)": f"$sentiment{n}" for n in (1, 2, 3)}
    talk = {"chat_history": "$history", "chat_history2": "$history", "chat_history1": "$history1"}
    answers = {"answer1": "$answer1"}
    return placeholders | sounds | feelings | talk | answers


def _read_parts(
    function: ast.FunctionDef, facts: Mapping[str, bool], number: str
) -> dict[str, str]:
    """Return the texts that inner functions add to a chat prompt: options, a worked analysis."""
    nodes = _follow(function.body, facts)
    parts: dict[str, str] = {}
    if "example_analysis" in nodes:
        analysis = _read(nodes["example_analysis"], _list_placeholders())
        parts |= {"analysis1": analysis} if analysis is not None else {}
    choices = nodes.get("choices_text")
    if isinstance(choices, ast.IfExp):
        first, last = _read_lines(choices.body), _read_lines(choices.orelse)
        parts |= {"choices": first, "choices1": first}
        parts["choices2"] = last if number in _EXAMPLES else first
    return parts


def _read_lines(node: ast.expr) -> str:
    elements = node.elts if isinstance(node, ast.List) else ()
    return "\n".join(text for text in (_read(one, {}) for one in elements) if text is not None)


def _follow(body: Iterable[ast.stmt], facts: Mapping[str, bool]) -> dict[str, ast.expr]:
    """Return the last assignment of each name in the script branches whose conditions hold."""
    found: dict[str, ast.expr] = {}
    for one in body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            found[one.targets[0].id] = one.value
        elif isinstance(one, ast.If):
            holds = facts.get(ast.unparse(one.test))
            if holds is not None:
                found |= _follow(one.body if holds else one.orelse, facts)
    return found


def _read(node: ast.expr, placeholders: Mapping[str, str]) -> str | None:
    """Return a text, dedented and stripped as in the script; for a function, its result."""
    if isinstance(node, ast.Lambda):
        return _read(node.body, placeholders)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "dedent" and len(node.args) == 1:
            text = _read(node.args[0], placeholders)
            return None if text is None else textwrap.dedent(text)
        if node.func.attr == "strip" and [ast.unparse(arg) for arg in node.args] == [r"'\n'"]:
            text = _read(node.func.value, placeholders)
            return None if text is None else text.strip("\n")
    return read_text(node, placeholders)


# Results released with the authors' code: ``results/*/*_metrics.json`` of a clone. They contain
# values that the paper plots or omits: seven prompts, English prompts, one-shot OCR and pinyin,
# additional models.

SOURCE = "released results"
_LANGUAGES = {"cn": "zh", "en": "en"}
_RELEASED = toml_beside(__file__, "released.toml")
_PROMPTS: Mapping[str, Mapping[str, str]] = _RELEASED["prompts"]


def read_released(release: PunRelease) -> tuple[PublishedRow, ...]:
    """Return all released results of a registered clone; empty without its ``results``."""
    rows: list[PublishedRow] = []
    for task, told in _RELEASED["files"].items():
        metrics = told["metrics"]
        places = (root / "results" / told["file"] for root in list_roots(release.folder))
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            continue
        whole = _fields(read_json(path))
        if task == "chat":
            for level, models in whole.items():
                rows += _list_rows(task, _fields(models), metrics, {"level": level})
        else:
            rows += _list_rows(task, whole, metrics, {})
    return (*rows, *_list_harmful(release))


def _list_harmful(release: PunRelease) -> Iterator[PublishedRow]:
    """Yield the released proportions of harmful memes that each system detects, and the drops."""
    told = _RELEASED["harmful"]
    places = (root / "results" / told["file"] for root in list_roots(release.folder))
    path = next((place for place in places if place.is_file()), None)
    for system, sets in _fields(read_json(path) if path else None).items():
        known = {told["sets"][name]: _fields(v) for name, v in _fields(sets).items()
                 if name in told["sets"]}  # fmt: skip
        asked = any(f"Acc_{code}" in found for found in known.values() for code in _LANGUAGES)
        for code, language in _LANGUAGES.items() if asked else (("", ""),):
            key = f"Acc_{code}" if code else "Acc"
            rates = {
                name: float(rate)
                for name, found in known.items()
                if isinstance(rate := found.get(key), int | float)
            }
            first = rates.get("toxicn")
            metrics = {f"recall_{name}": rate for name, rate in rates.items()}
            if first is not None:
                others = ((name, rate) for name, rate in rates.items() if name != "toxicn")
                metrics |= {f"drop_{name}": round(first - rate, 3) for name, rate in others}
            if metrics:
                yield PublishedRow(
                    task="harmful",
                    system=system,
                    options={"language": language} if language else {},
                    metrics=metrics,
                    digits=3,
                    source=SOURCE,
                    wording="official" if language else "none",
                    decoding={"temperature": 0.0} if language else None,
                    feasible=None,
                )


def _list_rows(
    task: str,
    models: Mapping[str, JsonValue],
    metrics: Mapping[str, str],
    options: Mapping[str, str],
) -> Iterator[PublishedRow]:
    for model, languages in models.items():
        for language, ways in _fields(languages).items():
            for way, found in _fields(ways).items():
                known = {
                    metrics[name]: float(value)
                    for name, value in _fields(found).items()
                    if name in metrics and isinstance(value, int | float)
                }
                if language in _LANGUAGES and way in _PROMPTS and known:
                    yield PublishedRow(
                        task=task,
                        system=model,
                        options={"language": _LANGUAGES[language], **_PROMPTS[way], **options},
                        metrics=known,
                        digits=3,
                        source=SOURCE,
                        wording="official",
                        feasible=None,
                    )


def _fields(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return the fields of a JSON object; empty for other values."""
    return value if isinstance(value, dict) else {}
