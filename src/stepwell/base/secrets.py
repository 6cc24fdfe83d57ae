"""Secrets: named by a document or a setting, read in the worker just before they are used, and never kept.

`secret:NAME` is a reference where somebody wrote exactly this text: in a document, or in a setting. What a template yields is
never one, so an answer of `secret:DB` stays text. References are `SecretRef`s; nothing else is ever resolved.

Where a value comes from, the first that has it:

    its entry in the settings          [secrets] CRM_TOKEN = { env = "CRM_TOKEN", services = ["crm"] }, or { file = "/run/crm" }
    the provider of the engine         Engine(secrets=provider): anything with `get(name)`, a mapping too
    a file of the secrets folder       secrets_folder = "/run/secrets", file NAME
    the environment                    STEPWELL_SECRET_NAME

A document can name any of these and nothing else: not every variable of a process is a secret for documents. A secret that a
service of the settings uses is for that service, or a document could send it anywhere; `services` in its entry says otherwise,
`["*"]` that it may be used for whatever a document does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import InputError, MissingSecret, TransientError
from .masking import MASK, SHORTEST, hide
from .secret_refs import PREFIX, SecretRef, mapped
from .words import shown

if TYPE_CHECKING:
    from .services import SecretSource

VARIABLE = "STEPWELL_SECRET_"
MAX_BYTES = 64 * 1024
SEEN_SECONDS = 1.0


class Provider(Protocol):
    """Where secrets are kept: a vault, a mapping."""

    def get(self, name: str, /) -> str | None:
        """The secret of this name; None if there is none."""
        ...


ANY_SERVICE = "*"
NO_SOURCES: Mapping[str, SecretSource] = {}


class Secrets:
    """Finds secrets, without a cache, so that a change takes effect."""

    def __init__(
        self,
        sources: Mapping[str, SecretSource] = NO_SOURCES,
        *,
        provider: Provider | None = None,
        folder: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if provider is not None and not callable(getattr(provider, "get", None)):
            raise InputError(f"secrets={shown(provider)}: expected an object with get(name), or a mapping")
        self._sources = sources
        self._provider = provider
        self._folder = None if folder is None else Path(folder)
        self._environment = os.environ if environment is None else environment
        self._owners: Mapping[str, frozenset[str]] = {}
        self._seen: dict[tuple[str, str | None], float] = {}
        """Secrets found recently, and when: a document of 10,000 nodes must not ask a vault for each of them."""

    def owned_by(self, owners: Mapping[str, frozenset[str]]) -> Secrets:
        """A copy in which each of these is for the services that use it, unless its entry names others."""
        made = copy(self)
        made._owners, made._seen = owners, {}
        return made

    def value(self, ref: SecretRef, service: str | None = None) -> str:
        """The secret, for a service or for none in particular; from now on masked in all that is kept. Raises MissingSecret."""
        text = self._look_up(ref.name, service)
        if len(text) < SHORTEST:
            needed = f"expected at least {SHORTEST}, or it could not be kept out of logs"
            raise MissingSecret(ref.name, f"{ref} has {len(text)} characters: {needed}")
        hide([text])
        return text

    def problem(self, ref: SecretRef, service: str | None = None) -> str | None:
        """Why a secret could not be used here; None if it could, or could a moment ago."""
        asked, now = (ref.name, service), time.monotonic()
        if now - self._seen.get(asked, -SEEN_SECONDS) < SEEN_SECONDS:
            return None
        try:
            self.value(ref, service)
            self._seen[asked] = now
        except MissingSecret as error:
            return error.reason
        except TransientError:  # the provider does not answer now; the node will ask again
            pass
        return None

    def _look_up(self, name: str, service: str | None) -> str:
        source = self._sources.get(name)
        self._check_service(name, source, service)
        if source is not None and (source.env is not None or source.file is not None):
            return self._of_source(name, source)
        text = self._of_provider(name)
        if text is None and self._folder is not None:
            text = _of_file(name, self._folder / name)
        if text is None:
            text = self._environment.get(VARIABLE + name)
        if text is None:
            places = f"set {VARIABLE}{name}"
            if self._folder is not None:
                places += f", write the file {self._folder / name}"
            raise MissingSecret(name, f"{PREFIX}{name} is not here: {places}, or say in [secrets] where it is")
        return text

    def _check_service(self, name: str, source: SecretSource | None, service: str | None) -> None:
        own = None if source is None else source.services
        allowed = self._owners.get(name) if own is None else own
        if allowed is None or service in allowed or ANY_SERVICE in (service, *allowed):
            return  # ANY_SERVICE: the service is not known yet, so this is checked again later
        asked = "no service" if service is None else f"service {service!r}"
        names = ", ".join(sorted(allowed)) or "none"
        problem = f"{PREFIX}{name} may not be used for {asked}: it is for {names}"
        raise MissingSecret(name, f"{problem}; `services` of its entry in [secrets] says so")

    def _of_source(self, name: str, source: SecretSource) -> str:
        if source.env is not None:
            text, problem = self._environment.get(source.env), f"the variable {source.env} is not set"
        else:
            text, problem = _of_file(name, Path(str(source.file))), f"there is no file {source.file}"
        if text is None:
            raise MissingSecret(name, f"{PREFIX}{name} is not here: {problem}")
        return text

    def _of_provider(self, name: str) -> str | None:
        if self._provider is None:
            return None
        try:
            value = self._provider.get(name)
        except Exception as error:  # its message might contain the secret
            raised = f"{type(self._provider).__name__}.get raised {type(error).__name__}"
            raise TransientError(f"{PREFIX}{name} could not be read: {raised}") from None
        if value is not None and not isinstance(value, str):
            raise MissingSecret(name, f"{PREFIX}{name}: expected text, got {type(value).__name__}")
        return value


class _Masked(Secrets):
    """Gives what secrets are recorded as."""

    def value(self, ref: SecretRef, service: str | None = None) -> str:
        return MASK


NO_SECRETS: Secrets = _Masked()


def _of_file(name: str, path: Path) -> str | None:
    """The content of a file without its final line end; None if there is no file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MissingSecret(name, f"{PREFIX}{name} cannot be read from {path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise MissingSecret(name, f"{PREFIX}{name} in {path} has more than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise MissingSecret(name, f"{PREFIX}{name} in {path} is no text") from None


def resolved(value: Any, secrets: Secrets, service: str | None = None) -> Any:
    """A config with values in place of the references in it."""
    return mapped(value, lambda leaf: secrets.value(leaf, service) if isinstance(leaf, SecretRef) else leaf)
