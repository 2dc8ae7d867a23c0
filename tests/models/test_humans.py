"""Answers of people from a table: which rows match a request, and who wins."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError, Rejected, UnknownName
from memantics.core.records import Form, Image, Message, Reply, Request
from memantics.core.waiting import run_sync
from memantics.models.humans import HumansModel
from tests.models.forms import HARM


def pose(image: str = "", question: str = "", **texts: str) -> Request:
    form = Form(question, HARM.fields, context=texts)
    parts = (Image(Path("x") / image), "?") if image else ("?",)
    return Request((Message("user", parts),), form)


def ask(table: Path, *requests: Request, settings: str = "") -> list[Reply]:
    model = HumansModel(f"humans/{table}{settings}")

    async def answer() -> list[Reply]:
        found = [await model.answer(request) for request in requests]
        await model.close()
        return found

    return run_sync(answer())


def write(folder: Path, *rows: str) -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_majority_wins_and_a_tie_is_no_answer(tmp_path: Path) -> None:
    votes = ["image,annotator,answer"]
    votes += [
        f"a.png,{who},{said}" for who, said in zip("pqrs", ["x", "y", "y", " y "], strict=True)
    ]
    votes += ["b.png,p,x", "b.png,q,y", "c.png,p,x", "c.png,q,y", "c.png,r,z", "c.png,s,x"]
    table = write(tmp_path, *votes)
    first, second, third = ask(table, pose("A.jpg"), pose("b"), pose("c.png"))
    assert first == Reply("y", finish="stop", served_by="3 of 4 people")
    assert second == Reply("", refusal="people are split: 1 of 2 people said 'x'")
    assert third == Reply("x", finish="stop", served_by="2 of 4 people")


def test_an_empty_answer_is_no_vote(tmp_path: Path) -> None:
    table = write(tmp_path, "image,answer", "a,x", "a,", "a, ", "b,")
    assert ask(table, pose("a.png"))[0].served_by == "1 of 1 people"
    with pytest.raises(Rejected) as caught:
        ask(table, pose("b.png"))
    assert str(caught.value) == (
        "votes.csv contains no answer to this question; "
        "give the columns, for example ?image=COLUMN&question=COLUMN"
    )


def test_rows_match_by_image_and_else_by_text(tmp_path: Path) -> None:
    table = write(tmp_path, "id,caption,label", "1,Hello  World,x", ",Bye,y", "2,,z")
    replies = ask(
        table,
        pose("001.png"),
        pose("001.png", caption="bye"),
        pose(caption="hello world"),
        pose("9.png", caption="BYE"),
        pose("2.png"),
    )
    assert [reply.text for reply in replies] == ["x", "x", "x", "y", "z"]
    with pytest.raises(Rejected, match="contains no answer to this question"):
        ask(table, pose("9.png", caption="other"))


def test_a_question_must_match_where_the_table_has_one(tmp_path: Path) -> None:
    table = write(
        tmp_path, "image,question,answer", "a,Is it?,x", "a,Who is it?,y", "a,,z", "b,Is it?,x"
    )
    asked = [pose("a", "is  IT?"), pose("a", "who is it?"), pose("a", "other"), pose("b", "Is it?")]
    assert [reply.text for reply in ask(table, *asked)] == ["x", "y", "z", "x"]
    with pytest.raises(Rejected):
        ask(table, pose("b", "other"))


def test_columns_and_a_person_are_chosen(tmp_path: Path) -> None:
    table = write(tmp_path, "file,who,said,answer", "a,p,x,no", "a,q,y,no", "a,q,y,no")
    settings = "?image=file&annotator=who&answer=said"
    model = HumansModel(f"humans/{table}{settings}")
    assert model.name == f"humans/{table}{settings}"
    assert model.note == "human annotators: majority of 2"
    assert model.identity == {
        "name": "humans",
        "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
        "columns": {"image": "file", "annotator": "who", "answer": "said"},
        "only": "",
    }
    assert ask(table, pose("a"), settings=settings)[0].served_by == "2 of 3 people"
    one = HumansModel(f"humans/{table}{settings}&only=p")
    assert (one.note, one.identity["only"]) == ("people", "p")
    (reply,) = ask(table, pose("a"), settings=f"{settings}&only=p")
    assert (reply.text, reply.served_by) == ("x", "1 of 1 people")
    assert not one.cacheable


def test_the_first_known_column_counts(tmp_path: Path) -> None:
    table = write(tmp_path, "id,meme,vote,label,person,rater", "1,2,x,y,p,r")
    assert HumansModel(f"humans/{table}").identity["columns"] == {
        "image": "meme", "answer": "label", "annotator": "person",
    }  # fmt: skip
    assert ask(table, pose("2"))[0].text == "y"
    # A table without people is that of one.
    bare = write(tmp_path, "image,answer", "a,x", "a,y", "a,y")
    assert HumansModel(f"humans/{bare}").note == "people"


@pytest.mark.parametrize(
    ("rows", "settings", "problem"),
    [
        (
            ["image,x", "a,b"],
            "",
            "column for the answer; its columns are image, x; give the column: humans/votes.csv?an",
        ),
        (
            ["x,answer", "a,b"],
            "",
            "column for the image; its columns are x, answer; give the column: humans/votes.csv?im",
        ),
        (
            ["image,answer", "a,b"],
            "?only=p",
            "votes.csv has no column for the annotator; add ?annotator=COLUMN",
        ),
        (
            ["image,answer,person", "a,b,q"],
            "?only=p",
            "votes.csv contains no answers of p; choose an annotator in the table: ?only=NAME",
        ),
        (["image,answer", "a,"], "", "votes.csv contains no answers of any annotator; choose an"),
    ],
)
def test_a_table_that_does_not_fit(
    rows: list[str], settings: str, problem: str, tmp_path: Path
) -> None:
    table = write(tmp_path, *rows)
    with pytest.raises(InputError) as caught:
        HumansModel(f"humans/{table}{settings}")
    assert problem in str(caught.value)


def test_unknown_columns_and_settings_are_named(tmp_path: Path) -> None:
    table = write(tmp_path, "image,answer", "a,x")
    with pytest.raises(
        UnknownName, match=r"unknown column of votes\.csv: 'anser'; did you mean an"
    ):
        HumansModel(f"humans/{table}?answer=anser")
    with pytest.raises(UnknownName, match=r"unknown setting of humans/FILE: 'who'; .*only"):
        HumansModel(f"humans/{table}?who=p")
    with pytest.raises(DataError, match=r"votes\.csv: contains no answers; add one row per answer"):
        HumansModel(f"humans/{write(tmp_path, 'image,answer')}")
