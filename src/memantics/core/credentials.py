"""Content credentials (C2PA): sign images that Memantics makes, and read credentials of any image.

The library is the extra ``c2pa``, imported at first use. Nothing is fetched from the network: no
manifests, no certificate status, no time stamps. Manifests hold no thumbnails, since the original
of a rewritten meme may be offensive.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
from PIL import Image as Pillow

from memantics import __version__
from memantics.core.errors import ImageError, InputError, MissingExtra, need_packages
from memantics.core.files import read_regular
from memantics.core.images import decode, encode_png, probe
from memantics.core.marks import (
    PROGRAM,
    SOURCE_TYPES,
    DigitalSource,
    clean,
    has_manifest,
    list_manifest_parts,
    name_source,
)
from memantics.core.result import Result

CredentialState = Literal["trusted", "valid", "invalid", "unchecked"]
MOST_MANIFEST = 4 * 1024 * 1024  # bytes of manifests that are read
_MOST_FILE = 1024 * 1024  # bytes of a certificate chain or key
_MOST_LISTED = 5  # actions, ingredients and faults that are shown
_UNTRUSTED = "signingCredential.untrusted"
# No network: remote manifests, certificate status and trust lists are not fetched.
_SETTINGS: Mapping[str, Any] = {
    "verify": {
        "verify_after_reading": True,
        "verify_after_sign": True,
        "verify_trust": True,
        "remote_manifest_fetch": False,
        "ocsp_fetch": False,
    },
    "builder": {"thumbnail": {"enabled": False}},
}
_WORDS: Mapping[CredentialState, str] = {
    "trusted": "verified",
    "valid": "signature intact, signer not verified",
    "invalid": "not valid",
    "unchecked": "not verified",
}


@dataclass(frozen=True, slots=True)
class Credentials(Result):
    """The content credentials of an image, read from its C2PA manifest.

    ``state`` is ``trusted`` (intact, signer on a trust list), ``valid`` (intact, signer on no
    trust list), ``invalid`` (changed after signing, or damaged) or ``unchecked``, with the
    ``reason``. ``signer`` is the name on the certificate, ``tool`` the program, and
    ``ingredients`` are the images from which the image was made. ``source`` is the last digital
    source type that the actions name; see :class:`ImageMark`.
    """

    state: CredentialState
    reason: str = ""
    signer: str = ""
    tool: str = ""
    actions: tuple[str, ...] = ()
    ingredients: tuple[str, ...] = ()
    source: str = ""

    def describe(self) -> str:
        """Return the credentials in one line.

        >>> Credentials("unchecked", "too large").describe()
        'not verified (too large)'
        """
        parts = (
            _WORDS[self.state] + (f" ({self.reason})" if self.reason else ""),
            f"signed by {self.signer}" if self.signer else "",
            f"made with {self.tool}" if self.tool else "",
            f"digital source type {self.source}" if self.source else "",
            f"actions: {', '.join(self.actions)}" if self.actions else "",
            f"made from {', '.join(self.ingredients)}" if self.ingredients else "",
        )
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class EditStep:
    """One action of a manifest, such as ``c2pa.edited``, and its description."""

    action: str
    description: str


@dataclass(frozen=True, slots=True)
class Original:
    """The image that was edited: the name and the bytes of its file."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImageSigner:
    """A certificate chain and its private key, in memory; the key is in no output."""

    algorithm: str
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    fingerprint: str


def open_signer(certificate: Path | str, key: Path | str) -> ImageSigner:
    """Read a certificate chain and a private key (PEM), and sign a test image with them.

    Raises:
        MissingExtra: The extra ``c2pa`` is not installed.
        InputError: A file cannot be read, the key does not belong to the certificate, or images
            cannot be signed with that certificate.
    """
    need_packages("signed images", "c2pa", "c2pa", "cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    chain, secret = _read_pem(Path(certificate)), _read_pem(Path(key))
    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
    except (ValueError, IndexError):
        raise InputError(
            f"{certificate} is not a certificate in PEM format",
            hint="give the file of the certificate first, then the key",
        ) from None
    try:
        private: Any = serialization.load_pem_private_key(secret, None)
    except (ValueError, TypeError):
        raise InputError(
            f"{key} is not an unencrypted private key in PEM format",
            hint="convert it with 'openssl pkcs8 -topk8 -nocrypt'",
        ) from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
        raise InputError(
            f"the key {key} does not belong to the certificate {certificate}",
            hint="the certificate of the signer comes first in its file",
        )
    if leaf.not_valid_after_utc < datetime.now(UTC):
        raise InputError(
            f"the certificate {certificate} expired on {leaf.not_valid_after_utc:%Y-%m-%d}",
            hint="renew it",
        )
    plain = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    mark = leaf.fingerprint(hashes.SHA256()).hex()[:16]
    signer = ImageSigner(_name_algorithm(private), chain, plain, mark)
    sign_image(encode_png(Pillow.new("RGB", (8, 8))), signer, "composite", (), None)
    return signer


def _read_pem(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_FILE)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}",
            hint="give --sign a certificate chain and its private key",
        ) from error


def _name_algorithm(private: Any) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(private, ec.EllipticCurvePrivateKey):
        named = {256: "es256", 384: "es384", 521: "es512"}.get(private.curve.key_size)
        if named:
            return named
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return "ed25519"
    if isinstance(private, rsa.RSAPrivateKey):
        return "ps256"
    raise InputError(
        "images cannot be signed with this kind of key", hint="use P-256, Ed25519 or RSA"
    )


def sign_image(
    data: bytes,
    signer: ImageSigner,
    source: DigitalSource,
    steps: Sequence[EditStep],
    original: Original | None,
) -> bytes:
    """Add a signed C2PA manifest to an image: the original as ingredient, and the actions.

    An original with damaged credentials is named without them.
    """
    import c2pa

    manifest = _write_manifest(source, steps, edited=original is not None)
    try:
        try:
            return _sign(data, signer, manifest, original)
        except c2pa.C2paError:
            if original is None or not has_manifest(original.data):
                raise
            plain = encode_png(decode(original.data, original.name))
            return _sign(data, signer, manifest, Original(original.name, plain))
    except (c2pa.C2paError, ValueError) as error:
        raise InputError(
            f"the image cannot be signed: {clean(str(error))}",
            hint="see docs/how-to/make-a-meme-kinder.md for certificates that C2PA accepts",
        ) from error


def _write_manifest(
    source: DigitalSource, steps: Sequence[EditStep], *, edited: bool
) -> dict[str, Any]:
    agent = {"name": PROGRAM, "version": __version__}
    first: dict[str, Any] = {"action": "c2pa.created"}
    if edited:
        first = {"action": "c2pa.opened", "parameters": {"ingredientIds": ["original"]}}
    done: list[dict[str, Any]] = [
        {"action": step.action, "description": step.description} for step in steps
    ]
    # The vocabulary of IPTC says how the image came about, on each action that changed it.
    for action in done if edited else [first, *done]:
        action |= {"digitalSourceType": f"{SOURCE_TYPES}{source}", "softwareAgent": agent}
    actions = {"label": "c2pa.actions.v2", "data": {"actions": [first, *done]}}
    return {"claim_generator_info": [agent], "assertions": [actions]}


def _sign(
    data: bytes, signer: ImageSigner, manifest: dict[str, Any], original: Original | None
) -> bytes:
    import c2pa

    made = io.BytesIO()
    context = c2pa.Context(settings=c2pa.Settings.from_dict(dict(_SETTINGS)))
    with c2pa.Builder(manifest, context=context) as builder:
        if original is not None:
            builder.add_ingredient(*_describe_original(original))
        info = c2pa.C2paSignerInfo(signer.algorithm.encode(), signer.chain, signer.key, None)
        with c2pa.Signer.from_info(info) as pen:
            builder.sign(pen, probe(data, "the image").mime, io.BytesIO(data), made)
    return made.getvalue()


def _describe_original(original: Original) -> tuple[dict[str, str], str, io.BytesIO]:
    facts = probe(original.data, original.name)
    about = {"title": clean(original.name), "relationship": "parentOf", "label": "original"}
    about |= {"instance_id": "original"}
    if facts.format == "BMP":  # a format that C2PA does not know
        data = encode_png(decode(original.data, original.name))
        return about, "image/png", io.BytesIO(data)
    return about, facts.mime, io.BytesIO(original.data)


def read_credentials(data: bytes) -> Credentials | None:
    """Read and verify the content credentials of an image; None if it has none.

    Damaged credentials are not valid and raise no error; nothing is fetched.
    """
    sizes = list(list_manifest_parts(data))
    if not sizes:
        return None
    if sum(sizes) > MOST_MANIFEST:
        return Credentials("unchecked", f"more than {MOST_MANIFEST:,} bytes of manifests")
    try:
        import c2pa
    except ImportError:
        return Credentials("unchecked", str(MissingExtra("content credentials", "c2pa")))
    try:
        mime = probe(data, "the image").mime
        context = c2pa.Context(settings=c2pa.Settings.from_dict(dict(_SETTINGS)))
        with c2pa.Reader(mime, io.BytesIO(data), context=context) as reader:
            found = orjson.loads(reader.json())
    except ImageError as error:
        return Credentials("unchecked", clean(error.reason))
    except Exception as error:  # noqa: BLE001 - the library raises whatever damage leads to
        return Credentials("invalid", clean(str(error)) or type(error).__name__)
    return _summarise(found)


def _summarise(found: Any) -> Credentials:
    """Return the state, the signer and the history of the active manifest."""
    found = _map(found)
    manifest = _map(_map(found.get("manifests")).get(str(found.get("active_manifest"))))
    faults = [str(_map(one).get("code", "")) for one in _list(found.get("validation_status"))]
    faults = [clean(code, 60) for code in faults if code and code != _UNTRUSTED]
    state: CredentialState = "invalid"
    if not faults and manifest:
        said = str(found.get("validation_state", "")).lower()
        state = "trusted" if said == "trusted" else "valid" if said == "valid" else "invalid"
    signed = _map(manifest.get("signature_info"))
    tools = [_map(one) for one in _list(manifest.get("claim_generator_info"))]
    actions = [
        _map(action)
        for assertion in map(_map, _list(manifest.get("assertions")))
        if str(assertion.get("label", "")).startswith("c2pa.actions")
        for action in _list(_map(assertion.get("data")).get("actions"))
    ]
    parents = [str(_map(one).get("title", "")) for one in _list(manifest.get("ingredients"))]
    names = (str(signed.get(name) or "") for name in ("common_name", "issuer"))
    tool = (str(tools[0].get(name) or "") for name in ("name", "version")) if tools else ()
    return Credentials(
        state,
        ", ".join(faults[:_MOST_LISTED]),
        clean(", ".join(filter(None, names))),
        clean(" ".join(filter(None, tool))),
        _shorten([str(action.get("action", "")) for action in actions]),
        _shorten(parents),
        next(filter(None, map(_name_source, reversed(actions))), ""),
    )


def _name_source(action: Mapping[str, Any]) -> str:
    return name_source(str(action.get("digitalSourceType") or ""))


def _shorten(texts: Sequence[str]) -> tuple[str, ...]:
    shown = tuple(filter(None, (clean(text, 80) for text in texts[:_MOST_LISTED])))
    left = len(texts) - _MOST_LISTED
    return (*shown, f"{left} more") if left > 0 else shown


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
