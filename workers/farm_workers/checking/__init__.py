"""Checking, of Lean: compiles one program, audits its module, and reports the facts to Lean's judge."""
