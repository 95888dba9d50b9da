"""Matches between strategies on duplicate deals, without sockets.

Every deal is played once per *lineup* (contestant per seat), so the luck of the deal cancels. The seed determines a
match, whatever the number of worker processes. A match can stop when a sequential test has decided, and resumes from
its journal.
"""
