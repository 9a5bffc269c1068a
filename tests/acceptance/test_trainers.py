"""The trainers' adapters against a real service: what each trainer is given, also when it is killed."""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from farm.client import Refused
from farm.trainers import asking, nemo_gym, openrlhf, slime, trl, verifiers, verl
from farm.trainers.asking import BadRow, NoReward
from farm.trainers.problems import BadColumn
from tests.commands import HEADER, Command
from tests.faulty_rows import FAULTY, SOUND, answers
from tests.processes import CODE, PATIENCE, eventually
from tests.trainer_service import FIELDS, RIGHT, STATEMENT, WRONG, Served, endless, service

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as served:
        yield served


@dataclass
class Sample:
    """What slime gives of a sample."""

    response: str
    label: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    reward: Any = None


def trace(fields: object, reply: str) -> SimpleNamespace:
    """Return what verifiers gives of a rollout."""
    return SimpleNamespace(
        task=SimpleNamespace(data=SimpleNamespace(**{**dict(fields), "timeout": object()})),  # type: ignore[call-overload]
        last_reply=reply,
    )


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def columns(fields: dict[str, Any], count: int) -> dict[str, list[Any]]:
    return {name: [value] * count for name, value in fields.items()}


def run(awaitable: Awaitable[Any]) -> Any:
    async def waited() -> Any:
        try:
            return await awaitable
        finally:
            await asking.close()

    return asyncio.run(waited())


def the_reward(tensors: dict[str, Any]) -> float:
    assert set(tensors) == {"rewards", "scores", "extra_logs"}
    return float(tensors["rewards"][0])


def with_trl(fields: dict[str, Any], answer: str, **options: Any) -> object:
    return trl.rewards(**options)(prompts=["p"], completions=[answer], **columns(fields, 1))[0]


def with_trl_async(fields: dict[str, Any], answer: str, **options: Any) -> object:
    given = columns(fields, 1)
    return run(trl.rewards_async(**options)(prompts=["p"], completions=[chat(answer)], **given))[0]


def with_verl(fields: dict[str, Any], answer: str, **options: Any) -> object:
    return run(verl.compute_score("lean", answer, fields, {"index": 3}, **options))


def with_verl_sync(fields: dict[str, Any], answer: str, **options: Any) -> object:
    return verl.compute_score_sync("lean", answer, json.dumps(fields), None, **options)


def with_openrlhf(fields: dict[str, Any], answer: str, **options: Any) -> object:
    prompt = "<|im_start|>Prove it: ```lean4\nsorry\n```<|im_start|>"
    query = f"<s>{prompt}{answer}<|im_end|>\n<|endoftext|>"
    return the_reward(openrlhf.reward_func([query], [prompt], [json.dumps(fields)], **options))


def with_slime(fields: dict[str, Any], answer: str, **options: Any) -> object:
    return run(slime.reward(SimpleNamespace(), Sample(answer, label=json.dumps(fields)), **options))


def with_verifiers(fields: dict[str, Any], answer: str, **options: Any) -> object:
    limit = {"timeout": fields["timeout"]} if "timeout" in fields else {}
    return run(verifiers.lean_proof(trace(fields, answer), **limit, **options))


def with_nemo_gym(fields: dict[str, Any], answer: str, **options: Any) -> object:
    found = run(nemo_gym.verify({**fields, "responses_create_params": {}}, answer, **options))
    assert found["mask_sample"] is (found["reward"] is None)
    assert (found["failure_reason"] is None) is (found["reward"] is not None)
    return found["reward"]


Adapter = Callable[..., object]
#: The adapters that return None where nobody knows; the others raise.
RETURNING: list[Adapter] = [with_trl, with_trl_async, with_slime, with_nemo_gym]
RAISING: list[Adapter] = [with_verl, with_verl_sync, with_openrlhf, with_verifiers]
ADAPTERS = pytest.mark.parametrize("adapter", [*RETURNING, *RAISING])


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `torch` that knows what OpenRLHF's adapter needs of it: the tests run without the real one."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(tensor=list))


@ADAPTERS
def test_a_trainer_is_given_1_for_a_proof_and_0_for_none(
    served: Served, torch: None, adapter: Adapter
) -> None:
    asked = partial(adapter, FIELDS, **served.options)
    assert (asked(RIGHT), asked(WRONG)) == (1.0, 0.0)


#: Faulty rows that differ in the place of their fault, and answers that differ in what Lean reports first.
ROWS = (
    "unknown identifier",
    "not a proposition",
    "syntax error",
    "open bracket",
    "unknown tactic of a binder",
    "faulty part above",
    "no declaration",
    "unknown option",
    "missing module",
    "faulty context",
)
SHAPES = ("right", "wrong", "syntax error", "definition above", "empty")


@ADAPTERS
@pytest.mark.parametrize("stop_at_error", [True, False])
def test_no_answer_to_a_faulty_row_has_a_reward(
    served: Served, torch: None, adapter: Adapter, *, stop_at_error: bool
) -> None:
    unlike = {}
    for row in ROWS:
        fields = {"formal_statement": SOUND, "header": HEADER, **FAULTY[row]}
        for shape in SHAPES:
            text = answers(str(fields["formal_statement"]))[shape]
            asked = partial(adapter, fields, text, stop_at_error=stop_at_error, bad_rows="raise")
            try:
                unlike[row, shape] = asked(**served.options)
            except BadRow as error:
                if any(error.rewards):
                    unlike[row, shape] = error.rewards
    assert unlike == {}


def test_a_service_that_is_killed_in_the_middle_of_a_call_is_never_a_0(
    farm: Command, tmp_path: Path, torch: None
) -> None:
    adapters = [*RETURNING, *RAISING]
    found = dict[str, object]()

    def ask(adapter: Adapter) -> None:
        fields, answer = endless(name_of(adapter), 20 * PATIENCE)
        try:
            found[name_of(adapter)] = adapter(fields, answer, **own.options, deadline=4.0 * PATIENCE)
        except NoReward as error:
            found[name_of(adapter)] = type(error)

    with service(farm, tmp_path) as own:
        before = own.batches()
        callers = [threading.Thread(target=ask, args=(adapter,)) for adapter in adapters]
        for caller in callers:
            caller.start()
        eventually(lambda: own.batches() == before + len(adapters))
        own.kill()
        own.cancel(most=len(adapters))  # Lean would go on with them, and nobody can ask any more
        for caller in callers:
            caller.join(60 * PATIENCE)
    returned, raised = dict.fromkeys(map(name_of, RETURNING)), dict.fromkeys(map(name_of, RAISING), NoReward)
    assert found == returned | raised


def name_of(adapter: Adapter) -> str:
    return adapter.__name__


@ADAPTERS
def test_a_dataset_that_does_not_say_what_to_prove_is_told_so(torch: None, adapter: Adapter) -> None:
    fields = {"statement": "theorem t : True := by", "header": "import Core"}
    with pytest.raises(BadColumn, match=r"formal_statement.*says what is to be proved"):
        adapter(fields, RIGHT, url="http://127.0.0.1:9", deadline=1.0)


class TestTrl:
    @pytest.mark.newcomer
    def test_completions_are_texts_or_chats_in_the_order_of_the_dataset(self, served: Served) -> None:
        completions = [RIGHT, chat(WRONG), [{"role": "tool", "content": "x"}, *chat(RIGHT)], WRONG]
        reward = trl.rewards(**served.options)
        assert reward(prompts=[], completions=completions, **columns(FIELDS, 4)) == [1.0, 0.0, 1.0, 0.0]

    def test_the_log_is_told_the_verdicts_and_what_is_not_known(self, served: Served) -> None:
        extra, metrics = dict[str, object](), dict[str, object]()
        reward = trl.rewards(**served.options)
        reward(
            completions=[RIGHT, WRONG],
            log_extra=extra.__setitem__,
            log_metric=metrics.__setitem__,
            trainer_state=object(),
            **columns(FIELDS, 2),
        )
        assert extra == {"lean_verdict": ["proved", "rejected"]}
        assert metrics == {"lean_proof/unknown": 0.0}

    def test_one_that_is_not_known_leaves_the_others_their_rewards(self, served: Served) -> None:
        fields, answer = endless("trl_mixed", 5 * PATIENCE)
        given = {**columns(FIELDS, 2), "timeout": [None, fields["timeout"]]}
        given["formal_statement"] = [FIELDS["formal_statement"], fields["formal_statement"]]
        reward = trl.rewards(**served.options, deadline=3.0 * PATIENCE)
        assert reward(completions=[RIGHT, answer], **given) == [1.0, None]


def test_verl_passes_options_of_its_own_and_those_of_its_configuration(served: Served) -> None:
    class Listed(tuple[str, ...]):
        """A list of a configuration library, which is none of Python's."""

    own = {"reward_router_address": "x:1", "reward_model_tokenizer": None}
    options = {**served.options, "accept": Listed(["forgeable"])}
    assert verl.compute_score_sync("", RIGHT, FIELDS, {}, **options, **own) == 1.0
    with pytest.raises(TypeError, match="unknown option 'wall'"):
        verl.compute_score_sync("", RIGHT, FIELDS, {}, **served.options, wall=3)


def test_verl_reads_the_statement_of_extra_info_where_the_ground_truth_is_a_text(served: Served) -> None:
    asked = partial(verl.compute_score_sync, "", RIGHT, **served.options)
    assert asked("and_swap", {"index": 3, **FIELDS}) == 1.0


class TestSlime:
    def test_several_samples_get_their_rewards_in_order(self, served: Served) -> None:
        samples = [Sample(RIGHT, metadata=FIELDS), Sample(WRONG, label="and_swap", metadata=FIELDS)]
        assert run(slime.reward(None, samples, **served.options)) == [1.0, 0.0]

    def test_a_group_is_kept_where_all_of_it_is_known(self) -> None:
        known, unknown = Sample("", reward=0.0), Sample("")
        assert slime.keep_known(None, [known, [known, known]])
        assert not slime.keep_known(None, [known, unknown])
        assert not slime.keep_known(None, [known, [known, unknown]])


@pytest.mark.parametrize("prompt", ["", "Prove it: "])
def test_openrlhf_s_answers_may_be_bare_and_end_as_the_tokenizer_ends_them(
    served: Served, torch: None, prompt: str
) -> None:
    queries = [f"{prompt}exact {term}<|im_end|>\n<|endoftext|>" for term in ("⟨h.right, h.left⟩", "h")]
    found = openrlhf.reward_func(queries, [prompt] * 2, [FIELDS] * 2, **served.options)
    assert found["rewards"] == [1.0, 0.0]


def test_openrlhf_is_told_where_the_prompt_was_cut(torch: None) -> None:
    with pytest.raises(BadColumn, match="does not contain its prompt"):
        openrlhf.reward_func(["rompt: exact h"], ["prompt: "], [FIELDS])


def test_an_example_prints_rewards(served: Served) -> None:
    where = {"FARM_URL": served.options["url"], "FARM_TOKEN": served.options["token"]}
    ended = subprocess.run(
        [sys.executable, ROOT / "examples" / "rl" / "slime_reward.py"],
        env={**Command(where).environment, "PYTHONPATH": CODE},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout in ("[1.0, 0.0]\n", "[None, 0.0]\n")  # None where nothing walls a proof in


def test_many_event_loops_and_threads_may_ask_at_once(served: Served) -> None:
    found = list[object]()
    threads = [
        threading.Thread(target=lambda: found.append(with_slime(FIELDS, RIGHT, **served.options)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * PATIENCE)
    assert found == [1.0] * 8


# A row at which the dataset is at fault


TYPO = {**FIELDS, "name": "typo", "formal_statement": "theorem bad (n : Nat : n = n := by"}
#: Rows that no answer can prove, each with the field that is at fault.
BAD_ROWS = pytest.mark.parametrize(
    ("fields", "field"),
    [
        (TYPO, "formal_statement"),
        (
            {**FIELDS, "name": "typo", "formal_statement": "theorem t (p : Prop) : q r := by"},
            "formal_statement",
        ),
        ({**FIELDS, "name": "typo", "header": "prelude\nimport Cor\n"}, "header"),
        ({**FIELDS, "name": "typo", "context": "prelude\n"}, "context"),
        ({**FIELDS, "name": "typo", "formal_statement": " "}, "formal_statement"),
        ({**FIELDS, "name": "typo", "timeout": 1e9}, "timeout"),
        ({**FIELDS, "name": "typo", "environment": "lean9"}, "environment"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


def no_remedy_is_to_repeat(words: str) -> None:
    assert "dataset is at fault" in words
    assert "typo" in words
    assert not re.search(r"ask (it )?again|farm status|the farm failed", words)


@BAD_ROWS
def test_a_bad_row_is_named_as_the_dataset_s_and_leaves_the_others_their_rewards(
    served: Served, torch: None, caplog: pytest.LogCaptureFixture, fields: dict[str, Any], field: str
) -> None:
    rows = [FIELDS, fields, FIELDS]
    given = {name: [row.get(name) for row in rows] for name in {*FIELDS, *fields}}
    assert trl.rewards(**served.options)(completions=[RIGHT] * 2 + [WRONG], **given) == [1.0, None, 0.0]
    (record,) = caplog.records
    no_remedy_is_to_repeat(record.getMessage())
    assert re.search(rf"row 2 of 3 \('typo'\): .*{field}", record.getMessage())
    caplog.clear()
    samples = [Sample(RIGHT, label=json.dumps(row)) for row in rows]
    assert run(slime.reward(None, samples, **served.options)) == [1.0, None, 1.0]
    asked = ["p"] * 3, [json.dumps(row) for row in rows]
    with pytest.raises(BadRow, match=rf"row 2 of 3.*{field}") as raised:
        openrlhf.reward_func([f"p{RIGHT}"] * 3, *asked, **served.options)
    no_remedy_is_to_repeat(str(raised.value))
    assert raised.value.rewards == (1.0, None, 1.0)
    found = openrlhf.reward_func([f"p{RIGHT}"] * 3, *asked, **served.options, bad_rows="leave_out")
    assert [found["rewards"][place] for place in (0, 2)] == [1.0, 1.0]
    assert math.isnan(found["rewards"][1])


@pytest.mark.parametrize("adapter", RAISING)
def test_one_bad_sample_raises_or_is_left_out(served: Served, torch: None, adapter: Adapter) -> None:
    with pytest.raises(BadRow) as raised:
        adapter(TYPO, RIGHT, **served.options)
    no_remedy_is_to_repeat(str(raised.value))
    left_out = adapter(TYPO, RIGHT, **served.options, bad_rows="leave_out")
    assert left_out is None or math.isnan(left_out)  # type: ignore[arg-type]


@pytest.mark.parametrize("adapter", RETURNING)
def test_one_bad_sample_is_left_out_or_raises(
    served: Served, caplog: pytest.LogCaptureFixture, adapter: Adapter
) -> None:
    assert adapter(TYPO, RIGHT, **served.options) is None
    no_remedy_is_to_repeat(caplog.records[0].getMessage())
    with pytest.raises(BadRow):
        adapter(TYPO, RIGHT, **served.options, bad_rows="raise")


def test_a_row_without_a_statement_is_left_out_where_others_have_one(served: Served) -> None:
    given = columns(FIELDS, 2) | {"formal_statement": [STATEMENT, None]}
    assert trl.rewards(**served.options)(completions=[RIGHT] * 2, **given) == [1.0, None]


def test_a_wrong_option_is_no_fault_of_the_dataset(served: Served) -> None:
    with pytest.raises(Refused, match="timeout"):
        trl.rewards(**{**served.options, "timeout": -1.0})(completions=[RIGHT], **columns(FIELDS, 1))
    with pytest.raises(ValueError, match="bad_rows='none'"):
        trl.rewards(**served.options, bad_rows="none")(completions=[RIGHT], **columns(FIELDS, 1))  # type: ignore[arg-type]


def test_trl_names_the_columns_that_it_found() -> None:
    given = {"statement": ["t"], "level": [1], "prompts": ["p"], "trainer_state": None}
    with pytest.raises(BadColumn, match=r"its columns are: level, statement\."):
        trl.rewards(url="http://127.0.0.1:9")(completions=[RIGHT], **given)
