"""The table of ``perf.mutate`` names files; each must be there."""

from __future__ import annotations

import pytest
from perf import mutate


@pytest.mark.parametrize("name", sorted(mutate.PARTS))
def test_every_named_file_is_there(name: str) -> None:
    assert mutate.find_files([name])[name]
    assert mutate.find_tests([name])


def test_a_name_that_moved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    part = mutate.Part(("run/score.py", "run/moved.py"), ("tests/tasks", "tests/moved*"))
    monkeypatch.setattr(mutate, "PARTS", {"some": part})
    with pytest.raises(SystemExit, match=r"part 'some': there is no src/memantics/run/moved.py"):
        mutate.find_files(["some"])
    with pytest.raises(SystemExit, match=r"part 'some': there is no tests/moved\*"):
        mutate.find_tests(["some"])
