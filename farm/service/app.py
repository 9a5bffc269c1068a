"""The service's application for `farm serve`: its routers, drop-ins and page, over one backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.telemetry import TelemetryConfig

from farm.service.auth.browser import ROOT
from farm.service.backend import Backend
from farm.service.dropins import kimina, nemo, sandbox_fusion
from farm.service.json_body import Json
from farm.service.openapi import describe
from farm.service.page.routes import page
from farm.service.refusals import HANDLERS
from farm.service.routers import batches, health, items, sessions
from farm.version import farm_version

#: FastAPI's spans and logs would show bodies and errors, which quote proofs; the farm's own show neither.
_NO_TELEMETRY: TelemetryConfig = {
    "auto_configure": False,
    "logs": False,
    "metrics": False,
    "operation_spans": False,
    "tracing": False,
}


def application(make_backend: Callable[[], Backend]) -> FastAPI:
    """Return the application; it makes its backend when it starts, in the server's event loop."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.backend = make_backend()
        yield
        await app.state.backend.close()

    app = FastAPI(
        telemetry=_NO_TELEMETRY,
        title="farm",
        version=farm_version(),
        lifespan=lifespan,
        default_response_class=Json,
        exception_handlers=HANDLERS,
        docs_url=None,  # these pages load their scripts from other hosts
        redoc_url=None,
    )
    for module in (batches, items, sessions, health, nemo, kimina, sandbox_fusion):
        app.include_router(module.router)
    describe(app)
    app.mount(ROOT, page(lambda: app.state.backend, app.openapi))
    app.add_route("/", lambda _: RedirectResponse(f"{ROOT}/", 303), include_in_schema=False)
    app.add_route("/docs", lambda _: RedirectResponse(f"{ROOT}/docs", 303), include_in_schema=False)
    return app
