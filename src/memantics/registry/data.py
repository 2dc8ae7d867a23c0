"""Which data a benchmark runs on, and what a run remembers of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memantics import __version__
from memantics.core.card import read_card
from memantics.core.data import DataKind, Found, Source, open_once
from memantics.core.registry import find_registered, read_registry
from memantics.registry.contract import Benchmark
from memantics.run.facts import DataFacts


def find_source(benchmark: Benchmark, kind: DataKind | None) -> Source:
    """The data to run on: as asked, else the registered release, else the sample."""
    registered = kind == "release" or benchmark.card.name in read_registry()
    if kind == "starter" or benchmark.card.like or not registered:
        return benchmark.sample()
    return find_registered(benchmark.card.name).source


def describe_data(benchmark: Benchmark, source: Source) -> DataFacts:
    """Which data these are: those of a release as they were registered, the sample as it is."""
    card = benchmark.card
    if card.like:
        found = _survey_sample(benchmark.folder, source)
        licence = card.sample.licence
        return DataFacts("release", found.checksum, found.records, card.revision, licence)
    if source.kind == "release":
        entry = find_registered(card.name)
        release = card.release
        return DataFacts(
            "release",
            entry.checksum,
            entry.records,
            release.revision if release else "",
            release.licence if release else "",
        )
    found = _survey_sample(benchmark.folder, source)
    return DataFacts("starter", found.checksum, found.records, __version__, card.sample.licence)


@cache
def _survey_sample(folder: Path, source: Source) -> Found:
    """What a sample holds; looked at once, since it ships with the package."""
    plugin = Benchmark(folder, read_card(folder / "card.toml")).plugin
    return plugin.survey(open_once(plugin.open_release, source))
