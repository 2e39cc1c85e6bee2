-- POST /order {key, user, wait, lines = {{id, count}}}: looks prices up, waits for the bank, writes the order.
local request = ...
local order = request.body
if type(order) ~= "table" or type(order.key) ~= "string" or type(order.user) ~= "string" or type(order.lines) ~= "table" then
  return 400, { error = "an order has key, user and lines" }
end
local total, lines, text = 0, array({}), {}
for number, line in ipairs(order.lines) do
  local row = type(line.id) == "number" and query("select name, price, stock from products where id = ?", line.id)[1]
  if not row then return 404, { error = "line " .. number .. " has no product" } end
  local count = math.min(line.count or 1, 100)
  total = total + row[2] * count
  lines[#lines + 1] = { id = line.id, name = row[1], count = count, price = row[2] * count }
  text[#text + 1] = string.format("%d x %s", count, row[1])
end
local receipt = { key = order.key, user = order.user, lines = lines, total = total }
wait(order.wait or 0) -- the bank
local written = commit("insert into orders(key, user, total, lines) values(?, ?, ?, ?)", order.key, order.user, total, table.concat(text, "; "))
if not written then return 503, { error = "the order is not written" } end
receipt.state = "ordered"
return 200, receipt
