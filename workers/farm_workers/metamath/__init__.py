"""Metamath step: verifies proofs of a Metamath database in forks of a process that has read it.

`farm_workers.metamath.database` reads a database as data, `farm_workers.metamath.proof` verifies one proof
against it, and `farm_workers.metamath.block` both for a block that is put behind the database. The language
is that of the Metamath book, second edition, chapter 4 (https://us.metamath.org/downloads/metamath.pdf).
"""
