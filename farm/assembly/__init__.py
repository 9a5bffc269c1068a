"""Assembly: turns manifest lines and models' answers into programs; these modules serve `program`.

lean_answer    profile `farm`: reads the answer as Lean and writes it after header and statement
proof          joins a proof to the statement
joining        writes header and statement, with the model's kept text between them
preamble       reads the model's text above its declaration, and plans which of its commands to keep
stated         reads the declarations of header and statement
commands       finds Lean's commands and the names that they declare
choice         chooses the code block that is the answer
declaration    finds declarations and the ends of their signatures
answer         finds thinking, the final answer key, and fences
vocabulary     recognizes prose by its own signs, and lines that begin a command
nemo           profiles `nemo-2025-11` and `nemo-2025-08`
segments       maps each segment of a program to its manifest field
"""
