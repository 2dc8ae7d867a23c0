"""Coming in with a browser: a form that asks for a token and keeps it in a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from memantics.serve.gate import COOKIE, Gate
from memantics.serve.pages import Pages
from memantics.serve.refusals import Refusal
from memantics.web.forms import SECRET_BYTES, open_form

router = APIRouter(include_in_schema=False)


def admit_reader(request: Request) -> str:
    """Who reads a page; somebody without a token is sent to the form that asks for it.

    Every router with pages is included with this as a dependency.
    """
    gate: Gate = request.app.state.gate
    try:
        return gate.admit(request, "pages")
    except Refusal as refusal:
        if refusal.status != 401 or request.method != "GET":
            raise
        raise Refusal(303, "login", "a token is needed", {"location": "/login"}) from refusal


@router.get("/login")
def show_login(request: Request) -> Response:
    """The form that asks for a token."""
    if not request.app.state.gate.guarded:
        return RedirectResponse("/", 303)
    return _show(request, 200, wrong=False)


def _show(request: Request, status: int, *, wrong: bool) -> Response:
    pages: Pages = request.app.state.pages
    return pages.show(request, "login.html", {"wrong": wrong}, status)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Keep a known token in a cookie that scripts cannot read."""
    gate: Gate = request.app.state.gate
    gate.check_site(request)
    async with open_form(request, files=0, fields=10, field_bytes=SECRET_BYTES) as form:
        given = str(form.get("token", "")).strip()
    if gate.find(given) is None:
        return _show(request, 401, wrong=True)
    response = RedirectResponse("/", 303)
    secure = request.app.state.settings.reach.public_url.startswith("https://")
    response.set_cookie(COOKIE, given, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout")
def log_out(request: Request) -> Response:
    """Forget the token."""
    request.app.state.gate.check_site(request)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response
