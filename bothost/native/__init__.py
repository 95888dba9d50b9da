"""The C++ core: games, search and learning, and their bindings in the extension module ``bothost.native._native``."""
