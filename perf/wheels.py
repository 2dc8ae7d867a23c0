"""Has every pinned package a wheel for each processor and Python? ``make wheels``.

Asks the registry that pip is configured for, page by page of its simple index, and prints what is
missing. The exit code is 1 where something is missing that is not among the exceptions below.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).parents[1]
PINS = ("constraints.txt", "constraints-gateway.txt")
MACHINES = ("x86_64", "aarch64")
PYTHONS = ((3, 11), (3, 12), (3, 13))
GLIBC = 36  # Debian 12; Ubuntu 24.04 is newer
# Without a wheel on purpose, and what happens instead.
PURE = "plain Python: pip builds its source anywhere"
EXCEPTIONS = {
    "jieba": PURE,
    "jsonpath-rw": PURE,
    "kenlm": "extra `trigram`: built where there is a compiler, else its tests skip",
    "pinyin2hanzi": PURE,
    "pocketsphinx": "no version has all: for Python 3.12 built from source, with a C compiler",
    "rouge-score": PURE,
}


@dataclass(frozen=True, slots=True, order=True)
class Missing:
    """A pin without a wheel for some machines and Pythons."""

    name: str
    version: str
    where: tuple[str, ...]
    source: bool

    @property
    def excuse(self) -> str:
        return EXCEPTIONS.get(self.name, "")


def read_pins(text: str) -> Iterator[tuple[str, str]]:
    """Names and versions of a file of constraints."""
    for line in text.splitlines():
        found = re.match(r"([\w.\-]+)(?:\[[^]]*\])?==([\w.!]+)", line)
        if found:
            yield str(canonicalize_name(found[1])), found[2]


@cache
def list_tags(machine: str, python: tuple[int, int]) -> frozenset[Tag]:
    """Return the tags that fit a processor and a Python."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(5, GLIBC + 1)]
    platforms += [f"manylinux{old}_{machine}" for old in ("1", "2010", "2014")]
    fitting = [*cpython_tags(python, platforms=platforms)]
    fitting += compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
    return frozenset(fitting)


def find_missing(name: str, version: str, files: list[str]) -> Missing | None:
    """For which machines and Pythons none of the files is a wheel of this version."""
    tags: set[Tag] = set()
    source = False
    for file in files:
        if file.endswith(".whl"):
            try:
                _, found, _, fits = parse_wheel_filename(file)
            except ValueError:
                continue  # a name of old that pip refuses, too
            if str(found).partition("+")[0] == version:
                tags |= fits
        elif re.fullmatch(r".+-" + re.escape(version) + r"\.(tar\.gz|zip)", file):
            source = True
    where = tuple(
        f"{machine} {python[0]}.{python[1]}"
        for machine in MACHINES
        for python in PYTHONS
        if not tags & list_tags(machine, python)
    )
    return Missing(name, version, where, source) if where else None


def ask_pip(key: str) -> str:
    """Return a setting of pip, from its files or the environment; empty where there is none."""
    words = [sys.executable, "-m", "pip", "config", "list"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"^(?:global|install|:env:)\.{key}='(.*)'$", told, flags=re.MULTILINE)
    return str(found[-1]) if found else ""


def list_files(index: str, context: ssl.SSLContext, name: str) -> list[str]:
    """Return the files that the registry has of a package; none where it does not know it."""
    wanted = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    request = urllib.request.Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": wanted})
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as reply:
            body = reply.read().decode()
            kind = reply.headers.get_content_type()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise
    if kind.endswith("json"):
        return [str(file["filename"]) for file in json.loads(body)["files"]]
    return [str(file) for file in re.findall(r"<a [^>]*>\s*([^<]+?)\s*</a>", body)]


def main() -> int:
    """Print what is missing."""
    pins = sorted({pin for file in PINS for pin in read_pins((ROOT / file).read_text())})
    index = ask_pip("index-url") or "https://pypi.org/simple"
    context = ssl.create_default_context(cafile=ask_pip("cert") or None)
    with ThreadPoolExecutor(8) as pool:
        listed = pool.map(lambda pin: list_files(index, context, pin[0]), pins)
        found = [find_missing(*pin, files) for pin, files in zip(pins, listed, strict=True)]
    missing = sorted(lack for lack in found if lack is not None)
    for lack in missing:
        kept = "source" if lack.source else "no file"
        places = "everywhere" if len(lack.where) == 6 else ", ".join(lack.where)
        sys.stdout.write(
            f"{lack.name} {lack.version}: {places} ({kept}); {lack.excuse or 'NOT EXPECTED'}\n"
        )
    stray = [lack for lack in missing if not lack.excuse]
    idle = sorted(EXCEPTIONS.keys() - {lack.name for lack in missing})
    if idle:
        sys.stdout.write(f"exceptions that are none any more: {', '.join(idle)}\n")
    told = f"{len(pins)} pins, {len(missing)} without some wheel, {len(stray)} not expected"
    sys.stdout.write(f"{told}\n")
    return int(bool(stray or idle))


if __name__ == "__main__":
    sys.exit(main())
