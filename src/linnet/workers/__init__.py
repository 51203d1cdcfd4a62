"""Stateless workers: a store of tiles, a queue of ready tasks, a ledger of what is done."""
