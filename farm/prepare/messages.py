"""Preparation step, what goes through the pipes between the submitter and its children."""

from __future__ import annotations

import pickle
from struct import Struct

#: How long the next message is: this goes before it.
LENGTH = Struct("!Q")


def packed(message: object) -> bytes:
    """Return a message as it goes through a pipe."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content
