"""``annotate export``: the tables, folders and files that come out of a project."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Annotated, Literal

from memantics.actions.annotate import Storage, find_admin, open_annotations, require_project
from memantics.annotate import require_extra
from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.core.parameters import Argument, Flag

What = Literal[
    "verdicts",
    "data",
    "votes",
    "resolved",
    "agreement",
    "huggingface",
    "labelstudio",
    "raw",
    "audit",
]
_FORMS = {"labelstudio": "json", "huggingface": "zip"}


def export_annotations(
    storage: Storage,
    project: Annotated[int, Argument("The number of the project.")],
    out: Annotated[Path, Flag("File to write; a folder for huggingface.")],
    what: Annotated[
        What,
        Flag(
            "Verdicts for construction; data (a row an item, with all votes) or votes (a row each);"
            " what was agreed on; agreement; folders for others; every revision or change."
        ),
    ] = "verdicts",
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "json", "zip", "tex"] | None,
        Flag("Default: as the file is called, else jsonl, json or zip.", "--format"),
    ] = None,
) -> None:
    """Write verdicts, tables or figures of a project to a file, or a folder for Hugging Face."""
    require_extra()
    ending = out.suffix.removeprefix(".").lower()
    named = ending if ending in ("csv", "parquet", "tex", "zip", "json", "jsonl") else ""
    shape = form or (named if what not in ("verdicts", "raw") else "") or _FORMS.get(what, "jsonl")
    as_folder = what == "huggingface" and not named
    if as_folder and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already", hint="name a folder that does not exist yet")
    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        made = service.exchange.export(actor, project, what, shape)
    if as_folder:
        with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
            archive.extractall(out)
        return
    replace_file(out, made.data, "export")
