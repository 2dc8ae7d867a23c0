"""The samples are made from memes.jsonl, and the benchmarks' own readers take them."""

from __future__ import annotations

import importlib

import pytest
from sample_data.export import BENCHMARKS, make_samples

from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import Source
from memantics.core.samples import IMAGES, read_samples

SAMPLES = make_samples(read_samples())
each = pytest.mark.parametrize("name", sorted(SAMPLES))


@each
def test_the_sample_is_up_to_date(name: str) -> None:
    folder = BENCHMARKS / name / "sample"
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found.keys() == SAMPLES[name].keys()
    assert all(found[path] == data for path, data in SAMPLES[name].items()), (
        "regenerate the sample data with 'python -m sample_data'"
    )


@each
def test_the_reader_takes_the_sample_without_skips(name: str) -> None:
    benchmark = find_benchmark(name)
    found = benchmark.survey(benchmark.open(benchmark.sample()))
    assert found.records >= 20
    assert found.skips == ()
    assert found.images_found == found.images_expected > 0


def test_both_label_splits_have_harmful_memes() -> None:
    load = importlib.import_module("memantics.benchmarks.toxicn_mm.load")
    release = load.open_release(Source("sample", BENCHMARKS / "toxicn_mm" / "sample", IMAGES))
    for version in ("v1", "v2"):
        for split in ("train", "test"):
            harmful = [meme.harmful for meme in release.memes(version, split)]
            assert 0 < sum(harmful) < len(harmful)


def test_knowledge_and_graphs_hold_the_same_individuals() -> None:
    load = importlib.import_module("memantics.benchmarks.mquest.load")
    release = load.open_release(Source("sample", BENCHMARKS / "mquest" / "sample", IMAGES))
    raw, refined = (
        {(i.meme, i.dimension, i.name, i.label, i.description) for i in release.individuals(kind)}
        for kind in ("raw", "refined")
    )
    assert raw == refined
    assert len(raw) > 300
