-- GET /report?of=subdivision&top=20 - reads a whole source file afresh, groups it and writes CSV.
-- Rare and heavy: tens of thousands of objects, some megabytes.
local request = ...
local of = request.params.of
local top = math.tointeger(tonumber(request.params.top)) or 20
local roots = { subdivision = "3166-2", language = "639-3" }
if not roots[of] then
  return common.fail(400, "of is subdivision or language")
end
local rows = db.source(of)[roots[of]]

local function group_of(row)
  if of == "subdivision" then
    return row.code:sub(1, 2)
  end
  return row.alpha_3:sub(1, 1)
end

local groups, kinds = {}, {}
for _, row in ipairs(rows) do
  local name = group_of(row)
  local group = groups[name]
  if not group then
    group = { name = name, rows = {}, characters = 0 }
    groups[name] = group
  end
  group.rows[#group.rows + 1] = row.name
  group.characters = group.characters + common.characters(row.name)
  kinds[row.type] = (kinds[row.type] or 0) + 1
end

local ordered = {}
for _, group in pairs(groups) do
  table.sort(group.rows)
  ordered[#ordered + 1] = group
end
table.sort(ordered, function(a, b)
  if #a.rows ~= #b.rows then return #a.rows > #b.rows end
  return a.name < b.name
end)

local csv = { "group,rows,characters,first,last" }
for i = 1, math.min(top, #ordered) do
  local group = ordered[i]
  csv[#csv + 1] = string.format('%s,%d,%d,"%s","%s"', group.name, #group.rows, group.characters, group.rows[1],
    group.rows[#group.rows])
end
return 200, {
  of = of,
  rows = #rows,
  groups = #ordered,
  kinds = common.ranking(kinds, 10),
  csv = table.concat(csv, "\n"),
}
