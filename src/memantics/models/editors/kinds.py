"""The kinds of editors: names to objects. The embedded one needs ``vision`` and lives elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from memantics.core.editor import Editor
from memantics.core.errors import InputError, UnknownName
from memantics.models.kinds import ModelSettings, read_params

KINDS = ("embedded", "none", "openai-images/NAME", "diffusers/PATH")


def open_editor(name: str, settings: ModelSettings) -> Editor:
    """The editor called ``KIND/NAME``."""
    kind, slash, rest = name.partition("/")
    if kind not in ("openai-images", "diffusers") or not slash or not rest:
        raise UnknownName("editor", name, KINDS)
    return _open_images(rest, settings) if kind == "openai-images" else _open_folder(rest, settings)


def _open_images(name: str, settings: ModelSettings) -> Editor:
    from memantics.models.editors.openai_images import ImagesSettings, OpenAIImages

    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise InputError(
            f"editor 'openai-images/{name}' needs the address of its server",
            hint="give --editor-url, such as http://localhost:8000/v1, or set OPENAI_BASE_URL",
        )
    key = os.environ.get("OPENAI_API_KEY", "")
    made = ImagesSettings(timeout=settings.timeout, fields=settings.params)
    return OpenAIImages(name, base_url, key, made)


def _open_folder(path: str, settings: ModelSettings) -> Editor:
    from memantics.models.editors.diffusers import DiffusersEditor, DiffusersSettings

    made = read_params(DiffusersSettings, settings.params, "diffusers/… editors", "--editor-param")
    return DiffusersEditor(Path(path), made)
