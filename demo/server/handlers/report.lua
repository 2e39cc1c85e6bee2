-- GET /report?from=ID: what a thousand products are worth, by category. Runs on the helper.
local request = ...
local from = math.tointeger(tonumber(request.query.from or "0")) or 0
local groups = {}
for _, row in ipairs(query("select category, name, price, stock from products where id > ? order by id limit 1000", from)) do
  local category, name, price, stock = table.unpack(row)
  local group = groups[category]
  if not group then
    group = { category = category, worth = 0, pieces = 0, names = {} }
    groups[category] = group
  end
  group.worth = group.worth + price * stock
  group.pieces = group.pieces + stock
  group.names[#group.names + 1] = name:upper()
end
local list = array({})
for _, group in pairs(groups) do
  table.sort(group.names)
  list[#list + 1] = { category = group.category, worth = group.worth, pieces = group.pieces, names = table.concat(group.names, ", "):sub(1, 60) }
end
table.sort(list, function(a, b) return a.category < b.category end)
return 200, { from = from, groups = list }
