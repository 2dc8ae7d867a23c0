"""What other packages bring along, found by entry point when somebody asks for it.

Ours are named in the same form, ``module:attribute``, in the code and not in our package's
metadata: a checkout whose metadata are older than its code, or that has none, still knows them.
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
    """Things of one kind by name: those of ours, and entry points of a group.

    Metadata of installed packages are read only where a name is none of ours, and a plug-in is
    loaded only where it is asked for: one that is broken stands in nobody else's way.
    """

    group: str
    kind: type[Thing]
    ours: dict[str, str]

    def names(self) -> list[str]:
        """Every name, ours first."""
        return [*self.ours, *self._installed()]

    def find(self, name: str) -> Thing | None:
        """What a name stands for; an error says in one line why a plug-in cannot be used."""
        if name in self.ours:
            thing: Thing = EntryPoint(name, self.ours[name], self.group).load()
            return thing
        points = self._installed().get(name)
        return self._load(points) if points else None

    def all(self) -> Iterator[tuple[str, Thing | InputError]]:
        """Each name with what it stands for, or with why it cannot be used."""
        for name, value in self.ours.items():
            yield name, EntryPoint(name, value, self.group).load()
        for name, points in self._installed().items():
            try:
                yield name, self._load(points)
            except InputError as error:
                yield name, error

    def _installed(self) -> dict[str, list[EntryPoint]]:
        """By name. A package that is on the path twice is one; our names cannot be taken."""
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
            hint = "uninstall all of them but one"
            raise InputError(f"{point.name!r} is claimed by {owners}", hint=hint)
        who = f"plug-in {point.name!r} ({point.value} of {_describe(point)})"
        hint = "upgrade or uninstall that package"
        try:
            thing = point.load()
        except Exception as error:  # whatever another package's module raises
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(f"{who} cannot be loaded: {reason}", hint=hint) from error
        if not isinstance(thing, self.kind):
            raise InputError(f"{who} is not a {self.kind.__name__}", hint=hint)
        return thing


def _describe(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "a package without a name"
