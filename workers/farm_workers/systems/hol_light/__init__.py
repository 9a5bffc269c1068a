"""HOL Light step: runs tactics in forks of a process that has loaded HOL Light's library.

`serve` is that process, an image (`farm_workers.images`). It holds OCaml's runtime as a library (`ocaml`), in
which HOL Light's toplevel loads the library and, behind that, the gate and the judge (``judge.ml``).
`resident` keeps the image of each environment, and `judge` runs each check in a fork of that image.
"""
