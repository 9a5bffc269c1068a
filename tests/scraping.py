"""What tests read in a scrape: its samples by name and labels, added up over labels."""

from __future__ import annotations

from collections import Counter
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

#: The samples of a scrape, by name and labels.
Told = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Told:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(url: str) -> Told:
    with urlopen(url, timeout=30) as answer:
        return parsed(answer.read().decode())


def happened(told: Told, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by some of its labels, without what is 0."""
    return {values: number for values, number in by(told, name, *labels).items() if number}


def by(told: Told, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by some of its labels, added up over the others."""
    found: Counter[tuple[str, ...]] = Counter()
    for (each, all_labels), value in told.items():
        if each == name:
            values = dict(all_labels)
            found[tuple(values[label] for label in labels)] += value  # type: ignore[assignment]
    return dict(found)
