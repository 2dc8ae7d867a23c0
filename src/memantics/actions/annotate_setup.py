"""``annotate setup``: the settings of a project, shown or changed."""

from __future__ import annotations

from typing import Annotated

from memantics.actions.annotate import (
    ProjectChanges,
    Storage,
    find_admin,
    open_annotations,
    require_project,
)
from memantics.annotate import require_extra
from memantics.core.parameters import Argument


def set_up_project(
    storage: Storage,
    changes: ProjectChanges,
    project: Annotated[int, Argument("The number of the project.")],
) -> dict[str, object]:
    """Change how many people judge each item and who settles ties; returns all settings."""
    require_extra()
    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        settings = service.projects.change(actor, project, changes.said)
        flow = service.projects.get(actor, project).workflow
    people = flow.stages[flow.judging].people
    return settings.model_dump(exclude={"clarifications"}) | {"people": people}
