"""A complete adapter of a lobby that plays Othello, and a fake of that lobby.

``bothost plugin new NAME --kind lobby`` copies both, as a start for your own adapter.
"""
