"""What a ledger does inside the server: Lua text, one script for each step on the path of a task.

Under `linnet:{job}:` there are

    job            hash          state, epoch, counts; rebuilt: whether a task not heard of is done
    done           hash          task → published token (0: its tiles were not kept)
    lost           hash          task → newest token when it was reopened: attempts up to it count no more
    part           hash          the same for tasks that have marked only some pages of their children
    ready          sorted set    tasks that can run, by when they were last heard of
    began          sorted set    those under way, by when they were begun, unless told as stragglers
    attempts       hash          token, number, deaths, computing, worker, doubled of the latest attempt
    marks:TASK     set           parents that told a task they are done; seen: hash, how many those are
    readers        hash          how many tasks that are not done a task has told: they may read its tiles
    garbage        sorted set    "task token" of tiles that nobody needs, by when that became so
    kinds          hash          tasks done and seconds of each statement
    workers        hash          what each told of itself

Every step costs the logarithm of these, times the tasks it is given and their edges.
"""

from __future__ import annotations

from linnet.workers.remote.connection import Script

COMMON = """
local JOB, KINDS, WORKERS = P..'job', P..'kinds', P..'workers'
local DONE, PART, READY, BEGAN, ATTEMPTS = P..'done', P..'part', P..'ready', P..'began', P..'attempts'
local MARKS, SEEN, READERS, GARBAGE = P..'marks:', P..'seen', P..'readers', P..'garbage'
local job = {}
do
  local facts = call('HMGET', JOB, 'state', 'epoch', 'rebuilt', 'sequence', 'first', 'total')
  if not facts[1] then return nil end
  job.state, job.epoch, job.rebuilt = facts[1], tonumber(facts[2]), facts[3] == '1'
  job.sequence, job.first, job.total = tonumber(facts[4]), tonumber(facts[5]), tonumber(facts[6])
end
local parted = call('EXISTS', PART) == 1
local LOST = P..'lost'

local function is_seed(name) return string.sub(name, 1, 1) == '@' end

-- Whether a task is done, and its published token.
local function state_of(name)
  local token = call('HGET', DONE, name)
  if token then return true, tonumber(token) end
  if parted then
    token = call('HGET', PART, name)
    if token then return false, tonumber(token) end
  end
  if job.rebuilt and not is_seed(name) and call('HEXISTS', SEEN, name) == 0
     and not call('ZSCORE', READY, name) then
    return true, 0
  end
  return false, 0
end

local function attempt_of(name)
  local text = call('HGET', ATTEMPTS, name)
  if not text then return nil end
  return cmsgpack.unpack(text)
end

local function keep_attempt(name, attempt)
  call('HSET', ATTEMPTS, name, cmsgpack.pack(attempt))
end

local function bury(name, token)
  if token ~= 0 and not is_seed(name) then
    call('ZADD', GARBAGE, now, name..' '..string.format('%.0f', token))
  end
end
"""

BEGIN = Script(
    COMMON
    + """
local starts, worker, silence = A[1], A[2], A[3]
local found = {}
if job.state ~= 'running' then
  for i = 1, #starts do found[i] = {'halt'} end
  return cmsgpack.pack(found)
end

local function is_alive(name)
  if name == worker then return true end
  local text = call('HGET', WORKERS, name)
  if not text then return false end
  local info = cmsgpack.unpack(text)
  return not info[3] and info[2] > now - silence
end

local function tokens(parents)
  if #parents == 0 then return {} end
  local given = call('HMGET', DONE, unpack(parents))
  for i, parent in ipairs(parents) do
    local token = given[i] and tonumber(given[i])
    if not token then
      local done
      done, token = state_of(parent)
      if token == 0 and not done then return nil end
    end
    given[i] = token
  end
  return given
end

local ran = 0
for i, start in ipairs(starts) do
  local name = start[1]
  if state_of(name) then
    found[i] = {'done'}
  else
    local published = tokens(start[2])
    if published == nil then
      found[i] = {'wait'}
    else
      ran = ran + 1
      local token = job.epoch * 4294967296 + job.sequence + ran
      local attempt = attempt_of(name) or {0, 0, 0, false, '', false}
      local blamed = attempt[4] and not start[3] and not is_alive(attempt[5])
      attempt = {token, attempt[2] + 1, attempt[3] + (blamed and 1 or 0), false, worker, attempt[6]}
      keep_attempt(name, attempt)
      call('ZADD', READY, now, name)
      if not attempt[6] then call('ZADD', BEGAN, now, name) end
      found[i] = {'run', token, attempt[2], attempt[3], published}
    end
  end
end
if ran > 0 then
  call('HINCRBY', JOB, 'sequence', ran)
  call('HINCRBY', JOB, 'begun', ran)
  if job.first == 0 then call('HSET', JOB, 'first', now) end
end
return cmsgpack.pack(found)
"""
)

COMPLETE = Script(
    COMMON
    + """
-- Marks the edges to children; those that are ready now, or were.
local function mark(name, children)
  local ready, made = {}, 0
  for _, child in ipairs(children) do
    local waiting, needs = child[1], child[2]
    if not state_of(waiting) then
      local new = call('SADD', MARKS..waiting, name)
      local seen
      if new == 1 then
        seen = call('HINCRBY', SEEN, waiting, 1)
        made = made + 1
      else
        seen = tonumber(call('HGET', SEEN, waiting))
      end
      if seen >= needs then
        ready[#ready + 1] = waiting
        call('ZADD', READY, 'NX', now, waiting)
      end
    end
  end
  if made > 0 then call('HINCRBY', READERS, name, made) end
  return ready, made
end

-- A task is done: it reads the tiles of its parents no more.
local function free_parents(name)
  for _, parent in ipairs(call('SMEMBERS', MARKS..name)) do
    if call('HINCRBY', READERS, parent, -1) == 0 then
      call('HDEL', READERS, parent)
      local token = call('HGET', DONE, parent)
      if token then bury(parent, tonumber(token)) end
    end
  end
  call('DEL', MARKS..name)
  call('HDEL', SEEN, name)
end

local counts, times, total = {}, {}, 0

local function finish(name, token, made, counted, seconds)
  call('HSET', DONE, name, token)
  if parted then call('HDEL', PART, name) end
  call('ZREM', READY, name)
  call('ZREM', BEGAN, name)
  call('HDEL', ATTEMPTS, name)
  free_parents(name)
  if made == 0 and call('HEXISTS', READERS, name) == 0 then bury(name, token) end
  if counted then
    local kind = string.match(name, '^%d+')
    counts[kind] = (counts[kind] or 0) + 1
    times[kind] = (times[kind] or 0) + seconds
    total = total + 1
  end
end

local found = {}
local some_lost = call('EXISTS', LOST) == 1
for i, one in ipairs(A[1]) do
  local name, token, children, last, counted, seconds = unpack(one)
  if math.floor(token / 4294967296) ~= job.epoch
     or (some_lost and tonumber(call('HGET', LOST, name) or 0) >= token) then
    found[i] = {0, {}}
  else
    local done, published = state_of(name)
    if published ~= 0 then token = published end
    if published == 0 and not last then
      call('HSET', PART, name, token)
      parted = true
    end
    local ready, made = mark(name, children)
    if last and not done then finish(name, token, made, counted, seconds) end
    found[i] = {token, ready}
  end
end
if total > 0 then
  local done = call('HINCRBY', JOB, 'done', total)
  call('HSET', JOB, 'last', now)
  if job.state == 'running' and done >= job.total then call('HSET', JOB, 'state', 'finished') end
  for kind, count in pairs(counts) do
    call('HINCRBY', KINDS, kind, count)
    call('HINCRBYFLOAT', KINDS, 's'..kind, string.format('%.9f', times[kind]))
  end
end
return cmsgpack.pack(found)
"""
)

COMPUTING = Script(
    COMMON
    + """
local attempt = attempt_of(A[1])
if attempt and attempt[1] == A[2] then
  attempt[4] = true
  keep_attempt(A[1], attempt)
end
"""
)

FORGET = Script(
    COMMON
    + """
local attempt = attempt_of(A[1])
if attempt and attempt[1] == A[2] then
  attempt[4] = false
  keep_attempt(A[1], attempt)
  call('ZREM', BEGAN, A[1])
end
"""
)

REOPEN = Script(
    COMMON
    + """
local name, token, parents, reader = A[1], A[2], A[3], A[4]
local done, published = state_of(name)
if (reader ~= '' and state_of(reader)) or (published ~= 0 and published ~= token) then
  return cmsgpack.pack(false)
end

-- The edges from its parents are made again, so that their tiles are kept.
local function wait_for_parents()
  local there = 0
  for _, parent in ipairs(parents) do
    local ended, stored = state_of(parent)
    if ended or stored ~= 0 then
      there = there + 1
      call('SADD', MARKS..name, parent)
      call('HINCRBY', READERS, parent, 1)
      call('ZREM', GARBAGE, parent..' '..string.format('%.0f', stored))
      if ended and stored == 0 then call('HSET', DONE, parent, 0) end
    end
  end
  call('HSET', SEEN, name, there)
  return there == #parents
end

if done or published ~= 0 then
  local ready = true
  if done then
    call('HINCRBY', JOB, 'done', -1)
    if job.state == 'finished' then call('HSET', JOB, 'state', 'running') end
    call('HDEL', DONE, name)
    ready = wait_for_parents()
  end
  call('HDEL', PART, name)
  call('HDEL', ATTEMPTS, name)
  call('ZREM', BEGAN, name)
  if ready then call('ZADD', READY, now, name) else call('ZREM', READY, name) end
  call('HSET', LOST, name, job.epoch * 4294967296 + job.sequence)
  bury(name, published)
end

if call('SREM', MARKS..reader, name) == 1 then
  call('HINCRBY', SEEN, reader, -1)
  if call('HINCRBY', READERS, name, -1) == 0 then call('HDEL', READERS, name) end
end
if reader ~= '' then
  call('ZREM', READY, reader)
  call('ZREM', BEGAN, reader)
  call('HSETNX', SEEN, reader, 0)
  local attempt = attempt_of(reader)
  if attempt then
    attempt[4] = false
    keep_attempt(reader, attempt)
  end
end
return cmsgpack.pack(true)
"""
)
