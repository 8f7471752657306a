-- For wrk: posts the bodies of a file in turn, a line each, and prints one line of JSON when it ends.
-- Each thread begins at another place of the file.
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init(arguments)
  bodies, statuses, described = {}, {}, ""
  for line in io.lines(arguments[1]) do
    table.insert(bodies, line)
  end
  place = number * 1009 % #bodies
end

local headers = {["Content-Type"] = "application/json"}

function request()
  place = place % #bodies + 1
  return wrk.format("POST", nil, headers, bodies[place])
end

function response(status)
  if status ~= 200 then
    statuses[status] = (statuses[status] or 0) + 1
    described = ""  -- only a string can be read from outside the thread
    for name, count in pairs(statuses) do
      described = described .. name .. "=" .. count .. " "
    end
  end
end

function done(summary, latency)
  local described = ""
  for _, thread in ipairs(threads) do
    described = described .. (thread:get("described") or "")
  end
  io.write(string.format(
    '{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "statuses": "%s", ' ..
    '"connect": %d, "read": %d, "write": %d, "timeout": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, described,
    summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.timeout
  ))
end
