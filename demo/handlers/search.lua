-- GET /search?q=san&kind=subdivision&limit=10 - names in which a word begins with q, best first.
-- Medium: up to a few hundred candidates are scored, sorted and highlighted.
local request = ...
local query = (request.params.q or ""):lower()
local kind = request.params.kind
local limit = math.tointeger(tonumber(request.params.limit)) or 10
if #query < 1 or limit < 1 or limit > 100 then
  return common.fail(400, "q needs a letter, limit is 1..100")
end

local weight = { country = 40, currency = 20, language = 10, subdivision = 0 }
local found, per_kind, seen = {}, {}, {}
for _, row in ipairs(db.find(query, 250)) do
  local key = row.kind .. ":" .. row.code
  if not seen[key] then -- "Malak Malak" is found by two of its words
    seen[key] = true
    per_kind[row.kind] = (per_kind[row.kind] or 0) + 1
    row.wanted = not kind or row.kind == kind
  end
  if row.wanted then
    local name = row.name:lower()
    local at = name:find(query, 1, true) or #name
    row.score = weight[row.kind] + (at == 1 and 30 or 0) - common.characters(name)
    found[#found + 1] = row
  end
end
table.sort(found, function(a, b)
  if a.score ~= b.score then return a.score > b.score end
  if a.name ~= b.name then return a.name < b.name end
  if a.kind ~= b.kind then return a.kind < b.kind end
  return a.code < b.code
end)

local page = json.array {}
for i = 1, math.min(limit, #found) do
  local row = found[i]
  local first, last = row.name:lower():find(query, 1, true)
  local text = row.name
  if first then
    text = text:sub(1, first - 1) .. "<b>" .. text:sub(first, last) .. "</b>" .. text:sub(last + 1)
  end
  page[i] = { code = row.code, kind = row.kind, html = text, rank = i }
end
return 200, { query = query, total = #found, kinds = common.ranking(per_kind), page = page }
