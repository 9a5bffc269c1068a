"""HOL Light, where lines are made: its record, the assembly of its lines, and the files of its benchmarks."""
