-- common.lua - helpers of all handlers; loaded into every request's interpreter as `common`.
--
-- A handler is one chunk: it gets {params, body} and returns a status and a table. Answers may only
-- depend on the request and the reference data, so tables are never walked with pairs() without
-- sorting what comes out: the hash seed differs from one interpreter to the next.
local common = {}

function common.fail(status, format, ...)
  return status, { error = string.format(format, ...) }
end

-- {key = count} -> array of {name, count}, most frequent first, then by name.
function common.ranking(counts, most)
  local rows = {}
  for name, count in pairs(counts) do
    rows[#rows + 1] = { name = name, count = count }
  end
  table.sort(rows, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return a.name < b.name
  end)
  for i = #rows, (most or #rows) + 1, -1 do
    rows[i] = nil
  end
  return json.array(rows)
end

-- Characters (not bytes) of UTF-8 text.
function common.characters(text)
  return utf8.len(text) or #text
end

-- Splits at a separator.
function common.split(text, separator)
  local parts = {}
  for part in text:gmatch("[^" .. separator .. "]+") do
    parts[#parts + 1] = part
  end
  return parts
end

return common
