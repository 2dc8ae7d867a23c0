"""A certificate chain for tests, and images in each format."""

from __future__ import annotations

import datetime as dt
import io
from functools import cache
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")


def draw(form: str = "PNG", seed: int = 0, **options: object) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, form, **options)
    return data.getvalue()


def _name(common: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Memes and Sons"),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


@cache
def make_chain(days: int = 365) -> tuple[bytes, bytes]:
    """Make a chain of two certificates and the key of the first."""
    now = dt.datetime.now(dt.UTC)
    above, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))

    def begin(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name("An authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=400))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(above.public_key()), False
            )
        )

    def use(signs: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=signs,
            crl_sign=signs,
            encipher_only=False,
            decipher_only=False,
        )

    root = (
        begin("An authority", above)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(use(True), True)
        .sign(above, hashes.SHA256())
    )
    leaf = (
        begin("A signer", own)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(use(False), True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION]), False)
        .sign(above, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    key = own.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return leaf.public_bytes(form) + root.public_bytes(form), key


def write_chain(folder: Path, days: int = 365) -> tuple[Path, Path]:
    chain, key = make_chain(days)
    (folder / "chain.pem").write_bytes(chain)
    (folder / "key.pem").write_bytes(key)
    return folder / "chain.pem", folder / "key.pem"
