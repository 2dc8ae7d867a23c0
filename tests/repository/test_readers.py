"""Every file that a user names is opened with the guarded open of ``core/files.py``.

A bare ``open`` follows a named pipe (blocks forever) or a link to a device (fills the memory). This
test lists all other places that read files. A new one must use ``open_regular``, ``read_regular``
or ``check_regular``, or state here why no user can name its file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import memantics
from tests.sources import parse_module

ROOT = Path(memantics.__file__).parent

# Calls of libraries that open a path themselves; other objects have methods of the same name.
_LIBRARIES = {
    ("bz2", "open"),
    ("gzip", "open"),
    ("io", "open"),
    ("lzma", "open"),
    ("np", "load"),
    ("os", "open"),
    ("parquet", "ParquetFile"),
    ("parquet", "read_table"),
    ("pq", "ParquetFile"),
    ("pq", "read_table"),
    ("tarfile", "open"),
    ("zipfile", "ZipFile"),
}
_PACKAGE = "a file of this package or of a dependency"
_WRITTEN = "a file that this process or its own workers wrote"
_CHECKED = "check_regular or check_size was called before; the library needs a path"
_OPENED = "a file that open_regular opened"

READERS = {
    "annotation/backup.py:_open_archive": _CHECKED,
    "annotation/backup.py:_read_images": _WRITTEN,
    "annotation/labelstudio.py:unpack_tasks": _OPENED,
    "annotation/migrations/versions/v0101_first.py:upgrade": _PACKAGE,
    "annotation/web/exchange.py:show_image": _WRITTEN,
    "annotation/web/settings.py:_keep_secret": _WRITTEN,
    "annotation/workflow.py:workflow_text": _PACKAGE,
    "benchmarks/memeintent/paper.py:prompts": _PACKAGE,
    "benchmarks/mquest/paper.py:figure_6": _PACKAGE,
    "cli/main.py:": _PACKAGE,
    "cli/main.py:_leave_quietly": _PACKAGE,
    "construction/chats/rules.py:_plain_words": _PACKAGE,
    "core/data.py:toml_beside": _PACKAGE,
    "core/files.py:drop_torn_tail": _CHECKED,
    "core/files.py:in_turn": _CHECKED,
    "core/files.py:open_regular": _CHECKED,
    "core/lazy.py:offer": _PACKAGE,
    "core/prompt.py:_read_drawings": _PACKAGE,
    "core/samples/__init__.py:read_samples": _PACKAGE,
    "core/members.py:open_parquet": _CHECKED,
    "core/members.py:read_samples": _CHECKED,
    "core/tables.py:check_archive": _OPENED,
    "evaluation/answers.py:_write_folder": _PACKAGE,
    "models/embedded/encoder.py:_load": _PACKAGE,
    "models/embedded/ocr.py:load_engine": _PACKAGE,
    "moderation/drift.py:DailySample.add": _WRITTEN,
    "moderation/match_index.py:_map_array": _CHECKED,
    "moderation/neural/network.py:_tokenizer_of": _WRITTEN,
    "moderation/neural/saved.py:_trace": _WRITTEN,
    "moderation/neural/saved.py:is_neural": _OPENED,
    "moderation/neural/training.py:write_tensors": _WRITTEN,
    "moderation/scale/driver.py:check_part": _WRITTEN,
    "moderation/scale/engines.py:_read_settled": _WRITTEN,
    "moderation/scale/engines.py:write_part": _WRITTEN,
    "moderation/scale/records.py:_open_group": _CHECKED,
    "moderation/scale/sources.py:_count_memes": _CHECKED,
    "moderation/scale/sources.py:read_tar": _CHECKED,
    "moderation/scale/tables.py:_read_parquet": _CHECKED,
    "moderation/screen.py:Screened.to_pandas": _WRITTEN,
    "moderation/screening.py:read_tables": _CHECKED,
    "moderation/storage.py:_read_archive": _OPENED,
    "understanding/knowledge/answering.py:_measure_memory": _PACKAGE,
    "understanding/knowledge/drawing.py:read_style": _PACKAGE,
    "understanding/knowledge/formats.py:": _PACKAGE,
    "understanding/knowledge/store.py:read_ontology": _PACKAGE,
    "understanding/phonetics/caption.py:load_dictionary": _PACKAGE,
    "understanding/phonetics/detector.py:load_pun_weights": _PACKAGE,
    "understanding/phonetics/language.py:TrigramModel.__init__": _PACKAGE,
    "understanding/phonetics/language.py:_find_transitions": _PACKAGE,
    "understanding/phonetics/language.py:_load_dictionary": _PACKAGE,
    "understanding/phonetics/ranking.py:load_first_right": _PACKAGE,
    "understanding/phonetics/ranking.py:load_weights": _PACKAGE,
    "understanding/phonetics/senses.py:_read": _PACKAGE,
    "understanding/phonetics/senses.py:read_jieba": _PACKAGE,
    "understanding/reappraisal/kindness.py:_load_weights": _PACKAGE,
    "understanding/reappraisal/negative.py:load_heads": _PACKAGE,
    "understanding/vision/roles.py:load_model": _PACKAGE,
    "web/page.py:read_asset": _PACKAGE,
    "web/phrases.py:read_phrases": _PACKAGE,
    "web/site.py:Site._read_words": _PACKAGE,
    "web/site.py:Site.asset": _PACKAGE,
    "web/site.py:read_once": _PACKAGE,
    "workbench/embedded.py:PhoneticReader.version": _PACKAGE,
    "workbench/shards.py:_read_results": _WRITTEN,
}


def _read_mode(call: ast.Call, place: int) -> str:
    """Return the mode of an ``open``; "" if it is not a constant, as for other kinds of objects."""
    given = [key.value for key in call.keywords if key.arg == "mode"] or call.args[place:]
    if not given:
        return "r"
    mode = given[0].value if isinstance(given[0], ast.Constant) else ""
    return mode if isinstance(mode, str) else ""


def _reads(call: ast.Call) -> bool:  # noqa: PLR0911 - one per kind
    """Return whether a call opens a file for reading, without the guard."""
    match call.func:
        case ast.Name(id="open"):
            return not set(_read_mode(call, 1)) & set("wax")
        case ast.Attribute(value=ast.Name(id=base), attr=name) if (base, name) in _LIBRARIES:
            if call.args and ast.unparse(call.args[0]).startswith("io.BytesIO("):
                return False
            return (base, name) == ("os", "open") or not set(_read_mode(call, 1)) & set("wax")
        case ast.Attribute(attr="read_bytes"):
            return not call.args
        case ast.Attribute(attr="read_text"):
            return not call.args or isinstance(call.args[0], ast.Constant)
        case ast.Attribute(attr="open"):
            mode = _read_mode(call, 0)
            named = bool(call.args or call.keywords)
            return named and bool(mode) and set(mode) <= set("rbt+")
    return False


def _list_readers(tree: ast.AST, inside: str = "") -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}.{node.name}".lstrip(".")
        called = isinstance(tree, ast.Call) and tree.func is node
        match node:
            case ast.Name(id="open", ctx=ast.Load()) if not called:
                yield name  # ``open`` as a value
        if isinstance(node, ast.Call) and _reads(node):
            yield name
        yield from _list_readers(node, name)


def _scan() -> set[str]:
    return {
        f"{path.relative_to(ROOT).as_posix()}:{name}"
        for path in ROOT.rglob("*.py")
        for name in _list_readers(parse_module(path))
    }


def test_every_reader_is_guarded_or_listed() -> None:
    found = _scan()
    bare = sorted(found - set(READERS))
    assert not bare, f"use open_regular, read_regular or check_regular of core/files.py: {bare}"
    assert not sorted(set(READERS) - found), (
        "these no longer read a file: remove them from the list"
    )


def test_toml_of_users_is_read_with_all_its_errors() -> None:
    """``tomllib`` raises RecursionError or ValueError, too, for deep and long values."""
    packaged = {
        "benchmarks/memeintent/paper.py",
        "cli/main.py",
        "core/data.py",
        "web/phrases.py",
        "web/site.py",
        "workbench/demo.py",
    }
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "tomllib.load" in path.read_text(encoding="utf-8")
    }
    assert found == packaged


def test_the_scan_finds_each_kind_of_reader() -> None:
    kinds = """
def a(): open(x)
def b(): path.open("rb")
def c(): path.open(encoding="utf-8")
def d(): path.read_bytes()
def e(): path.read_text(encoding="utf-8")
def f(): zipfile.ZipFile(path)
def g(): np.load(path)
def h(): pq.ParquetFile(path)
def i(): os.open(path, os.O_RDONLY)
def j(): tarfile.open(path, "r:")
class K:
    def l(self): path.open("rb+")
def s(): ways.get(ending, open)
def m(): open(x, "w")
def n(): path.open("ab")
def o(): zipfile.ZipFile(path, "w")
def p(): benchmark.open(source)
def q(): read_bytes(path)
def r(): tarfile.open(fileobj=x, mode="w")
def t(): zipfile.ZipFile(io.BytesIO(data))
"""
    assert list(_list_readers(ast.parse(kinds))) == [*"abcdefghij", "K.l", "s"]
