"""Policy step: what a submitted text must not hold, whatever Lean says of it. Pure; linear in the text.

Lean accepts much that is no proof of the statement: an axiom of the submission's own, a statement after an
``#exit``, a macro that makes another statement of it. The rules below name what such texts are made of. Only
the submission's own part is looked at; the header and the statement are the dataset's.

A text that Lean may read otherwise than `farm.scanner` does (a comment straight behind a symbol can be part
of a token) gets no benefit of the doubt: there, comments and strings are looked at as if they were code.

The defaults rest on counts over 6 214 published machine proofs of benchmark problems and 2 300 harder or
human files: what none of them needs, or hardly any, is rejected; what honest provers write is reported.
"""

from farm.policy.hidden import is_doubtful
from farm.policy.rules import RULES, Action, Rule
from farm.policy.screen import MOST_HITS, Hit, Policy, Screen, refusing

__all__ = ["MOST_HITS", "RULES", "Action", "Hit", "Policy", "Rule", "Screen", "is_doubtful", "refusing"]
