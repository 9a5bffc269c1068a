"""Proof systems, where lines are checked: a folder for each system, with the record of all its parts.

system      the record's type, and the interface of a judge
canaries    judges the known proofs of a system
known       returns the record of a system
"""
