"""The table of ``perf.mutate`` names files; each must be there."""

from __future__ import annotations

import pytest
from perf import mutate


@pytest.mark.parametrize("name", sorted(mutate.PARTS))
def test_every_named_file_is_there(name: str) -> None:
    assert mutate.find_files([name])[name]
    assert mutate.find_tests([name])


def test_a_name_that_moved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    part = mutate.Part(
        ("evaluation/scoring.py", "evaluation/moved.py"), ("tests/tasks", "tests/moved*")
    )
    monkeypatch.setattr(mutate, "PARTS", {"some": part})
    with pytest.raises(
        SystemExit, match=r"part 'some': there is no src/memantics/evaluation/moved.py"
    ):
        mutate.find_files(["some"])
    with pytest.raises(SystemExit, match=r"part 'some': there is no tests/moved\*"):
        mutate.find_tests(["some"])


def test_no_file_is_in_two_parts() -> None:
    assert not set(mutate.ROOMS) & set(mutate.COMPUTING)
    listed = [path for paths in mutate.find_files(mutate.PARTS).values() for path in paths]
    assert sorted(listed) == sorted(set(listed))


def test_each_group_has_its_target(capsys: pytest.CaptureFixture[str]) -> None:
    ended = {f"memantics.evaluation.exchange.x_join__mutmut_{n}": "killed" for n in range(10)}
    assert mutate.show(ended, ["exchange"], mutate.ROOMS_TARGET)
    assert "target 80%: kept" in capsys.readouterr().out
    assert mutate.TARGET > mutate.ROOMS_TARGET
