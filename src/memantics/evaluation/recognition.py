"""Recognise published data sets by the names and columns of their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memantics.benchmarks.dataset_config import read_dataset_config
from memantics.benchmarks.dataset_files import find_data_files
from memantics.benchmarks.dataset_reader import probe_dataset_config
from memantics.benchmarks.registry import (
    find_benchmark,
    find_benchmarks,
    find_dataset_configs,
    find_own_dataset_configs,
)
from memantics.core.data import Source
from memantics.core.errors import InputError
from memantics.core.registry import read_registry
from memantics.core.tables import DATA_ENDINGS

_PACKED = (".gz", ".tgz", ".zip", ".zst", ".xz", ".bz2", ".7z", ".rar")
UNPACK = (
    "unpack archives first (gunzip x.tar.gz; a .tar is read without unpacking), and give"
    f" {', '.join(DATA_ENDINGS)} or folders of images"
)


def choose_own(recognised: list[str], name: str, called: str) -> list[str]:
    """Drop the data sets that the user made from these files under other names."""
    folder = find_own_dataset_configs()
    own = {one for one in recognised if find_benchmark(one).folder == folder}
    if name not in own and not called:
        return recognised
    return [one for one in recognised if one not in own or one == name]


def prefer_specific(names: Sequence[str], root: Path) -> list[str]:
    """Drop data sets all of whose files others name more exactly, with their folder."""
    files, depths = {}, {}
    for name in names:
        path = find_benchmark(name).dataset_config
        if path is None:
            return list(names)
        config = read_dataset_config(path)
        files[name] = {file for _, file in find_data_files(config, root)}
        depths[name] = max(one.count("/") for some in config.files.values() for one in some)
    return [
        name
        for name in names
        if not files[name]
        <= {f for other in names if depths[other] > depths[name] for f in files[other]}
    ]


def explain_misfit(misfits: Mapping[str, str], more: str = "") -> InputError:
    """Return the error of data with the files, but not the columns, of one known data set."""
    name, problem = next(iter(misfits.items()))
    return InputError(f"the files are named like those of {name}, but differ", hint=problem + more)


def list_packed(folder: Path) -> list[str]:
    """Return the first packed files in a folder."""
    return sorted(one.name for one in folder.iterdir() if one.name.lower().endswith(_PACKED))[:3]


def are_disjoint(names: Sequence[str], root: Path) -> bool:
    """Return whether recognised data sets have no file in common."""
    files: list[Path] = []
    for name in names:
        path = find_benchmark(name).dataset_config
        if path is None:
            return False
        files += dict.fromkeys(file for _, file in find_data_files(read_dataset_config(path), root))
    return len(files) == len(set(files))


def recognise(path: Path, misfits: dict[str, str]) -> list[str]:
    """Return the data sets whose files are at a path and have the columns of their configs.

    ``misfits`` gets those that have the files without their columns, and the difference.
    """
    own, registered = find_own_dataset_configs(), read_registry()
    root = path if path.is_dir() else path.parent
    found = []
    for name, benchmark in (find_benchmarks() | find_dataset_configs()).items():
        source = Source("release", root)
        with suppress(InputError):
            if benchmark.dataset_config is None:
                if path.is_dir():
                    benchmark.open(source)
                    found.append(name)
                continue
            if benchmark.folder == own and (
                name not in registered or registered[name].root != root
            ):
                continue  # a config that was written for other data
            config = read_dataset_config(benchmark.dataset_config)
            if config.tree:
                continue
            files = {file for _, file in find_data_files(config, root)}
            if path.is_file() and path not in files:
                continue
            try:
                probe_dataset_config(config, source)
            except InputError as error:
                if benchmark.folder != own:
                    misfits[name] = str(error)
                continue
            found.append(name)
    return found
