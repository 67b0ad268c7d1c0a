"""Runs the HTTP API: listens, says when it is ready, and stops without losing what was acknowledged."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType

import uvicorn

from lakehouse_platform.api.app import create_app
from lakehouse_platform.api.connections import GuardedConnection
from lakehouse_platform.api.limits import MOST_HEADER_BYTES
from lakehouse_platform.errors import ConfigError, StorageUnavailableError
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig

_log = logging.getLogger("lakehouse.http")
_BACKLOG = 2_048  # uvicorn's default
_KEEP_ALIVE_S = 5  # uvicorn's default


@dataclass(frozen=True, slots=True)
class Ready:
    """Where a server answers.

    Attributes:
        url: Base of every address, such as `http://127.0.0.1:8080`.
        host: The address that it listens on.
        port: The port.
    """

    url: str
    host: str
    port: int


class HttpServer(uvicorn.Server):
    """A server that stops in order on a signal or with `stop`, and tells when it is ready."""

    def __init__(
        self, lakehouse: Lakehouse, config: LakehouseConfig, on_ready: Callable[[Ready], None]
    ) -> None:
        """Prepare a server; `serve_until_stopped` opens its port.

        Args:
            lakehouse: What is served; it stays open.
            config: The settings.
            on_ready: Is told where it answers, once it does.

        Raises:
            ConfigError: The certificate or its key cannot be used.
        """
        self._settings = config
        self._on_ready = on_ready
        super().__init__(_uvicorn_config(lakehouse, config))

    def serve_until_stopped(self) -> None:
        """Listen, serve, and return when everything that ran has ended or the time for that is over.

        Raises:
            StorageUnavailableError: The address cannot be listened on.
        """
        with _listening(self._settings) as listener:
            self._ready = _ready(self._settings, listener)
            self.run(sockets=[listener])

    def stop(self) -> None:
        """Take no further requests and let the running ones end; safe from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_ready(self._ready)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop on SIGTERM and SIGINT; unlike uvicorn's own, the process then ends as one that did its work."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        # The second Ctrl-C of somebody who does not want to wait.
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def serve(config: LakehouseConfig, *, on_ready: Callable[[Ready], None]) -> None:
    """Serve a lakehouse until SIGTERM or SIGINT; then end what runs, and move the audit journal to the table.

    Args:
        config: The settings.
        on_ready: Is told where the server answers, once it does.

    Raises:
        ConfigError, StorageUnavailableError: It cannot be served as the settings say.
        AuditWriteFailedError: The journal could not be moved; nothing is lost, and the next audit log moves it.
    """
    with Lakehouse.open(config, origin=Origin(door=Door.HTTP)) as lakehouse:
        lakehouse.init()
        HttpServer(lakehouse, config, on_ready).serve_until_stopped()


def _uvicorn_config(lakehouse: Lakehouse, config: LakehouseConfig) -> uvicorn.Config:
    made = uvicorn.Config(
        create_app(lakehouse, config),
        http=GuardedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=config.api_shutdown_seconds,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        ssl_certfile=config.api_tls_cert,
        ssl_keyfile=config.api_tls_key,
    )
    try:
        made.load()
    except OSError as error:
        raise ConfigError(
            f"api_tls_cert and api_tls_key cannot be used ({error}): give a certificate and its key as PEM files."
        ) from error
    return made


@contextlib.contextmanager
def _listening(config: LakehouseConfig) -> Generator[socket.socket]:
    host, port = config.api_host, config.api_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise StorageUnavailableError(
            f"{host} port {port} cannot be listened on ({error}): set api_host and api_port to others.",
            host=host,
            port=port,
        ) from error
    with listener:
        yield listener


def _ready(config: LakehouseConfig, listener: socket.socket) -> Ready:
    host, port = listener.getsockname()[:2]
    scheme = "https" if config.api_tls_cert else "http"
    return Ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", host, port)
