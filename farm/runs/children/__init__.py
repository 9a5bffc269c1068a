"""Children: processes that do the work on a long manifest's lines for the process that reads the file."""
