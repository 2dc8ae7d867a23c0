"""Running a benchmark that somebody published runs no code of theirs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Shell

PUBLISHED = Path(__file__).parents[1] / "compat" / "fixtures" / "published"


@pytest.mark.parametrize("name", ["task.py", "load.py", "write.py", "__init__.py"])
def test_python_beside_published_data_is_not_run(shell: Shell, name: str) -> None:
    shutil.copytree(PUBLISHED, shell.folder / "published")
    marker = shell.folder / "ran"
    code = f"open({str(marker)!r}, 'w').close()\n"
    (shell.folder / "published" / "compat_memes" / name).write_text(code, encoding="utf-8")
    place = {"MEMANTICS_BENCHMARKS": str(shell.folder / "published")}
    ran = shell.apart.run("run", "compat_memes", "-m", "fake/keys", "--json", **place)
    assert not marker.exists()
    if ran.code == 0:
        assert json.loads(ran.out)[0]["scores"]["counts"]["answered"] > 5
    else:
        assert (ran.code, ran.err.count("\n")) == (2, 1), ran
