"""The data card: a README that people read, with the front matter that hubs read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from memantics.build.publish.bundle import Bundle, CardSection
from memantics.build.publish.tables import TableFile


def write_card(bundle: Bundle, files: Sequence[TableFile]) -> str:
    """The text of ``README.md``."""
    facts = bundle.facts
    parts = [
        "\n".join(_front_matter(bundle, files)),
        f"# {_plain(facts.title)}",
        _plain(facts.summary),
    ]
    if facts.warning:
        parts.append(f"> **Content warning.** {_plain(facts.warning)}")
    parts += ["\n\n".join(_section(section)) for section in bundle.sections]
    parts.append("\n\n".join(_section(_use(bundle))))
    parts.append(f"Please keep these data out of training. Canary string: `{facts.canary}`")
    if facts.citation:
        parts.append(f"## Citation\n\n{_plain(facts.citation)}")
    return "\n\n".join(parts) + "\n"


def _front_matter(bundle: Bundle, files: Sequence[TableFile]) -> Iterator[str]:
    """YAML in its JSON form: no text of a user can end a string early."""
    facts = bundle.facts
    yield "---"
    yield f"license: {json.dumps(facts.licence)}"
    yield f"pretty_name: {json.dumps(facts.title, ensure_ascii=False)}"
    yield f"language: {json.dumps(list(facts.languages))}"
    yield f"size_categories: {json.dumps([_size(len(bundle.memes))])}"
    yield f"tags: {json.dumps(['memes', 'multimodal', 'memantics'])}"
    yield "configs:"
    for place, file in enumerate(files):
        yield f"- config_name: {json.dumps(file.name)}"
        yield f"  data_files: {json.dumps(f'parquet/{file.path.name}')}"
        # The first is what load_dataset(FOLDER) gives: memes with their images and records.
        if place == 0:
            yield "  default: true"
    yield "---"


def _size(count: int) -> str:
    """The hub's name for a size.

    >>> _size(79), _size(5000)
    ('n<1K', '1K<n<10K')
    """
    if count < 1_000:
        return "n<1K"
    return "1K<n<10K" if count < 10_000 else "10K<n<100K" if count < 100_000 else "100K<n<1M"


def _section(section: CardSection) -> Iterator[str]:
    yield f"## {section.title}"
    if section.lines:
        yield "\n".join(_plain(line) for line in section.lines)
    if section.rows:
        head = ["| | |", "|---|---|"]
        yield "\n".join(
            head + [f"| {_cell(name)} | {_cell(value)} |" for name, value in section.rows]
        )


def _use(bundle: Bundle) -> CardSection:
    name = bundle.facts.name
    line = (
        f"`memantics run {name} --model openai/NAME --base-url URL` evaluates a model on it once "
        f"`MEMANTICS_BENCHMARKS` names the folder that holds `{name}/`. `parquet/` and "
        "`croissant.json` serve other tools; `data/` is an `imagefolder`."
    )
    absent = (
        "The images may not be passed on and are not part of this data set. `data/metadata.jsonl` "
        "names the file and the SHA-256 of each: get them from their source and put them into "
        "`data/images` as `<id>.png`."
    )
    return CardSection("How to use it", (line,) if bundle.images else (line, absent))


def _plain(text: str) -> str:
    """One paragraph of text: what users wrote opens no headings and no markup of its own."""
    line = " ".join(text.split())
    return line.replace("<", "&lt;").lstrip("#>|-")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
