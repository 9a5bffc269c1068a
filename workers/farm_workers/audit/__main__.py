"""Audit step, as a process: reads two compiled modules and prints its findings as one JSON object.

It needs a Python and this package, nothing else. From a checkout, `main` of this module is called by::

    python -I -S -c "import sys; sys.path[:0] = [DIR]; from farm_workers.audit.__main__ import main; main()"

with the file to audit behind it. The exit status is 0 for a module that is accepted, 1 for one with a
finding, 2 for wrong arguments, 4 when a file is not in Lean's format (reason ``malformed_olean``).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from farm_workers.audit.answers import AnswerRules
from farm_workers.audit.audit import STANDARD_AXIOMS, Rules, Test, audit, audit_all, audit_statement
from farm_workers.audit.declarations import Module, opened_module
from farm_workers.audit.dependencies import BadTable, NotInTable, mapped
from farm_workers.audit.findings import Findings, malformed, out_of_memory
from farm_workers.audit.holes import judge_hole
from farm_workers.audit.lines import SortedLines
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.audit.parts import with_standings
from farm_workers.audit.unchecked import of_listed

ACCEPTED, FOUND, USAGE, MALFORMED = 0, 1, 2, 4
#: The limits that the process sets itself before it opens a file.
ADDRESS_SPACE_BYTES, CPU_SECONDS = 1 << 30, 60


def main() -> NoReturn:
    """Audit the module named on the command line, print the findings, and end the process."""
    arguments = _parser().parse_args()
    _limit(resource.RLIMIT_AS, ADDRESS_SPACE_BYTES)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS)
    try:
        facts = _with_hole(_audited(arguments), arguments).facts()
        status = ACCEPTED if facts["accepted"] else FOUND
    except MalformedOlean as error:
        facts, status = malformed(error).facts(), MALFORMED
    except MemoryError:
        facts, status = out_of_memory().facts(), MALFORMED
    except (OSError, ValueError, BadTable, NotInTable) as error:
        print(error, file=sys.stderr)  # noqa: T201 - talk
        sys.exit(USAGE)
    print(json.dumps(facts))  # noqa: T201 - the answer
    sys.exit(status)


def _audited(arguments: argparse.Namespace) -> Findings:
    rules = Rules(
        allowed_axioms=arguments.axioms,
        native=arguments.native,
        is_imported=_test(arguments.imported),
        is_imported_axiom=_test(arguments.imported_axioms),
        parts_from=arguments.parts_from,
        permitted=frozenset(arguments.permit_sorry),
        permits_library=arguments.permit_library_sorries,
        statement_from=arguments.statement_from,
        answers=arguments.answers,
        forbidden=arguments.forbidden,
        negates=arguments.negates,
    )
    with opened_module(arguments.submission) as submission:
        rules = _with_table(rules, submission, arguments.dependencies)
        if arguments.states:
            return audit_statement(submission, rules, written=submission, ends=arguments.ends)
        if arguments.challenge is None:
            target = arguments.target
            if target is not None:
                return audit(submission, None, target, rules)
            found = _with_declared(audit_all(submission, rules), submission, arguments.declared)
            return _with_standings(found, submission, None, rules, arguments)
        with opened_module(arguments.challenge) as challenge:
            found = audit(submission, challenge, arguments.target, rules, ends=arguments.ends)
            return _with_standings(found, submission, challenge, rules, arguments)


def _with_table(rules: Rules, module: Module, file: Path | None) -> Rules:
    """Return the rules with the table of dependencies in a file."""
    if file is None:
        return rules
    table = mapped(file, [each.module for each in module.imports])
    return replace(rules, dependencies=table.below)


def _with_standings(
    findings: Findings, module: Module, challenge: Module | None, rules: Rules, arguments: argparse.Namespace
) -> Findings:
    """Add the standings of parts and declarations, if the command line wants them."""
    if not (arguments.declarations or arguments.permit_sorry):
        return findings
    return with_standings(
        findings, module, challenge, rules, ends=arguments.ends, lists=arguments.declarations
    )


def _with_hole(findings: Findings, arguments: argparse.Namespace) -> Findings:
    """Add the findings against an answer to a hole of a program."""
    if arguments.parent is None or arguments.hole is None:
        return findings
    with opened_module(arguments.submission) as submission, opened_module(arguments.parent) as parent:
        more = tuple(judge_hole(submission, parent, arguments.hole, arguments.hole_below))
    return replace(findings, findings=(*findings.findings, *more))


def _with_declared(findings: Findings, module: Module, file: Path | None) -> Findings:
    """Add a finding for each name in a file, one a line, that the module does not declare."""
    if file is None:
        return findings
    declared = file.read_text(encoding="utf-8", errors="replace").split("\n")
    more = of_listed(module, list(filter(None, declared)), None)
    return replace(findings, findings=(*findings.findings, *more))


def _test(file: Path | None) -> Test:
    """Return whether a name is in a sorted file, one a line, in the form of `names.dotted`."""
    if file is None:
        return None
    names = SortedLines(file)
    return lambda name: dotted(name) in names


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, hard))


def _place(text: str) -> tuple[int, int]:
    line, column = text.split(":")
    return int(line), int(column)


def _answers(file: str) -> AnswerRules:
    return AnswerRules.of(json.loads(Path(file).read_text(encoding="utf-8", errors="surrogatepass")))


def _names(text: str) -> frozenset[Name]:
    return frozenset(parsed(each) for each in text.split(",") if each)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="audit", description="Audits a compiled Lean module as data.")
    parser.add_argument("submission", type=Path, help="the compiled module (.olean)")
    _add_statement(parser)
    _add_places(parser)
    _add_rules(parser)
    _add_library(parser)
    return parser


def _add_statement(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--challenge", type=Path, help="the compiled challenge: statement with `sorry`")
    add(
        "--target",
        type=parsed,
        help="full name; by default the last theorem, which the challenge leaves open",
    )
    add("--parent", type=Path, help="the compiled program with a hole that the module fills")
    add(
        "--declared",
        type=Path,
        help="file with the names that a program declares, by Lean's list, one per line",
    )
    add("--declarations", action="store_true", help="list the module's declarations")
    add("--states", action="store_true", help="the file is a challenge: print the facts of its statement")


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a place in the program's text, each by a line and a column."""
    for name, what in (
        ("--ends", "at which the target's text ends, as 7:34"),
        ("--negates", "at which the text ends whose negation the challenge has to state"),
        ("--parts-from", "below which all theorems that the challenge leaves open have to be proved"),
        ("--statement-from", "at which the challenge's statement begins"),
        ("--hole", "of the hole in the program of --parent"),
    ):
        parser.add_argument(name, type=_place, help=f"line and column {what}")
    parser.add_argument(
        "--hole-below", type=_place, default=(0, 0), help="line and column at which a context above it ends"
    )


def _add_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--permit-sorry", action="append", default=[], help="what may contain a sorry; * for anything")
    add("--answers", type=_answers, help="JSON file of the open definitions that the module may give")
    add("--axioms", type=_names, default=STANDARD_AXIOMS, help="allowed axioms, separated by commas")
    add(
        "--forbidden",
        type=_names,
        default=frozenset(),
        help="constants that the proof must not reach, separated by commas",
    )
    add("--native", action="store_true", help="trust the compiler, as native_decide does")


def _add_library(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the imported modules declare and rest on."""
    add = parser.add_argument
    add("--imported", type=Path, help="file with the names of imported constants, one per line")
    add("--imported-axioms", type=Path, help="file with the names of imported axioms")
    add("--dependencies", type=Path, help="the table of dependencies of the imported modules")
    add(
        "--permit-library-sorries",
        action="store_true",
        help="accept proofs that rest on a sorry of an imported module",
    )


if __name__ == "__main__":
    main()
