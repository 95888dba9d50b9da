"""Models in a folder, in S3-compatible storage or in a Hugging Face repository.

A published model is a folder with the version's files and a ``manifest.json`` of one version, in the format of
packages. A signed model also has ``manifest.json.sig``: the Ed25519 signature of the manifest, in hexadecimal. The
manifest holds the sha256 of every file, so its own sha256 or its signature covers the whole model.

Pulled models are untrusted: names and sizes are checked before the download, contents after it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bothost.errors import ModelError, UsageError
from bothost.plugins.weights import MANIFEST, Manifest, Version
from bothost.store import model_files

SIGNATURE = f"{MANIFEST}.sig"
SCHEMES = ("file", "s3", "hf", "memory")
"""``memory`` is for tests."""
MAX_MANIFEST = 1 << 20
CHUNK = 1 << 20
_HEX = re.compile(r"[0-9a-f]{64}")


def place(url: str) -> tuple[Any, str]:
    """Return the file system and the path of a URL or local path. Raises UsageError."""
    local = "://" not in url
    parts = urlsplit("file:" if local else url)
    if parts.scheme not in SCHEMES or ("::" in url and not local):
        known = "a local folder, s3://BUCKET/PATH or hf://OWNER/REPOSITORY/PATH"
        raise UsageError(f"{parts.scheme}:// is not supported for models", advice=f"use {known}")
    if parts.password or (parts.username and parts.scheme != "hf") or parts.query:
        raise UsageError("the URL contains credentials", advice="set them in the environment of the storage's client")
    try:
        import fsspec

        if local:
            return fsspec.filesystem("file"), str(Path(url).absolute())
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        message = f"{parts.scheme}:// needs a package that is not installed: {error}"
        raise UsageError(message, advice='pip install "bothost[hub]"') from error
    return system, str(path).rstrip("/")


def push(url: str, root: Path, version: str, entry: Version, signing_key: Path | None = None) -> str:
    """Publish a version whose files lie in ``root``. Returns the sha256 of the manifest.

    The manifest is written last: a concurrent ``pull`` gets the old model, the new one, or a wrong sha256. Raises
    ModelError and UsageError.
    """
    model_files.check(root, entry.files)
    manifest = Manifest(versions={version: entry}, aliases={"champion": version})
    data = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1) + b"\n"
    signature = None if signing_key is None else _sign(data, signing_key)
    system, path = place(url)
    try:
        system.makedirs(path, exist_ok=True)
        for name in sorted(entry.files):
            system.put_file(str(root / name), f"{path}/{name}")
        if signature is not None:
            system.pipe_file(f"{path}/{SIGNATURE}", signature.hex().encode() + b"\n")
        elif system.exists(f"{path}/{SIGNATURE}"):  # the signature of an earlier model
            system.rm_file(f"{path}/{SIGNATURE}")
        system.pipe_file(f"{path}/{MANIFEST}", data)
    except Exception as error:  # each storage raises its own errors
        raise _storage_error("written", url, error) from error
    return hashlib.sha256(data).hexdigest()


def pull(url: str, into: Path, *, sha256: str | None = None, public_key: Path | None = None) -> str:
    """Download a model into an empty folder. Returns the sha256 of its manifest.

    ``sha256``: expected sha256 of the manifest. ``public_key``: the key that must have signed it. Raises ModelError if
    a check fails; then do not use the folder.
    """
    system, path = place(url)
    data = _small(system, url, f"{path}/{MANIFEST}")
    found = hashlib.sha256(data).hexdigest()
    if sha256 is not None and found != sha256.lower():
        raise ModelError(f"the manifest at {url} has sha256 {found}, not {sha256}", advice="ask who published it")
    if public_key is not None:
        _verify(data, _small(system, url, f"{path}/{SIGNATURE}"), public_key, url)
    entry = _entry(data, url)
    into.mkdir(parents=True, exist_ok=True)
    for name, expected in sorted(entry.files.items()):
        _download(system, url, f"{path}/{name}", into / name, expected)
    (into / MANIFEST).write_bytes(data)
    return found


def _entry(data: bytes, url: str) -> Version:
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{url}/{MANIFEST} is not a valid manifest: {error}") from error
    if len(manifest.versions) != 1:
        raise ModelError(
            f"{url}/{MANIFEST} has {len(manifest.versions)} versions", advice="publish one version per folder"
        )
    (entry,) = manifest.versions.values()
    _check_names(entry.files)
    return entry


def _check_names(files: Mapping[str, str]) -> None:
    model_files.names(files)
    for name, sha256 in files.items():
        if name in (MANIFEST, "lineage.json") or not _HEX.fullmatch(sha256.lower()):
            raise ModelError(f"the manifest's entry for {name!r} is not allowed")


def _small(system: Any, url: str, path: str) -> bytes:
    try:
        with system.open(path, "rb") as file:
            data = bytes(file.read(MAX_MANIFEST + 1))
    except FileNotFoundError as error:
        name = path.rpartition("/")[2]
        advice = "it was published without --sign" if name == SIGNATURE else "see bothost model push"
        raise ModelError(f"{url} has no {name}", advice=advice) from error
    except Exception as error:  # each storage raises its own errors
        raise _storage_error("read", url, error) from error
    if len(data) > MAX_MANIFEST:
        raise ModelError(f"{path.rpartition('/')[2]} at {url} is larger than {MAX_MANIFEST} bytes")
    return data


def _download(system: Any, url: str, path: str, target: Path, expected: str) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        with system.open(path, "rb") as file, target.open("xb") as out:
            while chunk := file.read(CHUNK):
                size += len(chunk)
                if size > model_files.MAX_BYTES:
                    break
                digest.update(chunk)
                out.write(chunk)
    except FileNotFoundError as error:
        raise ModelError(f"{url} has no {target.name}, which its manifest lists") from error
    except Exception as error:  # each storage raises its own errors
        raise _storage_error("read", url, error) from error
    if size > model_files.MAX_BYTES:
        raise ModelError(f"{target.name} at {url} is larger than {model_files.MAX_BYTES >> 30} GiB")
    if digest.hexdigest() != expected.lower():
        raise ModelError(f"{target.name} at {url} does not have the sha256 of its manifest", advice="pull it again")


def _storage_error(what: str, url: str, error: Exception) -> ModelError:
    advice = "check the address, the network, and the credentials in the environment"
    return ModelError(f"{url} cannot be {what}: {type(error).__name__}: {str(error)[:200]}", advice=advice)


# ------------------------------------------------------------------------------------------------------- signatures


def _sign(data: bytes, key: Path) -> bytes:
    ed25519, serialization = _cryptography()
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise _bad_key(key, "private") from error
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise _bad_key(key, "private")
    return bytes(private.sign(data))


def _verify(data: bytes, signature: bytes, key: Path, url: str) -> None:
    ed25519, serialization = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        public = serialization.load_pem_public_key(key.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise _bad_key(key, "public") from error
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise _bad_key(key, "public")
    with suppress(InvalidSignature, ValueError):
        public.verify(bytes.fromhex(signature.decode("ascii").strip()), data)
        return
    raise ModelError(f"the signature of the model at {url} is wrong", advice="do not use it; ask who published it")


def _bad_key(key: Path, kind: str) -> UsageError:
    advice = "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out key.pub"
    return UsageError(f"{key} is not a readable {kind} Ed25519 key in PEM format", advice=advice)


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("signatures need cryptography", advice='pip install "bothost[hub]"') from error
    return ed25519, serialization
