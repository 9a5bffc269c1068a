"""`farm bench`: measures how many small programs a second this machine checks on each tier."""
