"""Read marks back with other tools: Pillow's XMP, exiftool where installed, and C2PA's reader."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from PIL import Image

from memantics.core.marks import SOURCE_TYPES, TOOL

AI = "compositeWithTrainedAlgorithmicMedia"


def read_source(data: bytes) -> str:
    """The digital source type in an image file, by Pillow; the program must be named, too."""
    info = Image.open(io.BytesIO(data)).info
    packet = info.get("xmp") or info.get("XML:com.adobe.xmp") or b""
    text = packet if isinstance(packet, str) else packet.decode()
    assert f'CreatorTool="{TOOL}"' in text
    found = re.search(rf'DigitalSourceType="{SOURCE_TYPES}(\w+)"', text)
    assert found is not None
    return found[1]


def check_files(paths: list[Path], source: str) -> None:
    """All files carry this source type, for Pillow and for exiftool."""
    assert paths
    assert {path.name: read_source(path.read_bytes()) for path in paths} == {
        path.name: source for path in paths
    }
    if shutil.which("exiftool") is None:
        return
    words = ["exiftool", "-j", "-n", "-DigitalSourceType", "-CreatorTool", *map(str, paths)]
    for found in json.loads(subprocess.run(words, capture_output=True, check=True).stdout):
        assert found["DigitalSourceType"] == f"{SOURCE_TYPES}{source}"
        assert found["CreatorTool"] == TOOL


def read_manifest(data: bytes) -> dict[str, Any]:
    """The active manifest of a signed image, which C2PA's own reader must find intact."""
    import c2pa

    form = str(Image.open(io.BytesIO(data)).format)
    with c2pa.Reader(f"image/{form.lower()}", io.BytesIO(data)) as reader:
        assert reader.get_validation_state() == "Valid"
        found = reader.get_active_manifest()
    assert isinstance(found, dict)
    return found
