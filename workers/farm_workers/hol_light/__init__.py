"""HOL Light step: runs tactics in forks of a process that has loaded HOL Light's library.

`farm_workers.hol_light.serve` is that process, an image (`farm_workers.images`). It holds OCaml's runtime as
a library (`farm_workers.hol_light.ocaml`), in which HOL Light's toplevel loads the library and, behind that,
the gate and the judge (``judge.ml``). `farm_workers.hol_light.resident` keeps the image of each environment,
and `farm_workers.hol_light.judge` runs each check in a fork of that image.
"""
