"""Both processors and every Python: pins, the workflow, and what is marked."""

from __future__ import annotations

import tomllib

import pytest
import yaml
from perf import wheels

from tests.conftest import PROCESSOR
from tests.places import ROOT

EVERYWHERE = [f"{machine} 3.{minor}" for machine in wheels.MACHINES for minor in (11, 12, 13)]


def test_pins_are_read_with_extras_and_local_builds() -> None:
    text = "Jinja2==3.1.6\n# note\nb @ file:///b.whl\npsycopg[binary]==3.2\ntorch==2.13.0+cpu\n"
    assert [*wheels.read_pins(text)] == [
        ("jinja2", "3.1.6"),
        ("psycopg", "3.2"),
        ("torch", "2.13.0"),
    ]


@pytest.mark.parametrize(
    ("file", "lacking"),
    [
        ("a-1-py3-none-any.whl", []),
        ("a-1-cp311-abi3-manylinux_2_28_x86_64.whl", EVERYWHERE[3:]),
        ("a-1-cp312-abi3-manylinux_2_28_aarch64.whl", EVERYWHERE[:4]),
        ("a-1-cp312-cp312-manylinux_2_36_x86_64.whl", [EVERYWHERE[0], *EVERYWHERE[2:]]),
        ("a-1-cp312-cp312-manylinux_2_37_x86_64.whl", EVERYWHERE),
        ("a-1-cp311-cp311-win_amd64.whl", EVERYWHERE),
        ("a-2-py3-none-any.whl", EVERYWHERE),
    ],
)
def test_what_a_wheel_serves(file: str, lacking: list[str]) -> None:
    found = wheels.find_missing("a", "1", [file])
    assert (list(found.where) if found else []) == lacking


def test_a_source_is_no_wheel_but_is_named() -> None:
    for files, source in ((["a-1.tar.gz"], True), (["a-10.tar.gz"], False), ([], False)):
        found = wheels.find_missing("a", "1", files)
        assert found is not None
        assert found.source is source
        assert not found.excuse
    assert wheels.Missing("jieba", "0.42.1", (), True).excuse


def test_the_workflow_runs_both_processors_and_every_python_of_the_package() -> None:
    told = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_bytes())
    matrix = told["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one]
    assert matrix["python"] == named == [f"{a}.{b}" for a, b in wheels.PYTHONS]
    runs = [step.get("run", "") for job in told["jobs"].values() for step in job["steps"]]
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("test", "test-all", "wheels"):
        assert f"make {target} PYTHON=python" in runs
        assert f"\n{target}:" in targets


def test_every_marked_place_is_there() -> None:
    for name in PROCESSOR:
        assert list((ROOT / "tests").glob(f"{name}*")), name
