"""Rendering of the studio and browse pages: layout, language choice, content security policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from memantics.core.errors import ImageError, MemanticsError
from memantics.web.phrases import read_phrases
from memantics.web.site import LANGUAGES, Catalogue, Site, choose_language

COOKIE = "memantics-language"
# Images are shown from memory (blob:) and from responses (data:); no text is parsed as markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@dataclass(frozen=True, slots=True)
class Pages:
    """Renders pages; ``tabs`` are the names and URLs in the page header."""

    site: Site
    tabs: tuple[tuple[str, str], ...]

    def words(self, request: Request) -> Catalogue:
        """Return the messages in the chosen language, else in the browser's."""
        chosen = request.query_params.get("lang") or request.cookies.get(COOKIE, "")
        return self.site.words(choose_language(chosen, request.headers.get("accept-language", "")))

    def show(
        self, request: Request, template: str, context: Mapping[str, object], status: int = 200
    ) -> Response:
        """Render a page; a language that the user chose with ``?lang=`` is remembered."""
        words = self.words(request)
        other = "en" if words.language == "zh" else "zh"
        shown = {
            "t": words,
            "say": read_phrases(words.language).say,
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
        """Render an error page with the problem and the next step."""
        return self.show(request, "refused.html", {"error": error}, status)


def describe(error: MemanticsError) -> dict[str, object]:
    """Return an error's message and hint; ``code`` is the reason of a rejected image."""
    code = error.reason if isinstance(error, ImageError) else ""
    return {"error": {"message": error.what, "hint": error.hint, "code": code}}
