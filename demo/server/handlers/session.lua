-- POST /session {user, basket}: keeps what a user has in the basket, and says what is kept.
local request = ...
local body = request.body
if type(body) ~= "table" or type(body.user) ~= "string" then return 400, { error = "a session has a user" } end
local basket, seen = array({}), {}
for _, id in ipairs(body.basket or {}) do
  local row = not seen[id] and query("select name, price, text from products where id = ?", id)[1]
  seen[id] = true
  if row then basket[#basket + 1] = { id = id, name = row[1], price = row[2], text = row[3]:sub(1, 200) } end
end
local kept = session(body.user, { user = body.user, basket = basket, count = #basket })
return 200, { user = kept.user, count = kept.count, first = kept.basket[1] and kept.basket[1].name or "" }
