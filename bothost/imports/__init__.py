"""Import recorded games of others into the decision log.

A reader converts each record of a file to a :class:`~bothost.imports.record.HandRecord`: a deal, the actions, and the
recorded result. ``rebuild`` replays it under our rules, which gives every event and decision. ``job`` writes each hand
once, in one transaction.
"""
