-- GET /currency/convert?amount=100&from=EUR&to=USD,CHF - a table of amounts. Small, mostly strings.
-- iso-codes has no exchange rates: the rate of a currency is made up from its number.
local request = ...
local amount = tonumber(request.params.amount)
local from = db.currency(request.params.from or "")
if not amount or not from then
  return common.fail(400, "amount or currency '%s' is not known", request.params.from or "")
end

local function rate(currency)
  return 0.05 + tonumber(currency.numeric) % 97 / 7
end

local rows, lines = {}, {}
for _, code in ipairs(common.split(request.params.to or "", ",")) do
  local to = db.currency(code)
  if to then
    local value = amount * rate(to) / rate(from)
    local text = string.format("%.2f", value)
    local whole, cents = text:match("^(%d+)%.(%d%d)$")
    local grouped = whole:reverse():gsub("(%d%d%d)", "%1'"):reverse():gsub("^'", "")
    rows[#rows + 1] = { code = code, name = to.name, amount = text, shown = grouped .. "." .. cents }
    lines[#lines + 1] = string.format("%-28.28s %18s %s", to.name, grouped .. "." .. cents, code)
  end
end
table.sort(rows, function(a, b) return a.code < b.code end)
return 200, { from = from.alpha_3, amount = amount, rows = json.array(rows), text = table.concat(lines, "\n") }
