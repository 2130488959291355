"""The collection service: answers randomized on people's devices arrive, are kept and counted.

Reading order: tokens, tables, storage, blocks (answers as they are stored), seen, statements,
keeping (what one transaction does), writer (many uploads, one commit), rounds (the variants of a
survey), surveys (its life), estimating, explaining, poisoning, releasing, sealing; reading,
documents, refusals, people, owners, limits, lane, metrics, app, serving. Beside the server:
driving, pipes and attacks (simulated clients), unpacking (a release that was fetched).

It needs the extra ``service``, and never sees a true answer; what it keeps: ``docs/service.md``.
"""
