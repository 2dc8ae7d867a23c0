"""Every function that encodes an image is listed here, with how its images keep their marks.

A new function that encodes an image fails this test until it is listed: images that leave the
program go through ``ImageStamp.apply`` (new images) or ``keep_mark`` (copies encoded anew).
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Literal

import pytest

from tests.places import ROOT
from tests.sources import parse_module

PACKAGE = ROOT / "src" / "memantics"
Way = Literal["stamped", "mark kept", "not written"]
# Functions that encode images. "stamped": new images get marks in this function. "mark kept": a
# copy gets the mark of its original. "not written": bytes for OCR, a model or a checker, which the
# program throws away or returns to one of the others.
WRITERS: dict[str, Way] = {
    "construction/chats/build.py:write_punmemecn": "mark kept",
    "construction/pairs/check.py:_draw_all": "stamped",
    "benchmarks/writing.py:read_png": "mark kept",
    "core/credentials.py:_describe_original": "not written",  # bytes that are hashed
    "core/credentials.py:sign_image": "not written",  # the same
    "core/credentials.py:open_signer": "not written",  # a test signature
    "core/images.py:encode_png": "not written",  # called by the others
    "core/images.py:turn_upright": "not written",  # a request to a model
    "core/stamping.py:_add_label": "not written",  # part of the stamp
    "construction/pairs/check.py:build_pairs": "not written",  # OCR
    "models/editors.py:_edit": "not written",  # an editor's answer, stamped in chain.py and edit.py
    "models/editors.py:make_alpha_mask": "not written",  # a request to an editor
    "moderation/explanation.py:_put": "not written",  # a temporary file for the detector
    "serve/engine.py:_blank": "not written",
    "understanding/reappraisal/chain.py:_measure": "not written",  # OCR
    "understanding/reappraisal/chain.py:_set_and_read": "not written",  # stamped in _draw_one
    "understanding/reappraisal/chain.py:_stamp_sheet": "stamped",
    "understanding/reappraisal/faces.py:edit": "not written",  # an editor's answer
    "understanding/reappraisal/faces.py:_paint": "not written",  # a request to an editor
    "understanding/reappraisal/grading.py:_edit": "not written",  # an editor's answer
    "understanding/reappraisal/rendering.py:_repaint": "not written",  # a request to an editor
    "understanding/reappraisal/whole.py:edit_whole": "not written",  # stamped in edit.py
    "understanding/vision/erasing.py:_save": "stamped",
    "web/page.py:make_thumbnail": "mark kept",
}
# Functions that stamp what a function above returned.
STAMPED_LATER = {
    "understanding/edit.py:_make_whole",
    "understanding/reappraisal/chain.py:_draw_one",
}
_NAMES = {"encode_png", "imwrite", "imencode"}
_MARKERS = ("apply", "keep_mark")
_FORMATS = {"PNG", "JPEG", "WEBP", "GIF", "BMP"}


def encodes(call: ast.Call, *, pillow: bool = False) -> bool:
    """A call of our encoder, of OpenCV's, or of Pillow's ``save``, as far as one sees it."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name == "save":
        texts = {value.value for value in values if isinstance(value, ast.Constant)}
        named = {keyword.arg for keyword in call.keywords}
        return (
            pillow
            or bool(texts & _FORMATS)
            or bool(named & {"format", "quality", "compress_level"})
        )
    # A function that is handed on, as to asyncio.to_thread, is called there.
    handed = {value.id for value in values if isinstance(value, ast.Name)}
    return name in _NAMES or bool(handed & _NAMES)


@cache
def find_calls() -> dict[str, list[tuple[ast.Call, bool]]]:
    """The calls of each outermost function or method, and whether its module imports Pillow."""
    found: dict[str, list[tuple[ast.Call, bool]]] = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in (*_NAMES, *_MARKERS, "PIL", ".save(")):
            continue
        for node in parse_module(path).body:
            for member in node.body if isinstance(node, ast.ClassDef) else [node]:
                name = f"{path.relative_to(PACKAGE).as_posix()}:{getattr(member, 'name', '')}"
                calls = [one for one in ast.walk(member) if isinstance(one, ast.Call)]
                found.setdefault(name, []).extend((one, "from PIL" in text) for one in calls)
    return found


def find_functions(wanted: str) -> set[str]:
    """The functions that call a function of that name, or hand it on."""

    def names(value: ast.expr) -> bool:
        return getattr(value, "attr", getattr(value, "id", "")) == wanted

    return {
        name
        for name, calls in find_calls().items()
        if any(names(value) for call, _ in calls for value in (call.func, *call.args))
    }


def test_all_writers_are_listed() -> None:
    found = {
        name
        for name, calls in find_calls().items()
        if any(encodes(call, pillow=pillow) for call, pillow in calls)
    }
    assert found == set(WRITERS)


def test_stamped_images_go_through_the_stamp() -> None:
    stamped = {name for name, way in WRITERS.items() if way == "stamped"} | STAMPED_LATER
    assert stamped <= find_functions("apply")


def test_copies_keep_their_marks() -> None:
    kept = {name for name, way in WRITERS.items() if way == "mark kept"}
    assert kept == {name for name in find_functions("keep_mark") if not name.startswith("core/")}


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ('image.save(path, "PNG")', True),
        ("image.save(path, format=kind)", True),
        ("asyncio.to_thread(encode_png, image, 6)", True),
        ("cv2.imwrite(path, image)", True),
        ("page.save(path)", False),
    ],
)
def test_what_counts_as_encoding(code: str, seen: bool) -> None:
    call = ast.parse(code).body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert encodes(call.value) is seen
