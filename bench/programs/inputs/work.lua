-- Tables, closures and text.
local sum = 0
for turn = 1, 4 do
    local all = {}
    for i = 1, 150000 do
        all[i] = { key = "k" .. i % 9973, list = { i, i + 1, i + 2 }, call = function() return i % 7 end }
    end
    local by = {}
    for _, one in ipairs(all) do
        by[one.key] = by[one.key] or {}
        table.insert(by[one.key], one)
    end
    local texts = {}
    for key, list in pairs(by) do
        local n = 0
        for _, one in ipairs(list) do n = n + one.call() + #one.list end
        texts[#texts + 1] = key .. "=" .. n
    end
    table.sort(texts)
    local text = table.concat(texts, ",")
    sum = sum + #text + #text:gsub("%d+", function(d) return d .. "." end)
end
print(sum)
