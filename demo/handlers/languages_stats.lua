-- GET /languages/stats?prefix=a&by=type - figures about all languages whose code begins so.
-- Larger: a table for each of some hundred languages, groups, a sort.
local request = ...
local prefix = request.params.prefix or ""
local by = request.params.by == "scope" and "scope" or "type"

local groups, letters, lengths = {}, {}, {}
local languages = db.languages(prefix)
if #languages == 0 then
  return common.fail(404, "no language code begins with '%s'", prefix)
end
for _, language in ipairs(languages) do
  local group = groups[language[by]]
  if not group then
    group = { name = language[by], count = 0, characters = 0, longest = "", with_2_letters = 0 }
    groups[language[by]] = group
  end
  group.count = group.count + 1
  local size = common.characters(language.name)
  group.characters = group.characters + size
  if size > common.characters(group.longest) then
    group.longest = language.name
  end
  if language.alpha_2 then
    group.with_2_letters = group.with_2_letters + 1
  end
  local letter = language.name:sub(1, 1):upper()
  letters[letter] = (letters[letter] or 0) + 1
  lengths[#lengths + 1] = size
end
table.sort(lengths)

local rows = {}
for _, group in pairs(groups) do
  group.mean_characters = group.characters // group.count
  rows[#rows + 1] = group
end
table.sort(rows, function(a, b) return a.name < b.name end)

return 200, {
  prefix = prefix,
  languages = #languages,
  groups = rows,
  initials = common.ranking(letters, 8),
  name_length = { median = lengths[(#lengths + 1) // 2], longest = lengths[#lengths] },
}
