"""Audits of whole runs: what a command publishes, and what it asks of the gate, on neighbors.

``python -m audits`` runs them together with the cases of ``sfumato audit``, which come with the
package. These need a checkout.
"""
