"""The collection service: answers randomized on people's devices arrive, are kept and counted.

Reading order: tokens, tables, storage, keeping (what one transaction does), writer (many uploads,
one commit), surveys (the life of a survey), answers, estimating, poisoning, limits, app. It needs
the extra ``service``. The service never sees a true answer; what it keeps and tells is in
``docs/service.md``.
"""
