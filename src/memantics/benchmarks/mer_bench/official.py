"""The authors' prompts for judge models, parsed from ``judge.py`` in the user's clone.

The script is not executed: only its texts are read, and expressions in them become placeholders.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from memantics.benchmarks.parsing import assigned, find_function, parse_file, read_text
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt

SCRIPT = "judge.py"
_PLACEHOLDERS = {
    "', '.join(EMOTIONS_9)": "$labels, other",
    "', '.join(EMOTIONS_8)": "angry, sad, tense, bored, calm, happy, excited, relaxed",
    "sample.src_emotion": "$source_emotion",
    "sample.tgt_emotion": "$target_emotion",
}
_BLOCKS = {
    "sample.src_caption_text": "source_caption",
    "sample.tgt_caption_text": "target_caption",
    "sample.edit_instruction": "edit_instruction",
}


def official_prompts(source: Source, _options: Mapping[str, str]) -> dict[str, Prompt]:
    """Return the prompts for judge models as the authors send them."""
    place = next(
        (root / SCRIPT for root in (source.root, source.root.parent) if (root / SCRIPT).is_file()),
        None,
    )
    if source.kind != "release" or place is None:
        raise DataError(
            source.root,
            f"wording=official needs {SCRIPT}, which is not in this folder",
            hint="register a clone of the official repository: memantics data add mer_bench DIR",
        )
    tree = parse_file(place)
    build, blocks = find_function(tree, "build_prompts"), find_function(tree, "build_image_blocks")
    if build is None or blocks is None:
        raise DataError(place, "has no function build_prompts, build_image_blocks")
    placeholders = dict(_PLACEHOLDERS)
    texts: dict[str, str] = {}
    for name, node in assigned(build):
        text = read_text(node, placeholders)
        if text is not None:
            texts[name] = text
            placeholders[name] = text
    lines = [text for text in _appended(build, placeholders) if text is not None]
    rules, rubric = texts.get("system_prompt"), "\n\n".join(lines)
    titles, images, lead = _titles(build), _image_titles(blocks), _lead(build)
    if rules is None or len(lines) < 5 or len(titles) != 3 or len(images) != 2 or lead is None:
        raise DataError(place, "does not contain the prompts in the expected form")
    # In the authors' prompt, the reference texts are between the two feelings and the rubric.
    head, _, tail = rubric.partition(lines[-1])
    judge = f"{head.rstrip()}$references\n\n{lines[-1]}{tail}"
    found = {
        "rules": Prompt("rules", rules),
        "judge": Prompt("judge", judge, frozenset({"shape"})),
        "source_image": Prompt("source_image", images[0]),
        "edited_image": Prompt("edited_image", images[1]),
    }
    found["references"] = Prompt("references", f"{lead}$blocks")
    return found | {name: Prompt(name, f"{title}:\n$text") for name, title in titles.items()}


def _appended(build: ast.FunctionDef, placeholders: Mapping[str, str]) -> list[str | None]:
    """Return the lines of the user message in the authors' script, in order."""
    return [
        read_text(node.args[0], placeholders)
        for node in ast.walk(build)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "user_lines.append"
        if node.args and "opt_blocks" not in ast.unparse(node.args[0])
    ]


def _lead(build: ast.FunctionDef) -> str | None:
    """Return the text before the reference texts in the authors' prompt."""
    for node in ast.walk(build):
        if isinstance(node, ast.BinOp) and "opt_blocks" in ast.unparse(node.right):
            return read_text(node.left, {})
    return None


def _titles(build: ast.FunctionDef) -> dict[str, str]:
    """Return the heading of each reference text, in file order."""
    found: dict[str, str] = {}
    for node in ast.walk(build):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_maybe_block"):
            title = read_text(node.args[0], {})
            name = _BLOCKS.get(ast.unparse(node.args[1]))
            if title and name:
                found[name] = title
    return found


def _image_titles(blocks: ast.FunctionDef) -> list[str]:
    """Return the text before each image in the authors' prompt."""
    texts = [
        read_text(value, {})
        for node in ast.walk(blocks)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "text"
    ]
    return [text for text in texts if text]
