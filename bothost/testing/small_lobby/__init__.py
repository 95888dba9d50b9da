"""A complete adapter of a lobby that plays Othello, and a fake of that lobby.

``bothost plugin new NAME --kind lobby`` copies both: start an adapter of your own from them.
"""
