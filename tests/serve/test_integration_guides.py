"""The examples of the integration pages run as they stand, against a service."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.core.samples import DETECTOR_FILE
from memantics.moderation import add_to_match_list
from memantics.serve.settings import ServedModels, ServeSettings
from tests.places import ROOT
from tests.serve.site import MEME, Site, serving

ADDRESS = "http://127.0.0.1:8080"
GUIDES = {
    name: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("integrations.md", "how-to/move-from-perspective.md")
}
CURLS = [
    (name, command.replace("\\\n", " "))
    for name, text in GUIDES.items()
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    for command in re.findall(r"^curl (?:.*\\\n)*.*$", block, flags=re.MULTILINE)
]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service as the pages start it, with a detector file, an attribute and a listed meme."""
    folder = tmp_path_factory.mktemp("guides")
    detector = Path(shutil.copy(DETECTOR_FILE, folder / "harm.zip"))
    add_to_match_list(detector, [str(MEME)], label="harmful")
    models = ServedModels(detector=detector, attributes=("TOXICITY=sample",))
    with serving(ServeSettings(models=models, state=folder / "state"), folder) as made:
        yield made


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), CURLS)
def test_the_curl_commands_get_an_answer(
    listed: Site, name: str, command: str, tmp_path: Path
) -> None:
    shutil.copy(MEME, tmp_path / "meme.png")
    said = run(
        ["sh", "-c", command.replace("curl -s", "curl -sf").replace(ADDRESS, listed.address)],
        tmp_path,
    )
    assert said.startswith(("{", "["))


@pytest.mark.slow
def test_the_python_of_the_perspective_guide_runs(site: Site, tmp_path: Path) -> None:
    text = GUIDES["how-to/move-from-perspective.md"]
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    said = run([sys.executable, "-c", code.replace(ADDRESS, site.address)], tmp_path)
    assert "[(0, 17), (18, 37)]" in said
