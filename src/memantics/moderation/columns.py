"""Columns of tables with memes: their usual names, and the names that a user or a detector gives.

Training, evaluation, screening and shards find columns by the same names, so that a table is read
in the same way by all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Final, Self

from memantics.core.parameters import Flag

NO_COLUMN: Final = "none"  # as the image column: the images of a table are ignored
# Usual column names, the most specific first.
USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "post_id", "meme_id", "image_id", "item_id", "uid", "__key__", "编号", "帖子编号"),
    "text": (
        "text", "caption", "ocr_text", "ocr", "content", "message", "body", "txt",
        "文本", "图中文字", "内容",
    ),
    "label": ("label", "harmful", "hateful", "is_harmful", "is_hateful", "toxic", "标签"),
    "image": (
        "image", "file_name", "image_path", "img", "image_file", "path", "file", "jpg", "png",
        "图片",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Column names of tables, if they are not the usual ones.

    Args:
        id: Column with ids. Default: a usual name, such as ``post_id``.
        image: Column with image paths or bytes; ``none`` ignores images. Default: a usual name,
            such as ``img``.
        text: Column with texts. Default: a usual name, such as ``caption``.
        remembered: Columns of the table on which a detector was trained, used if a table has them.
    """

    id: Annotated[
        str,
        Flag(
            "Column with ids. Default: a usual name, such as post_id.",
            "--id-column",
            name="id_column",
        ),
    ] = ""
    image: Annotated[
        str,
        Flag(
            "Column with image paths or bytes; 'none' ignores images. Default: a usual name, such"
            " as img.",
            "--image-column",
            name="image_column",
        ),
    ] = ""
    text: Annotated[
        str,
        Flag(
            "Column with texts. Default: a usual name, such as caption.",
            "--text-column",
            name="text_column",
        ),
    ] = ""
    remembered: tuple[tuple[str, str], ...] = ()

    def remember(self, columns: Mapping[str, str]) -> Self:
        """Return these columns, with the columns of a training table as a fallback.

        >>> TableColumns(id="key").remember({"id": "nr", "text": "said"}).find(["key", "said"])
        {'id': 'key', 'text': 'said'}
        """
        return replace(self, remembered=tuple(sorted(columns.items())))

    def find_missing(self, header: Iterable[str]) -> str:
        """Return the first named column that a table lacks; empty if it has all."""
        known = {*header, ""}
        named = [(role, getattr(self, role)) for role in self._roles]
        absent = [name for role, name in named if name not in known and not _ignores(role, name)]
        return next(iter(absent), "")

    def find(self, header: Iterable[str]) -> dict[str, str]:
        """Map properties (id, image, text, label) to the columns of a table.

        Named columns come first, then remembered ones, then usual names in any case.

        >>> TableColumns().find(["Post_ID", "caption", "img", "likes"])
        {'id': 'Post_ID', 'image': 'img', 'text': 'caption'}
        >>> TableColumns(image="none").find(["id", "img"])
        {'id': 'id'}
        """
        names = list(header)
        by_lower = {name.strip().lower(): name for name in reversed(names)}
        remembered, found = dict(self.remembered), dict[str, str]()
        for role in self._roles:
            named = str(getattr(self, role))
            if _ignores(role, named) and named not in names:
                continue
            usual = (by_lower[name] for name in USUAL[role] if name in by_lower)
            known = remembered.get(role, "")
            name = named or (known if known in names else "") or next(usual, "")
            if name:
                found[role] = name
        return found

    @property
    def _roles(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self) if field.name in USUAL)


@dataclass(frozen=True, slots=True)
class ExampleColumns(TableColumns):
    """Column names of a labelled table, if they are not the usual ones."""

    label: Annotated[
        str,
        Flag(
            "Column with labels. Default: a usual name, such as hateful.",
            "--label-column",
            name="label_column",
        ),
    ] = ""


def _ignores(role: str, name: str) -> bool:
    return role == "image" and name == NO_COLUMN


def describe_columns(known: Mapping[str, str], header: Sequence[str]) -> tuple[str, ...]:
    """Describe how the columns of a table are read, unless all have the default names.

    >>> describe_columns({"id": "post_id", "text": "text"}, ["post_id", "text", "likes"])
    ('columns read: id = post_id, text', 'columns ignored: likes')
    >>> describe_columns({"text": "text"}, ["text"])
    ()
    """
    read = [role if role == name else f"{role} = {name}" for role, name in known.items()]
    taken = set(known.values())
    ignored = [name for name in header if name and name not in taken]
    if not ignored and all(role == name for role, name in known.items()):
        return ()
    notes = (f"columns read: {', '.join(read)}",)
    return (*notes, f"columns ignored: {', '.join(ignored)}") if ignored else notes
