-- GET /products?category=N&above=PRICE: twenty products of a category.
local request = ...
local category = "category" .. (request.query.category or "0")
local above = math.tointeger(tonumber(request.query.above or "0")) or 0
local list, sum = array({}), 0
for _, row in ipairs(query("select id, name, price, stock, text from products where category = ? and price >= ? order by id limit 20", category, above)) do
  local id, name, price, stock, text = table.unpack(row)
  sum = sum + price
  list[#list + 1] = {
    id = id,
    name = name,
    price = string.format("%d.%02d", price // 100, price % 100),
    available = stock > 0,
    text = #text > 120 and text:sub(1, 117) .. "..." or text,
    link = "/product?id=" .. id,
  }
end
return 200, { category = category, count = #list, products = list, mean = #list > 0 and sum // #list or 0 }
