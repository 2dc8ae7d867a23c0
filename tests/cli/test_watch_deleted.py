"""``run --watch`` on a folder that another process deletes: one error, and a retry works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from memantics.cli.evaluation import _serve_page
from tests.commands import Shell
from tests.runs import write_run

pytestmark = pytest.mark.slow
WORDS = ("run", "mquest/qa", "-m", "baseline/random", "--data", "sample", "--limit", "3")


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=120) as page:
            return int(page.status), page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_page_survives_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    runs = tmp_path / "runs"
    with _serve_page(runs):
        found = re.search(r"progress: (http://\S+/browse/runs)", capsys.readouterr().err)
        assert found
        write_run(runs / "a", "memeintent/intent", {"1": "a text", "2": None})
        assert get(found[1])[0] == 200
        assert "memeintent/intent" in get(found[1])[1]
        shutil.rmtree(runs)
        for path in ("", "/a", "/a/items", "/a/1"):
            status, body = get(found[1] + path)
            assert status < 500, (path, status)
            assert "Traceback" not in body
        write_run(runs / "b", "memeintent/intent", {"1": "a text"})
        status, body = get(found[1])
        assert (status, "memeintent/intent" in body) == (200, True)


def test_the_run_says_what_happened_and_can_be_repeated(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    shell = Shell(tmp_path)
    words = [sys.executable, "-m", "memantics", *WORDS, "--watch", "--out", "runs"]
    variables = os.environ | {"MEMANTICS_HOME": str(shell.home)}
    done = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The folder is deleted again and again while the command works.
    while done.poll() is None:
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        time.sleep(0.02)
    _, said = done.communicate()
    assert "Traceback" not in said
    assert done.returncode in (0, 1, 2)
    if done.returncode == 2:
        assert "error: " in said
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    again = shell.run(*WORDS, "--out", tmp_path / "runs")
    assert again.code == 0, again.err
