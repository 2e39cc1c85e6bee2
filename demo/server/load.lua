-- load.lua - what wrk asks the server for. From the environment:
--
--   LOAD_KIND     reads: products, product pages, sessions, now and then a report; orders: orders, which wait for the bank
--   LOAD_THINK    milliseconds that a connection rests before each request, on average (exponential, at most four times that)
--   LOAD_SEED     of the requests
--   LOAD_OUT      file for what came of it, as JSON
local kind, think = os.getenv("LOAD_KIND"), tonumber(os.getenv("LOAD_THINK"))
local products = 5000
local post = { ["Content-Type"] = "application/json" }

function init()
  math.randomseed(tonumber(os.getenv("LOAD_SEED")))
end

function delay()
  return math.floor(math.min(-math.log(1 - math.random()), 4) * think)
end

local function ids(count)
  local list = {}
  for n = 1, count do list[n] = math.random(products) end
  return list
end

local function order()
  local lines = {}
  for n, id in ipairs(ids(math.random(6))) do lines[n] = string.format('{"id":%d,"count":%d}', id, math.random(9)) end
  local body = string.format('{"key":"k%d","user":"user%d","wait":%d,"lines":[%s]}', math.random(1e9), math.random(100000), math.random(500, 1500),
    table.concat(lines, ","))
  return wrk.format("POST", "/order", post, body)
end

local function read()
  local which = math.random(100)
  if which <= 40 then return wrk.format("GET", string.format("/products?category=%d&above=%d", math.random(0, 198), math.random(0, 5000))) end
  if which <= 70 then return wrk.format("GET", "/product?id=" .. math.random(products)) end
  if which <= 98 then
    return wrk.format("POST", "/session", post, string.format('{"user":"user%d","basket":[%s]}', math.random(100000), table.concat(ids(math.random(8)), ",")))
  end
  return wrk.format("GET", "/report?from=" .. math.random(0, products - 1000))
end

request = kind == "orders" and order or read

-- Latencies by rank: the 200 largest one by one, below them 200 steps. Each is {microseconds, how many requests it stands for}.
function done(summary, latency)
  local out, ranks, n = {}, {}, summary.requests
  local top = math.min(200, n)
  local rest = n - top
  local steps = math.min(200, rest)
  for step = 1, steps do
    local from, to = math.floor(rest * (step - 1) / steps), math.floor(rest * step / steps)
    ranks[#ranks + 1] = { (from + to) / 2, to - from }
  end
  for rank = rest + 1, n do ranks[#ranks + 1] = { rank, 1 } end
  for i, rank in ipairs(ranks) do out[i] = string.format("[%d,%d]", latency:percentile(math.max(rank[1] - 0.5, 0) / n * 100), rank[2]) end
  local e = summary.errors
  local file = assert(io.open(os.getenv("LOAD_OUT"), "w"))
  file:write(string.format('{"requests":%d,"us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"max":%d,"latency":[%s]}\n',
    n, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout, n > 0 and latency.max or 0, table.concat(out, ",")))
  file:close()
end
