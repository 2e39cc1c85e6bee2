-- GET /country?code=DE - one country with its subdivisions. Small: tens of tables.
local request = ...
local code = (request.params.code or ""):upper()
local country = db.country(code)
if not country then
  return common.fail(404, "no country has the code '%s'", code)
end

local kinds, top, nested = {}, {}, 0
for _, part in ipairs(db.subdivisions(country.alpha_2)) do
  kinds[part.type] = (kinds[part.type] or 0) + 1
  if part.parent then
    nested = nested + 1
  elseif #top < 12 then
    top[#top + 1] = { code = part.code, name = part.name }
  end
end

return 200, {
  code = country.alpha_2,
  alpha_3 = country.alpha_3,
  numeric = tonumber(country.numeric),
  name = country.common_name or country.name,
  official_name = country.official_name or country.name,
  flag = country.flag,
  subdivisions = { kinds = common.ranking(kinds), first = json.array(top), nested = nested },
  links = {
    self = "/country?code=" .. country.alpha_2,
    search = "/search?q=" .. country.name:sub(1, 3):lower() .. "&kind=subdivision",
  },
}
