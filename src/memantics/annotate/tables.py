"""Tables that others read: one row an item or one a vote, a Hugging Face folder, LaTeX."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from pydantic import JsonValue

from memantics.annotate import export
from memantics.annotate.agreement import ALL, FieldAgreement, measure_agreement
from memantics.annotate.consensus import SeatedItem
from memantics.annotate.context import iso
from memantics.annotate.errors import NoSuchForm

TABLES: Mapping[str, tuple[str, ...]] = {
    "data": ("csv", "jsonl", "parquet"),
    "votes": ("csv", "jsonl", "parquet"),
    "agreement": ("csv", "jsonl", "tex"),
    "huggingface": ("zip",),
}
VOTES = (
    "item",
    "group",
    "stage",
    "person",
    "field",
    "value",
    "at",
    "seconds",
    "guideline",
    "suggested",
)
_FIGURES = ("pairwise", "complete", "cohen", "fleiss", "alpha", "ac1", "icc")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def write_table(snapshot: export.Snapshot, what: str, form: str, media: Path) -> bytes:
    """One of these tables as a file; ``media`` is where the images of the project are."""
    if form not in TABLES[what]:
        raise NoSuchForm(what, form, TABLES[what])
    if what == "huggingface":
        return pack_huggingface(snapshot, media)
    if what == "votes":
        return export.write_rows(make_votes(snapshot), VOTES, form)
    if what == "data":
        return export.write_rows(*make_data(snapshot), form)
    figures = measure_agreement(snapshot.workflow, snapshot.items)
    if form == "tex":
        labels = {field.id: field.label.en for field in snapshot.workflow.fields}
        return write_latex(figures, labels)
    return export.write_rows(*agreement_rows(figures), form)


def make_votes(snapshot: export.Snapshot) -> list[export.Row]:
    """The long table: one row for each field that a person answered, training left out."""
    return [
        {
            "item": item.row.item_key,
            "group": item.row.group_key,
            "stage": snapshot.workflow.stages[seat.stage].id,
            "person": export.name_of(snapshot, seat.user),
            "field": field,
            "value": value,
            "at": iso(seat.submitted_at or 0.0),
            "seconds": seat.seconds,
            "guideline": snapshot.rights.settings.guideline_at(seat.submitted_at or 0.0),
            "suggested": snapshot.workflow.stages[seat.stage].kind == "independent"
            and item.row.prelabels != "{}"
            and snapshot.rights.settings.suggested_at(seat.submitted_at or 0.0),
        }
        for item in snapshot.items
        for seat in item.answered(training=False)
        for field, value in (seat.answer or {}).items()
    ]


def make_data(snapshot: export.Snapshot) -> tuple[list[export.Row], list[str]]:
    """The wide table: an item with what was shown, what was agreed on, and each person's votes.

    Columns of votes are called ``field:person``; those that nobody filled are left out.
    """
    rows = [
        _wide_row(snapshot, item) | export.outcome(snapshot, found)
        for item, found in export.resolve_all(snapshot)
    ]
    used = {name for row in rows for name, value in row.items() if value is not None}
    first = ["id", "group", "image", "text", "kept", "reason", "complete", *snapshot.field_names]
    columns = [name for name in first if name in used]
    columns += sorted(used.difference(columns))
    return [{name: row.get(name) for name in columns} for row in rows], columns


def _wide_row(snapshot: export.Snapshot, item: SeatedItem) -> dict[str, JsonValue]:
    shown = {entry.label.casefold(): entry.value for entry in item.shown}
    text = shown.pop("text", None) or shown.get("caption")
    pictures = [f"images/{export.file_name(image)}" for image in export.images_of(snapshot, item)]
    parts = [part if isinstance(part, str) else " / ".join(part) for part in shown.values()]
    row: dict[str, JsonValue] = {
        "id": item.row.item_key,
        "group": item.row.group_key,
        "image": pictures[0] if pictures else None,
        "text": text if isinstance(text, str) else "\n".join(parts),
    }
    for label, value in shown.items():
        row[f"shown:{label}"] = value if isinstance(value, str) else [*value]
    for seat in item.answered(training=False):
        who = export.name_of(snapshot, seat.user)
        row |= {f"{field}:{who}": value for field, value in (seat.answer or {}).items()}
    return row


def pack_huggingface(snapshot: export.Snapshot, media: Path) -> bytes:
    """An ``imagefolder`` with a dataset card; without pictures, a table of JSON lines.

    Votes of each item are a list in one column, so that their number may differ.
    """
    rows, _ = make_data(snapshot)
    pictured = bool(rows) and all(row.get("image") for row in rows)
    lines = []
    for row in rows:
        plain = {name: value for name, value in row.items() if ":" not in name or "shown:" in name}
        votes = [
            {"person": who, "field": field, "value": _as_text(value)}
            for name, value in row.items()
            if not name.startswith("shown:") and value is not None
            for field, colon, who in [name.rpartition(":")]
            if colon
        ]
        image = str(plain.pop("image", None) or "")
        named: dict[str, JsonValue] = {"file_name": image} if pictured else {"image": image}
        shown = {name.replace("shown:", "shown_"): value for name, value in plain.items()}
        lines.append(orjson.dumps({**named, **shown, "votes": votes}))
    table = "train/metadata.jsonl" if pictured else "train.jsonl"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(table, b"\n".join([*lines, b""]))
        archive.writestr("README.md", _card(snapshot, len(rows), pictured))
        for key, image in snapshot.images.items():
            folder = "train/images" if pictured else "images"
            archive.write(media / str(key), f"{folder}/{export.file_name(image)}")
    return packed.getvalue()


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _card(snapshot: export.Snapshot, count: int, pictured: bool) -> str:
    rights, flow = snapshot.rights, snapshot.workflow
    data = "" if pictured else "configs:\n- config_name: default\n  data_files: train.jsonl\n"
    fields = "\n".join(f"- `{field.id}`: {field.label.en}" for field in flow.fields)
    title = orjson.dumps(rights.title).decode()
    return (
        f"---\npretty_name: {title}\nlanguage: [{rights.language or 'en'}]\n{data}---\n\n"
        f"# {rights.title}\n\n{count} items, judged with the workflow `{flow.name}` under version"
        f" {rights.settings.guideline} of its guideline; people are named by pseudonyms.\n\n"
        f"{fields}\n\n`kept` says whether an item passed, `votes` who said what.\n"
    )


def agreement_rows(figures: Sequence[FieldAgreement]) -> tuple[list[export.Row], list[str]]:
    """Agreement as a table: each figure with the ends of its interval."""
    rows: list[export.Row] = []
    for one in figures:
        row: dict[str, JsonValue] = {"stage": one.stage, "field": one.field, "level": one.level}
        row |= {"items": one.items, "people": one.people}
        for name in _FIGURES:
            low, high = one.spans.get(name, (None, None))
            row |= {name: getattr(one, name), f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    columns = ["stage", "field", "level", "items", "people"]
    columns += [f"{name}{end}" for name in _FIGURES for end in ("", "_low", "_high")]
    return rows, columns


def write_latex(figures: Sequence[FieldAgreement], labels: Mapping[str, str]) -> bytes:
    r"""Agreement as a LaTeX table (package booktabs); intervals stand below their figures."""
    shown = [one for one in figures if one.items]
    names = {"fleiss": r"Fleiss $\kappa$", "alpha": r"$\alpha$", "ac1": "AC1", "icc": "ICC"}
    used = [name for name in names if any(getattr(one, name) is not None for one in shown)]
    head = ["Field", "Items", "People", r"\% agree", *(names[name] for name in used)]
    lines = [
        r"% \usepackage{booktabs}; other scripts than Latin need XeLaTeX and a font that has them.",
        "% 95 % intervals: items drawn again, 1000 draws.",
        r"{\noindent\footnotesize\setlength{\tabcolsep}{3pt}%",
        rf"\begin{{tabular}}{{@{{}}p{{.26\linewidth}}{'r' * (len(head) - 1)}@{{}}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    for one in shown:
        label = "All fields" if one.field == ALL else labels.get(one.field, one.field)
        cells = [r"\raggedright " + escape_latex(label), str(one.items), str(one.people)]
        cells += [f"{100 * (one.pairwise or 0):.1f}", *(_figure(one, name) for name in used)]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", ""]).encode()


def _figure(one: FieldAgreement, name: str) -> str:
    """A figure with its interval below."""
    value, span = getattr(one, name), one.spans.get(name)
    if value is None:
        return "--"
    text = f"{value:.2f}"
    if span:
        below = rf"{{\scriptsize [{span[0]:.2f}, {span[1]:.2f}]}}"
        text = rf"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{text}\\{below}\end{{tabular}}"
    return text.replace("-", "$-$")


def escape_latex(text: str) -> str:
    r"""A text in which nothing is a command.

    >>> escape_latex("a_b & 50 %")
    'a\\_b \\& 50 \\%'
    """
    return "".join(f"\\{one}" if one in "&%$#_{}" else _LATEX.get(one, one) for one in text)
