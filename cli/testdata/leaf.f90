! leaf is called by tally.c.
subroutine leaf(n) bind(c)
  use iso_c_binding, only: c_long
  integer(c_long), value :: n
  integer(c_long), volatile, save :: last
  if (n == 7) return
  last = n
end subroutine leaf
