"""SQL on the hot path: straight to the driver, inside the transaction of its connection.

One answer takes about a dozen small statements; through SQLAlchemy's machinery each costs more
than the database needs for it. Texts are fixed, values are always bound.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

_NAME = re.compile(r"(?<!:):([a-z_]\w*)")
Bound = Mapping[str, object]


class Statement:
    """A text with ``:name`` for values, the same for both databases.

    >>> Statement("SELECT :a, x::text")._psycopg
    'SELECT %(a)s, x::text'
    """

    __slots__ = ("_psycopg", "_row", "_sqlite")

    def __init__(self, text: str) -> None:
        self._sqlite = text
        self._psycopg = _NAME.sub(r"%(\1)s", text.replace("%", "%%"))
        self._row: Any = None

    def one(self, connection: Connection, values: Bound) -> Any:
        """The first row, or None."""
        cursor = self._execute(connection, values)
        row = cursor.fetchone()
        return None if row is None else self._shape(cursor)._make(row)

    def all(self, connection: Connection, values: Bound) -> list[Any]:
        """All rows."""
        cursor = self._execute(connection, values)
        make = self._shape(cursor)._make
        return [make(row) for row in cursor.fetchall()]

    def value(self, connection: Connection, values: Bound) -> Any:
        """The first column of the first row, or None."""
        row = self._execute(connection, values).fetchone()
        return None if row is None else row[0]

    def run(self, connection: Connection, values: Bound) -> int:
        """Change rows; how many."""
        return int(self._execute(connection, values).rowcount)

    def run_each(self, connection: Connection, rows: Sequence[Bound]) -> None:
        """Change rows, once for each set of values."""
        for values in rows:
            self._execute(connection, values)

    def _execute(self, connection: Connection, values: Bound) -> Any:
        driver: Any = connection.connection.driver_connection
        sqlite = connection.dialect.name == "sqlite"
        return driver.execute(self._sqlite if sqlite else self._psycopg, values)

    def _shape(self, cursor: Any) -> Any:
        if self._row is None:
            names = [column[0] for column in cursor.description]
            self._row = namedtuple("Row", names)  # type: ignore[misc]
        return self._row
