"""Hash, lookup and bank endpoints of Meta's hasher-matcher-actioner, over the match list.

The match list of the first detector is two banks: ``HARMFUL`` and ``HARMLESS``. A lookup of an
image reads its text, so that another meme on the same template is not a match; a lookup of a hash
cannot. Banks are read-only unless the operator allows changes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from pydantic import RootModel
from starlette.datastructures import UploadFile
from starlette.responses import Response

from memantics.core.errors import MemanticsError
from memantics.core.images import MIME, probe
from memantics.moderation import (
    MatchEntry,
    MatchLabel,
    SignalMatch,
    add_signals,
    add_to_match_list,
    hash_meme,
    look_up_signals,
    read_match_list,
    remove_from_match_list,
)
from memantics.serve.analysis import answer
from memantics.serve.context import Service, find_service
from memantics.serve.inputs import read_json
from memantics.serve.refusals import Refusal
from memantics.web.shell import open_form

PREFIXES = ("/h/", "/m/", "/c/")
_BANKS: Final[dict[str, MatchLabel]] = {"HARMFUL": "harmful", "HARMLESS": "harmless"}
_PHOTO = "photo"
# Other services know the same interface, so its description is that of the original program.
router = APIRouter(include_in_schema=False)


class Signals(RootModel[dict[str, str]]):
    """Hashes by type."""


@router.get("/h/hash")
@router.post("/h/hash")
async def hash_photo(request: Request) -> Response:
    """Return the hashes of an image, by type."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    data = await _take_photo(request, service)
    async with service.deadline():
        return answer(await service.engine.work(hash_meme, data))


@router.get("/m/lookup")
async def look_up_hash(request: Request) -> Response:
    """Return the entries near a hash, by bank."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    found = await _look_up(request, service)
    return answer(_show_banks([one for one in found if one.match]))


@router.get("/m/raw_lookup")
async def look_up_raw(request: Request) -> Response:
    """Return the ids of the entries near a hash."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    found = [one for one in await _look_up(request, service) if one.match]
    if request.query_params.get("include_distance", "").lower() not in ("1", "true"):
        return answer({"matches": [number_entry(one.entry) for one in found]})
    shown = [
        {"content_id": number_entry(one.entry), "distance": str(one.distance)} for one in found
    ]
    return answer({"matches": shown})


async def _look_up(request: Request, service: Service) -> list[SignalMatch]:
    given = request.query_params
    if not given.get("signal_type") or not given.get("signal"):
        raise Refusal(400, "invalid_request", "the request needs signal_type and signal")
    signals = {given["signal_type"]: given["signal"]}
    async with service.deadline():
        return await service.engine.work(
            look_up_signals, _find_list(service), signals, given.get("text")
        )


@router.post("/m/lookup")
async def look_up_photo(request: Request) -> Response:
    """Return the entries near an image by hash type and bank.

    With ``templates=true``, the key ``template`` has other memes on the same template.
    """
    service = find_service(request)
    service.access.admit(request, "moderate")
    detector = _find_list(service)
    data = await _take_photo(request, service)
    async with service.deadline():
        (read,) = await service.engine.images.ask([data])
        if isinstance(read, MemanticsError):
            raise read
        signals = await service.engine.work(hash_meme, data)
        found = await service.engine.work(
            look_up_signals, detector, signals, read.example.text or None
        )
    shown: dict[str, dict[str, list[dict[str, object]]]] = {
        kind: _show_banks([one for one in found if one.match and one.signal_type == kind])
        for kind in signals
    }
    if request.query_params.get("templates", "").lower() in ("1", "true"):
        others = {one.entry.id: one for one in reversed(found) if not one.match}
        shown["template"] = _show_banks([*others.values()])
    return answer(shown)


@router.get("/c/banks")
async def list_banks(request: Request) -> Response:
    """List the banks."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    known = [] if service.engine.detector.path is None else list(_BANKS)
    return answer([{"name": name, "matching_enabled_ratio": 1.0} for name in known])


@router.get("/c/bank/{name}")
async def show_bank(request: Request, name: str) -> Response:
    """Return a bank."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    _find_list(service, name)
    return answer({"name": name, "matching_enabled_ratio": 1.0})


@router.get("/c/signal_type")
async def list_signal_types(request: Request) -> Response:
    """List the types of hashes."""
    find_service(request).access.admit(request, "moderate")
    return answer([{"name": name, "enabled_ratio": 1.0} for name in ("pdq", "phash", "sha256")])


@router.post("/c/bank/{name}/content")
async def add_photo(request: Request, name: str) -> Response:
    """Add an image to a bank, with all its hashes and its text."""
    service = find_service(request)
    detector = _admit_writer(request, service, name)
    data = await _take_photo(request, service)
    async with service.deadline():
        made = await service.engine.work(_add_photo, detector, data, _BANKS[name])
    return answer(_show_added(made))


def _add_photo(detector: Path, data: bytes, label: MatchLabel) -> MatchEntry:
    with tempfile.TemporaryDirectory(prefix="memantics-") as folder:
        path = Path(folder) / f"meme.{MIME[probe(data, 'upload').format].partition('/')[2]}"
        path.write_bytes(data)
        (made,) = add_to_match_list(detector, [str(path)], label=label)
    return made


@router.post("/c/bank/{name}/signal")
async def add_hashes(request: Request, name: str) -> Response:
    """Add the hashes of one image to a bank."""
    service = find_service(request)
    detector = _admit_writer(request, service, name)
    body = await read_json(request, Signals)
    async with service.deadline():
        made = await service.engine.work(add_signals, detector, body.root, label=_BANKS[name])
    return answer(_show_added(made))


@router.delete("/c/bank/{name}/content/{number}")
async def remove_content(request: Request, name: str, number: str) -> Response:
    """Remove an entry from a bank."""
    service = find_service(request)
    detector = _admit_writer(request, service, name)
    async with service.deadline():
        gone = await service.engine.work(_remove, detector, _BANKS[name], number)
    return answer({"deleted": gone})


def _remove(detector: Path, label: str, number: str) -> int:
    known = [one for one in read_match_list(detector) if one.label == label]
    named = [one.id for one in known if str(number_entry(one)) == number]
    return len(remove_from_match_list(detector, named)) if named else 0


def number_entry(entry: MatchEntry) -> int:
    """Return the number of an entry: clients of the interface expect ids to be numbers.

    >>> number_entry(MatchEntry("m1", "harmful")) < 2**53
    True
    """
    return int(hashlib.sha256(entry.id.encode()).hexdigest()[:13], 16)


def _show_banks(found: Sequence[SignalMatch]) -> dict[str, list[dict[str, object]]]:
    shown: dict[str, list[dict[str, object]]] = {}
    for one in found:
        bank = one.entry.label.upper()
        row = {"bank_content_id": number_entry(one.entry), "distance": str(one.distance)}
        shown.setdefault(bank, []).append(row)
    return shown


def _show_added(made: MatchEntry) -> dict[str, object]:
    signals = {kind: getattr(made, kind) for kind in ("pdq", "phash", "sha256")}
    return {
        "id": number_entry(made),
        "signals": {kind: text for kind, text in signals.items() if text},
    }


def _admit_writer(request: Request, service: Service, name: str) -> Path:
    service.access.admit(request, "banks")
    if not service.settings.bounds.bank_writes:
        message = "banks are read-only; start the service with --bank-writes"
        raise Refusal(403, "read_only", message)
    return _find_list(service, name)


def _find_list(service: Service, name: str = "HARMFUL") -> Path:
    """Return the detector of the match list; raise a 404 without one, or for another bank."""
    path = service.engine.detector.path
    if path is None:
        message = "the sample detector has no match list; start the service with --detector"
        raise Refusal(404, "not_found", message)
    if name not in _BANKS:
        raise Refusal(404, "not_found", f"bank {name[:100]!r} not found")
    return path


async def _take_photo(request: Request, service: Service) -> bytes:
    """Return the image of a form, or that of a URL on an allowed host."""
    url = request.query_params.get("url", "")
    if url.startswith(("http://", "https://")):
        return await service.loader.take(url)
    async with open_form(request, files=1, fields=4) as form:
        file = form.get(_PHOTO)
        if not isinstance(file, UploadFile):
            raise Refusal(400, "invalid_request", f"the form has no file {_PHOTO!r}")
        return service.loader.check(await file.read(service.loader.bounds.max_bytes + 1))


def answer_plainly(refusal: Refusal) -> Response:
    """Return a refusal in the form of the original program."""
    return answer({"message": refusal.message}, refusal.status, refusal.headers)
