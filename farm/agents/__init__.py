"""The farm for language models: the tools of `farm mcp`, and the skill that teaches them."""
