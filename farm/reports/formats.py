"""Report step, formats: tables as CSV, as Markdown and as LaTeX. Pure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from farm.reports.tables import Table

#: Characters that LaTeX reads as commands, and others that its fonts may lack.
_LATEX = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "\u202f": r"\,",
}
_LATEX_SPECIAL = re.compile(f"[{re.escape(''.join(_LATEX))}]")
#: The first characters of formulas, also in full width, and characters that spreadsheets skip before them.
_FORMULAS = frozenset("=+-@＝＋－＠")
#: The two ends of an interval, of which the first may be negative.
_INTERVAL = re.compile(r"-?[0-9.]+(e-?[0-9]+)? -?[0-9.]+(e-?[0-9]+)?")
_CONTROLS, _BEFORE = ("\t", "\r", "\n"), " \0\ufeff\u00a0"
_MARKDOWN_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|#!~]")


def as_csv(tables: Iterable[Table]) -> str:
    """Return tables as CSV of RFC 4180, with values for machines; a table's title is in the row above it."""
    found, out = list(tables), io.StringIO()
    writer = csv.writer(out)
    for number, table in enumerate(found):
        if len(found) > 1:
            if number:
                writer.writerow([])
            writer.writerow([_no_formula(table.title)])
        writer.writerow(map(_no_formula, table.columns))
        writer.writerows([_no_formula(cell.value) for cell in row] for row in table.rows)
    return out.getvalue()


def _no_formula(value: str | float | None) -> str | float:
    """Return a value for a cell of CSV; a text that a spreadsheet could compute gets an apostrophe before it.

    Names and groups come from datasets and models.
    """
    if value is None:
        return ""
    if not isinstance(value, str) or _INTERVAL.fullmatch(value):
        return value
    return f"'{value}" if value.startswith(_CONTROLS) or value.strip(_BEFORE)[:1] in _FORMULAS else value


def as_markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown, with numbers aligned to the right."""
    return "\n".join(map(_markdown, tables))


def _markdown(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(_MARKDOWN_SPECIAL.sub(_escaped, each) for each in cells)} |"

    rule = ["---" if place < table.names else "--:" for place in range(len(table.columns))]
    rows = [line(cell.shown for cell in row) for row in table.rows]
    title = _MARKDOWN_SPECIAL.sub(_escaped, table.title)
    lines = [f"**{title}**", "", line(table.columns), f"| {' | '.join(rule)} |", *rows, ""]
    return "\n".join(lines)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def as_latex(tables: Iterable[Table]) -> str:
    """Return each table as a `table` of LaTeX; it needs the package booktabs."""
    return "\n".join(map(_latex, tables))


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(_LATEX_SPECIAL.sub(lambda found: _LATEX[found[0]], each) for each in cells) + r" \\"

    columns = "l" * table.names + "r" * (len(table.columns) - table.names)
    title = _LATEX_SPECIAL.sub(lambda found: _LATEX[found[0]], table.title)
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{title}}}",
            rf"  \label{{tab:{table.word}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            f"    {line(table.columns)}",
            r"    \midrule",
            *(f"    {line([cell.shown for cell in row])}" for row in table.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


#: The formats by their words.
FORMATS: Mapping[str, Callable[[Iterable[Table]], str]] = {
    "csv": as_csv,
    "markdown": as_markdown,
    "latex": as_latex,
}
