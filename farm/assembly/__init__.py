"""Assembly step, inside: what `farm.assembly.program` is made of.

lean_answer    profile `farm`: the answer, read as Lean, behind header and statement
proof          how a body joins the statement
joining        header and statement, with what is kept of the model's text between them
preamble       what stands before the model's declaration, and what of it is kept
stated         what header and statement declare themselves
commands       where Lean's commands are, and what they declare
choice         which code block is the answer
declaration    where declarations are, and where their signatures end
answer         thinking, the final answer key, fences
vocabulary     Lean's words
nemo           profiles `nemo-2025-11` and `nemo-2025-08`
segments       which piece of the program came from where
metamath       a block of Metamath, with the proof of an answer
"""
