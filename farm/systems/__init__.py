"""Proof systems, where lines are made: a folder for each system, with the record of all its parts.

system    the record's type
known     returns the record of a system
"""
