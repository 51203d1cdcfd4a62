"""The queue of a job in Redis or Valkey.

Under `linnet:{job}:identity:queue:` there are

    ready    sorted set    tasks that can be leased, by priority
    leased   sorted set    tasks under a lease, by when it ends
    held     hash          receipt, deliveries and priority of each task that was ever leased
    dead     set           tasks that were delivered too often

A task whose lease has ended stays in `leased` until somebody leases: then it goes back to `ready`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from linnet.workers.queue import Entry, Lease, QueueSize
from linnet.workers.remote.connection import PATIENCE, Connection, Script

_COMMON = """
local ready, leased, held, dead = P..'queue:ready', P..'queue:leased', P..'queue:held', P..'queue:dead'

local function facts(name)
  local text = call('HGET', held, name)
  if not text then return nil end
  return cmsgpack.unpack(text)
end

local function packed(receipt, deliveries, priority) return cmsgpack.pack({receipt, deliveries, priority}) end

-- Leases tasks that are in no list now, a list of names and priorities; not those delivered too often.
local function lend(names, priorities, stamp, seconds, most)
  local known = fetched(held, names)
  local found, kept, ends = {}, {}, {}
  local when = string.format('%.6f', now + seconds)
  for i, name in ipairs(names) do
    local deliveries, priority = 1, priorities[i]
    if known[name] then
      local facts = cmsgpack.unpack(known[name])
      deliveries, priority = facts[2] + 1, facts[3]
    end
    if deliveries > most then
      call('HDEL', held, name)
      call('SADD', dead, name)
    else
      local receipt = stamp..i
      add(kept, name, packed(receipt, deliveries, priority))
      add(ends, when, name)
      found[#found + 1] = {name, receipt, deliveries}
    end
  end
  at_once(kept, 'HSET', held)
  at_once(ends, 'ZADD', leased)
  return found
end
"""

_PUT = Script(
    _COMMON
    + """
local entries, claim, seconds, most, stamp = A[1], A[2], A[3], A[4], A[5]
local none_dead = call('EXISTS', dead) == 0
local names, new = {}, {}
for i, entry in ipairs(entries) do names[i] = entry[1] end
local known = fetched(held, names)
for _, entry in ipairs(entries) do
  if not known[entry[1]] and (none_dead or call('SISMEMBER', dead, entry[1]) == 0) then
    add(new, entry[2], entry[1])
  end
end
at_once(new, 'ZADD', ready, 'NX')
local free, priorities = {}, {}
for i = 1, math.min(claim, #entries) do
  local name = entries[i][1]
  local ends = call('ZSCORE', leased, name)
  local priority = call('ZSCORE', ready, name)
  if priority or (ends and tonumber(ends) <= now) then
    call('ZREM', ready, name)
    call('ZREM', leased, name)
    free[#free + 1] = name
    priorities[#free] = tonumber(priority or 0)
  end
end
return cmsgpack.pack(lend(free, priorities, stamp, seconds, most))
"""
)

_LEASE = Script(
    _COMMON
    + """
local limit, seconds, most, stamp = A[1], A[2], A[3], A[4]
for _, name in ipairs(call('ZRANGEBYSCORE', leased, '-inf', now, 'LIMIT', 0, 1000)) do
  call('ZREM', leased, name)
  call('ZADD', ready, facts(name)[3], name)
end
local found = {}
while #found < limit do
  local popped = call('ZPOPMAX', ready, limit - #found)
  if #popped == 0 then break end
  local names, priorities = {}, {}
  for i = 1, #popped, 2 do
    names[#names + 1] = popped[i]
    priorities[#names] = tonumber(popped[i + 1])
  end
  for _, lease in ipairs(lend(names, priorities, stamp..#found..'-', seconds, most)) do
    found[#found + 1] = lease
  end
end
return cmsgpack.pack(found)
"""
)

_RENEW = Script(
    _COMMON
    + """
local found = {}
for i, lease in ipairs(A[1]) do
  local known = facts(lease[1])
  found[i] = known ~= nil and known[1] == lease[2]
  if found[i] then
    call('ZREM', ready, lease[1])
    call('ZADD', leased, now + A[2], lease[1])
  end
end
return cmsgpack.pack(found)
"""
)

_RELEASE = Script(
    _COMMON
    + """
for _, lease in ipairs(A[1]) do
  local known = facts(lease[1])
  if known and known[1] == lease[2] then
    call('HSET', held, lease[1], packed('', known[2] - 1, known[3]))
    call('ZREM', leased, lease[1])
    call('ZADD', ready, known[3], lease[1])
  end
end
"""
)

_REMOVE = Script(
    _COMMON
    + """
local names, mine = {}, {}
for i, lease in ipairs(A[1]) do names[i] = lease[1] end
local known = fetched(held, names)
for _, lease in ipairs(A[1]) do
  local text = known[lease[1]]
  if text and cmsgpack.unpack(text)[1] == lease[2] then mine[#mine + 1] = lease[1] end
end
at_once(mine, 'ZREM', leased)
at_once(mine, 'ZREM', ready)  -- where the lease had ended
at_once(mine, 'HDEL', held)
"""
)

_SIZE = Script(
    _COMMON
    + """
local ended = call('ZCOUNT', leased, '-inf', now)
return cmsgpack.pack({call('ZCARD', ready) + ended, call('ZCARD', leased) - ended, call('SCARD', dead)})
"""
)

_DEAD = Script(_COMMON + "return cmsgpack.pack(call('SMEMBERS', dead))")
_CLEAR = Script(_COMMON + "call('UNLINK', ready, leased, held, dead)")


class RedisQueue:
    """Ready tasks in sorted sets of a server that all workers reach."""

    def __init__(
        self,
        url: str,
        job: str,
        identity: str = "",
        *,
        most_deliveries: int = 50,
        patience: float = PATIENCE,
    ) -> None:
        # Unless it has a login of its own, it is where the ledger is.
        self._server = Connection(url, job, identity, patience=patience, roles=("QUEUE", "LEDGER"))
        self._most = most_deliveries
        self.url: str = self._server.url

    def __repr__(self) -> str:
        return f"RedisQueue({self.url})"

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        if not entries:
            return []
        found = self._server.run(_PUT, list(entries), claim, seconds, self._most, _stamp())
        return [Lease(*each) for each in found]

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        if limit <= 0:
            return []
        found = self._server.run(_LEASE, limit, seconds, self._most, _stamp())
        return [Lease(*each) for each in found]

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        return self._server.run(_RENEW, list(leases), seconds) if leases else []

    def release(self, leases: Sequence[Lease]) -> None:
        self._for_all(_RELEASE, leases)

    def remove(self, leases: Sequence[Lease]) -> None:
        self._for_all(_REMOVE, leases)

    def _for_all(self, script: Script, leases: Sequence[Lease]) -> None:
        if leases:
            self._server.run(script, list(leases))

    def size(self) -> QueueSize:
        return QueueSize(*self._server.run(_SIZE))

    def dead(self) -> list[str]:
        found: list[Any] = self._server.run(_DEAD)
        return sorted(found)

    def clear(self) -> None:
        self._server.run(_CLEAR)

    def drop(self) -> None:
        self.clear()  # without members there are no keys

    def grouped(self) -> AbstractContextManager[object]:
        return nullcontext()

    def close(self) -> None:
        self._server.close()


def _stamp() -> str:
    """How the receipts of one call begin: no other call has the same."""
    return os.urandom(9).hex() + "-"
