"""One version everywhere, and a changelog whose topmost release is that version."""

from __future__ import annotations

import re
from datetime import date

import memantics
from tests.places import ROOT

RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)
TWO_MINUTES = 1000  # words of one release, read quickly


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def find_releases() -> list[tuple[str, str]]:
    return RELEASE.findall(read("CHANGELOG.md"))


def test_the_version_is_the_same_in_every_place() -> None:
    newest, day = find_releases()[0]
    citation = dict(re.findall(r"^([\w-]+): (\S+)$", read("CITATION.cff"), re.MULTILINE))
    assert newest == memantics.__version__
    assert (citation["version"], citation["date-released"]) == (newest, day)
    assert re.findall(r"version = \{(.+?)\}", read("README.md")) == [newest]


def test_the_changelog_counts_down() -> None:
    releases = find_releases()
    numbers = [tuple(map(int, number.split("."))) for number, _ in releases]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [date.fromisoformat(day) for _, day in releases]
    assert days == sorted(days, reverse=True)
    headings = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased" or RELEASE.match(f"## {headings[0]}")
    assert all(RELEASE.match(f"## {heading}") for heading in headings[1:])


def test_a_release_says_what_is_new_what_changed_and_how_to_upgrade() -> None:
    section = RELEASE.split(read("CHANGELOG.md"))[3]
    assert re.findall(r"^### (.+)$", section, re.MULTILINE) == ["New", "Changed", "Upgrade"]
    assert len(section.split()) <= TWO_MINUTES
