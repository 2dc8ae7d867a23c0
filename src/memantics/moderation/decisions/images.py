"""Images of decided posts: found by their hash, and copied to the queue of appeals.

The log has only the hash of an image. The image itself is shown to reviewers if it was stored with
the decision (``decisions record --keep-images``), or if its folder is given (``--images``).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from memantics.core.errors import ImageError, InputError
from memantics.core.files import replace_file
from memantics.core.images import probe, read_bytes
from memantics.core.memes import SUFFIXES
from memantics.core.queue import Shown
from memantics.moderation.decisions.cases import hash_content

NOT_KEPT: Final = {
    "en": (
        "The image of this post was not kept. The lead can give a folder with 'decisions queue"
        " --images FOLDER', and keep images of later decisions with 'decisions record --images"
        " FOLDER --keep-images DAYS'. Choose “Unsure” if the answer depends on the image."
    ),
    "zh": (
        "该帖子的图片未保留。负责人可用 decisions queue --images FOLDER 指定图片文件夹，"
        "并用 decisions record --images FOLDER --keep-images DAYS 保留以后的图片。"
        "如果判断取决于图片，请选择“不确定”。"
    ),
}


def find_images(folder: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """Read the images of a folder whose SHA-256 is wanted, also those in its subfolders.

    A file that is named by its hash is tried first, as ``screen`` names images for review. Files
    that are not readable images are skipped.

    Raises:
        InputError: The folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(f"no folder {folder}", hint="give the folder of the images")
    missing, found = set(wanted), dict[str, bytes]()
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    for path in sorted(files, key=lambda path: path.stem not in missing):
        if not missing:
            break
        try:
            data = read_bytes(path)
            probe(data, path.name)
        except ImageError:
            continue
        digest = hash_content(data)
        if digest in missing:
            missing.remove(digest)
            found[digest] = data
    return found


def write_queue_image(queue: Path, sha256: str, data: bytes) -> str:
    """Write an image into a queue folder, unchanged; return its file name there."""
    ending = probe(data, sha256).format.lower().replace("jpeg", "jpg")
    name = f"images/{sha256}.{ending}"
    (queue / "images").mkdir(parents=True, exist_ok=True)
    replace_file(queue / name, data, "image for review")
    return name


def say_not_kept(language: str) -> Shown:
    """Tell the reviewer that the image was not kept, and how the lead keeps images."""
    return Shown(label="image", value=NOT_KEPT["zh" if language.startswith("zh") else "en"])
