C     Units and regions of Fortran in fixed form.
      PROGRAM FIXED
      INTEGER I, J, A(10)
      EXTERNAL TOTAL
      INTEGER TOTAL
      DO 20 I = 1, 10
      DO 20 J = 1,
     &  3
   20 A(I) = I + J
      D O 30 I = 1, 10
        IF (A(I) .GT. 3) THEN
          A(I) = 3
        ELSEIF (A(I) .EQ. 2) THEN
          GO TO 30
        END IF
   30 CONTINUE
      DO10I = 1, 3
        CALL SHOW(A, I)
   10 CONTINUE
      DO40I = 3
C$OMP PARALLEL DO
C$OMP+ PRIVATE(I)
      DO I = 1, 10
        A(I) = 0
      ENDDO
      WRITE (*, *) TOTAL(A, 10), 'END DO',
     1  (A(I), I = 1, 10)
      END

      SUBROUTINE SHOW(A, N)
      INTEGER A(*), N
      IF (A(N) - 1) 1, 2, 3
    1 PRINT *, 'less'
      RETURN
    2 PRINT *, 'equal'
    3 END

      INTEGER FUNCTION TOTAL(A, N)
      INTEGER A(*), N, I
      TOTAL = 0
      DO 5, I = 1, N
    5   TOTAL = TOTAL + A(I)
      END
