-- What adapters/lua runs: a program of many kinds of objects. It gets a JSON text, and writes by emit(). Nothing it
-- writes depends on addresses or on the order of a table: both differ from run to run.
local source = ...

-- ---- JSON, read and written
local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local function parse(text)
    local at = 1
    local value
    local function space() at = text:find("[^ \n\r\t]", at) or #text + 1 end
    local function string_()
        local parts = {}
        at = at + 1
        while true do
            local from, to = text:find('["\\]', at)
            assert(from, "end of string")
            parts[#parts + 1] = text:sub(at, from - 1)
            at = to + 1
            if text:byte(from) == 34 then return table.concat(parts) end
            local c = text:sub(at, at)
            if c == "u" then
                parts[#parts + 1] = utf8.char(tonumber(text:sub(at + 1, at + 4), 16))
                at = at + 5
            else
                parts[#parts + 1] = escapes[c] or c
                at = at + 1
            end
        end
    end
    local function list(close, one)
        local all = {}
        at = at + 1
        space()
        while text:sub(at, at) ~= close do
            one(all)
            space()
            if text:sub(at, at) == "," then at = at + 1 end
            space()
        end
        at = at + 1
        return all
    end
    function value()
        space()
        local c = text:sub(at, at)
        if c == "{" then
            return list("}", function(all)
                local key = string_()
                space()
                assert(text:sub(at, at) == ":", "colon")
                at = at + 1
                all[key] = value()
            end)
        elseif c == "[" then
            return list("]", function(all) all[#all + 1] = value() end)
        elseif c == '"' then
            return string_()
        end
        local word = text:match("^[%w%.+-]+", at)
        at = at + #word
        if word == "true" then return true elseif word == "false" then return false end
        return tonumber(word)
    end
    return value()
end

local function write(v)
    if type(v) == "string" then return string.format("%q", v) end
    if type(v) ~= "table" then return tostring(v) end
    local parts = {}
    if #v > 0 then
        for i, x in ipairs(v) do parts[i] = write(x) end
        return "[" .. table.concat(parts, ",") .. "]"
    end
    local keys = {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys)
    for i, k in ipairs(keys) do parts[i] = k .. "=" .. write(v[k]) end
    return "{" .. table.concat(parts, ",") .. "}"
end

local tree = parse(source)
local rows = tree["3166-2"]
emit("rows", #rows)
emit(write(rows):sub(1, 20000))

-- ---- tables, sorted and grouped, with metatables
local by_type = setmetatable({}, { __index = function(t, k) local new = {}; rawset(t, k, new); return new end })
for _, row in ipairs(rows) do table.insert(by_type[row.type], row) end
local types = {}
for name, group in pairs(by_type) do
    types[#types + 1] = name
    table.sort(group, function(a, b) return a.code < b.code end)
end
table.sort(types)
for _, name in ipairs(types) do emit(name, #by_type[name], by_type[name][1].code, by_type[name][#by_type[name]].name) end

-- ---- text: words, patterns, formats, long strings
local words = {}
for _, row in ipairs(rows) do
    for word in row.name:gmatch("[%a\128-\255]+") do words[word] = (words[word] or 0) + 1 end
end
local list = {}
for word, n in pairs(words) do list[#list + 1] = string.format("%05d %s", n, word:upper()) end
table.sort(list, function(a, b) return a > b end)
emit(table.concat(list, "\n", 1, 200))
local long = ""
for i = 1, 300 do long = long .. ("x"):rep(i) .. i end -- each a string of its own
emit(#long, long:sub(-30), (long:gsub("x+", function(s) return #s % 7 end)):sub(1, 500))
emit(string.pack("<i4s2z", 77, "packed", "zero"):byte(1, -1))

-- ---- closures, coroutines, to-be-closed variables, errors
local function tree_of(depth) if depth == 0 then return {} end return { tree_of(depth - 1), tree_of(depth - 1) } end
local function count(t) local n = 1; for _, sub in ipairs(t) do n = n + count(sub) end return n end
for depth = 1, 12 do emit("tree", depth, count(tree_of(depth))) end
local function primes(limit)
    return coroutine.wrap(function()
        local sieve = {}
        for i = 2, limit do
            if not sieve[i] then
                coroutine.yield(i)
                for j = i * i, limit, i do sieve[j] = true end
            end
        end
    end)
end
local sum = 0
for p in primes(20000) do sum = sum + p end
emit("primes", sum)
local many = {}
for i = 1, 500 do many[i] = coroutine.create(function(a) local b = coroutine.yield(a + i) return a * b end) end
for i, c in ipairs(many) do coroutine.resume(c, i) end
local total = 0
for _, c in ipairs(many) do local _, r = coroutine.resume(c, 2); total = total + r end
emit("coroutines", total)
local closed = 0
for i = 1, 100 do local guard <close> = setmetatable({}, { __close = function() closed = closed + i end }) end
emit("closed", closed, select(2, pcall(error, { code = 7 })).code, (select(2, pcall(function() return nil + 1 end))))

-- ---- collection: weak tables, finalizers, generations
local weak, finalized = setmetatable({}, { __mode = "v" }), 0
for i = 1, 2000 do weak[i] = setmetatable({}, { __gc = function() finalized = finalized + 1 end }) end
collectgarbage()
collectgarbage()
emit("weak", #weak, finalized)
collectgarbage("generational")
local ring = {}
for i = 1, 60000 do ring[i % 1000] = { i, tostring(i) } end
emit("ring", ring[1][2], ring[999][1])
collectgarbage("incremental")

-- ---- code that is made while the program runs
local code = {}
for i = 1, 300 do code[i] = ("local function f%d(x) return x * %d + %d end total = (total or 0) + f%d(%d)"):format(i % 100, i, i, i % 100, i) end
local scope = {}
for i = 1, 300 do assert(load(code[i], "made" .. i, "t", scope))() end
emit("made", scope.total, #string.dump(load(table.concat({ "return ", ("1+"):rep(150), "1" }))))
