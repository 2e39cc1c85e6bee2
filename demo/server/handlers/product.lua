-- GET /product?id=N: a product, with others of its category.
local request = ...
local id = math.tointeger(tonumber(request.query.id or ""))
if not id then return 400, { error = "id is a number" } end
local row = query("select category, name, price, stock, text from products where id = ?", id)[1]
if not row then return 404, { error = "no product " .. id } end
local category, name, price, stock, text = table.unpack(row)
local words = {}
for word in text:gmatch("%a+%d*") do words[word] = (words[word] or 0) + 1 end
local often = array({})
for word, count in pairs(words) do often[#often + 1] = { word = word, count = count } end
table.sort(often, function(a, b)
  if a.count ~= b.count then return a.count > b.count end
  return a.word < b.word
end)
local similar = array({})
for _, other in ipairs(query("select id, name from products where category = ? and id > ? order by id limit 5", category, id)) do
  similar[#similar + 1] = { id = other[1], name = other[2] }
end
return 200, { id = id, category = category, name = name, price = price, stock = stock, text = text, words = often, similar = similar }
