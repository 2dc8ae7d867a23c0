"""Plug-ins of other packages, found by entry point and loaded at first use.

Built-in plug-ins have the same form, ``module:attribute``, but are listed in the code. They are
found even if the package metadata are missing or outdated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from memantics.core.errors import InputError

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Plugins(Generic[Thing]):
    """A set of named plug-ins of one type: built-in ones, and those of an entry-point group.

    Package metadata are read only for names that are not built in. A plug-in is loaded only on
    request, so that a broken one does not affect others.
    """

    group: str
    kind: type[Thing]
    ours: dict[str, str]

    def names(self) -> list[str]:
        """Return the names of all plug-ins, built-in ones first."""
        return [*self.ours, *self._installed()]

    def find(self, name: str) -> Thing | None:
        """Return the plug-in with this name; raise an ``InputError`` if it cannot be loaded."""
        if name in self.ours:
            thing: Thing = EntryPoint(name, self.ours[name], self.group).load()
            return thing
        points = self._installed().get(name)
        return self._load(points) if points else None

    def all(self) -> Iterator[tuple[str, Thing | InputError]]:
        """Yield the name of each plug-in with its object, or with its loading error."""
        for name, value in self.ours.items():
            yield name, EntryPoint(name, value, self.group).load()
        for name, points in self._installed().items():
            try:
                yield name, self._load(points)
            except InputError as error:
                yield name, error

    def _installed(self) -> dict[str, list[EntryPoint]]:
        """Return entry points by name, without duplicates and without built-in names."""
        found = {(point.name, _describe(point)): point for point in entry_points(group=self.group)}
        names = sorted({name for name, _ in found} - set(self.ours))
        return {
            name: [point for (other, _), point in sorted(found.items()) if other == name]
            for name in names
        }

    def _load(self, points: list[EntryPoint]) -> Thing:
        point, *others = points
        if others:
            owners = " and ".join(map(_describe, points))
            hint = "uninstall all but one of these packages"
            raise InputError(f"plug-in {point.name!r} is provided by {owners}", hint=hint)
        who = f"plug-in {point.name!r} ({point.value} of {_describe(point)})"
        hint = "upgrade or uninstall that package"
        try:
            thing = point.load()
        except Exception as error:  # The module of another package may raise any exception.
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(f"{who} cannot be loaded: {reason}", hint=hint) from error
        if not isinstance(thing, self.kind):
            raise InputError(f"{who} is not a {self.kind.__name__}", hint=hint)
        return thing


def _describe(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "a package without a name"
