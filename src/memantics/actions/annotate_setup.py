"""``annotate setup``: the settings of a project, shown or changed."""

from __future__ import annotations

from typing import Annotated

from memantics.actions.annotate import Storage, find_admin, open_annotations, require_project
from memantics.actions.annotate_changes import ProjectChanges
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
        settings = changes.apply(service, actor, project)
        held = service.projects.get(actor, project)
    flow = held.workflow
    mark = flow.training.threshold if flow.training else ""
    now = {"people": flow.stages[flow.judging].people, "pass_mark": mark, "language": held.language}
    return settings.model_dump(exclude={"clarifications"}) | now
