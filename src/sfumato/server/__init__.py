"""The collection service: answers randomized on people's devices arrive, are kept and counted.

Reading order: tokens; storage: tables, database, answers (blocks, index, SQL), uploads (what one
transaction does, and the writer of many); surveys: rounds (the variants of a survey), lifecycle,
estimates, publication, poisoning, release; http: messages, bodies, limits, person_routes,
owner_routes, app; process.

It needs the extra ``service``, and never sees a true answer; what it keeps: ``docs/service.md``.
"""
