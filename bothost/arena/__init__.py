"""Matches between strategies on duplicate deals, without sockets.

Every deal is played once per *lineup* (who sits where), so that luck of the deal cancels: what is compared is what
each contestant made of the same cards. A match is determined by its seed whatever the number of worker processes, can
stop as soon as a sequential test has decided, and resumes from its journal.
"""
