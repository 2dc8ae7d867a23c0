"""The documentation site builds without a warning, loads no external file, and has search."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from docs.website import RENAMED, stage

from memantics import __version__
from tests.browser import launch, watch
from tests.core_install import block_extras
from tests.places import ROOT

pytestmark = pytest.mark.slow


def build(*places: Path) -> subprocess.CompletedProcess[str]:
    """Build in another process: Sphinx keeps global state."""
    command = [sys.executable, "-m", "docs.website", *map(str, places)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("docs") / "site"
    done = build(place)
    assert (done.returncode, done.stderr) == (0, "")
    return place


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = RENAMED.get(page.relative_to(ROOT).as_posix())
        made = site / Path(name or page.relative_to(ROOT / "docs")).with_suffix(".html")
        assert made.is_file(), page
        assert f"Memantics {__version__}</title>" in made.read_text(encoding="utf-8")
    assert "mm.evaluate" in (site / "api.html").read_text(encoding="utf-8")


def test_a_link_that_leads_nowhere_is_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text("# A\n\n[gone](gone.md)\n", encoding="utf-8")
    done = build(tmp_path / "site", source)
    assert done.returncode == 1
    assert "gone.md" in done.stderr


def test_links_to_files_of_the_repository_are_kept(tmp_path: Path) -> None:
    stage(tmp_path / "source")
    page = tmp_path / "source" / "how-to" / "publish-a-benchmark.md"
    assert "(../files/examples/build_benchmark.sh)" in page.read_text(encoding="utf-8")
    assert (tmp_path / "source" / "files" / "examples" / "build_benchmark.sh").is_file()
    assert "(readme.md)" not in (tmp_path / "source" / "index.md").read_text(encoding="utf-8")


def test_it_is_searched_offline(site: Path) -> None:
    with launch() as browser, watch(browser) as watched:
        watched.page.goto((site / "search.html").as_uri() + "?q=calibration")
        watched.page.wait_for_selector("#search-results li")
        watched.page.goto((site / "index.html").as_uri())
        assert [u for u in watched.requests if not u.startswith(("file:", "data:"))] == []


def test_the_wheel_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """Build and install as a user does; the packages of the core come from this environment."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [
        *pip,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        f"{tmp_path}",
        f"{ROOT}",
    ]
    subprocess.run(wheel, check=True)
    (file,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(file).namelist()
    assert not [name for name in names if name.startswith(("tests/", "docs/", "perf/"))]
    venv.create(tmp_path / "env")
    (place,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    subprocess.run([*pip, "--python", tmp_path / "env", "install", "--no-deps", file], check=True)
    borrowed = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (place / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    block_extras(place)
    done = subprocess.run(
        [tmp_path / "env" / "bin" / "memantics", "run", "mquest", "-m", "baseline/longest"],
        cwd=tmp_path,
        env={"MEMANTICS_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    where = subprocess.run(
        [tmp_path / "env" / "bin" / "python", "-c", "import memantics; print(memantics.__file__)"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(tmp_path / "env"))
