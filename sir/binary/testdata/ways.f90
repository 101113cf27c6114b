! ways leaves its regions in all ways of Fortran. Tests weave all regions that can be woven: a loop, a choice and a
! block follow a statement that is executed as often, and what is inside begins with one.
module numbers
  implicit none
  integer :: total = 0
  type box
    integer :: n = 0
  contains
    procedure :: more
  end type
  interface
    subroutine outside(n)
      integer, intent(in) :: n
    end subroutine
  end interface
contains
  subroutine more(self)
    class(box), intent(inout) :: self
    self%n = self%n + 1
  end subroutine more
  pure integer function square(n)
    integer, intent(in) :: n
    square = n*n
  end function
  recursive integer function early(n) result(r)
    integer, intent(in) :: n
    r = 0
    if (n < 2) &
      return
    r = n + early(n/2)
  end function early
end module numbers

program ways
  use numbers
  implicit none
  integer :: i, j, k
  integer, allocatable :: list(:)
  type(box) :: b
  k = 0; b%n = 0
  do i = 1, 4 ! "do
    total = total + 1
    if (i == 2) &
      cycle
    total = total + 1; call b%more()
    k = k + early(i) + &
      1
    select case (i)
    case (1)
      k = k + 1
    case (3:4)
      k = k + 2
      if (i == 4) then
        k = k + 3
        exit
      else if (k > 100) then
        k = 0
      else
        k = k - 1
      end if
    case default
      k = 0
      k = k + 1
    end select
  end do
  k = k + 1
  outer: do i = 1, 5
    k = k + 1
    inner: do j = 1, 5
      k = k + 1
      if (j == i) &
        cycle outer
      k = k + 1
      if (i + j == 7) then
        k = k + 1
        exit outer
      end if
      total = total + 1; k = k + 0
      if (j == 3) &
        cycle
      call outside(j)
    end do inner
  end do outer
  i = 0
10 i = i + 1
  do while (i < 3)
    k = k + 1
    if (i == 1) &
      goto 10
    i = i + 1
  end do
  allocate (list(3))
  open (unit=11, status='scratch')
  write (11, *) 1, "it's !"
  write (11, *) 2
  rewind (11)
  i = 0
  do
    i = i + 1
    read (11, *, end=20, &
      err=20) list(i)
    k = k + list(i)
  end do
20 k = k + 1
  blk: block
    k = k + 1
    if (k > 0) &
      exit blk
    k = 0
  end block blk
  k = k + 1
  associate (n => k)
    n = n + 1
  end associate
  call leave(k, *30, *40)
  k = 0
30 print *, "thirty", k, b%n
40 print *, "forty", k
  k = k + 1
  do i = 1, 4
    k = k + 1
    goto (50, 60), i
    k = k + 1
50  k = k + 1
60  k = k + 1
  end do
  i = 3
  !$omp parallel do lastprivate(i) reduction(+:total)
  do j = 1, 5
    total = total + i
    i = j
  end do
  print *, k, total, size(list)
  if (k > 3) &
    stop 0
  print *, "never"
contains
  subroutine leave(n, *, *)
    integer, intent(in) :: n
    total = total + n
    if (n > 5) &
      return 1
    return 2
  end subroutine leave
end program ways

subroutine outside(n)
  use numbers, only: total
  integer, intent(in) :: n
  total = total + n; end subroutine outside
