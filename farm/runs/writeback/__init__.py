"""Export step, inside: writes verdicts into the lines of a manifest, in several processes.

Children of the exporter do the expensive work: each reads the verdicts of its lines over a connection of its
own, and sets the fields. The exporter itself cuts the file into pieces of whole
lines, takes fingerprints, and writes the results, in the order of the lines. The exporter itself prepares the
first lines, so that a short manifest starts no child.
"""
