"""Sample texts for the readability trial: ``python -m docs.readability SEED OUT.jsonl [ROOT]``.

The sample has 40 paragraphs of the documentation, 40 messages, 40 help lines and 40 docstrings. A
quarter of the paragraphs and messages is Chinese where enough Chinese texts exist. A reader who
does not know the project gets them one at a time; ``docs/research/readability.md`` has the results.
"""

from __future__ import annotations

import ast
import json
import random
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZE, CHINESE = 40, 10
HAN = re.compile(r"[一-鿿]")
FENCE = re.compile(r"^(```|:::).*?^\1", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"^\| `[^|]+` \| (.+?) \| (.*?) \|$")
ERRORS = re.compile(r"(Error|Unavailable|MissingExtra|Refusal)$")


@dataclass(frozen=True, slots=True)
class SampledText:
    """One text of the sample and the page or file that it is from."""

    kind: str
    place: str
    text: str

    @property
    def chinese(self) -> bool:
        """Whether at least a fifth of the characters are Chinese."""
        return len(HAN.findall(self.text)) * 5 > len(self.text)


def find_paragraphs(root: Path) -> Iterator[SampledText]:
    """Paragraphs of at least eight words in the README, the guides and the research pages."""
    pages = [*root.glob("README*.md"), root / "CONTRIBUTING.md", *root.glob("docs/**/*.md")]
    for page in sorted(pages):
        if page.read_text(encoding="utf-8").startswith("<!-- Generated"):
            continue
        for block in FENCE.sub("", page.read_text(encoding="utf-8")).split("\n\n"):
            text = " ".join(block.split())
            long = len(text.split()) >= 8 or len(HAN.findall(text)) >= 16
            if long and not text.startswith(("#", "|", "<", "!", "```")):
                yield SampledText("paragraph", page.relative_to(root).as_posix(), text)


def find_messages(root: Path) -> Iterator[SampledText]:
    """Texts of raised errors with their hints, and texts of web pages in both languages."""
    for path in sorted(root.glob("src/memantics/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not ERRORS.search(ast.unparse(node.func)):
                continue
            text = _show_error(node)
            if len(text.split()) >= 3:
                yield SampledText("message", path.relative_to(root).as_posix(), text)
    for path in sorted(root.glob("src/memantics/**/messages.toml")):
        for text in _find_strings(tomllib.loads(path.read_text(encoding="utf-8"))):
            if len(text.split()) >= 4 or len(HAN.findall(text)) >= 6:
                yield SampledText("message", path.relative_to(root).as_posix(), text)


def _show_error(node: ast.Call) -> str:
    """The message of a raised error as a user reads it; values are shown as ``{name}``."""
    texts = [_show_string(part) or f"{{{ast.unparse(part)}}}" for part in node.args]
    kind = ast.unparse(node.func).rpartition(".")[2]
    if not any(map(_show_string, node.args)) or not texts:
        return ""
    if kind == "MissingExtra":
        return f"{texts[0]} need an optional package; pip install 'memantics[{texts[-1]}]'"
    start = "image " if kind == "ImageError" else ""
    hints = [_show_string(word.value) for word in node.keywords if word.arg == "hint"]
    return "; ".join([start + ": ".join(texts), *filter(None, hints)])


def _show_string(node: ast.expr) -> str:
    """A string literal, the values of an f-string shown as ``{name}``; empty for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{ast.unparse(part.value)}}}"
            if isinstance(part, ast.FormattedValue)
            else str(getattr(part, "value", ""))
            for part in node.values
        )
    return ""


def _find_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _find_strings(inner)


def find_help(root: Path) -> Iterator[SampledText]:
    """Help of commands and of their options, from the generated reference."""
    page = root / "docs" / "reference" / "cli.md"
    command = ""
    text = re.sub(r"(?<=[^\n|`])\n(?=[^\n|#`])", " ", page.read_text(encoding="utf-8"))
    for line in text.splitlines():
        if line.startswith("## "):
            command = line.removeprefix("## ").strip("`")
        option = OPTION.match(line)
        if option:
            name = line.split("|")[1].strip()
            default = f" (default: {option[2]})" if option[2].strip() else ""
            yield SampledText("help", command, f"{name}: {option[1]}{default}")
        elif command and line and not line.startswith(("#", "|", "```")):
            yield SampledText("help", command, line)


def find_docstrings(root: Path) -> Iterator[SampledText]:
    """Docstrings of modules, classes and functions, with the name of what they document."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted(root.glob("src/memantics/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            if text:
                place = f"{path.relative_to(root).as_posix()} {getattr(node, 'name', '(module)')}"
                yield SampledText("docstring", place, text)


def sample_texts(root: Path, seed: int) -> list[SampledText]:
    """Draw the sample: the same seed and tree give the same texts."""
    drawn: list[SampledText] = []
    for find in (find_paragraphs, find_messages, find_help, find_docstrings):
        texts = list(dict.fromkeys(find(root)))
        generator = random.Random(f"{seed}:{find.__name__}")
        chinese = [text for text in texts if text.chinese]
        others = [text for text in texts if not text.chinese]
        part = generator.sample(chinese, min(CHINESE, len(chinese)))
        drawn += generator.sample(others, min(SIZE - len(part), len(others))) + part
    return drawn


if __name__ == "__main__":
    sampled = sample_texts(Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT, int(sys.argv[1]))
    lines = [
        json.dumps({"number": number, **asdict(text)}, ensure_ascii=False)
        for number, text in enumerate(sampled, 1)
    ]
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} texts in {sys.argv[2]}")
