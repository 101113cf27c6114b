! Branches and loops of Fortran. The program prints numbers, and does the same in each run.
module parts
  implicit none
  integer :: sum = 0
contains
  integer function work(x)
    integer, intent(in) :: x
    sum = sum + x
    work = mod(sum, 8)
  end function work

  subroutine chosen(kind, r)
    integer, intent(in) :: kind
    integer, intent(out) :: r
    select case (kind)
    case (0, 1)
      r = work(1)
    case (2:4)
      r = work(2)
      if (r > 3) return
      r = r + 1
    case (:-1)
      r = -1
    case default
      r = work(5)
    end select
  end subroutine chosen

  integer function named(text)
    character(len=*), intent(in) :: text
    select case (text)
    case ('one')
      named = work(1)
    case ('two', 'three')
      named = work(2)
    case default
      named = 0
    end select
  end function named

  subroutine loops(n, a)
    integer, intent(in) :: n
    integer, intent(inout) :: a(:)
    integer :: i, k, left
    do i = 1, n
      a(i) = a(i) + i
    end do
    do i = n, 1, -2
      if (a(i) > 5) then
        a(i) = a(i) - 5
      else if (a(i) == 3 .or. i == 2) then
        a(i) = work(a(i))
      else
        sum = sum + 1
      end if
    end do
    left = n
    do while (left > 0)
      left = left - 2
      if (left == 3) cycle
      sum = sum + left
    end do
    do while (left < n .and. &
              mod(left + sum, 8) < 7)
      left = left + 1
      sum = sum + 2
    end do
    do
      left = left - 1
      if (left < 0) exit
      sum = sum + 1
    end do
    outer: do i = 1, n
      do k = i, n
        if (k == 4) cycle outer
        if (i == 5) exit outer
        sum = sum + k * i
      end do
      a(i) = 0
    end do outer
    do i = 1, n, work(2) + 1
      sum = sum + i
    end do
    do i = 5, 4
      sum = sum + 1000
    end do
    do 10 i = 1, 3
      if (i == 2) goto 10
      sum = sum + i
10  continue
    if (n == 1) then
      sum = sum + 1
    else if (a(2) > 5 .or. &
             a(1) > 2) then
      sum = sum + 2
    else if (n == 5) then
      sum = sum + 3
    end if
    if (n > 3) then
      if (n > 100) then
        sum = 0
      endif
      associate (first => a(1))
        if (first > 1) first = first - 1
      end associate
    end if
  end subroutine loops

  subroutine whole(n, x)
    integer, intent(in) :: n
    real, intent(inout) :: x(n, n)
    integer :: i, j
    do j = 1, n
      do i = 1, n
        if (i == j) then
          x(i, j) = 1.0
        else if (mod(i + j, 3) == 0) then
          x(i, j) = x(i, j) + 0.5
        end if
      end do
    end do
    where (x > 0.7)
      x = x * 2
    end where
    block
      real :: most
      most = maxval(x)
      if (most > 1.5) then
        x = x / most
      end if
    end block
  end subroutine whole
end module parts

program branches
  use parts
  implicit none
  integer :: i, r, a(9)
  real :: x(4, 4)
  a = 2
  x = 0.0
  do i = -2, 7
    call chosen(i, r)
    sum = sum + r
    if (i > 0) call loops(i, a)
  end do
  if (named('one') + named('three') > 100) then
    sum = -1
  else
    sum = sum + named('x')
  end if
  do i = 1, 4
    call whole(i, x(1:i, 1:i))
  end do
  print *, sum, nint(1000 * x(2, 2)), (a(i), i = 1, 9)
end program branches
