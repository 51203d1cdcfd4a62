"""What a ledger does inside the server: Lua text, one script for each step on the path of a task.

Under `linnet:{job}:identity:` there are

    job            hash          state, epoch, counts; rebuilt: in statements below this a task not
                                 heard of is done
    done           hash          task → published token (0: its tiles were not kept)
    lost           hash          task → newest token when it was reopened: attempts up to it count no more
    part           hash          the same for tasks that have marked only some pages of their children
    ready          sorted set    tasks that can run, by when they were last heard of
    began          sorted set    those under way, by when they were begun, unless told as stragglers
    attempts       hash          token, number, deaths, computing, worker, doubled of the latest attempt
    marks:TASK     set           parents that told a task they are done; seen: hash, how many those are
                                 (seeds leave none: what they make ready waits for nothing else)
    readers        hash          how many tasks that are not done a task has told: they may read its tiles
    garbage        sorted set    "task token" of tiles that nobody needs, by when that became so
    kinds          hash          tasks done and seconds of each statement
    workers        hash          what each told of itself

and under `linnet:{job}:` the key `taken`, which says whose that name is.

Every step costs the logarithm of these, times the tasks it is given and their edges. A call from a script
to the server costs more than what it does there, so a step reads what it needs of all its tasks with a few
calls, works on that, and writes what changed with a few more.
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
  job.state, job.epoch, job.known = facts[1], tonumber(facts[2]), tonumber(facts[3])
  job.sequence, job.first, job.total = tonumber(facts[4]), tonumber(facts[5]), tonumber(facts[6])
end
local parted = call('EXISTS', PART) == 1
local LOST = P..'lost'
local published = {}  -- tokens of done tasks, as far as they were read; false where there was none

local function is_seed(name) return string.sub(name, 1, 1) == '@' end

-- Whether a task is done, and its published token.
local function state_of(name)
  local token = published[name]
  if token == nil then
    token = call('HGET', DONE, name)
    published[name] = token
  end
  if token then return true, tonumber(token) end
  if parted then
    token = call('HGET', PART, name)
    if token then return false, tonumber(token) end
  end
  if job.known > 0 and not is_seed(name) and tonumber(string.match(name, '^%d+')) < job.known
     and call('HEXISTS', SEEN, name) == 0 and not call('ZSCORE', READY, name) then
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
  local given = {}
  for i, parent in ipairs(parents) do
    local done, token = state_of(parent)
    if token == 0 and not done then return nil end
    given[i] = token
  end
  return given
end

local names, asked = {}, {}
for i, start in ipairs(starts) do
  names[i] = start[1]
  asked[#asked + 1] = start[1]
  for _, parent in ipairs(start[2]) do asked[#asked + 1] = parent end
end
published = fetched(DONE, asked)
local attempts = fetched(ATTEMPTS, names)
local kept, heard, began = {}, {}, {}
local ran = 0
for i, start in ipairs(starts) do
  local name = start[1]
  if state_of(name) then
    found[i] = {'done'}
  else
    local given = tokens(start[2])
    if given == nil then
      found[i] = {'wait'}
    else
      ran = ran + 1
      local token = job.epoch * 4294967296 + job.sequence + ran
      local attempt = attempts[name] and cmsgpack.unpack(attempts[name]) or {0, 0, 0, false, '', false}
      local blamed = attempt[4] and not start[3] and not is_alive(attempt[5])
      attempt = {token, attempt[2] + 1, attempt[3] + (blamed and 1 or 0), false, worker, attempt[6]}
      attempts[name] = cmsgpack.pack(attempt)
      add(kept, name, attempts[name])
      add(heard, NOW, name)
      if not attempt[6] then add(began, NOW, name) end
      found[i] = {'run', token, attempt[2], attempt[3], given}
    end
  end
end
if ran > 0 then
  at_once(kept, 'HSET', ATTEMPTS)
  at_once(heard, 'ZADD', READY)
  at_once(began, 'ZADD', BEGAN)
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
local asked, waiting = {}, {}
for _, one in ipairs(A[1]) do
  asked[#asked + 1] = one[1]
  for _, children in ipairs({one[3], one[8]}) do
    for _, child in ipairs(children) do
      asked[#asked + 1] = child[1]
      waiting[#waiting + 1] = child[1]
    end
  end
end
published = fetched(DONE, asked)
local seen = fetched(SEEN, waiting)
local marked, due = {}, {}    -- tasks with new edges to them; those that are ready
local over, edges = {}, {}    -- tasks done now; the sets of edges to them
local readers = {}            -- by how much the edges from a task change

-- Marks the edges to children; those that are ready now, or were.
local function mark(name, children)
  local ready, made, seed = {}, 0, is_seed(name)
  for _, child in ipairs(children) do
    local waits, needs = child[1], child[2]
    if not state_of(waits) then
      if seed then  -- nothing else is waited for, and there are no tiles to read
        seen[waits] = needs
      elseif call('SADD', MARKS..waits, name) == 1 then
        seen[waits] = (seen[waits] or 0) + 1
        marked[waits] = true
        made = made + 1
      end
      if tonumber(seen[waits]) >= needs then
        ready[#ready + 1] = waits
        add(due, NOW, waits)
      end
    end
  end
  if made > 0 then readers[name] = (readers[name] or 0) + made end
  return ready
end

local counts, times, total = {}, {}, 0

local function finish(name, token, counted, seconds, waited)
  published[name] = string.format('%.0f', token)
  if parted then call('HDEL', PART, name) end
  over[#over + 1] = name
  if waited then
    edges[#edges + 1] = MARKS..name
    -- It reads the tiles of its parents no more.
    for _, parent in ipairs(call('SMEMBERS', MARKS..name)) do readers[parent] = (readers[parent] or 0) - 1 end
  end
  readers[name] = readers[name] or 0
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
  local name, token, children, last, counted, seconds, waited, chosen, more = unpack(one)
  if math.floor(token / 4294967296) ~= job.epoch
     or (some_lost and tonumber(call('HGET', LOST, name) or 0) >= token) then
    -- It changes nothing; but it may be a repetition of one that did, in an epoch before.
    local _, first = state_of(name)
    found[i] = {first == token and token or 0, {}}
  else
    local done, first = state_of(name)
    if first ~= 0 then token = first end
    if first == 0 and not last then
      call('HSET', PART, name, token)
      parted = true
    end
    local ready = mark(name, children)
    if last and not done then
      for _, child in ipairs(mark(name, chosen)) do ready[#ready + 1] = child end
      if more > job.total then
        job.total = more
        call('HSET', JOB, 'total', more)
      end
      finish(name, token, counted, seconds, waited)
    end
    found[i] = {token, ready}
  end
end

-- What changed, written at once; a task that was marked and is done now is only that.
local function keep_marks()
  local kept = {}
  for name in pairs(marked) do add(kept, name, seen[name]) end
  at_once(kept, 'HSET', SEEN)
  at_once(due, 'ZADD', READY, 'NX')
end

local function keep_done()
  local kept = {}
  for _, name in ipairs(over) do add(kept, name, published[name]) end
  at_once(kept, 'HSET', DONE)
  at_once(over, 'ZREM', READY)
  at_once(over, 'ZREM', BEGAN)
  at_once(over, 'HDEL', ATTEMPTS)
  at_once(over, 'HDEL', SEEN)
  at_once(edges, 'DEL')
end

-- Counts who may read the tiles of a task; where nobody does, and it is done, they go.
local function keep_readers()
  local names, kept, none, unread = {}, {}, {}, {}
  for name in pairs(readers) do names[#names + 1] = name end
  local before = fetched(READERS, names)
  for _, name in ipairs(names) do
    local left = (before[name] or 0) + readers[name]
    if left > 0 then add(kept, name, left) else none[#none + 1] = name end
  end
  at_once(kept, 'HSET', READERS)
  at_once(none, 'HDEL', READERS)
  for _, name in ipairs(none) do
    if published[name] == nil then unread[#unread + 1] = name end
  end
  for name, token in pairs(fetched(DONE, unread)) do published[name] = token end
  local garbage = {}
  for _, name in ipairs(none) do
    local token = published[name]
    if token and token ~= '0' and not is_seed(name) then add(garbage, NOW, name..' '..token) end
  end
  at_once(garbage, 'ZADD', GARBAGE)
end

keep_marks()
keep_done()
keep_readers()
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
local done, known = state_of(name)
if (reader ~= '' and state_of(reader)) or (known ~= 0 and known ~= token) then
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

if done or known ~= 0 then
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
  bury(name, known)
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
