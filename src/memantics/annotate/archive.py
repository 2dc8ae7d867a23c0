"""Label Studio's tasks with their images, in one ZIP file: packed here, and read back in bounds."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO

from memantics.annotate.export import Snapshot, file_name
from memantics.annotate.labelstudio import write_config
from memantics.core.errors import DataError
from memantics.core.images import DEFAULT_BOUNDS

TASKS = "tasks.json"
IMAGES = "images"
MAX_TASKS = 60 * 1024 * 1024
MAX_IMAGES = 4 * 1024 * 1024 * 1024
_NAME = re.compile(r"\w[\w.-]{0,199}")
# The last two: a method or a password that we never use.
DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def pack_tasks(snapshot: Snapshot, tasks: bytes, media: Path) -> bytes:
    """Tasks, an interface that asks the same, and all images."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(TASKS, tasks)
        archive.writestr("interface.xml", write_config(snapshot.workflow))
        for key, image in snapshot.images.items():
            archive.write(media / str(key), f"{IMAGES}/{file_name(image)}")
    return packed.getvalue()


def unpack_tasks(file: IO[bytes], folder: Path) -> bytes:
    """The tasks of an archive; its images are written into a folder under their plain names."""
    left = MAX_IMAGES
    try:
        with zipfile.ZipFile(file) as archive:
            if TASKS not in archive.namelist():
                raise DataError("the ZIP file", f"holds no {TASKS}", hint="export it as JSON")
            for entry in archive.infolist():
                name = entry.filename.removeprefix(f"{IMAGES}/")
                if name == entry.filename or not _NAME.fullmatch(name):
                    continue
                # What the archive says about sizes is not believed.
                with archive.open(entry) as image:
                    data = image.read(min(left, DEFAULT_BOUNDS.max_bytes) + 1)
                left -= len(data)
                if left < 0:
                    raise DataError(
                        "the ZIP file", "holds too many images", hint="import it in parts"
                    )
                (folder / name).write_bytes(data)
            with archive.open(TASKS) as tasks:
                return read_bounded(tasks)
    except DAMAGE as error:
        raise DataError("the ZIP file", f"cannot be read: {error}", hint="pack it again") from error


def read_bounded(file: IO[bytes]) -> bytes:
    """Tasks from an open file, within bounds."""
    text = file.read(MAX_TASKS + 1)
    if len(text) > MAX_TASKS:
        raise DataError("the tasks", "are larger than 60 MB", hint="import them in parts")
    return text
