! Units and regions of Fortran in free form, with the ids that gfortran's symbols give them.
module grid
  implicit none
  type :: point
    integer :: x, y
  contains
    procedure :: move
  end type point
  interface
    subroutine step(x)
      integer :: x
    end subroutine step
  end interface
contains
  subroutine move(this, n)
    class(point), intent(inout) :: this
    integer, intent(in) :: n
    integer :: i
    do i = 1, n
      this%x = this%x + 1
    end do
  end subroutine move

  subroutine fill(a, n)
    integer, intent(in) :: n
    integer, intent(out) :: a(n)
    integer :: i, k; integer :: do = 3 ! a variable with the name of a statement
    do i = 1, n
      if (mod(i, 2) == 0) then
        a(i) = twice(i)
      else if (i > 7) then
        a(i) = 3
      else
        a(i) = 1
      end if
    end do
    outer: do i = 1, &
        n ! a comment behind the sign of continuation
      do k = 1, 3
        if (k == 2) cycle outer
        a(i) = a(i) + k + do
      enddo
    end do outer
  end subroutine fill

  integer function twice(i)
    integer, intent(in) :: i
    twice = 2 * i
  end function twice

  subroutine named() bind(c, name="CNamed")
    integer :: if(2)
    if(1) = 3
    if (if(1) == 3) if(2) = 4
  end subroutine named
end module grid

program main
  use grid
  integer :: a(10), i
  type(point) :: p
  character(len=20) :: text = "do i = 1, 3 ! 'x' &
    &end do"
  call fill(a, 10)
  do while (a(1) < 20)
    a(1) = a(1) + 1
    call step(a(1))
  end do
  print *, (a(i), i = 1, 10), text
  !$omp parallel do &
  !$omp& private(i)
  do i = 1, 10
    a(i) = a(i) + 1
  end do
  !$omp end parallel do
  do
    a(1) = a(1) - 1
    if (a(1) < 0) exit
  end do
  call p%move(3)
  call inner()
  call other
  call named
contains
  subroutine inner
    integer k
    do 10 k = 1, 3
      a(k) = k
10  continue
    select case (a(1))
    case (1)
      a(2) = 3
    case default
      stop 'x'
    end select
  end subroutine
  subroutine other
    do i = 1, 3; a(i) = 0; end do
  end subroutine
end program

subroutine step(x)
  integer :: x
  x = x + 1
end subroutine
