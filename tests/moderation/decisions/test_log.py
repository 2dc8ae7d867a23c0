"""The decision log on SQLite and PostgreSQL: chain, kills, retention, webhooks, statements."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sa

from memantics.core.errors import DataError, InputError
from memantics.core.policy import Policy, read_policy
from memantics.models.cache import request_digest
from memantics.moderation.decisions import cases, dsa, webhooks
from memantics.moderation.decisions.explanation import (
    explain_decision,
    find_explanation_faults,
    make_explanation_step,
)
from memantics.moderation.decisions.log import DecisionLog, apply_retention, hash_line
from memantics.moderation.decisions.verbs import (
    retain_decisions,
    summarise_decisions,
    verify_decisions,
)
from memantics.moderation.decisions.verification import find_faults
from tests.annotation.postgres import start_postgres, why_not
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES

FORUM = read_policy(POLICIES / "forum.md")
SECRET = "a secret of the tests"
KINDS = ["sqlite", "postgresql"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[], str]]:
    if problem := why_not():
        pytest.skip(problem)
    with start_postgres() as server:
        yield server.make_database


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    make: Callable[[], str] = request.getfixturevalue("postgres")
    return make()


on_both = pytest.mark.parametrize(
    "url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
    indirect=True,
)


def make_decision(text: str = "the old turnip", **changes: object) -> cases.Decision:
    given: dict[str, object] = {
        "content_sha256": cases.hash_content(text),
        "content_id": "post-1",
        "verdict": "violates",
        "band": "block",
        "clause": "1",
        "policy": FORUM.name,
        "policy_sha256": FORUM.digest,
        "detector": "d@1",
        "reviewer": "reviewer-1",
        "language": "en",
    }
    return cases.Decision(**{**given, **changes})  # type: ignore[arg-type]


def fill(log: DecisionLog, count: int) -> list[str]:
    """Record some decisions; every third is appealed, every sixth is overturned."""
    made = []
    for number in range(count):
        text = f"turnip {number}"
        one = cases.record_decision(log, make_decision(text, content_id=f"p{number}"), text=text)
        made.append(one.id)
        if number % 3 == 0:
            cases.record_appeal(log, one.id, statement="no")
            clause = "none" if number % 6 == 0 else "1"
            cases.record_outcome(log, one.id, clause=clause, reviewer="reviewer-2")
    return made


@on_both
def test_a_case_from_decision_to_outcome(url: str) -> None:
    with DecisionLog(url) as log:
        made = cases.record_decision(log, make_decision(), text="the old turnip")
        assert cases.find_case(log, made.id).state == "decided"
        with pytest.raises(InputError, match="no open appeal"):
            cases.record_outcome(log, made.id, clause="none", reviewer="reviewer-2")
        appeal = cases.record_appeal(log, made.id, statement="It is art.", language="en")
        with pytest.raises(InputError, match="appealed already"):
            cases.record_appeal(log, made.id)
        assert log.read_content(appeal.id) == "It is art."
        with pytest.raises(InputError, match="decided on this case before"):
            cases.record_outcome(log, made.id, clause="none", reviewer="reviewer-1")
        done = cases.record_outcome(log, made.id, clause="none", reviewer="reviewer-2")
        assert done.overturned
        case = cases.find_case(log, made.id)
        assert (case.state, case.text) == ("overturned", "the old turnip")
        assert case.deciders == ("reviewer-1", "reviewer-2")
        assert case.decision == made
        assert list(find_faults(log)) == []
        bodies = " ".join(json.dumps(line.body) for line in log.walk())
        assert "old turnip" not in bodies
        assert "It is art" not in bodies
        with pytest.raises(InputError, match="no decision"):
            cases.find_case(log, "dec-0")


@pytest.mark.slow
@on_both
def test_verify_finds_each_of_1000_random_changes(url: str) -> None:
    with DecisionLog(url) as log:
        fill(log, 30)
        table = log.tables["decision_log"]
        with log.read() as connection:
            rows = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
        assert list(find_faults(log)) == []
        rng = random.Random(52)
        missed = []
        for number in range(1000):
            changed, touched = damage(rng, [dict(row) for row in rows])
            with log.write() as connection:
                connection.execute(sa.delete(table))
                if changed:
                    connection.execute(sa.insert(table), changed)
            found = {fault.seq for fault in find_faults(log)}
            if not found & touched:
                missed.append((number, touched, found))
        assert missed == []
        with log.write() as connection:
            connection.execute(sa.delete(table))
            connection.execute(sa.insert(table), rows)
        assert list(find_faults(log)) == []


def damage(
    rng: random.Random, rows: list[dict[str, object]]
) -> tuple[list[dict[str, object]], set[int]]:
    """Change, remove or reorder lines; return them with the numbers of which one must be named."""
    place = rng.randrange(len(rows))
    row, seq = rows[place], place + 1
    kind = rng.choice(
        ["body", "kind", "case_id", "at", "hash", "prev", "remove", "swap", "forge", "tail"]
    )
    if kind == "remove":
        return rows[:place] + rows[place + 1 :], {seq}
    if kind == "tail":  # all lines from here to the last one
        return rows[:place], {seq}
    if kind == "swap":
        other = rng.choice([one for one in range(len(rows)) if one != place])
        rows[place]["seq"], rows[other]["seq"] = rows[other]["seq"], rows[place]["seq"]
        return rows, {seq, other + 1}
    if kind == "at":
        row["at"] = float(str(row["at"])) + rng.choice([-1, 1]) * rng.uniform(0.001, 1e6)
    elif kind in ("body", "forge"):
        text = str(row["body"])
        cut = rng.randrange(len(text))
        row["body"] = text[:cut] + chr((ord(text[cut]) + 1) % 127 or 32) + text[cut + 1 :]
        row["body"] = str(row["body"]).replace("\x00", " ")
    else:
        text = str(row[kind])
        cut = rng.randrange(len(text))
        row[kind] = text[:cut] + ("x" if text[cut] != "x" else "y") + text[cut + 1 :]
    if kind == "forge":  # the hash is computed again, so that the next line does not follow
        row["hash"] = hash_line(
            seq, str(row["kind"]), str(row["case_id"]), float(str(row["at"])), str(row["body"]),
            str(row["prev"]),
        )  # fmt: skip
        return rows, {seq, seq + 1}
    return rows, {seq, seq + 1} if kind == "hash" else {seq}


def change(log: DecisionLog, *statements: str) -> list[tuple[int, str]]:
    """Change the database behind the log, as an attacker would; return what verify finds."""
    with log.write() as connection:
        for one in statements:
            connection.execute(sa.text(one))
    return [(fault.seq, fault.problem) for fault in find_faults(log)]


@on_both
def test_a_shortened_log_is_found_by_its_head_or_by_the_noted_one(url: str) -> None:
    """Whoever also moves the head leaves a sound log; only the head that was noted finds that."""
    with DecisionLog(url) as log:
        fill(log, 10)
        noted = log.head()
        assert change(log, "DELETE FROM decision_log WHERE seq > 12") == [
            (13, f"all lines to {noted[0]} are missing")
        ]
        assert change(log, "DELETE FROM decision_head") == [
            (12, "the last line is not the one that the head names")
        ]
        with log.read() as connection:
            table = log.tables["decision_log"]
            last = connection.execute(sa.select(table.c.hash).where(table.c.seq == 12)).scalar()
        moved = f"INSERT INTO decision_head (id, seq, hash) VALUES (1, 12, '{last}')"
        assert change(log, moved) == []
        assert [one.seq for one in find_faults(log, noted)] == [noted[0]]
        emptied = ("DELETE FROM decision_log", "DELETE FROM decision_head")
        assert change(log, *emptied) == []
        assert [one.seq for one in find_faults(log, noted)] == [noted[0]]


@on_both
def test_a_forged_retention_does_not_satisfy_the_noted_head(url: str) -> None:
    """An attacker deletes all lines up to the noted one, with a line that calls it retention."""
    with DecisionLog(url) as log:
        fill(log, 6)
        noted = log.head()
        cases.record_decision(log, make_decision("later"))
        table = log.tables["decision_log"]
        with log.write() as connection:
            connection.execute(sa.delete(table).where(table.c.seq <= noted[0] + 1))
            body: dict[str, object] = {"through": noted[0] + 1, "hash": log.head()[1], "lines": 9}
            log.add(connection, "retention", "retention", body)  # type: ignore[arg-type]
        assert list(find_faults(log)) == []  # as after a retention by the lead
        (fault,) = find_faults(log, noted)
        assert "note a newer one" in fault.problem
        assert list(find_faults(log, log.head())) == []


@on_both
def test_verify_ends_soon_whatever_the_numbers_say(url: str) -> None:
    with DecisionLog(url) as log:
        fill(log, 4)
        last = log.head()[0]
        far = 10**17
        found = change(log, f"UPDATE decision_head SET seq = {far}")
        assert found == [(last + 1, f"all lines to {far} are missing")]
        found = change(log, f"UPDATE decision_log SET seq = {far} WHERE seq = {last}")
        assert found[0] == (last, f"all lines to {far - 1} are missing")


@on_both
def test_a_changed_text_or_statement_is_found(url: str) -> None:
    with DecisionLog(url) as log:
        made = cases.record_decision(log, make_decision(), text="the old turnip")
        appeal = cases.record_appeal(log, made.id, statement="It is art.")
        update = "UPDATE decision_contents SET text = 'x' WHERE content_key = '{}'"
        assert change(log, update.format(made.id)) == [(1, "the stored text was changed")]
        found = change(log, update.format(appeal.id))
        assert found[1:] == [(2, "the stored statement was changed")]
        assert change(log, "DELETE FROM decision_contents") == []  # as retention does


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("UPDATE decision_log SET body = x'ff00' WHERE seq = 2", 2),
        ("UPDATE decision_log SET body = CAST(x'ff00' AS TEXT) WHERE seq = 2", 2),
        ("UPDATE decision_log SET hash = x'00' WHERE seq = 2", 2),
        ("UPDATE decision_log SET at = 'now' WHERE seq = 2", 2),
        ("UPDATE decision_log SET seq = 'two' WHERE seq = 2", 2),
        ("UPDATE decision_log SET seq = -2 WHERE seq = 2", 2),
        ("UPDATE decision_head SET seq = 'x'", 5),
        ("UPDATE decision_head SET hash = x'00'", 5),
        ("UPDATE decision_head SET id = 2", 5),
    ],
)
def test_values_of_any_type_are_found_in_sqlite(tmp_path: Path, statement: str, seq: int) -> None:
    with DecisionLog(tmp_path / "log.db") as log:
        fill(log, 3)
        assert log.head()[0] == 5
        assert seq in {number for number, _ in change(log, statement)}


def test_reading_creates_no_log(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for words in (
        ("verify",), ("summary",), ("explain", "dec-1"), ("appeal", "dec-1"), ("retain",),
        ("export", "--out", "dsa"), ("queue", "q", "--policy", str(POLICIES / "forum.md")),
    ):  # fmt: skip
        line = shell.refused("decisions", *words, "--db", "typo.db")
        assert "no decision log at typo.db" in line
        assert not [*tmp_path.rglob("*.db"), *tmp_path.glob("q")]
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    line = shell.refused("decisions", "verify", "--db", "other.db")
    assert "the database has no decision log" in line


def test_a_rewritten_log_lacks_the_noted_head(tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "a.db") as log:
        fill(log, 3)
    noted = verify_decisions(str(tmp_path / "a.db")).head
    assert verify_decisions(str(tmp_path / "a.db"), anchor=noted).sound
    (tmp_path / "a.db").unlink()
    for rest in tmp_path.glob("a.db-*"):
        rest.unlink()
    with DecisionLog(tmp_path / "a.db") as log:
        fill(log, 4)
    assert verify_decisions(str(tmp_path / "a.db")).sound
    found = verify_decisions(str(tmp_path / "a.db"), anchor=noted)
    assert [one.seq for one in found.faults] == [int(noted.partition(":")[0])]


@pytest.mark.slow
@on_both
def test_a_kill_at_any_moment_loses_no_accepted_decision(url: str) -> None:
    rng = random.Random(9)
    accepted: set[tuple[str, str]] = set()
    for _ in range(6):
        command = [sys.executable, "-m", "tests.moderation.decisions.writer", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]  # it has started
            time.sleep(rng.uniform(0.01, 0.6))
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        accepted |= {tuple(line.split()) for line in lines if line.endswith("\n")}  # type: ignore[misc]
    assert len(accepted) > 10
    with DecisionLog(url) as log:
        assert list(find_faults(log)) == []
        stored = {(line.kind, line.case) for line in log.walk()}
        assert accepted <= stored
        events = webhooks.list_events(log, "waiting")
        told = {(one.event, json.loads(one.body)["decision"]) for one in events}
        assert {pair for pair in stored if pair[0] != "appealed"} == told


@on_both
def test_retention_deletes_texts_and_old_lines(url: str) -> None:
    now = [1000.0]
    with DecisionLog(url, clock=lambda: now[0]) as log:
        old = cases.record_decision(log, make_decision(), text="the old turnip", keep_days=1)
        now[0] += 86_400 * 2
        new = cases.record_decision(log, make_decision("b"), text="b", keep_days=1)
        assert apply_retention(log, None) == (1, 0)
        assert (log.read_content(old.id), log.read_content(new.id)) == (None, "b")
        assert list(find_faults(log)) == []
        assert apply_retention(log, now[0] - 10) == (0, 1)
        assert list(find_faults(log)) == []
        assert apply_retention(log, now[0] - 10) == (0, 0)
        assert next(iter(log.walk())).seq == 2
        with log.write() as connection:
            table = log.tables["decision_log"]
            connection.execute(sa.delete(table).where(table.c.seq == 2))
        assert [one.seq for one in find_faults(log)] == [2]


def test_deleted_lines_take_their_texts_with_them(tmp_path: Path) -> None:
    now = [1000.0]
    with DecisionLog(tmp_path / "log.db", clock=lambda: now[0]) as log:
        old = cases.record_decision(log, make_decision(), text="the old turnip")
        appeal = cases.record_appeal(log, old.id, statement="It is art.")
        cases.record_outcome(log, old.id, clause="1", reviewer="reviewer-2")
        now[0] += 86_400 * 40
        new = cases.record_decision(log, make_decision("b"), text="b")
        assert apply_retention(log, now[0] - 86_400) == (2, 3)
        assert [log.read_content(one) for one in (old.id, appeal.id, new.id)] == [None, None, "b"]
        assert list(find_faults(log)) == []
        head = log.head()
    kept = retain_decisions(str(tmp_path / "log.db"))
    assert (kept.contents, kept.lines, kept.head) == (0, 0, f"{head[0]}:{head[1]}")
    assert verify_decisions(str(tmp_path / "log.db"), anchor=kept.head).head == kept.head


class Receiver(HTTPServer):
    """Takes webhooks; the first answers are errors."""

    def __init__(self, failures: int) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.failures = failures
        self.got: list[tuple[dict[str, str], bytes]] = []


class Hook(BaseHTTPRequestHandler):
    """Stores a request, or rejects it."""

    server: Receiver

    def do_POST(self) -> None:
        """Take one webhook."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        failed = self.server.failures > 0
        self.server.failures -= 1
        if not failed:
            self.server.got.append((dict(self.headers), body))
        self.send_response(503 if failed else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@on_both
def test_two_workers_send_an_event_once(url: str) -> None:
    """While one worker sends, the other one finds nothing due; after a kill, it is due again."""
    now, posted = [1000.0], []
    hooks = ["https://example.org/a", "https://example.org/b"]
    with (
        DecisionLog(url, webhooks=hooks, clock=lambda: now[0]) as log,
        DecisionLog(url, clock=lambda: now[0]) as other,
    ):
        cases.record_decision(log, make_decision("one"))

        def send(url: str, _body: bytes, headers: dict[str, str]) -> str:
            posted.append((url, headers["Memantics-Delivery"]))
            if len(posted) == 1:  # in the middle of this delivery the other worker begins a round
                assert webhooks.deliver(other, SECRET, send).sent == 1
            return ""

        assert webhooks.deliver(log, SECRET, send).sent == 1
        assert [url for url, _ in posted] == hooks
        cases.record_decision(log, make_decision("two"))

        def die(*_: object) -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            webhooks.deliver(log, SECRET, die)
        assert webhooks.deliver(other, SECRET, send).sent == 1  # only the one that is not reserved
        now[0] += 200
        assert webhooks.deliver(other, SECRET, send).sent == 1
        assert webhooks.deliver(other, SECRET, send) == webhooks.Delivered(0, 0, 0)
    assert len({name for _, name in posted}) == len(posted) == 4


@on_both
def test_webhooks_are_signed_repeated_and_become_dead_letters(url: str) -> None:
    now = [1_000_000.0]
    with Receiver(failures=2) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        hook = f"http://127.0.0.1:{server.server_address[1]}/hook"
        with DecisionLog(url, webhooks=[hook], clock=lambda: now[0]) as log:
            made = cases.record_decision(log, make_decision(), text="the old turnip")
            for pause, sent in ((0, 0), (1, 0), (10, 0), (5, 0), (16, 1)):
                now[0] += pause
                assert webhooks.deliver(log, SECRET).sent == sent
            ((headers, body),) = server.got
            signature = headers["Memantics-Signature"]
            assert webhooks.verify_signature(SECRET, signature, body, now[0])
            assert not webhooks.verify_signature(SECRET, signature, body + b" ", now[0])
            assert not webhooks.verify_signature("other", signature, body, now[0])
            assert json.loads(body)["decision"] == made.id
            assert b"old turnip" not in body
            server.failures = 1000
            cases.record_appeal(log, made.id)
            cases.record_outcome(log, made.id, clause="none", reviewer="reviewer-2")
            for _ in range(webhooks.MOST_ATTEMPTS):
                now[0] += 86_400
                last = webhooks.deliver(log, SECRET)
            assert (last.waiting, last.dead) == (0, 1)
            server.failures = 0
            assert webhooks.revive(log) == 1
            assert webhooks.deliver(log, SECRET).sent == 1
            assert json.loads(server.got[-1][1])["event"] == "overturned"
        server.shutdown()


def test_explanations_cite_the_clause_and_nobody_else() -> None:
    case = cases.DecisionCase(make_decision(), text="the old turnip, ask joe@example.org")
    text = explain_decision(case, FORUM, "en")
    assert "clause 1, “Root vegetables”" in text
    assert "turnip, radish" in text
    assert "You can appeal" in text
    assert "example.org" not in text
    assert find_explanation_faults(text, FORUM, case.text or "") == []
    chinese = explain_decision(case, FORUM, "zh-CN")
    assert "第 1 条“根茎类蔬菜”" in chinese
    bare = cases.DecisionCase(make_decision(clause="none", policy="", policy_sha256=""))
    assert "applied no clause" in explain_decision(bare, None, "en")
    for wrong in (
        "It is 93 % harmful",
        "有害概率很高",
        "see https://x.org",
        "“my neighbour” said so",
    ):
        assert find_explanation_faults(wrong, FORUM, "the old turnip")


@pytest.mark.parametrize(
    ("changes", "policy", "says"),
    [
        ({}, FORUM, "Your post breaks clause 1, “Root vegetables”"),
        ({}, None, "Your post breaks clause 1 of the policy “forum”, version 1."),
        ({"policy": "", "policy_sha256": ""}, None, "Your post breaks clause 1 of the policy."),
        ({"clause": "none"}, None, "An automatic check flagged your post."),
        ({"clause": "none", "detector": ""}, None, "Your post is not allowed. No clause"),
        ({"verdict": "allowed", "clause": "none"}, FORUM, "Your post breaks no clause of Rules"),
        ({"verdict": "allowed", "clause": "none"}, None, "Your post is allowed."),
        ({"verdict": "undecided", "band": "review"}, FORUM, "There is no decision on your post"),
    ],
)
def test_the_template_says_what_was_decided(
    changes: dict[str, str], policy: Policy | None, says: str
) -> None:
    case = cases.DecisionCase(make_decision(**changes))
    text = explain_decision(case, policy, "en")
    assert text.startswith(says)
    violates = case.decision.verdict == "violates"
    assert ("You can appeal" in text) == violates
    assert ("A person made or confirmed" in text) == (case.decision.verdict != "undecided")
    chinese = explain_decision(case, policy, "zh")
    assert ("申诉" in chinese) == violates
    assert "Your" not in chinese


@on_both
def test_the_template_says_what_became_of_an_appeal(url: str) -> None:
    with DecisionLog(url) as log:
        for clause, outcome in (
            ("1", "upheld it."),
            ("none", "overturned it. Your post is allowed."),
        ):
            made = cases.record_decision(log, make_decision())
            cases.record_appeal(log, made.id)
            text = explain_decision(cases.find_case(log, made.id), FORUM, "en")
            assert "There is an appeal against this decision." in text
            cases.record_outcome(log, made.id, clause=clause, reviewer="reviewer-2")
            text = explain_decision(cases.find_case(log, made.id), FORUM, "en")
            assert text.endswith(f"another person reviewed the decision and {outcome}")
            assert "You can appeal" not in text
            assert "reviewer-2" not in text


def test_nothing_is_appealed_before_it_is_decided(tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "log.db") as log:
        made = cases.record_decision(
            log, make_decision(verdict="undecided", band="review", clause="none", reviewer="")
        )
        assert cases.find_case(log, made.id).state == "undecided"
        with pytest.raises(InputError, match="nothing is decided yet"):
            cases.record_appeal(log, made.id)
    found = summarise_decisions(str(tmp_path / "log.db"))
    assert found.states == {"undecided": 1}
    assert "needs human review 1" in found.save(tmp_path / "p.html").read_text()
    assert "需人工审核 1" in found.save(tmp_path / "zh.html", "zh").read_text()


@pytest.mark.parametrize(
    ("said", "used"),
    [
        ("Clause 1 forbids root vegetables: “turnip”. You can appeal.", True),
        ("Clause 1 forbids this with 97 % certainty.", False),
        ("Clause 1 forbids this, as reviewer-1 decided.", False),
        ("Clause 1 forbids this; ask joe@example.org.", False),
        ("Clause 1 forbids this; my neighbour said “what a fool”.", False),
        ("Clause 12 forbids this.", False),
        ("", False),
    ],
)
def test_a_model_words_an_explanation_only_within_the_rules(
    tmp_path: Path, said: str, used: bool
) -> None:
    with DecisionLog(tmp_path / "log.db") as log:
        made = cases.record_decision(log, make_decision(), text="the old turnip")
        case = cases.find_case(log, made.id)
    template = explain_decision(case, FORUM, "en")
    request = make_explanation_step(case, FORUM, "en").request
    reply = {
        "prompt": request_digest(request),
        "reply": {"text": json.dumps({"explanation": said})},
    }
    (tmp_path / "replies.jsonl").write_text(json.dumps(reply) + "\n", encoding="utf-8")
    shell = Shell(tmp_path)
    words = ("decisions", "explain", made.id, "--db", "log.db", "--model", "recorded/replies.jsonl")
    told = shell.done(*words, "--policy", POLICIES / "forum.md").strip()
    assert told == (said if used else template)
    assert "--model needs the policy" in shell.refused(*words)


def test_statements_of_reasons_fit_the_schema_and_hold_no_personal_data(tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "log.db") as log:
        fill(log, 130)
        allowed = make_decision(verdict="allowed", band="allow", clause="none", reviewer="")
        cases.record_decision(log, allowed)
        everything = cases.list_cases(log)
    files = dsa.write_statements(everything, {FORUM.digest: FORUM}, tmp_path / "dsa")
    read = [json.loads(path.read_text())["statements"] for path in files]
    overturned = sum(case.state == "overturned" for case in everything)
    assert (len(read[0]), sum(map(len, read))) == (100, 130 - overturned)
    for one in read[0] + read[1]:
        dsa.StatementOfReasons.model_validate(one)
        assert one["category"] == "STATEMENT_CATEGORY_ILLEGAL_OR_HARMFUL_SPEECH"
        assert one["automated_decision"] == "AUTOMATED_DECISION_PARTIALLY"
    text = "".join(path.read_text() for path in files)
    for private in ("reviewer-1", "reviewer-2", "turnip 7", '"p7"', "content_sha256"):
        assert private not in text
    with pytest.raises(InputError, match="was not given"):
        dsa.write_statements(everything, {}, tmp_path / "other")
    good = read[0][0]
    for name, value in (
        ("decision_facts", "x" * 5001), ("category", "STATEMENT_CATEGORY_FUN"), ("puid", "a b"),
        ("decision_facts", "ask joe@example.org"), ("content_date", "2999-01-01"),
        ("territorial_scope", ["US"]), ("extra", "x"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="validation error"):
            dsa.StatementOfReasons.model_validate({**good, name: value})


def test_no_language_clock_or_policy_text_stops_the_export(tmp_path: Path) -> None:
    now = [1_000_000.0]
    rule = "Ask mods@forum.example or +49 30 1234567 about turnips."
    told = replace(FORUM, clauses=(replace(FORUM.clauses[0], rule={"en": rule}),))
    named: dict[str, object] = {"policy": told.name, "policy_sha256": told.digest}
    with DecisionLog(tmp_path / "log.db", clock=lambda: now[0]) as log:
        for place, language in enumerate(("??", "1x", "µß", "zh-Hant", "english")):
            one = make_decision("a post", content_id=f"p{place}", language=language, **named)
            cases.record_decision(log, one)
        allowed = make_decision("b", verdict="allowed", band="allow", clause="none", **named)
        name = cases.record_decision(log, allowed).id
        cases.record_appeal(log, name)
        now[0] -= 86_400 * 3
        cases.record_outcome(log, name, clause="1", reviewer="reviewer-2", policy=told)
        assert list(find_faults(log)) == []
        *said, last = export(log, tmp_path / "dsa", told)
    assert [one.get("content_language") for one in said] == [None, None, None, "ZH", None]
    assert last["content_date"] == last["application_date"] == "1970-01-12"
    text = "Ask [removed] or [removed] about turnips."
    assert {one["incompatible_content_explanation"] for one in said} == {text}
    # A time before the appeal is no time to decide.
    assert [one.hours for one in summarise_decisions(str(tmp_path / "log.db")).clauses] == [
        None,
        None,
    ]


def export(log: DecisionLog, folder: Path, *policies: Policy) -> list[dict[str, object]]:
    """Export the statements of a log."""
    read = {one.digest: one for one in policies}
    files = dsa.write_statements(cases.list_cases(log), read, folder)
    return [one for path in files for one in json.loads(path.read_text())["statements"]]


@on_both
def test_a_restriction_after_an_appeal_has_a_statement(url: str, tmp_path: Path) -> None:
    """A post that a detector allowed breaks the policy after an appeal, and the other way round."""
    now = [1_000_000.0]
    allowed: dict[str, object] = {"verdict": "allowed", "band": "allow", "clause": "none"}
    bare: dict[str, object] = {"policy": "", "policy_sha256": "", "reviewer": ""}
    with DecisionLog(url, clock=lambda: now[0]) as log:
        for number, changes in enumerate(
            ({**allowed, **bare}, allowed, {}, {**allowed, **bare, "detector": ""}), 1
        ):
            one = make_decision(f"post {number}", content_id=f"p{number}", **changes)
            name = cases.record_decision(log, one).id
            cases.record_appeal(log, name, statement="a reader reports it")
            now[0] += 86_400 * 2
            clause = "none" if number == 3 else "2"
            outcome = cases.record_outcome(
                log, name, clause=clause, reviewer="reviewer-2", policy=FORUM
            )
            assert outcome.overturned
            assert cases.find_case(log, name).outcome == outcome
        assert list(find_faults(log)) == []
        said = export(log, tmp_path / "dsa", FORUM)
        with pytest.raises(InputError, match=r"made under forum@1.* was not given"):
            export(log, tmp_path / "other")
        case = next(one for one in cases.list_cases(log) if one.decision.content_id == "p1")
        explained = explain_decision(case, FORUM, "en")
    fields = ("automated_detection", "automated_decision")
    assert [tuple(one[name] for name in fields) for one in said] == [
        ("No", "AUTOMATED_DECISION_NOT_AUTOMATED"),  # the detector had allowed it
        ("Yes", "AUTOMATED_DECISION_PARTIALLY"),  # the detector had sent it to the first reviewer
        ("No", "AUTOMATED_DECISION_NOT_AUTOMATED"),
    ]
    for statement in said:
        dsa.StatementOfReasons.model_validate(statement)
        assert statement["source_type"] == "SOURCE_TYPE_OTHER_NOTIFICATION"
        assert "clause 2: Leaf vegetables" in str(statement["incompatible_content_ground"])
        assert str(statement["application_date"]) > str(statement["content_date"])
        assert "After an appeal, another reviewer decided" in str(statement["decision_facts"])
        assert "reviewer-2" not in str(statement)
    assert "allowed it at first" in str(said[0]["decision_facts"])
    assert "scored it as harmful" not in str(said[0]["decision_facts"])
    assert "overturned it. Your post breaks clause 2, “Leaf vegetables”" in explained


def test_a_later_decision_of_a_person_replaces_an_automated_one(tmp_path: Path) -> None:
    automated: dict[str, object] = {
        "clause": "none", "policy": "", "policy_sha256": "", "reviewer": ""
    }  # fmt: skip
    allowed: dict[str, object] = {"verdict": "allowed", "band": "allow", "clause": "none"}
    with DecisionLog(tmp_path / "log.db") as log:
        for changes in (
            {"content_id": "lifted", **automated},
            {"content_id": "lifted", **allowed},
            {"content_id": "kept", **automated, **allowed},
            {"content_id": "kept"},
            {"content_id": "kept", **automated, **allowed},  # sent again; people count
            {"content_id": "open", **automated},
            {"content_id": "open", **automated, "verdict": "undecided", "band": "review"},
            {"content_id": "", **automated},
            {"content_id": "", **allowed},  # perhaps another post with the same text
        ):
            cases.record_decision(log, make_decision(**changes))
        said = export(log, tmp_path / "dsa", FORUM)
        known = {one.decision.id: one.decision.content_id for one in cases.list_cases(log)}
    assert [known[str(one["puid"])] for one in said] == ["kept", "open", ""]
    assert "clause 1" in str(said[0]["incompatible_content_ground"])


def test_the_summary_counts_overturned_appeals(tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "log.db") as log:
        fill(log, 12)
    found = summarise_decisions(str(tmp_path / "log.db"))
    (row,) = found.clauses
    assert (row.decisions, row.appealed, row.overturned, row.rate) == (12, 4, 2, 0.5)
    assert (round(row.low or 0, 3), round(row.high or 0, 3)) == (0.15, 0.85)
    page = found.save(tmp_path / "p.html").read_text()
    assert "12 decisions" in page
    assert "forum@1 1" in page
    chinese = found.save(tmp_path / "zh.html", "zh").read_text()
    assert 'lang="zh"' in chinese
    assert "共 12 项决定" in chinese
    assert "overturn" not in chinese.partition("<body")[2]
    with pytest.raises(InputError, match="'fr' is not a language"):
        found.save(tmp_path / "fr.html", "fr")  # type: ignore[arg-type]


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database at all " * 100)
    with pytest.raises(InputError, match="cannot be used"):
        DecisionLog(tmp_path / "x.db")
    with pytest.raises(InputError, match="unsupported database URL"):
        DecisionLog("mysql://x")
    assert issubclass(DataError, InputError)


@on_both
@pytest.mark.parametrize("text", ["a\0b", "\x1abase64:YQ==", "\x1abase64:", "\ud800", "plain"])
def test_a_text_of_any_characters_is_stored_and_verified(url: str, text: str) -> None:
    """PostgreSQL refused zero bytes: a post with one could be neither recorded nor appealed."""
    shown = text.replace("\ud800", "?")
    with DecisionLog(url) as log:
        made = cases.record_decision(log, make_decision(text, note=shown), text=text)
        cases.record_appeal(log, made.id, statement=text, language="en")
        found = cases.find_case(log, made.id)
        assert found.text == shown
        assert found.appeal is not None
        assert log.read_content(found.appeal.id) == shown
        assert list(find_faults(log)) == []


@on_both
@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\u202e", "x" * 500])
def test_an_id_of_any_characters_is_not_found(url: str, name: str) -> None:
    with DecisionLog(url) as log:
        for ask in (cases.find_case, cases.record_appeal):
            with pytest.raises(InputError, match="no decision"):
                ask(log, name)
