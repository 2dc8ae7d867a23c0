"""Request handling of the annotation pages: session, form check, handler, errors, working time.

Every route is a function from a :class:`PageRequest` to a response. For each request, the session
is looked up first, then the origin of the form is checked, then the function runs. Input that the
data layer rejects becomes an error page. The request body is read before the function runs, and
database work runs in a thread.
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
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from sqlalchemy.exc import DBAPIError
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import FormData, UploadFile
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
from memantics.web.budget import FORM_BYTES, SMALL_BYTES
from memantics.web.logs import note_failure
from memantics.web.shell import open_form, read_form
from memantics.web.site import Catalogue, choose_language

REST = 300.0
PEOPLE = 10_000
MAX_FIELDS = 2000
LONGEST = 2000  # default limit of a form field, in characters
MAX_FILES = 200
WORKERS = 16
MOST = 2**31 - 1
HttpMethod = Literal["GET", "POST"]


@dataclass(slots=True)
class Pauses:
    """Remembers since when each person has worked without a break of five minutes.

    >>> pauses = Pauses()
    >>> [pauses.see(1, at, 10) for at in (0.0, 200.0, 400.0, 620.0, 1000.0)]
    [False, False, False, True, False]
    """

    _spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, person: int, now: float, minutes: int) -> bool:
        """Record that a person looks at an item; return whether a break is due."""
        with self._lock:
            since, last = self._spans.pop(person, (now, now))
            if now - last >= REST:
                since = now
            while len(self._spans) >= PEOPLE:
                del self._spans[next(iter(self._spans))]
            self._spans[person] = (since, now)
        return minutes > 0 and now - since >= minutes * 60

    def rest(self, person: int) -> None:
        """Restart the count after a break or a reminder."""
        with self._lock:
            self._spans.pop(person, None)


@dataclass(slots=True)
class AppContext:
    """Objects that all requests share."""

    service: AnnotationService
    settings: WebSettings
    pauses: Pauses = field(default_factory=Pauses)
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(WORKERS, thread_name_prefix="annotate")
    )

    @property
    def session_cookie(self) -> str:
        """Return the name of the session cookie; over https no other host can set it.

        Cookies ignore ports, so two apps on one machine need two names.
        """
        if self.settings.secure:
            return "__Host-memantics"
        usual = self.settings.port == PORT
        return "memantics" if usual else f"memantics-{self.settings.port}"

    @property
    def guest_cookie(self) -> str:
        """Return the name of the cookie that protects forms before login."""
        return f"{self.session_cookie}-guest"


class PageRequest:
    """One request, with the helpers that every page needs."""

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
        """Return the logged-in account; private routes always have one."""
        if self.found is None:
            raise Forbidden
        return self.found

    def recognise(self) -> None:
        """Find the account of the request's session, if any."""
        if self.session:
            try:
                self.found = self.service.accounts.actor_of(self.session)
            except TokenInvalid:
                self.session = ""

    @cached_property
    def preferences(self) -> Preferences | None:
        """Return the person's settings, or None before login."""
        return self.service.accounts.preferences(self.found) if self.found else None

    @cached_property
    def words(self) -> Catalogue:
        """Return the interface texts in the language of the person, or of the browser."""
        asked = self.request.query_params.get("lang", "")
        chosen = self.preferences.language if self.preferences else asked
        accepted = self.request.headers.get("accept-language", "")
        return SITE.words(choose_language(chosen, accepted))

    @property
    def seed(self) -> str:
        """Return the seed of form tokens: the session, or the guest cookie."""
        return self.session or self.guest

    @property
    def wants_json(self) -> bool:
        """Return whether the request comes from the page's script."""
        return self.request.headers.get("accept", "").startswith("application/json")

    def query(self, name: str) -> str:
        """Return a query parameter."""
        return bound(name, self.request.query_params.get(name, ""), LONGEST)

    def place(self, name: str) -> int:
        """Return a number from the URL path; raise Forbidden if it is out of range."""
        value = int(self.request.path_params[name])
        if value > MOST:
            raise Forbidden
        return value

    def text(self, name: str, longest: int = LONGEST) -> str:
        """Return a trimmed form field; empty if absent, an error if too long."""
        return bound(name, self.secret(name, FORM_BYTES).replace("\0", "").strip(), longest)

    def secret(self, name: str, longest: int) -> str:
        """Return a form field unchanged, such as a password."""
        value = self.form.get(name, "")
        return bound(name, value, longest) if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """Return an integer of the form or query, or None."""
        value = self.text(name) or self.query(name)
        known = value.isascii() and value.isdigit() and len(value) <= len(str(MOST))
        return int(value) if known and int(value) <= MOST else None

    def count(self, name: str, default: int = 0) -> int:
        """Return an integer of the form or query, or the default."""
        value = self.number(name)
        return default if value is None else value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return all form fields with this name."""
        return tuple(value for value in self.form.getlist(name) if isinstance(value, str))

    def uploads(self, name: str) -> tuple[UploadFile, ...]:
        """Return all uploaded files with this name."""
        return tuple(
            value
            for value in self.form.getlist(name)
            if isinstance(value, UploadFile) and value.filename
        )

    def page(self, template: str, status: int = 200, **context: object) -> Response:
        """Render a page with the values that all pages need."""
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
        """Return the project that the URL path names; raise Forbidden for non-members."""
        return self.service.projects.get(self.actor, self.place("project"))

    def project_page(
        self, template: str, here: str, status: int = 200, **context: object
    ) -> Response:
        """Render a page of the project that the URL names; ``here`` is the active menu entry."""
        return self.page(template, status, project=self.project, here=here, **context)

    def _flash(self) -> str:
        key = f"flash.{self.request.query_params.get('done', '')}"
        return self.words.messages.get(key, "")

    def go(self, path: str, done: str = "") -> Response:
        """Redirect to another page of the app."""
        mark = "&" if "?" in path else "?"
        return RedirectResponse(f"{path}{mark}done={done}" if done else path, 303)

    def let_in(self, session: Session, path: str) -> Response:
        """Start a new session and replace any earlier session cookie."""
        response = self.go(path)
        self._set_cookie(response, self.client.session_cookie, session.token, session.expires)
        self.drop_cookie(response, self.client.guest_cookie)
        return response

    def drop_cookie(self, response: Response, name: str) -> None:
        """Delete a cookie with the attributes it was set with."""
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
# A type variable, since some handlers are also called with more arguments.
P = TypeVar("P", bound=Handler)
Refuse = Callable[[PageRequest, Exception], Response]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One route. ``public`` routes need no session; ``upload`` routes accept files of leads."""

    method: HttpMethod
    path: str
    handler: Handler
    public: bool = False
    upload: bool = False


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes of one module."""

    entries: list[PageRoute] = field(default_factory=list)

    def get(self, path: str, *, public: bool = False) -> Callable[[P], P]:
        """Register a page."""
        return self._add("GET", path, public, False)

    def post(self, path: str, *, public: bool = False, upload: bool = False) -> Callable[[P], P]:
        """Register a form action."""
        return self._add("POST", path, public, upload)

    def _add(self, method: HttpMethod, path: str, public: bool, upload: bool) -> Callable[[P], P]:
        def add(handler: P) -> P:
            self.entries.append(PageRoute(method, path, handler, public, upload))
            return handler

        return add


def install(app: FastAPI, client: AppContext, route: PageRoute, refuse: Refuse) -> None:
    """Add one route to the app."""

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

        if route.upload or (not route.public and _is_long(request)):
            # Long requests without a session, and files of others than leads, are rejected before
            # they are read.
            refused = await answer(FormData(), only_check=True)
            if refused.status_code != 204:
                return refused
        if route.upload:
            async with open_form(request, files=MAX_FILES, fields=MAX_FIELDS) as form:
                return await answer(form)
        return await answer(
            await read_form(request, MAX_FIELDS) if route.method == "POST" else FormData()
        )

    # add_route avoids the overhead of FastAPI's dependency injection.
    path = route.path.replace(":int}", ":number}")
    app.add_route(path, endpoint, [route.method], route.handler.__name__)


class PathNumber(IntegerConvertor):
    """A number in a URL path; Starlette's own fails for one of more than 4,300 digits."""

    regex = "[0-9]{1,1000}"


register_url_convertor("number", PathNumber())


def _is_long(request: Request) -> bool:
    size = request.headers.get("content-length", "")
    return request.method == "POST" and not (size.isdecimal() and int(size[:9]) <= SMALL_BYTES)


def _serve(route: PageRoute, ask: PageRequest, refuse: Refuse, only_check: bool) -> Response:
    try:
        ask.recognise()
        if ask.found is None and not route.public:
            return _send_to_login(ask, route)
        if only_check:
            if route.upload:
                ask.service.exchange.check_upload(ask.actor, ask.place("project"))
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
        ask.found = None  # the error page must not query the failing database
        return refuse(ask, error)


class ForgedForm(AnnotateError):
    """A post without a valid form token, or with an expired one."""

    def __init__(self) -> None:
        super().__init__("the form has expired", hint="go back, reload the page and submit again")


def _send_to_login(ask: PageRequest, route: PageRoute) -> Response:
    if ask.wants_json or ask.request.url.path.startswith("/media/"):
        return Response(status_code=401)
    here = ask.request.url.path
    if route.method == "POST":
        # After login, the item page opens with its draft.
        back = here if here.startswith("/work/") and here.count("/") == 2 else "/"
        return ask.page("login.html", 401, name="", error=ask.words("login.expired"), next=back)
    return ask.go("/login" if here == "/" else f"/login?next={quote(here)}")


def own_path(given: str) -> str:
    """Return a path of this app for redirects; other URLs become the start page.

    >>> own_path("/p/3/next"), own_path("//evil.example"), own_path("https://evil.example/x")
    ('/p/3/next', '/', '/')
    >>> own_path("//[")
    '/'
    """
    try:
        parts = urlsplit(given)
    except ValueError:  # an unfinished IPv6 address
        return "/"
    safe = given.startswith("/") and not given.startswith(("//", "/\\"))
    clean = given.isascii() and given.isprintable() and "\\" not in given
    return given if safe and clean and not parts.netloc and not parts.scheme else "/"
