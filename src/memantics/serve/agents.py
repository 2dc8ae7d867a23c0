"""``memantics mcp``: tools of the Model Context Protocol for agents, over stdio or HTTP.

Each tool calls one function of Memantics, on the queues and with the limits of the service. All
tools only read. Images are data URLs, base64, or names of files in the folder ``--images``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from memantics import __version__
from memantics.core.errors import InputError, MemanticsError
from memantics.core.files import read_regular
from memantics.core.images import probe
from memantics.core.memes import SUFFIXES
from memantics.core.registry import is_inside
from memantics.evaluation import RunFolder, RunRow, compare
from memantics.moderation import MOST_TEXT, Verdict
from memantics.serve.access import AccessControl
from memantics.serve.analysis import look_at
from memantics.serve.app import GRACE, open_service
from memantics.serve.context import Service
from memantics.serve.inputs import AnalysisRecord, PunsRecord, RowsRecord
from memantics.serve.refusals import Refusal, answer_refusal
from memantics.serve.settings import ServeSettings
from memantics.understanding import MOST_CHARACTERS, CaptionLanguage, read_homophones
from memantics.web.server import listen, serve, wrap

PATH = "/mcp"
_LISTED = 1000  # images and runs in a list
_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_INSTRUCTIONS = (
    "Tools for memes: text, homophone readings, harm, knowledge and evaluation runs. Verdicts name"
    " their detector; needs_review means that a person must decide. All tools only read."
)
Given = ParamSpec("Given")
Found = TypeVar("Found")
ImageText = Annotated[
    str, Field(description="Data URL or base64 of an image, or the name of an image resource.")
]
ShortText = Annotated[str, Field(min_length=1, max_length=2000)]


class ModerationVerdicts(BaseModel):
    """One verdict per text or image, in order; ``needs_review`` counts those for a person."""

    detector: str
    needs_review: int
    verdicts: list[Verdict]


class RunListing(BaseModel):
    """The runs of the folder, the latest first."""

    runs: list[RunRow]


class MetricDifference(BaseModel):
    """One metric of both runs: the second run's value minus the first's, with its 95 % CI."""

    metric: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    test: str
    items: int
    memes: int


class RunComparison(BaseModel):
    """A comparison of two runs on the items that both scored."""

    first: str
    second: str
    task: str
    shared: int
    differences: list[MetricDifference]
    notes: list[str]


def _guard(call: Callable[Given, Awaitable[Found]]) -> Callable[Given, Awaitable[Found]]:
    """Show errors of Memantics to the agent; the text of any other error stays on the server."""

    @wraps(call)
    async def guarded(*args: Given.args, **options: Given.kwargs) -> Found:
        try:
            return await call(*args, **options)
        except Refusal as refusal:
            raise ToolError(refusal.message) from refusal
        except MemanticsError as error:
            raise ToolError(str(error)) from error

    return guarded


class AgentTools:
    """The tools and resources over the parts of a service; ``folder`` has the images to read."""

    def __init__(self, service: Service, folder: Path | None, runs: Path | None) -> None:
        self._service, self._folder = service, folder
        self._runs = None if runs is None else RunFolder(runs)

    async def analyze_meme(self, image: ImageText) -> AnalysisRecord:
        """Analyse a meme: text, roles of its lines, homophone readings, emotion and harm."""
        data = await self._take(image)
        async with self._service.deadline():
            said = await self._service.engine.work(look_at, self._service, data)
        return AnalysisRecord.model_validate(said)

    async def read_pun(
        self,
        caption: ShortText,
        description: Annotated[str | None, Field(max_length=4000)] = None,
        language: CaptionLanguage = "auto",
    ) -> PunsRecord:
        """Find homophone readings of a caption; ``description`` says what the image shows."""
        async with self._service.deadline():
            found = await self._service.engine.work(
                read_homophones, caption, description=description, language=language
            )
        return PunsRecord.model_validate(found.to_dict())

    async def moderate(
        self,
        texts: Annotated[
            list[Annotated[str, Field(max_length=MOST_TEXT)]], Field(max_length=64)
        ] = [],  # noqa: B006 - the schema shows this default; it is never changed
        images: Annotated[list[str], Field(max_length=64)] = [],  # noqa: B006
    ) -> ModerationVerdicts:
        """Classify texts and images as harmful or harmless, or send them to human review."""
        most = self._service.settings.bounds.inputs
        if not 0 < len(texts) + len(images) <= most:
            raise ToolError(f"give 1 to {most} texts and images")
        engine = self._service.engine
        data = [await self._take(image) for image in images]
        async with self._service.deadline():
            read = await engine.images.ask(data) if data else []
            ready = [one for one in read if not isinstance(one, MemanticsError)]
            said = iter(await engine.texts.ask([*texts, *ready]) if texts or ready else ())
        verdicts = [next(said) for _ in texts]
        verdicts += [
            engine.moderator.refuse(one) if isinstance(one, MemanticsError) else next(said)
            for one in read
        ]
        for verdict in verdicts:
            self._service.count(verdict)
        return ModerationVerdicts(
            detector=engine.moderator.name,
            needs_review=sum(bool(verdict.review) for verdict in verdicts),
            verdicts=verdicts,
        )

    async def query_knowledge(
        self,
        sparql: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)],
        limit: Annotated[int, Field(ge=1, le=10_000)] = 100,
    ) -> RowsRecord:
        """Query the knowledge graph with SPARQL; it is read-only and has no network access."""
        seconds = self._service.settings.bounds.deadline
        async with self._service.deadline():
            store = self._service.engine.store
            found = await self._service.engine.work(
                store.query, sparql, limit=limit, timeout=seconds
            )
        return RowsRecord.model_validate(found.to_dict())

    async def list_runs(self) -> RunListing:
        """List evaluation runs with their state and main metric."""
        runs = self._find_runs()
        async with self._service.deadline():
            rows = await self._service.engine.work(runs.list)
        return RunListing(runs=list(rows[:_LISTED]))

    async def compare_runs(self, first: str, second: str) -> RunComparison:
        """Compare two runs, named as in ``list_runs``, on the items that both scored."""
        runs = self._find_runs()
        async with self._service.deadline():
            paths = [await self._service.engine.work(runs.path, name) for name in (first, second)]
            found = await self._service.engine.work(compare, *paths)
        return RunComparison(
            first=found.first,
            second=found.second,
            task=found.task,
            shared=found.shared,
            differences=[
                MetricDifference(
                    metric=row.key,
                    p_corrected=row.corrected,
                    **{
                        name: getattr(row, name)
                        for name in MetricDifference.model_fields
                        if name not in ("metric", "p_corrected")
                    },
                )
                for row in found.differences
            ],
            notes=list(found.notes),
        )

    def list_images(self) -> list[str]:
        """List the names of the image resources, at most a thousand."""
        if self._folder is None:
            return []
        names = (path.name for path in self._folder.iterdir() if path.suffix.lower() in SUFFIXES)
        return sorted(names)[:_LISTED]

    def read_image(self, name: str) -> bytes:
        """Return the bytes of an image resource; raise InputError for any other file."""
        refusal = InputError(f"there is no image {name[:100]!r}", hint="list the resources")
        named = Path(name).name == name and Path(name).suffix.lower() in SUFFIXES
        if (
            self._folder is None
            or not named
            or not is_inside(self._folder / name, [self._folder.resolve()])
        ):
            raise refusal
        try:
            data = read_regular(self._folder / name)
        except (OSError, ValueError) as error:
            raise refusal from error
        return self._service.loader.check(data)

    async def _take(self, image: str) -> bytes:
        if len(image) < 256 and Path(image).suffix.lower() in SUFFIXES and "://" not in image:
            return await asyncio.to_thread(self.read_image, image)
        return await self._service.loader.take(image)

    def _find_runs(self) -> RunFolder:
        if self._runs is None:
            raise InputError("there is no folder of runs", hint="start with --runs FOLDER")
        return self._runs


def build_agent_server(
    service: Service, images: Path | None = None, runs: Path | None = None
) -> MCPServer:
    """Return the MCP server over a service: its tools, and the images of a folder as resources."""
    tools = AgentTools(service, images, runs)
    server = MCPServer(
        "memantics", title="Memantics", instructions=_INSTRUCTIONS, version=__version__
    )
    for tool in (
        tools.analyze_meme,
        tools.read_pun,
        tools.moderate,
        tools.query_knowledge,
        tools.list_runs,
        tools.compare_runs,
    ):
        server.tool(annotations=_READS, structured_output=True)(_guard(tool))

    @server.resource("memantics://images", mime_type="application/json")
    def images_list() -> list[str]:
        """List the names of the images that the tools can read."""
        return tools.list_images()

    @server.resource("memantics://images/{name}", mime_type="application/octet-stream")
    def image(name: str) -> bytes:
        """Return an image file."""
        try:
            data = tools.read_image(name)
            probe(data, name)
        except (MemanticsError, Refusal) as error:
            raise ResourceError(str(error)) from error
        return data

    return server


class GuardedApp:
    """The HTTP app of the server behind the tokens and rate limits of the service."""

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose token has the scope ``agents``; reject all others."""
        if scope["type"] == "http":
            try:
                self._access.admit(Request(scope), "agents")
            except Refusal as refusal:
                await answer_refusal(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def build_agent_app(settings: ServeSettings) -> tuple[Starlette, Service]:
    """Build the HTTP app of the server, with the checks and limits of the service."""
    service = open_service(settings)
    server = build_agent_server(service, settings.models.images, settings.models.runs)
    # The outer layer checks the host name, as for all pages and endpoints.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=settings.bounds.body_bytes,
        transport_security=unchecked,
    )
    app.add_middleware(GuardedApp, access=service.access)
    limits = replace(settings.limits, program_paths=(PATH,))
    wrap(app, limits, settings.reach.trusted_proxies, service.metrics.count_request)
    return app, service


def run_agents(
    settings: ServeSettings, started: Callable[[ServeSettings], None], *, http: bool
) -> None:
    """Serve agents until stopped: over HTTP, or over standard input and output."""
    with tempfile.TemporaryDirectory(prefix="memantics-mcp-") as folder:
        settings = replace(settings, state=Path(folder))
        if not http:
            service = open_service(settings)
            service.engine.warm_up()
            server = build_agent_server(service, settings.models.images, settings.models.runs)
            server.run("stdio")
            return
        with listen(settings.reach.host, settings.reach.port) as taken:
            port = int(taken.getsockname()[1])
            settings = replace(settings, reach=replace(settings.reach, port=port))
            app, service = build_agent_app(settings)
            service.engine.warm_up()
            started(settings)
            serve(app, taken, GRACE)
