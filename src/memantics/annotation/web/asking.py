"""Request handling of the annotation pages: session, form check, handler, errors, working time.

Every route is a function from a :class:`PageRequest` to a response. For each request, the session
is looked up first, then the origin of the form is checked, then the function runs. Input that the
data layer rejects becomes an error page. Bodies are read before, and database work runs in a
thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import FastAPI, Request
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from memantics.annotation.errors import AnnotateError, Forbidden, TokenInvalid
from memantics.annotation.records import Actor, Preferences, Project, Session
from memantics.annotation.service import AnnotationService
from memantics.annotation.web.fields import bound
from memantics.annotation.web.pages import SITE
from memantics.annotation.web.settings import (
    PORT,
    WebSettings,
    is_own_form,
    make_form_token,
    make_seed,
)
from memantics.core.errors import StoreError
from memantics.web.logs import note_failure
from memantics.web.shell import FORM_BYTES, open_form
from memantics.web.site import Catalogue, choose_language

REST = 300.0
PEOPLE = 10_000
MAX_FIELDS = 2000
LONGEST = 2000  # characters of a field that says nothing else
MAX_FILES = 200
WORKERS = 16
MOST = 2**31 - 1
HttpMethod = Literal["GET", "POST"]


@dataclass(slots=True)
class Pauses:
    """Remembers since when each person has worked without a rest of five minutes.

    >>> pauses = Pauses()
    >>> [pauses.see(1, at, 10) for at in (0.0, 200.0, 400.0, 620.0, 1000.0)]
    [False, False, False, True, False]
    """

    _spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, person: int, now: float, minutes: int) -> bool:
        """Note that a person looks at an item; say whether a break is due."""
        with self._lock:
            since, last = self._spans.pop(person, (now, now))
            if now - last >= REST:
                since = now
            while len(self._spans) >= PEOPLE:
                del self._spans[next(iter(self._spans))]
            self._spans[person] = (since, now)
        return minutes > 0 and now - since >= minutes * 60

    def rest(self, person: int) -> None:
        """The person was told, or took a break: count anew."""
        with self._lock:
            self._spans.pop(person, None)


@dataclass(slots=True)
class AppContext:
    """What all requests share."""

    service: AnnotationService
    settings: WebSettings
    pauses: Pauses = field(default_factory=Pauses)
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(WORKERS, thread_name_prefix="annotate")
    )

    @property
    def session_cookie(self) -> str:
        """The name of the session's cookie; over https no other host can set it.

        Cookies do not know ports: two apps on one machine need two names.
        """
        if self.settings.secure:
            return "__Host-memantics"
        usual = self.settings.port == PORT
        return "memantics" if usual else f"memantics-{self.settings.port}"

    @property
    def guest_cookie(self) -> str:
        """The name of the cookie behind forms of people who are not logged in."""
        return f"{self.session_cookie}-guest"


class PageRequest:
    """One request, with what every page needs."""

    def __init__(self, request: Request, client: AppContext, form: FormData) -> None:
        self.request = request
        self.client = client
        self.service = client.service
        self.form = form
        self.session = request.cookies.get(client.session_cookie, "")
        self.guest = request.cookies.get(client.guest_cookie, "")
        self.found: Actor | None = None
        self.began = time.time()

    @property
    def actor(self) -> Actor:
        """Who asks; routes that are not open always have one."""
        if self.found is None:
            raise Forbidden
        return self.found

    def recognise(self) -> None:
        """Find out who asks, where a session says so."""
        if self.session:
            try:
                self.found = self.service.accounts.actor_of(self.session)
            except TokenInvalid:
                self.session = ""

    @cached_property
    def preferences(self) -> Preferences | None:
        """The choices of the person; None for someone unknown."""
        return self.service.accounts.preferences(self.found) if self.found else None

    @cached_property
    def words(self) -> Catalogue:
        """The interface in the language of the person, else of the browser."""
        asked = self.request.query_params.get("lang", "")
        chosen = self.preferences.language if self.preferences else asked
        accepted = self.request.headers.get("accept-language", "")
        return SITE.words(choose_language(chosen, accepted))

    @property
    def seed(self) -> str:
        """What form tokens are made from: the session, or a cookie of someone unknown."""
        return self.session or self.guest

    @property
    def wants_json(self) -> bool:
        """Whether our script asks, not a person's browser."""
        return self.request.headers.get("accept", "").startswith("application/json")

    def query(self, name: str) -> str:
        """A value behind the question mark."""
        return bound(name, self.request.query_params.get(name, ""), LONGEST)

    def place(self, name: str) -> int:
        """A number in the path; one that no database counts up to names nothing."""
        value = int(self.request.path_params[name])
        if value > MOST:
            raise Forbidden
        return value

    def text(self, name: str, longest: int = LONGEST) -> str:
        """A text of the form, trimmed; absent ones are empty, longer ones are refused."""
        return bound(name, self.secret(name, FORM_BYTES).replace("\0", "").strip(), longest)

    def secret(self, name: str, longest: int) -> str:
        """A text of the form as it is, such as a password."""
        value = self.form.get(name, "")
        return bound(name, value, longest) if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """A whole number of the form or the query; None for anything else."""
        value = self.text(name) or self.query(name)
        known = value.isascii() and value.isdigit() and len(value) <= len(str(MOST))
        return int(value) if known and int(value) <= MOST else None

    def count(self, name: str, default: int = 0) -> int:
        """A whole number of the form or the query; anything else is the default."""
        value = self.number(name)
        return default if value is None else value

    def texts(self, name: str) -> tuple[str, ...]:
        """All texts of that name."""
        return tuple(value for value in self.form.getlist(name) if isinstance(value, str))

    def uploads(self, name: str) -> tuple[UploadFile, ...]:
        """All files of that name."""
        return tuple(
            value
            for value in self.form.getlist(name)
            if isinstance(value, UploadFile) and value.filename
        )

    def page(self, template: str, status: int = 200, **context: object) -> Response:
        """Render a page with what all pages show."""
        if not self.seed:
            self.guest = make_seed()
        shared: dict[str, object] = {
            "t": self.words,
            "actor": self.found,
            "preferences": self.preferences,
            "token": make_form_token(self.client.settings.secret, self.seed),
            "contact": self.client.settings.contact,
            "demo": self.client.settings.demo,
            "flash": self._flash(),
            "path": self.request.url.path,
            "project": None,
            "here": "",
        }
        project = context.get("project")
        if isinstance(project, Project):
            stages = project.workflow.stages
            shared["titles"] = {stage.id: stage.title.say(self.words.language) for stage in stages}
        response = SITE.render(template, shared | context, status)
        if not self.session and self.request.cookies.get(self.client.guest_cookie) != self.guest:
            self._set_cookie(response, self.client.guest_cookie, self.guest)
        return response

    @cached_property
    def project(self) -> Project:
        """The project in the path; who is no member of it is refused."""
        return self.service.projects.get(self.actor, self.place("project"))

    def project_page(
        self, template: str, here: str, status: int = 200, **context: object
    ) -> Response:
        """A page of the project in the path; ``here`` is its place in the menu."""
        return self.page(template, status, project=self.project, here=here, **context)

    def _flash(self) -> str:
        key = f"flash.{self.request.query_params.get('done', '')}"
        return self.words.messages.get(key, "")

    def go(self, path: str, done: str = "") -> Response:
        """Send the browser to another page of ours."""
        mark = "&" if "?" in path else "?"
        return RedirectResponse(f"{path}{mark}done={done}" if done else path, 303)

    def let_in(self, session: Session, path: str) -> Response:
        """Start a new session: whatever cookie was there before opens nothing any more."""
        response = self.go(path)
        self._set_cookie(response, self.client.session_cookie, session.token, session.expires)
        self.drop_cookie(response, self.client.guest_cookie)
        return response

    def drop_cookie(self, response: Response, name: str) -> None:
        """Take a cookie back, in the terms in which it was given."""
        secure = self.client.settings.secure
        response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")

    def _set_cookie(
        self, response: Response, name: str, value: str, expires: float | None = None
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=None if expires is None else max(0, int(expires - time.time())),
            path="/",
            secure=self.client.settings.secure,
            httponly=True,
            samesite="lax",
        )


Handler = Callable[[PageRequest], Response]
P = TypeVar("P", bound=Handler)  # a handler that other handlers may call with more
Refuse = Callable[[PageRequest, Exception], Response]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One page. ``public`` ones need no session; ``upload`` ones take files."""

    method: HttpMethod
    path: str
    handler: Handler
    public: bool = False
    upload: bool = False


@dataclass(frozen=True, slots=True)
class Routes:
    """The pages of one module."""

    entries: list[PageRoute] = field(default_factory=list)

    def get(self, path: str, *, public: bool = False) -> Callable[[P], P]:
        """Declare a page."""
        return self._add("GET", path, public, False)

    def post(self, path: str, *, public: bool = False, upload: bool = False) -> Callable[[P], P]:
        """Declare what a form does."""
        return self._add("POST", path, public, upload)

    def _add(self, method: HttpMethod, path: str, public: bool, upload: bool) -> Callable[[P], P]:
        def add(handler: P) -> P:
            self.entries.append(PageRoute(method, path, handler, public, upload))
            return handler

        return add


def install(app: FastAPI, client: AppContext, route: PageRoute, refuse: Refuse) -> None:
    """Put one route into the app."""

    async def endpoint(request: Request) -> Response:
        async def answer(form: FormData, *, only_check: bool = False) -> Response:
            return await asyncio.get_running_loop().run_in_executor(
                client.threads,
                _serve,
                route,
                PageRequest(request, client, form),
                refuse,
                only_check,
            )

        if route.upload:
            # Files of strangers are not even read.
            refused = await answer(FormData(), only_check=True)
            if refused.status_code != 204:
                return refused
            async with open_form(request, files=MAX_FILES, fields=MAX_FIELDS) as form:
                return await answer(form)
        return await answer(
            read_fields(await request.body()) if route.method == "POST" else FormData()
        )

    # A plain route: nothing of a request is injected here, so nothing need be looked up.
    app.add_route(route.path, endpoint, [route.method], route.handler.__name__)


def read_fields(body: bytes) -> FormData:
    """The fields of a form without files; too many are refused.

    >>> read_fields(b"name=ann&note=a+b%21&empty=").multi_items()
    [('name', 'ann'), ('note', 'a b!'), ('empty', '')]
    """
    try:
        text = body.decode("ascii", "replace")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(413, f"a form has at most {MAX_FIELDS:,} fields") from None
    return FormData(list[tuple[str, str | UploadFile]](pairs))


def _serve(route: PageRoute, ask: PageRequest, refuse: Refuse, only_check: bool) -> Response:
    try:
        ask.recognise()
        if ask.found is None and not route.public:
            return _send_to_login(ask, route)
        if only_check:
            return Response(status_code=204)
        if route.method == "POST" and not is_own_form(
            ask.request, ask.client.settings, ask.seed, ask.text("token", 200)
        ):
            return refuse(ask, ForgedForm())
        return route.handler(ask)
    except AnnotateError as error:
        return refuse(ask, error)
    except (StoreError, DBAPIError) as error:
        note_failure("database", error, request=ask.request.state.request_id)
        ask.found = None  # the page about it must not ask the database who this is
        return refuse(ask, error)


class ForgedForm(AnnotateError):
    """A post that did not come from a form of ours, or from one that is too old."""

    def __init__(self) -> None:
        super().__init__("this form is not valid here", hint="go back, reload, send it again")


def _send_to_login(ask: PageRequest, route: PageRoute) -> Response:
    if ask.wants_json or ask.request.url.path.startswith("/media/"):
        return Response(status_code=401)
    here = ask.request.url.path
    if route.method == "POST":
        # After the login, the page that was answered comes back with its draft.
        back = here if here.startswith("/work/") and here.count("/") == 2 else "/"
        return ask.page("login.html", 401, name="", error=ask.words("login.expired"), next=back)
    return ask.go("/login" if here == "/" else f"/login?next={quote(here)}")


def own_path(given: str) -> str:
    """A path of ours to go to after login; anything that leads elsewhere becomes the start.

    >>> own_path("/p/3/next"), own_path("//evil.example"), own_path("https://evil.example/x")
    ('/p/3/next', '/', '/')
    """
    parts = urlsplit(given)
    safe = given.startswith("/") and not given.startswith(("//", "/\\"))
    clean = given.isascii() and given.isprintable() and "\\" not in given
    return given if safe and clean and not parts.netloc and not parts.scheme else "/"
