"""Pages for login, login links, invitations and personal settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import ValidationError
from starlette.responses import Response

from memantics.annotation.errors import AnswerError, LoginFailed, TokenInvalid, TooManyAttempts
from memantics.annotation.records import Preferences
from memantics.annotation.web.asking import PageRequest, Routes, own_path
from memantics.annotation.web.pages import say_problem
from memantics.web.logs import note
from memantics.web.phrases import PageLanguage
from memantics.web.site import LANGUAGES, NAMES

routes = Routes()
LONGEST_PASSWORD = 1000


@routes.get("/login", public=True)
def show_login(ask: PageRequest, status: int = 200, error: str = "") -> Response:
    """Show the login form; redirect people who are logged in."""
    if ask.found is not None and not error:
        return ask.go("/")
    following = own_path(ask.text("next") or ask.query("next"))
    name = ask.text("name", 200)
    return ask.page("login.html", status, name=name, error=error, next=following)


@routes.post("/login", public=True)
def log_in(ask: PageRequest) -> Response:
    """Check name and password; too many failures lead to a waiting time."""
    name, password = ask.text("name", 200), _password(ask, "password")
    address = ask.request.client.host if ask.request.client else ""
    try:
        session = ask.service.accounts.log_in(name, password, address)
    except TooManyAttempts as error:
        note("login throttled", address=address)
        response = show_login(ask, 429, _say_wait(ask, error))
        response.headers["retry-after"] = str(int(error.wait) + 1)
        return response
    except LoginFailed:
        note("login failed", address=address)
        return show_login(ask, 401, ask.words("login.wrong"))
    note("login", person=session.actor.id)
    return ask.let_in(session, own_path(ask.text("next")))


def _say_wait(ask: PageRequest, error: TooManyAttempts) -> str:
    return ask.words("login.wait", minutes=int(error.wait // 60) + 1)


def _password(ask: PageRequest, name: str) -> str:
    return ask.secret(name, LONGEST_PASSWORD)


@routes.post("/logout", public=True)
def log_out(ask: PageRequest) -> Response:
    """End the session in the browser and in the database."""
    if ask.session:
        ask.service.accounts.log_out(ask.session)
    response = ask.go("/login", "out")
    ask.drop_cookie(response, ask.client.session_cookie)
    return response


@routes.get("/enter/{ticket}", public=True)
def enter(ask: PageRequest) -> Response:
    """Open a session with a login link from the terminal; the link works once."""
    if ask.found is not None:
        # This browser is already logged in, so a used link continues to the page.
        return ask.go(own_path(ask.query("next")))
    session = ask.service.accounts.enter(ask.request.path_params["ticket"])
    chosen = ask.service.accounts.preferences(session.actor)
    if chosen == Preferences() and ask.words.language != chosen.language:
        # New accounts start with the language of the browser.
        fitting = Preferences(language=ask.words.language)
        ask.service.accounts.set_preferences(session.actor, fitting)
    return ask.let_in(session, own_path(ask.query("next")))


@routes.get("/join/{invitation}", public=True)
def show_invitation(
    ask: PageRequest, status: int = 200, errors: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """Show an invitation and the form to accept it."""
    offered = ask.service.accounts.invitation(ask.request.path_params["invitation"])
    if offered.used:
        raise TokenInvalid("invitation")
    return ask.page("join.html", status, offered=offered, errors=errors, name=ask.text("name", 200))


@routes.post("/join/{invitation}", public=True)
def accept(ask: PageRequest) -> Response:
    """Accept an invitation with the current account or a new one."""
    token = ask.request.path_params["invitation"]
    if ask.found is not None:
        project = ask.service.accounts.accept_as(ask.found, token)
        return ask.go(f"/p/{project}")
    if _password(ask, "password") != _password(ask, "again"):
        return show_invitation(ask, 422, {"again": ask.words("join.differ")})
    offered = ask.service.accounts.invitation(token)
    try:
        session = ask.service.accounts.accept(
            token, ask.text("name", 200), _password(ask, "password")
        )
    except AnswerError as error:
        return show_invitation(ask, 422, error.problems)
    ask.service.accounts.set_preferences(session.actor, Preferences(language=ask.words.language))
    return ask.let_in(session, f"/p/{offered.project}")


@routes.get("/settings")
def show_settings(
    ask: PageRequest, status: int = 200, errors: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """Show the personal settings."""
    said = {name: say_problem(text, ask.words) for name, text in errors.items()}
    return ask.page("settings.html", status, errors=said, languages=NAMES, here="settings")


@routes.post("/settings")
def save_settings(ask: PageRequest) -> Response:
    """Save the personal settings."""
    minutes = ask.text("break_minutes", 6)
    try:
        chosen = Preferences(
            language=_language(ask),
            blur=ask.text("blur") == "on",
            grey=ask.text("grey") == "on",
            daily_limit=ask.count("daily_limit"),
            break_minutes=int(minutes) if minutes.isascii() and minutes.isdigit() else None,
        )
    except ValidationError:
        return show_settings(ask, 422, {"limits": ask.words("settings.range")})
    ask.service.accounts.set_preferences(ask.actor, chosen)
    return ask.go("/settings", "kept")


def _language(ask: PageRequest) -> PageLanguage:
    wanted = ask.text("language")
    return next((known for known in LANGUAGES if known == wanted), ask.words.language)


@routes.post("/settings/language")
def switch_language(ask: PageRequest) -> Response:
    """Change the interface language from any page."""
    before = ask.service.accounts.preferences(ask.actor)
    ask.service.accounts.set_preferences(
        ask.actor, before.model_copy(update={"language": _language(ask)})
    )
    return ask.go(own_path(ask.text("back")))


@routes.post("/settings/password")
def change_password(ask: PageRequest) -> Response:
    """Change the password and end all other sessions."""
    new = _password(ask, "new")
    if new != _password(ask, "again"):
        return show_settings(ask, 422, {"again": ask.words("join.differ")})
    try:
        session = ask.service.accounts.change_password(ask.actor, _password(ask, "old"), new)
    except TooManyAttempts as error:
        return show_settings(ask, 429, {"old": _say_wait(ask, error)})
    except LoginFailed:
        return show_settings(ask, 422, {"old": ask.words("settings.wrong")})
    except AnswerError as error:
        return show_settings(ask, 422, error.problems)
    return ask.let_in(session, "/settings?done=password")
