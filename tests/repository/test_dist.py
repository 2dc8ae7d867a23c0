"""What ``make dist`` builds is what is given out: nothing private, and it works elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import memantics
from tests.browser import launch, watch
from tests.places import ROOT

pytestmark = pytest.mark.slow

NAME = f"memantics-{memantics.__version__}"
# Where pip finds its index is the user's; nothing else of theirs reaches the new environment.
PIP_SETTINGS = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "dist"
    command = ["make", "--no-print-directory", "dist", f"VENV={sys.prefix}", f"DIST={folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.tar.gz",
    ]
    return folder


def list_sources() -> set[str]:
    """Files that git knows or would take; what it ignores is nobody else's business."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a checkout, so nothing says what is ignored")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_the_sources_hold_what_git_holds_and_nothing_else(dist: Path) -> None:
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        names = {member.name.removeprefix(f"{NAME}/") for member in archive.getmembers()}
    known = list_sources()
    assert names - known == {"PKG-INFO"}
    assert {name for name in known - names if not name.startswith(".")} == set()


def test_what_lies_in_a_checkout_but_is_not_named_stays_there(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        copy.mkdir(exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    package = copy / "src" / "memantics"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.2.0"\n', encoding="utf-8")
    for private in ("notes.txt", "shared/data.csv", "src/.coverage", "demo/index.html"):
        (copy / private).parent.mkdir(exist_ok=True)
        (copy / private).write_text("private", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "sdist",
        "-d",
        str(tmp_path / "dist"),
    ]
    subprocess.run(command, cwd=copy, capture_output=True, check=True)
    with tarfile.open(next((tmp_path / "dist").glob("*.tar.gz"))) as archive:
        names = {Path(name).name for name in archive.getnames()}
    assert names == {
        *("pyproject.toml", "README.md", "LICENSE", ".gitignore", "__init__.py", "PKG-INFO")
    }


def test_the_sources_build_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(tmp_path / "dist"),
    ]
    subprocess.run(command, cwd=tmp_path / NAME, capture_output=True, check=True)
    wheel = f"{NAME}-py3-none-any.whl"
    assert (tmp_path / "dist" / wheel).read_bytes() == (dist / wheel).read_bytes()


def test_the_wheel_runs_the_demo_in_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    """Everything is installed from a package index, at the pinned versions, as a user would."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    wheel = next(dist.glob("*.whl"))
    install = [str(python), *["-m", "pip", "install", "--quiet", "--constraint"]]
    install.append(str(ROOT / "constraints.txt"))
    done = subprocess.run(
        [*install, f"{wheel}[offline]"],
        cwd=tmp_path,
        env=env | PIP_SETTINGS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stderr and not os.environ.get("CI"):
        pytest.skip(f"no package index here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    demo = subprocess.run(
        [python.with_name("memantics"), "demo", "--out", "demo"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stderr
    for page in ("index.html", "index.zh.html", "report.html"):
        _assert_pictures_show(tmp_path / "demo" / page)


def _assert_pictures_show(file: Path) -> None:
    with launch() as browser, watch(browser) as watched:
        watched.page.goto(file.as_uri())
        watched.page.evaluate(
            "Promise.allSettled([...document.images].map(i => { i.loading = 'eager'; "
            "return i.decode(); }))"
        )
        sources = "[...document.images].filter(i => !i.naturalWidth).map(i => i.src.slice(0, 80))"
        assert watched.page.evaluate(sources) == []
        assert watched.page.evaluate("document.images.length") > 0
        watched.assert_quiet()
