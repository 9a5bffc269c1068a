"""Binding step, symbols: the name that Lean's compiler gives a function in the library. Pure.

Source: ``src/Lean/Compiler/NameMangling.lean``: letters and digits stand for themselves, an underscore is
doubled, any other character is its code in hexadecimal, behind ``_x``, ``_u`` or ``_U``.
"""

from __future__ import annotations

_PREFIX = "l_"


def symbol_of(name: str) -> str:
    """Return the symbol of a function of Lean's; a part of its name that is a number stays one."""
    made = ""
    for part in name.split("."):
        if part.isdigit():
            made += f"_{part}_"
        else:
            made += "_" * bool(made) + "".join(map(_mangled, part))
    return _PREFIX + made


def _mangled(character: str) -> str:
    code = ord(character)
    if character == "_":
        return "__"
    if character.isascii() and character.isalnum():
        return character
    return f"_x{code:02x}" if code < 0x100 else f"_u{code:04x}" if code < 0x10000 else f"_U{code:08x}"
