-- exercises the compiler, tables, strings and the collector of Lua, always in the same way
local nothing
local words = {}
for w in ("the quick brown fox jumps over the lazy dog, 17 times 0x1F or 3.5e2 'and' [[more]]"):gmatch("[%w%.]+") do
  words[#words + 1] = w
end
local function count(list)
  local n = {}
  for i, w in ipairs(list) do
    local key = w:sub(1, 1)
    if n[key] then n[key] = n[key] + 1 else n[key] = 1 end
    if i % 3 == 0 then goto continue end
    n[i] = w:upper():rep(2, "-")
    ::continue::
  end
  return n
end
for round = 1, 2 do
  count(words)
  table.sort(words, function(a, b) return a:lower() < b:lower() end)
end
table.insert(words, 2, "new"); table.remove(words, 1)
assert(#table.concat(words, " ") > 20 and select("#", table.unpack(words)) == #words)
local source = "local a <const>, b = 1, {x = 2, [3] = 'y\\n\\x41\\u{48}\\065'} while a > b.x do b.x = b.x << 1 ~ 3 end repeat local z = not a until z == false return a // 2 .. '' .. (b.x & 1)"
local f = assert(load(source)); f()
assert(not load("x = = 1")); assert(not pcall(error, {}))
local s = string.format("%5d|%-8s|%q|%x|%g|%.3f", 42, "left", "a\n\0b", 255, 0.1, 2 / 3)
assert(s:find("left", 1, true) and s:find("^ *%d+") and not s:find("zz+"))
assert(("x=1,y=2"):gsub("(%w+)=(%w+)", "%2=%1") == "1=x,2=y")
assert(string.unpack("<i4", string.pack("<i4", -7)) == -7)
local weak = setmetatable({}, {__mode = "v", __index = function(_, k) return k end, __gc = function() end})
for i = 1, 20 do weak[i] = {}; local t = {i, i + 1, n = i}; t.n = nothing end
collectgarbage(); collectgarbage("step"); collectgarbage("generational"); collectgarbage("incremental")
local co = coroutine.wrap(function(...) for i = 1, 3 do coroutine.yield(i, ...) end end)
co(1); co(); co()
local t = {} for i = 10, 1, -1 do t[i] = i * 1.5 end for k, v in pairs(t) do if v > 7 then t[k] = nothing end end
assert(1e3 // 7 == 142.0 and 7 % -3 == -2 and 2 ^ 10 == 1024 and "10" + 5 == 15 and 3 | 4 == 7)
