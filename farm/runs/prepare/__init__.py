"""Preparation step: manifest lines become blocks of rows for the store, in several processes.

Children of the submitter do the expensive work: they read a line's JSON, assemble its program, and encode
its row. The submitter itself cuts the file into pieces of whole lines, takes the file's fingerprint, and
passes on the blocks, in the order of the lines. The first lines are prepared in the submitter, so that a
short manifest starts no child.
"""
