-- Queries by ids drawn at random, for wrk; what came of them is printed as one line of JSON.
-- Arguments: points, queries in a request, and as JSON the fields of a query beside its ids.

local counts = { "refused", "failed" }
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init(arguments)
  n_points, n_queries = tonumber(arguments[1]), tonumber(arguments[2])
  query = '{"ids":[%d],' .. arguments[3]:sub(2)
  refused, failed = 0, 0
  math.randomseed(number + 1)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  local queries = {}
  for place = 1, n_queries do
    queries[place] = query:format(math.random(0, n_points - 1))
  end
  return wrk.format(nil, nil, nil, '{"queries":[' .. table.concat(queries, ",") .. "]}")
end

function response(status)
  if status == 503 then
    refused = refused + 1
  elseif status ~= 200 then
    failed = failed + 1
  end
end

function done(summary, latency)
  local sum = { refused = 0, failed = 0 }
  for _, thread in ipairs(threads) do
    for _, name in ipairs(counts) do
      sum[name] = sum[name] + thread:get(name)
    end
  end
  local broken = summary.errors
  local failed = sum.failed + broken.connect + broken.read + broken.write + broken.timeout
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"p50":%d,"p95":%d,"p99":%d,"failed":%d,"refused":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95),
    latency:percentile(99), failed, sum.refused))
end
