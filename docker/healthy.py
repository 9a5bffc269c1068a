#!/opt/farm/bin/python -IS
"""Tells Docker whether a part of the farm is healthy: ``farm-healthy URL [METRIC]``.

Exit status 0: the URL answers with 200 and, where a metric is named, each of its samples is 1. Else 1.
"""

import sys
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener


def main(url: str, metric: str | None = None) -> str | None:
    """Return what is wrong, None where nothing is."""
    try:
        # No proxy of the container's environment is asked for what is in the container itself.
        with build_opener(ProxyHandler({})).open(url, timeout=4) as answer:
            text = answer.read().decode()
    except (URLError, OSError) as error:
        return f"{url}: {error}"
    if metric is None:
        return None
    samples = [line.rpartition(" ") for line in text.splitlines()]
    found = [float(value) for name, _, value in samples if name.partition("{")[0] == metric]
    return None if found and set(found) == {1.0} else f"{url}: {metric} is {found or 'not there yet'}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
