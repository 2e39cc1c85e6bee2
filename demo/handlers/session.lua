-- POST /session {user, locale, events, prefs} - takes a user's events against his session document.
-- The document is what outlives the request: it is fetched from the session cache, or made and put
-- there. It follows from the user alone, so an answer is the same whether the cache had it or not.
local request = ...
local body = json.decode(request.body)
if type(body) ~= "table" or type(body.user) ~= "string" or type(body.events) ~= "table" then
  return common.fail(400, "the body is an object with user and events")
end

local function make_document(user)
  local state = 0
  for i = 1, #user do
    state = (state * 131 + user:byte(i)) % 2147483647
  end
  local function below(limit)
    state = state * 48271 % 2147483647
    return state % limit
  end
  local document = { user = user, token = string.format("%08x%08x", below(2147483647), below(2147483647)), visits = {} }
  local visits = 2 + below(14)
  if below(10) == 0 then
    visits = visits * 6 -- a tenth of the users have a long history
  end
  for i = 1, visits do
    local country = db.country(1 + below(db.countries()))
    document.visits[i] = { country = country.alpha_2, name = country.name, days = 1 + below(30) }
  end
  return document
end

local text = session.get(body.user)
if not text then
  text = json.encode(make_document(body.user))
  session.put(body.user, text)
end
local document = json.decode(text)

local visited, days = {}, 0
for _, visit in ipairs(document.visits) do
  visited[visit.country] = (visited[visit.country] or 0) + visit.days
  days = days + visit.days
end

local actions, cents, known, answers = {}, 0, 0, {}
for i, event in ipairs(body.events) do
  actions[event.action] = (actions[event.action] or 0) + 1
  cents = cents + math.floor(event.amount * 100 + 0.5)
  if visited[event.country] then
    known = known + 1
  end
  answers[i] = { at = event.at, action = event.action, known = visited[event.country] ~= nil }
end

return 200, {
  user = document.user,
  token = document.token,
  locale = body.locale,
  visits = #document.visits,
  days = days,
  document_bytes = #text,
  favourites = common.ranking(visited, 3),
  actions = common.ranking(actions),
  spent = string.format("%d.%02d %s", cents // 100, cents % 100, body.prefs and body.prefs.currency or "XXX"),
  known_countries = known,
  events = json.array(answers),
}
