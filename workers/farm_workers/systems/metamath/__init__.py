"""Metamath step: verifies proofs of a Metamath database in forks of a process that has read it.

`database` reads a database as data, `proof` verifies one proof against it, and `block` both for a block that
is put behind the database. The language is that of the Metamath book, second edition, chapter 4
(https://us.metamath.org/downloads/metamath.pdf).
"""
