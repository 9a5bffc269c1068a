"""Report step: renders a page of the folder `page`, with the style sheet that all of them share."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from farm.version import farm_version


def rendered(template: str, **values: object) -> str:
    """Return a page without network access or scripts; all text in it that is no markup is escaped."""
    environment = Environment(
        loader=PackageLoader("farm.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("farm.reports").joinpath("page", "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 - the farm's own file
        style_digest=digest,
        version=farm_version(),
        **values,
    )
