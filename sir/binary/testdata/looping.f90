! Loops in Fortran.
module shapes
contains
  integer function area(n)
    integer, intent(in) :: n
    integer :: i
    area = 0
    do i = 1, n
      area = area + i
    end do
  end function area

  subroutine rows(a, n)
    integer, intent(in) :: n
    integer, intent(inout) :: a(n)
    integer :: i, k
    do i = 1, n
      if (mod(i, 3) == 0) cycle
      do k = 1, i
        a(i) = a(i) + area(k)
      end do
    end do
  end subroutine rows
end module shapes

program looping
  use shapes
  integer :: a(9), left
  a = 0
  left = 4
  do while (left > 0)
    call rows(a, 2 * left)
    left = left - 1
  end do
  print *, sum(a)
end program looping
