"""No test asserts on a clock: how long something takes is the machine's doing, and belongs to `tests/bench`.

A test asserts what happened, and in which order. It may compare a clock inside a loop that waits: such a
deadline turns a hang into a failure, and does nothing else. A time that the farm measured may have a least
value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
#: Folders of instruments, which measure, or disturb for minutes.
INSTRUMENTS = frozenset({"bench", "chaos", "fuzz", "load", "nightly", "rolling", "vm"})
#: The shortest wait for a condition, in seconds of a usual machine.
LEAST_WAIT = 20.0

_OF_MODULES = {"monotonic", "perf_counter", "process_time", "thread_time"}
_OF_MODULES |= {f"{each}_ns" for each in _OF_MODULES}
_CLOCKS = {"time", "time_ns", "clock_gettime", "now", "times", "utcnow"} | _OF_MODULES
_MODULES = {"time", "datetime", "os"}
#: How long something took, as the farm or a library measured it.
_MEASURED = {"wall_seconds", "cpu_seconds", "import_seconds", "elapsed"}
#: Methods whose answer comes within some seconds or not.
_WAITS = {"wait", "wait_for", "acquire"}
#: A function without any of these compares no times.
_WORDS = _CLOCKS | _MEASURED | _WAITS | {"PATIENCE", "eventually"}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_ITERATES = (ast.For, ast.AsyncFor, ast.comprehension)
_BINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, *_ITERATES)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Times:
    """The names in a function for readings of a clock, and for sums and differences of readings."""

    def __init__(self, function: ast.AST, *, readings: Iterable[str] = (), spans: Iterable[str] = ()) -> None:
        self.readings, self.spans = {*readings}, {*spans}
        known = -1
        while known != (known := len(self.readings) + len(self.spans)):
            for node in ast.walk(function):
                if isinstance(node, _BINDS):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names = {_name(each) for target in targets for each in ast.walk(target)}
                    self._bind(node.iter if isinstance(node, _ITERATES) else node.value, names)
                elif isinstance(node, _FUNCTIONS):
                    for each in ast.walk(node):
                        self._bind(each.value if isinstance(each, ast.Return) else None, {node.name})

    def _bind(self, value: ast.AST | None, names: set[str]) -> None:
        if value is not None and self.is_span(value):
            self.spans |= names - {""}
        elif value is not None and any(map(self.is_reading, ast.walk(value))):
            self.readings |= names - {""}

    def is_reading(self, node: ast.AST) -> bool:
        """Whether a value is the time of a clock."""
        name = _name(node)
        if isinstance(node, ast.Call) and name in _CLOCKS:
            is_of_module = isinstance(node.func, ast.Attribute) and _name(node.func.value) in _MODULES
            return is_of_module or (isinstance(node.func, ast.Name) and name in _OF_MODULES)
        return name in self.readings

    def is_span(self, node: ast.AST) -> bool:
        """Whether a value is made of a sum or a difference with the time of a clock."""
        return any(
            _name(each) in self.spans
            or (isinstance(each, ast.BinOp) and any(map(self.is_reading, ast.walk(each))))
            for each in ast.walk(node)
        )

    def asserted(self, node: ast.AST, *, waits: bool = False) -> Iterator[int]:
        """Yield the lines below a node that compare times, and those that wait for a moment only."""
        if isinstance(node, ast.Compare) and self._is_about_time(node, waits=waits):
            yield node.lineno
        if isinstance(node, ast.Call) and _name(node) == "eventually" and _is_short(node):
            yield node.lineno
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Call) and _is_wait(node.test):
            yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from self.asserted(child, waits=waits or isinstance(node, ast.While))

    def _is_about_time(self, node: ast.Compare, *, waits: bool) -> bool:
        sides = [node.left, *node.comparators]
        for one, op, other in zip(sides, node.ops, sides[1:], strict=False):
            if not isinstance(op, _ORDERS):
                continue
            less, more = (other, one) if isinstance(op, ast.Gt | ast.GtE) else (one, other)
            is_deadline = waits and (self.is_reading(one) or self.is_reading(other))
            if not is_deadline and (self.is_span(one) or self.is_span(other)):
                return True
            if not isinstance(op, ast.Eq | ast.NotEq) and _measured(less) and not _is_one_measured(more):
                return True
        return any(_is_patience(each) for each in sides)


def _is_short(call: ast.Call) -> bool:
    """Whether a call has a number of seconds that is a matter of the machine's speed."""
    given = [*call.args, *(each.value for each in call.keywords)]
    numbers = (each.value for each in given if isinstance(each, ast.Constant))
    return any(isinstance(each, int | float) and 0 < each < LEAST_WAIT for each in numbers)


def _is_wait(call: ast.Call) -> bool:
    """Whether a call must have its answer within a moment; with none at all it waits as long as it takes."""
    return _name(call) in _WAITS and isinstance(call.func, ast.Attribute) and _is_short(call)


def _is_one_measured(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and _measured(node)


def _measured(node: ast.AST) -> bool:
    """Whether a value holds a measured time; a limit is one that somebody chose."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in _MEASURED and "limits" not in _name(each.value)
        for each in ast.walk(node)
    )


def _is_patience(node: ast.AST) -> bool:
    """Whether a value is a multiple of the patience of the machine; what a call waits for is a deadline."""
    if isinstance(node, ast.BinOp):
        return _is_patience(node.left) or _is_patience(node.right)
    return isinstance(node, ast.Name) and node.id == "PATIENCE"


def _is_long(node: ast.AST) -> bool:
    return isinstance(node, _FUNCTIONS) and any(
        ast.unparse(each) == "pytest.mark.long" for each in node.decorator_list
    )


def on_clocks(source: str) -> list[int]:
    """Return the lines of a file of tests that assert on a clock."""
    tops = [each for node in ast.parse(source).body for each in _members(node) if not _is_long(each)]
    words = {id(top): {_name(each) for each in ast.walk(top)} for top in tops}
    readings, spans = set[str](), set[str]()

    def told(top: ast.stmt) -> Times | None:
        is_about_time = words[id(top)] & (_WORDS | readings | spans)
        return Times(top, readings=readings, spans=spans) if is_about_time else None

    for _ in range(2):  # a function may return the time that another one returns
        for top in tops:
            if isinstance(top, _FUNCTIONS) and (times := told(top)):
                readings |= times.readings & {top.name}
                spans |= times.spans & {top.name}
    return sorted({line for top in tops if (times := told(top)) for line in times.asserted(top)})


def _members(node: ast.stmt) -> list[ast.stmt]:
    return node.body if isinstance(node, ast.ClassDef) else [node]


@pytest.mark.whole
def test_no_test_asserts_on_a_clock() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS)
        if place.parts[0] not in INSTRUMENTS:
            found += [f"tests/{place}:{line}" for line in on_clocks(path.read_text(encoding="utf-8"))]
    assert found == [], "count calls, statements or rows instead, or measure in tests/bench"


REFUSED = {
    "a difference": "begun = time.monotonic()\n    assert time.monotonic() - begun < 3",
    "a sum": "begun = monotonic()\n    assert monotonic() <= begun + LIMIT",
    "a deadline that nothing waits for": "end = time.time() + 3\n    work()\n    assert time.time() < end",
    "a name of a difference": "took = time.perf_counter() - begun\n    assert 3 > round(took, 1)",
    "the best of some": "took = [now() - now() for _ in 'ab']\n    assert min(took) < 3".replace(
        "now", "time.time"
    ),
    "a difference in a loop": "while True:\n        assert time.time() - begun < 3",
    "a difference that is waited for": "begun = time.time()\n    eventually(lambda: time.time() - begun > 1)",
    "what a function returns": "assert took() < 3\ndef took():\n    return time.process_time() - 1",
    "dates": "assert (datetime.now(UTC) - begun).seconds == 3",
    "about as long": "assert time.time() - begun == pytest.approx(1, abs=0.5)",
    "the farm's own measure": "assert 0.2 <= run.wall_seconds < 2",
    "a share of another measure": "assert run.cpu_seconds < 0.2 * other.cpu_seconds",
    "an answer's": "assert 1 > client.get('/').elapsed.total_seconds()",
    "patience": "assert seconds < 3 * PATIENCE",
    "an event within a moment": "assert ended.wait(2)",
    "a wait for a moment": "eventually(lambda: done, seconds=1)",
}
ALLOWED = {
    "a deadline of a wait": "end = time.time() + 3\n    while not done():\n        assert time.time() < end",
    "a loop until a deadline": "end = time.time() + 3\n    while time.time() < end:\n        work()",
    "an order": "first, second = time.time(), time.time()\n    assert first <= second",
    "a least measure": "assert run.cpu_seconds >= 0.3",
    "one measure and another": "assert after.cpu_seconds > before.cpu_seconds",
    "a limit": "assert limits.wall_seconds < 3",
    "a deadline of a call": "assert process.wait(60 * PATIENCE) == 0",
    "no event within a moment": "assert not ended.wait(0.2)",
    "a wait": "eventually(lambda: done, seconds=60)",
    "a method of another thing": "assert found.now('count(up)') < 3",
    "page faults": "before = getrusage(0).ru_minflt\n    assert getrusage(0).ru_minflt - before < 3",
}


@pytest.mark.parametrize("cases", [REFUSED, ALLOWED])
def test_a_comparison_of_times_is_found(cases: dict[str, str]) -> None:
    found = {name for name, code in cases.items() if on_clocks(f"def test_a():\n    {code}\n")}
    assert found == (set(cases) if cases is REFUSED else set())


def test_a_long_instrument_may_measure() -> None:
    assert on_clocks("@pytest.mark.long\ndef test_a():\n    assert time.time() - begun < 3\n") == []
