"""Prompt files with named placeholders, and templates for documents and drawings.

A prompt is ``prompts/NAME.md``: ``$name`` is a placeholder and ``$$`` a dollar sign. Templates for
cards, LaTeX and SVG are stored beside the modules that fill them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from memantics.core.errors import PromptError, require_known
from memantics.core.files import read_regular_text

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with named placeholders, and the hash that is stored with every answer.

    ``absent`` lists values that callers may pass although the text has no placeholder for them.
    Prompts from papers use fewer values than the built-in prompts.

    >>> hello = Prompt("hello", "Meme: $caption")
    >>> hello.fill(caption="one does not simply")
    'Meme: one does not simply'
    >>> hello.fill(captoin="x")
    Traceback (most recent call last):
    memantics.core.errors.PromptError: prompt hello: missing caption; unknown captoin
    """

    name: str
    text: str
    absent: frozenset[str] = frozenset()

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(Template(self.text).get_identifiers())

    @property
    def hash(self) -> str:
        """The first 16 hex digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def fill(self, **values: str) -> str:
        """Fill the placeholders; raise a ``PromptError`` for a missing or unknown value.

        Values are inserted as they are: a dollar sign inside a caption is not a placeholder.
        """
        missing, unknown = (
            self.placeholders - values.keys(),
            values.keys() - self.placeholders - self.absent,
        )
        if missing or unknown:
            parts = [
                f"{word} {', '.join(sorted(names))}"
                for word, names in (("missing", missing), ("unknown", unknown))
                if names
            ]
            raise PromptError(f"prompt {self.name}: {'; '.join(parts)}")
        return Template(self.text).substitute(values)


def enclose(label: str, text: str) -> str:
    """Wrap untrusted text in delimiters that it cannot forge.

    The delimiters contain a hash of the text: inserting the closing one would change the hash.

    >>> print(enclose("printed text", "hello"))
    <printed text 2cf24dba>
    hello
    </printed text 2cf24dba>
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"<{label} {mark}>\n{text}\n</{label} {mark}>"


def read_prompt(path: Path) -> Prompt:
    """Read one prompt file without surrounding blank lines."""
    try:
        text = read_regular_text(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            f"prompt file {path.name} cannot be read: {error}", hint="reinstall memantics"
        ) from error
    prompt = Prompt(path.stem, text)
    if not Template(text).is_valid():
        raise PromptError(
            f"prompt file {path.name} has a stray '$'", hint="write $$ for a dollar sign"
        )
    return prompt


def replace_prompts(known: Mapping[str, Prompt], folder: Path, task: str) -> Mapping[str, Prompt]:
    """Replace built-in prompts with a user's files of the same names and placeholders."""
    if not folder.is_dir():
        raise PromptError(
            f"--prompts {folder} is not a folder",
            hint="create the folder and put NAME.md files into it",
        )
    prompts = read_prompts(folder)
    if not prompts:
        raise PromptError(
            f"--prompts {folder} contains no .md file", hint=f"for example {min(known)}.md"
        )
    for name, prompt in prompts.items():
        require_known(f"prompt of {task}:", name, known)
        missing, unknown = (
            known[name].placeholders - prompt.placeholders,
            prompt.placeholders - known[name].placeholders,
        )
        if missing or unknown:
            words = [f"has no ${placeholder}" for placeholder in sorted(missing)]
            words += [
                f"has the unknown placeholder ${placeholder}" for placeholder in sorted(unknown)
            ]
            placeholders = (
                ", ".join(f"${placeholder}" for placeholder in sorted(known[name].placeholders))
                or "none"
            )
            raise PromptError(
                f"{folder / name}.md {'; '.join(words)}",
                hint=f"allowed placeholders: {placeholders}",
            )
    return {**known, **prompts}


def prompts_beside(file: str) -> Callable[[], Mapping[str, Prompt]]:
    """Return a function that reads the prompt files beside a module and caches them."""
    return cache(partial(read_prompts, Path(file).parent / "prompts"))


def read_prompts(folder: Path) -> Mapping[str, Prompt]:
    """Return all prompts of a folder by name (``detection.zh.md`` is ``detection.zh``)."""
    return {path.stem: read_prompt(path) for path in sorted(folder.glob("*.md"))}


Filters = Mapping[str, Callable[..., object]]


def fill_template(module: str, name: str, filters: Filters, **values: object) -> str:
    """Render the document template ``name`` in the folder of a module (given as its ``__file__``).

    The delimiters are ``<< >>`` and ``<% %>``, because LaTeX uses braces. Values are not escaped:
    each format has its own rules, so the caller passes the quoting filters.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701 - these documents are no HTML
        loader=FileSystemLoader(Path(module).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    made.filters.update(filters)
    return made.get_template(name).render(**values)


@cache
def _read_drawings(file: Path) -> Any:
    from jinja2 import Environment, StrictUndefined

    from memantics.core.text import mask_unseen

    made = Environment(autoescape=True, undefined=StrictUndefined)
    made.filters["mask"] = mask_unseen
    return made.from_string(file.read_text(encoding="utf-8")).module


def draw(file: Path, name: str, *values: object) -> Markup:
    """Render a drawing by its name in a file of template macros; all values are escaped."""
    drawn: Markup = getattr(_read_drawings(file), name)(*values)
    return drawn
