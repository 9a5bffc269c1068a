"""Judging: turns a worker's report on one check into its verdict. Pure."""
