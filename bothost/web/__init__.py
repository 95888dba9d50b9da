"""The browser: watch tables, play against the bots, replay and review logged hands.

Starlette serves JSON and a stream of changes; the pages are static ES modules in ``static/``. Everything comes from the
decision log, the registry and the replay engine, as on the command line. A request passes three parts in turn:

    guard.py        is this request for us, from our own page? (Host, Origin, size, security headers)
    viewers.py      who asks: operator, spectator or player, and what may this viewer see?
    application.py  the routes, one module a topic: hands, live, …
"""
