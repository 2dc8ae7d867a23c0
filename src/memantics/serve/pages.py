"""Pages for people: one frame, one choice of language, one policy, for the studio and browsing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from memantics.core.errors import ImageError, MemanticsError
from memantics.web.site import LANGUAGES, Catalogue, Site, choose_language

COOKIE = "memantics-language"
# Pictures are shown from memory (blob:) and from answers (data:); nothing becomes markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@dataclass(frozen=True, slots=True)
class Pages:
    """What pages are made of; ``tabs`` are the names and addresses in their head."""

    site: Site
    tabs: tuple[tuple[str, str], ...]

    def words(self, request: Request) -> Catalogue:
        """The words in the language that the person chose, else in the browser's."""
        chosen = request.query_params.get("lang") or request.cookies.get(COOKIE, "")
        return self.site.words(choose_language(chosen, request.headers.get("accept-language", "")))

    def show(
        self, request: Request, template: str, context: Mapping[str, object], status: int = 200
    ) -> Response:
        """A page; a language chosen by ``?lang=`` is remembered."""
        words = self.words(request)
        other = "en" if words.language == "zh" else "zh"
        shown = {
            "t": words,
            "tabs": self.tabs,
            "here": request.url.path,
            "other": other,
            "switch": str(request.url.include_query_params(lang=other).query),
        }
        response = self.site.render(template, {**shown, **context}, status)
        response.headers["content-security-policy"] = POLICY
        if request.query_params.get("lang") in LANGUAGES:
            response.set_cookie(
                COOKIE, words.language, max_age=31_536_000, samesite="lax", httponly=True
            )
        return response

    def refuse(self, request: Request, error: MemanticsError, status: int = 404) -> Response:
        """What went wrong and what to do next, as a page."""
        return self.show(request, "refused.html", {"error": error}, status)


def describe(error: MemanticsError) -> dict[str, object]:
    """What went wrong and what to do next; ``code`` is the reason of a refused image."""
    code = error.reason if isinstance(error, ImageError) else ""
    return {"error": {"message": error.what, "hint": error.hint, "code": code}}
