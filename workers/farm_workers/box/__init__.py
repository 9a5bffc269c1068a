"""Box: runs one process tree within limits, in control groups and namespaces if the machine offers them.

`prepared` in `farm_workers.box.isolation` finds out what this machine offers. `run` runs one command from
start to end; `farm_workers.box.cell.Cell` holds a long-lived one, such as an image.
"""
