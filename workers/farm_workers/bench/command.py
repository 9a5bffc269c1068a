"""The command `farm bench`."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm import allotment
from farm.cli.options import AsJson, print_json
from farm.settings import Settings

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm_workers.bench.measure import Rate


def add_to(app: typer.Typer) -> None:
    """Add `farm bench` to the `farm` command."""
    app.command("bench", epilog="Example: farm bench --seconds 5")(bench)


def bench(
    environment: Annotated[str | None, Option(help="The Lean environment, with its own header.")] = None,
    seconds: Annotated[float, Option(min=0.1, help="How long each tier is measured.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Measure how many small programs a second this machine checks, on each tier.

    Half of the programs hold, and each statement has eight attempts. As many checks run at once as a worker
    here would run (FARM_CONCURRENCY). Close other programs first: they take their share.
    """
    from farm.cli.terminal import say
    from farm_workers.bench.measure import measured
    from farm_workers.machine.opening import opened

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM leaves no process either
    settings = Settings.load()
    at_once = settings.concurrency
    with opened(settings, concurrency=at_once) as machine:
        machine.installed.require_any()
        found = machine.installed.lean(environment or settings.environment)
        facts = {
            "environment": found.name,
            "lean": found.toolchain,
            "isolation": machine.isolation.name,
            "cpus": allotment.cores(),
            "checks_at_once": at_once,
        }
        rates = []
        for tier in found.tiers:
            say(f"Measuring tier {tier} for {seconds:g} s")
            rates.append(measured(machine.checker, found, tier, at_once=at_once, seconds=seconds))
    if as_json:
        print_json(machine=facts, tiers=[_facts(rate) for rate in rates])
    else:
        _show(facts, rates)


def _facts(rate: Rate) -> dict[str, object]:
    latencies = {f"p{share}_ms": round(rate.quantile(share / 100) * 1000, 1) for share in (50, 95, 99)}
    return {
        "tier": rate.tier,
        "checks": len(rate.latencies),
        "checks_per_second": round(rate.per_second, 1),
        **latencies,
    }


def _show(machine: Mapping[str, object], rates: Sequence[Rate]) -> None:
    from rich.table import Table

    from farm.cli.terminal import out

    for name, fact in machine.items():
        out.print(f"{name.replace('_', ' ')}: {fact}", highlight=False, markup=False)
    table = Table("tier", box=None)
    for heading in ("checks", "checks/s", "p50 ms", "p95 ms", "p99 ms"):
        table.add_column(heading, justify="right")
    for rate in rates:
        table.add_row(*(str(fact) for fact in _facts(rate).values()))
    out.print()
    out.print(table)
