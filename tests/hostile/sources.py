"""Sources of ``screen`` that somebody changed: tar archives, Parquet files and tables.

A case names a form and what is changed in it: a field of a row, a field of a tar header, the type
of a column, bytes of the file. :func:`write` makes the file.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from tests.hostile.cases import Case

FIELDS = ("id", "image", "text", "language", "kept", "caption", "extra")
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 2**70, 1e308, 0.5, float("nan"), float("inf")),
    *("", " ", "\x00", "a\x00b.png", "\ud800", "\udcff.png", "x" * 5_000, "\x1b]0;x\x07", "NaN"),
    *("../secret.png", "/etc/passwd", "./../../secret.png", "a/../../secret.png", ".", "..", "/"),
    *("file:///etc/passwd", "data:image/png;base64,AA", "http://127.0.0.1:9/a.png", "a.png/", "~"),
    *("con:", "a" * 300 + ".png", "C:\\a.png", "link.png", "loop.png", "folder", "\u202ea.png"),
    *([], [1], ["a.png"], {}, {"path": "../secret.png"}, {"path": 1}, {"bytes": "AA"}, "[]", "{}"),
    *({"path": ["a.png"]}, {"path": {"path": "a.png"}}, {"a": {"b": [None]}}, "é" * 21_000),
)
LINES = (
    *("[", "[" * 50_000, '{"text":' * 2_000, '{"a":1', "null", "1", '"x"', "{}", "[]", "\ufeff{}"),
    *('{"id":1e999,"text":"x"}', '{"id":"\\ud800","text":"x"}', '{"text":"\\u0000"}', "\x00"),
    *('{"text":"a","text":"b"}', "{'text': 'x'}", '{"id": 1} {"id": 2}', "\x85", "\u2028", "\x0c"),
    *('{"id":' + "9" * 5_000 + ',"text":"x"}', '{"image":{"bytes":{"a":1}}}', '"'),
)
HEADS = ("id,text", "image,text", "id,id,text,text", ",,", "text", '"id"x,text', "\x00", "", "id")
NAMES = (
    *("a.png", "../secret.png", "/etc/passwd.png", "a/../../b.png", "..", ".", "", "a\x00b.png"),
    *("a" * 300 + ".png", "a.txt", "a.json", "a.b.c.d.png", "\udcff.png", "\x1b[2J.png", "a/.png"),
    *("./a.png", "a.PNG", "a.json.png", ".png", "PaxHeader/a", "d/" * 120 + "a.png"),
)
# Where a field of a ustar header lies: offset and length.
HEADER = {
    "name": (0, 100),
    "mode": (100, 8),
    "uid": (108, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "chksum": (148, 8),
    "type": (156, 1),
    "linkname": (157, 100),
    "magic": (257, 8),
    "prefix": (345, 155),
}
NUMBERS = (
    *("00000000000", "77777777777", "99999999999", "-0000000001", "           ", "0x10", "1"),
    *(
        b"\x80" + bytes(10) + b"\x01",
        b"\x80" + b"\xff" * 11,
        b"\xff" * 12,
        b"\xff" * 10 + b"\xfe\x00",
    ),
    *(b"\x80\x00\x00\x00\x7f" + b"\xff" * 7, b"\x80" + bytes(3) + b"\x40" + bytes(7), bytes(12)),
)
PAX = (
    *("size=-512", "size=99999999999999999999", "size=x", "path=../secret.png", "path=", "=", "x"),
    *("GNU.sparse.map=0,1,2", "GNU.sparse.map=x", "GNU.sparse.numblocks=1000000000"),
    *("GNU.sparse.major=1", "GNU.sparse.size=99999999999999", "GNU.sparse.realsize=-1"),
    *("hdrcharset=BINARY", "hdrcharset=punycode", "mtime=nan", "mtime=1e999", "uid=-1"),
    *("path=\udcff.png", "linkpath=/etc/passwd", "path=a\x00b.png", "comment=" + "x" * 9_000),
)
DAMAGE = ("00", "ff", "ffffffff", "7fffffff", "80", "504b0304", "", "cut", "twice", "swap")
PACKS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
COLUMNS = (
    *("int8", "uint64", "float16", "float64", "bool", "string", "large_string", "string_view"),
    *("binary", "large_binary", "fixed", "date", "time", "timestamp", "timestamp_ns", "far_time"),
    *("duration", "decimal", "list", "struct", "map", "null", "dictionary", "not_utf8", "nested"),
    *("path_struct", "bytes_struct", "bad_struct", "far_struct", "zone", "empty", "long"),
)


@cache
def picture(colour: str = "teal") -> bytes:
    """An image of eight pixels a side."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(out, "PNG")
    return out.getvalue()


def generate(seed: int, count: int) -> Iterator[Case]:
    """Cases of all forms in turn."""
    chance = random.Random(seed)
    makers = (_draw_lines, _draw_separated, _draw_tar, _draw_parquet)
    for number in range(count):
        case = makers[number % len(makers)](chance)
        if chance.randrange(3) == 0:
            case["damage"] = [round(chance.random(), 5), chance.choice(DAMAGE)]
            if chance.randrange(2):  # where formats keep their directory
                case["damage"][0] = round(1 - chance.random() / 20, 5)
        yield case


def _draw_lines(chance: random.Random) -> Case:
    case: Case = {"form": "jsonl"}
    if chance.randrange(3) == 0:
        case["line"] = chance.choice(LINES)
    else:
        some = chance.sample(FIELDS, chance.randint(1, 3))
        case["row"] = {name: chance.choice(VALUES) for name in some}
    if chance.randrange(4) == 0:
        case["pack"] = chance.choice(sorted(PACKS))
    return case


def _draw_separated(chance: random.Random) -> Case:
    case: Case = {"form": chance.choice(("csv", "tsv")), "head": "id,image,text,language"}
    if chance.randrange(3) == 0:
        case["head"] = chance.choice(HEADS)
    cells = [chance.choice(VALUES) for _ in range(chance.randint(0, 6))]
    case["cells"] = cells
    case["raw"] = chance.choice(("", "", '"', '"open', "a\rb", "\x00", "a" * 70_000, ",,,,,,,,"))
    if chance.randrange(4) == 0:
        case["pack"] = chance.choice(sorted(PACKS))
    return case


def _draw_tar(chance: random.Random) -> Case:
    case: Case = {"form": "tar", "name": chance.choice(NAMES)}
    kind = chance.randrange(4)
    if kind == 0:
        field = chance.choice(sorted(HEADER))
        value = chance.choice(NUMBERS)
        if field == "type":
            value = (
                chr(chance.randrange(128))
                if chance.randrange(2)
                else chance.choice("01234567xgLKSVDX")
            )
        case["header"] = [field, value.hex() if isinstance(value, bytes) else value.encode().hex()]
    elif kind == 1:
        case["pax"] = chance.sample(PAX, chance.randint(1, 3))
        case["global"] = chance.randrange(3) == 0
    elif kind == 2:
        case["body"] = chance.choice((*LINES, json.dumps({"id": chance.choice(VALUES)})))
        case["name"] = chance.choice(("a.json", "a.txt", "a.png"))
    else:
        case["chain"] = [chance.choice("LKxg"), chance.choice((1, 3, 1_500))]
    return case


def _draw_parquet(chance: random.Random) -> Case:
    names = chance.sample(("id", "image", "text", "language"), chance.randint(1, 3))
    return {"form": "parquet", "columns": {name: chance.choice(COLUMNS) for name in names}}


def write(case: Case, folder: Path) -> Path:
    """The file that a case describes, beside one sound image, a link and a loop."""
    (folder / "a.png").write_bytes(picture())
    for name, aim in (("link.png", "../secret.png"), ("loop.png", "loop.png")):
        (folder / name).symlink_to(aim)
    (folder / "folder").mkdir()
    data = _FORMS[case["form"]](case)
    pack = case.get("pack", "")
    data = PACKS[pack](data) if pack else data
    if "damage" in case:
        data = _damage(data, *case["damage"])
    path = folder / f"source.{case['form']}{pack}"
    path.write_bytes(data)
    return path


def _damage(data: bytes, place: float, how: str) -> bytes:
    at = int(place * len(data))
    if how == "cut":
        return data[:at]
    if how == "twice":
        return data + data
    if how == "swap":
        return data[at:] + data[:at]
    new = bytes.fromhex(how)
    return data[:at] + new + data[at + max(1, len(new)) :]


def _make_lines(case: Case) -> bytes:
    line = case["line"] if "line" in case else json.dumps(case["row"])
    sound = '{"id":"sound","text":"good morning"}'
    return f"{sound}\n{line}\n{sound}".encode("utf-8", "surrogateescape")


def _make_separated(case: Case) -> bytes:
    out, mark = io.StringIO(), "," if case["form"] == "csv" else "\t"
    out.write(case["head"].replace(",", mark) + "\n")
    rows = csv.writer(out, delimiter=mark)
    rows.writerow(case["cells"])
    out.write(case["raw"] + "\n")
    rows.writerow(["sound", "a.png", "good morning", "en"])
    return out.getvalue().encode("utf-8", "surrogatepass")


def _make_tar(case: Case) -> bytes:
    body = case["body"].encode("utf-8", "surrogateescape") if "body" in case else picture()
    name = case["name"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, "first.txt", b"good morning")
    made = bytearray(out.getvalue()[:1024])
    kind, times = case.get("chain", ("", 0))
    made += _make_block("././@LongLink", kind, name.encode("utf-8", "replace")) * times
    if "pax" in case:
        lines = b"".join(map(_make_record, case["pax"]))
        made += _make_block("PaxHeader", "g" if case["global"] else "x", lines)
    start = len(made)
    made += _make_block(name, "0", body)
    if "header" in case:
        field, value = case["header"][0], bytes.fromhex(case["header"][1])
        at, size = HEADER[field]
        made[start + at : start + at + size] = value[:size].ljust(size, b"\0")
        if field != "chksum":
            _sign(made, start)
    made += _make_block("last.txt", "0", b"good night") + bytes(1024)
    return bytes(made)


def _add(archive: tarfile.TarFile, name: str, body: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(body)
    archive.addfile(member, io.BytesIO(body))


def _make_record(line: str) -> bytes:
    """A line of a pax header, with its length before it."""
    body = b" " + line.encode("utf-8", "surrogateescape") + b"\n"
    length = len(body) + len(str(len(body)))
    length += len(str(length)) - len(str(len(body)))
    return str(length).encode() + body


def _make_block(name: str, kind: str, body: bytes) -> bytes:
    """A member as it lies in an archive: header and body, padded."""
    head = bytearray(512)
    named = name.encode("utf-8", "surrogateescape")[:100]
    head[: len(named)] = named
    head[100:136] = b"0000644\x000000000\x000000000\x00" + f"{len(body):011o}\0".encode()
    head[136:148] = b"00000000000\0"
    head[156:157] = kind.encode() or b"0"
    head[257:265] = b"ustar\x0000"
    _sign(head, 0)
    return bytes(head) + body + bytes(-len(body) % 512)


def _sign(data: bytearray, start: int) -> None:
    data[start + 148 : start + 156] = b" " * 8
    total = sum(data[start : start + 512])
    data[start + 148 : start + 156] = f"{total:06o}\0 ".encode()


def _make_parquet(case: Case) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({n: make_column(k) for n, k in case["columns"].items()}), out)
    return out.getvalue()


def make_column(kind: str) -> Any:
    """Three values of a type."""
    import pyarrow as pa

    image = picture()
    far = pa.array([2**60, -(2**60), None], pa.int64())
    made: dict[str, Callable[[], Any]] = {
        "fixed": lambda: pa.array([b"abcd", None, b"\x89PNG"], pa.binary(4)),
        "date": lambda: pa.array([0, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32()),
        "time": lambda: pa.array([0, 1, None], pa.int64()).cast(pa.time64("us")),
        "timestamp": lambda: pa.array([0, 1, None], pa.timestamp("ms")),
        "timestamp_ns": lambda: pa.array([0, 1, 2**62], pa.timestamp("ns")),
        "far_time": lambda: far.cast(pa.timestamp("us")),
        "duration": lambda: far.cast(pa.duration("ms")),
        "zone": lambda: pa.array([0, 1, 2], pa.timestamp("us", tz="Europe/Nowhere")),
        "decimal": lambda: pa.array([None, None, None], pa.decimal128(38, 10)),
        "list": lambda: pa.array([[1], [], None]),
        "struct": lambda: pa.array([{"a": 1}, {"a": None}, None]),
        "map": lambda: pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "null": lambda: pa.nulls(3),
        "dictionary": lambda: pa.array(["a.png", "b", None]).dictionary_encode(),
        "not_utf8": lambda: pa.array([b"a", b"\xff\xfe", b"\xed\xa0\x80"]).view(pa.string()),
        "nested": lambda: pa.array([[[[[1]]]], None, [[]]]),
        "path_struct": lambda: pa.array([{"path": "../secret.png"}, {"path": "/etc/passwd"}, None]),
        "bytes_struct": lambda: pa.array([{"bytes": image}, {"bytes": b""}, {"bytes": None}]),
        "bad_struct": lambda: pa.array([{"bytes": 1, "path": 2}, {"bytes": 3, "path": None}, None]),
        "far_struct": lambda: pa.StructArray.from_arrays([far.cast(pa.timestamp("us"))], ["bytes"]),
        "empty": lambda: pa.array(["", "", ""]),
        "long": lambda: pa.array(["x" * 100_000, "y" * 21_000, "z"]),
        "binary": lambda: pa.array([image, b"\x00", None], pa.binary()),
        "large_binary": lambda: pa.array([image, b"", None], pa.large_binary()),
        "string": lambda: pa.array(["a.png", "../secret.png", "\x00"]),
        "large_string": lambda: pa.array(["a.png", "b", None], pa.large_string()),
        "string_view": lambda: pa.array(["a.png", "b", None], pa.string_view()),
        "bool": lambda: pa.array([True, False, None]),
        "float16": lambda: pa.array([None, None, None], pa.float32()),
    }
    return made[kind]() if kind in made else pa.array([1, 2, None], getattr(pa, kind)())


_FORMS: dict[str, Callable[[Case], bytes]] = {
    "jsonl": _make_lines,
    "csv": _make_separated,
    "tsv": _make_separated,
    "tar": _make_tar,
    "parquet": _make_parquet,
}
