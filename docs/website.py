"""Build the documentation as a website with offline search: ``python -m docs.website``.

The script copies the pages, rewrites their links, and writes the index and the Python reference.
Files of the repository that pages link to are copied as well. A page that is missing in
``SECTIONS`` and a broken link are warnings of Sphinx; with any warning, the exit code is 1.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from memantics import __version__

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start here": ("readme", "readme.zh", "pages", "how-to/troubleshooting"),
    "Tutorials": (
        "tutorials/first-evaluation",
        "tutorials/moderate-a-forum",
        "tutorials/build-a-benchmark-with-a-team",
        "tutorials/understand-one-meme",
        "tutorials/disagreement",
        "tutorials/quote-a-judge",
        "tutorials/policy-to-appeal",
    ),
    "How to: evaluate models": (
        "how-to/evaluate-a-model",
        "how-to/any-model",
        "how-to/exchange-answers",
        "how-to/perturbation-tests",
        "how-to/llm-judges",
        "how-to/add-metrics-and-plugins",
        "how-to/compare-runs",
        "how-to/five-releases-to-a-table",
        "how-to/audit-a-benchmark",
        "how-to/reproduce-a-paper",
        "how-to/use-official-data",
        "how-to/use-your-data",
        "how-to/run-local-models",
        "how-to/use-with-inspect",
        "how-to/use-from-python",
    ),
    "How to: build benchmarks": (
        "how-to/collect-memes",
        "how-to/build-a-benchmark",
        "how-to/build-chats-and-intents",
        "how-to/annotate",
        "how-to/write-a-workflow",
        "how-to/publish-a-benchmark",
        "how-to/explore-knowledge",
        "how-to/add-a-benchmark",
    ),
    "How to: moderate": (
        "how-to/policies",
        "how-to/screen-memes",
        "how-to/screen-at-scale",
        "how-to/detect-harmful-memes",
        "how-to/train-a-classifier",
        "how-to/train-neural-detectors",
        "how-to/wrap-a-classifier",
        "how-to/serve",
        "how-to/move-from-perspective",
        "integrations",
    ),
    "How to: one meme": (
        "how-to/analyze-a-meme",
        "how-to/read-homophones",
        "how-to/make-a-meme-kinder",
        "how-to/compare-editors",
        "how-to/studio",
    ),
    "Reference": (
        "glossary",
        "api",
        "reference/python",
        "reference/cli",
        "reference/benchmarks",
        "reference/plugins",
        "reference/sample-data",
        "reference/ontology",
        "benchmarks/*",
    ),
    "Explanation": (
        "explanation/concepts",
        "explanation/read-the-report",
        "explanation/security",
        "architecture",
    ),
    "Project": ("research/*", "contributing", "changelog"),
    "中文教程": ("zh/*",),
}
# Files that have another name on the site. README.md and readme.md would be one file on macOS.
RENAMED = {
    "README.md": "readme.md",
    "README.zh.md": "readme.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/README.md": "pages.md",
}
TITLES = {
    "readme": "Introduction",
    "readme.zh": "中文说明",
    "pages": "All pages by user and by kind",
}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")


def stage(target: Path) -> None:
    """Write the sources of the site: the pages, the index and the Python reference."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for page in DOCS.rglob("*.md"):
        if str(page.relative_to(ROOT)) not in RENAMED:
            _copy(page, target / page.relative_to(DOCS), target)
    for name, page_name in RENAMED.items():
        _copy(ROOT / name, target / page_name, target)
    shutil.copytree(DOCS / "pictures", target / "pictures", dirs_exist_ok=True)
    (target / "api.md").write_text("\n".join(_write_api()), encoding="utf-8")
    (target / "index.md").write_text("\n".join(_write_index(target)), encoding="utf-8")


def _copy(source: Path, page: Path, target: Path) -> None:
    """Copy a page, with links changed to the places of their files on the site."""

    def rewrite(found: re.Match[str]) -> str:
        start, link, anchor, end = found.groups()
        if "://" in link or link.startswith("mailto:"):
            return found.group()
        place = (source.parent / link).resolve()
        known = RENAMED.get(str(place.relative_to(ROOT)))
        if known is not None:
            aim = target / known
        elif place.is_relative_to(DOCS):
            aim = target / place.relative_to(DOCS)
            if place.suffix != ".md":
                _keep(place, aim)
        else:
            aim = target / "files" / place.relative_to(ROOT)
            _keep(place, aim)
        if place.is_dir():
            aim = target / "index.md"
        up = "../" * len(page.relative_to(target).parents[:-1])
        return f"{start}{up}{aim.relative_to(target).as_posix()}{anchor or ''}{end}"

    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(LINK.sub(rewrite, source.read_text(encoding="utf-8")), encoding="utf-8")


def _keep(place: Path, aim: Path) -> None:
    if place.is_file():
        aim.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, aim)


def _write_index(target: Path) -> Iterator[str]:
    yield "# Memantics\n\nA Python workbench for computational meme understanding.\n"
    yield "![The analysis of one meme](pictures/tour.png)\n"
    for title, names in SECTIONS.items():
        yield f"```{{toctree}}\n:caption: {title}\n:maxdepth: 1\n"
        for name in names:
            found = sorted(target.glob(f"{name}.md"))
            paths = (page.relative_to(target).as_posix().removesuffix(".md") for page in found)
            yield from (f"{TITLES[path]} <{path}>" if path in TITLES else path for path in paths)
        yield "```\n"


def _write_api() -> Iterator[str]:
    """Write the page of all public names with their signatures and docstrings."""
    import memantics

    yield "# Python API\n\nAll names of `import memantics as mm`.\n"
    for name in memantics.__all__:
        value = getattr(memantics, name)
        if isinstance(value, str):
            continue
        kind = "module" if type(value).__name__ == "module" else ""
        kind = kind or ("class" if isinstance(value, type) else "function")
        if kind == "class" and issubclass(value, Exception):
            kind = "exception"
        where = f"{value.__module__}.{value.__qualname__}" if kind != "module" else value.__name__
        yield f"## `mm.{name}`\n\n```{{eval-rst}}\n.. auto{kind}:: {where}\n   :no-index:"
        yield "   :members:\n```\n" if kind in ("class", "module") else "```\n"


SETTINGS = {
    "project": "Memantics",
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
    "html_theme": "furo",
    # Shown beside the list of pages and in the title of each page.
    "html_title": f"Memantics {__version__}",
    "version": __version__,
    "release": __version__,
    "html_copy_source": False,
    "html_show_sphinx": False,
    "myst_heading_anchors": 3,
    "myst_enable_extensions": ["colon_fence"],
    "autodoc_typehints": "signature",
    "autodoc_member_order": "bysource",
    "suppress_warnings": [],
    "exclude_patterns": ["files/**"],
}


def build(out: Path, source: Path | None = None) -> int:
    """Build the site from ``source`` (default: staged first); return the number of warnings."""
    from sphinx.application import Sphinx

    if source is None:
        source = out.parent / f"{out.name}-source"
        stage(source)
    shutil.rmtree(out, ignore_errors=True)
    made = Sphinx(
        source, None, out, out.parent / f"{out.name}-tree", "html", dict(SETTINGS), status=None
    )
    made.build()
    return made._warncount


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]] or [ROOT / "build" / "site"]
    count = build(*given[:2])
    print(f"{given[0]}/index.html")
    sys.exit(1 if count else 0)
