"""What a suite will run."""

from __future__ import annotations

import pytest

from memantics.core.errors import DataError, InputError, UnknownName
from memantics.evaluation.facts import Scope
from memantics.models.fake import FakeModel
from tests.suite.conftest import Bench


def fake(name: str) -> FakeModel:
    return FakeModel(lambda _request: "B", name)


def titles(bench: Bench, *arguments: object) -> list[tuple[str, str]]:
    plan = bench.plan(*arguments)  # type: ignore[arg-type]
    return [(job.facts.task.partition("/")[2], job.facts.model) for job in plan]


def test_needs_come_first_and_once(bench: Bench) -> None:
    toy = bench.make_toy()
    models = [fake("a"), fake("b")]
    found = titles(bench, [f"{toy}/use", f"{toy}/note"], models)
    assert found == [
        ("note", "fake/a"),
        ("use", "fake/a"),
        ("note", "fake/b"),
        ("use", "fake/b"),
    ]
    plan = bench.plan([f"{toy}/use"], models)
    assert {job.facts.task for job in plan if job.asked} == {f"{toy}/use"}


def test_the_captioner_answers_for_all(bench: Bench) -> None:
    toy = bench.make_toy()
    models = [fake("a"), fake("b")]
    plan = bench.plan([f"{toy}/use"], list(models), captioner=fake("c"))
    assert [job.facts.model for job in plan] == ["fake/c", "fake/a", "fake/b"]
    note, first, second = plan
    assert first.needs["note"] is note
    assert second.needs["note"] is note
    assert first.facts.needs == {"note": note.folder.name}


def test_what_a_run_needs_is_part_of_its_fingerprint(bench: Bench) -> None:
    toy = bench.make_toy()
    model = fake("a")
    runs = [
        bench.plan([f"{toy}/use"], [model]),
        bench.plan([f"{toy}/use"], [model], captioner=fake("c")),
        bench.plan([f"{toy}/use"], [model], f"{toy}/note:length=long"),
        bench.plan([f"{toy}/use"], [model], "notes=none"),
    ]
    assert len({plan[-1].facts.fingerprint for plan in runs}) == 4
    assert runs[2][0].facts.options == {"length": "long"}
    assert [len(plan) for plan in runs] == [2, 2, 2, 1]


def test_a_grid_makes_a_run_of_each_combination(bench: Bench) -> None:
    toy = bench.make_toy()
    plan = bench.plan([f"{toy}/choice"], [fake("a")], "style=plain,loud", "count=all,some")
    assert len({job.folder for job in plan}) == 4
    assert len({tuple(job.facts.options.items()) for job in plan}) == 4


def test_a_task_without_its_data_is_skipped_unless_it_was_named(bench: Bench) -> None:
    toy = bench.make_toy()
    plan = bench.plan([toy], [fake("a")])
    assert list(bench.skipped) == [f"{toy}/rare"]
    assert "is not in this copy" in str(bench.skipped[f"{toy}/rare"])
    assert {job.facts.task for job in plan} == {f"{toy}/{t}" for t in ("choice", "note", "use")}
    with pytest.raises(DataError, match="not in this copy"):
        bench.plan([f"{toy}/rare"], [fake("a")])
    with pytest.raises(DataError, match="not in this copy"):
        bench.plan([toy, f"{toy}/rare"], [fake("a")])


def test_nothing_left_to_run_is_an_error(bench: Bench) -> None:
    toy = bench.make_toy()
    with pytest.raises(InputError, match="no release"):
        bench.plan([toy], [fake("a")], scope=Scope("release"))
    card = bench.root / "toys" / toy / "card.toml"
    head, *tasks = card.read_text().split("[[task]]")
    card.write_text(f"{head}[[task]]{tasks[-1]}")
    with pytest.raises(DataError, match=r"rare\.json"):
        bench.plan([toy], [fake("a")])


def test_an_unknown_split_is_never_skipped(bench: Bench) -> None:
    toy = bench.make_toy()
    with pytest.raises(UnknownName, match="split"):
        bench.plan([toy], [fake("a")], scope=Scope(split="dev"))


def test_a_task_that_needs_itself_is_refused(bench: Bench) -> None:
    toy = bench.make_toy()
    plugin = bench.root / "toys" / toy / "plugin.py"
    plugin.write_text(plugin.read_text().replace('/note", {}', '/use", {}'))
    with pytest.raises(DataError, match=rf"needs its own answers \({toy}/use\)"):
        bench.plan([f"{toy}/use"], [fake("a")])


def test_what_others_need_may_be_asked_for_itself(bench: Bench) -> None:
    toy = bench.make_toy()
    needed = bench.plan([f"{toy}/use"], [fake("a")])
    both = bench.plan([f"{toy}/use", f"{toy}/note"], [fake("a")])
    assert [job.asked for job in needed] == [False, True]
    assert [job.asked for job in both] == [True, True]
    assert [job.folder for job in both] == [job.folder for job in needed]


def test_limit_and_sample_are_recorded_and_tell_runs_apart(bench: Bench) -> None:
    toy = bench.make_toy(items=20)
    scopes = [Scope(), Scope(limit=6), Scope(sample=6), Scope(sample=6, seed=1)]
    jobs = [bench.plan([f"{toy}/use"], [fake("a")], scope=scope) for scope in scopes]
    assert len({job[1].folder for job in jobs}) == 4
    assert [job[1].total for job in jobs] == [20, 6, 6, 6]
    note, use = jobs[3]
    assert (use.facts.sample, use.facts.seed, use.facts.limit) == (6, 1, None)
    memes = {item.group for item in use.task.items()}
    assert {item.group for item in note.task.items()} == memes
    assert use.task.feed is not None
    fed = use.task.feed({"note": dict.fromkeys(memes, "hm")})
    assert [item.form.context for item in fed.items()] == [{"note": "hm"}] * 6
