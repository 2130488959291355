"""The collection service: answers randomized on people's devices arrive, are kept and counted.

Reading order: tokens; storage: tables, database, blocks (answers as they are stored), answer_index,
statements, uploads (what one transaction does), writer (many uploads, one commit); surveys: rounds
(the variants of a survey), lifecycle, estimates, publication, explanation, poisoning, release;
http: bodies, refusals, person_routes, owner_routes, limits, upload_route, metrics, openapi, app;
process.

It needs the extra ``service``, and never sees a true answer; what it keeps: ``docs/service.md``.
"""
