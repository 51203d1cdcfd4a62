"""Scripts of a ledger beside the path of every task: the job itself, what idle workers look for, workers."""

from __future__ import annotations

from linnet.workers.remote.connection import Script
from linnet.workers.remote.redis_scripts import COMMON

_STATUS = """
local function numbers(list)
  for i, text in ipairs(list) do list[i] = tonumber(text) end
  return list
end

local function status()
  local words = call('HMGET', JOB, 'state', 'reason', 'failed')
  local counts = call('HMGET', JOB, 'epoch', 'total', 'done', 'begun')
  local times = call('HMGET', JOB, 'first', 'last')
  return {words, numbers(counts), now, numbers(times), call('HGETALL', KINDS)}
end
"""

STATUS = Script(COMMON + _STATUS + "return cmsgpack.pack(status())")

# Nobody may see half of a job that is being dropped, so its state goes first.
CLEAR = Script(
    """
local function key(name) return P..name end
call('DEL', key'job')
local left = call('HSCAN', key'seen', 0, 'COUNT', 500)[2]
for i = 1, #left, 2 do
  call('UNLINK', key'marks:'..left[i])
  call('HDEL', key'seen', left[i])
end
if #left > 0 then return cmsgpack.pack(false) end
for _, name in ipairs({'done', 'part', 'ready', 'began', 'attempts', 'seen', 'readers', 'garbage', 'kinds',
                       'workers', 'log', 'lost'}) do
  call('UNLINK', key(name))
end
return cmsgpack.pack(true)
"""
)

# Of all who want a name, the first has it; so has whoever asks twice.
CLAIM = Script(
    """
local name, stamp = A[1], A[2]
return cmsgpack.pack(call('SET', name, stamp, 'NX') ~= false or call('GET', name) == stamp)
"""
)

UNCLAIM = Script(
    """
local name, whose = A[1], A[2]
local stamp = call('GET', name)
if stamp and string.sub(stamp, 1, #whose) == whose then call('DEL', name) end
"""
)

CREATE = Script(
    """
local total, done, epoch, known, state = A[1], A[2], A[3], A[4], A[5]
call('HSET', P..'job', 'state', state, 'reason', '', 'failed', '', 'epoch', epoch, 'total', total,
     'done', done, 'begun', 0, 'sequence', 0, 'first', 0, 'last', 0, 'rebuilt', known)
if known == 0 and state == 'running' then call('ZADD', P..'ready', now, '@') end
"""
)

RESTORE_DONE = Script(
    "for _, each in ipairs(A[1]) do redis.call('HSET', KEYS[1]..'done', each[1], each[2]) end"
)

RESTORE_WAITING = Script(
    COMMON
    + """
for _, each in ipairs(A[1]) do
  local name, needs, marked = each[1], each[2], each[3]
  for _, parent in ipairs(marked) do
    if call('SADD', MARKS..name, parent) == 1 then call('HINCRBY', READERS, parent, 1) end
    call('HSETNX', DONE, parent, 0)
  end
  call('HSET', SEEN, name, #marked)
  if #marked >= needs then call('ZADD', READY, now, name) end
end
"""
)

SET_STATE = Script(
    COMMON
    + """
local from, to, reason, epoch, name = A[1], A[2], A[3], A[4], A[5]
if job.state ~= from or (epoch ~= 0 and epoch ~= job.epoch) or (name ~= '' and state_of(name)) then return end
call('HSET', JOB, 'state', to, 'reason', reason, 'failed', name)
"""
)

RESUME = Script(
    COMMON
    + """
local counts = call('HMGET', JOB, 'done', 'total')
local state = tonumber(counts[1]) >= tonumber(counts[2]) and 'finished' or 'running'
call('HINCRBY', JOB, 'epoch', 1)
call('HSET', JOB, 'state', state, 'reason', '', 'failed', '')
call('UNLINK', ATTEMPTS, BEGAN)
local names = call('ZRANGE', READY, 0, -1)
for _, name in ipairs(names) do call('ZADD', READY, now, name) end
return cmsgpack.pack(names)
"""
)

PUBLISHED = Script(
    COMMON
    + """
local found = {}
for i, name in ipairs(A[1]) do
  local _, token = state_of(name)
  found[i] = token
end
return cmsgpack.pack(found)
"""
)

OVERDUE = Script(
    COMMON
    + """
local names = call('ZRANGEBYSCORE', READY, '-inf', now - A[1], 'LIMIT', 0, A[2])
for _, name in ipairs(names) do call('ZADD', READY, now, name) end
return cmsgpack.pack(names)
"""
)

STRAGGLERS = Script(
    COMMON
    + """
local factor, least, limit = A[1], A[2], A[3]
local usual = {}
local kinds = call('HGETALL', KINDS)
for i = 1, #kinds, 2 do usual[kinds[i]] = tonumber(kinds[i + 1]) end
local told = {}
local old = call('ZRANGEBYSCORE', BEGAN, '-inf', now - least, 'WITHSCORES')
for i = 1, #old, 2 do
  if #told == limit then break end
  local name, began = old[i], tonumber(old[i + 1])
  local kind = string.match(name, '^%d+')
  local late = kind and usual[kind] and now - began >= factor * usual['s'..kind] / usual[kind]
  if late then
    told[#told + 1] = name
    call('ZREM', BEGAN, name)
    local attempt = attempt_of(name)
    attempt[6] = true
    keep_attempt(name, attempt)
  end
end
return cmsgpack.pack(told)
"""
)

DISCARDED = Script(
    COMMON
    + """
local told = call('ZRANGEBYSCORE', GARBAGE, '-inf', now - A[1], 'LIMIT', 0, A[2])
for _, each in ipairs(told) do call('ZREM', GARBAGE, each) end
return cmsgpack.pack(told)
"""
)

TOUCH = Script(
    COMMON
    + _STATUS
    + """
local names, worker, facts = A[1], A[2], A[3]
for _, name in ipairs(names) do call('ZADD', READY, 'XX', now, name) end
local text = call('HGET', WORKERS, worker)
local started = text and cmsgpack.unpack(text)[1] or now
call('HSET', WORKERS, worker, cmsgpack.pack({started, now, false, facts}))
return cmsgpack.pack(status())
"""
)

LEAVE = Script(
    COMMON
    + """
local text = call('HGET', WORKERS, A[1])
local info = text and cmsgpack.unpack(text)
if info and not info[3] then
  info[3] = A[2]
  call('HSET', WORKERS, A[1], cmsgpack.pack(info))
end
"""
)

LOG = Script("for _, line in ipairs(A[1]) do call('RPUSH', P..'log', line) end")
LINES = Script("return cmsgpack.pack(call('LRANGE', P..'log', A[1], A[1] + 999))")

WORKERS = Script(
    COMMON
    + """
local found = {}
local all = call('HGETALL', WORKERS)
for i = 1, #all, 2 do found[#found + 1] = {all[i], cmsgpack.unpack(all[i + 1])} end
return cmsgpack.pack({now, found})
"""
)
