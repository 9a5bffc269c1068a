"""Policy step: finds the parts of a submitted text that may be meant to deceive. Pure; in linear time.

The rules below name constructs that Lean accepts and that prove nothing: an axiom of its own, a statement
after an ``#exit``, a macro that changes the statement. Only the submission's own part is examined; the header
and the statement are the dataset's.

A hit is a signal: it is stored with the verdict, and counts of hits show how often a model tries. It decides
nothing if the compiled module is audited. Only the tier ``lean``, which has no more than Lean's word, rejects
the hits of some rules; there, a text that Lean reads otherwise than `farm.lean_text.scanner` does gets
through.
"""
