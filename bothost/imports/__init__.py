"""Recorded games of others, brought into the decision log.

A reader turns each record of a file into a :class:`~bothost.imports.record.HandRecord`: a deal, the actions, and what
the record says of the result. ``rebuild`` plays it again under our rules, which makes every event and every decision.
``job`` writes a hand in one transaction, once.
"""
