C     ways leaves its regions in all ways of Fortran in fixed form. Columns 73 to 80 have numbers.
      PROGRAM WAYS                                                      WAYS0010
      INTEGER LIST(6), I, J, K, N, TWICE, SEARCH                        WAYS0020
      LOGICAL ODD                                                       WAYS0030
      COMMON /SUMS/ K                                                   WAYS0040
      DATA LIST /4, 8, 15, 16, -23, 42/                                 WAYS0050
      ODD(N) = MOD(N, 2) .EQ. 1                                         WAYS0060
      TWICE(N) = 2 * N                                                  WAYS0070
      K = 0                                                             WAYS0080
      DO 10 I = 1, 6                                                    WAYS0090
         K = K + 1                                                      WAYS0100
         IF (LIST(I) .LT. 0)                                            WAYS0110
     $      GO TO 10                                                    WAYS0120
         K = K + TWICE(LIST(I))                                         WAYS0130
         IF (ODD(LIST(I))) THEN                                         WAYS0140
            K = K + 1                                                   WAYS0150
         ELSE IF (I .EQ. 2) THEN                                        WAYS0160
            K = K + 2                                                   WAYS0170
         ELSE                                                           WAYS0180
            K = K + 3                                                   WAYS0190
         END IF                                                         WAYS0200
   10 CONTINUE                                                          WAYS0210
      K = K + 1                                                         WAYS0220
      DO 30 I = 1, 3                                                    WAYS0230
         K = K + 1                                                      WAYS0240
         DO 20 J = 1, I                                                 WAYS0250
            K = K + 1                                                   WAYS0260
            IF (J .EQ. 2)                                               WAYS0270
     $         GO TO 30                                                 WAYS0275
   20    CONTINUE                                                       WAYS0280
   30 CONTINUE                                                          WAYS0290
      K = K + 1                                                         WAYS0300
      DO 40 I = 1, 3                                                    WAYS0310
      DO 40 J = 1, I                                                    WAYS0320
         K = K + 1                                                      WAYS0330
         IF (K .GT. 100000)                                             WAYS0340
     $      GO TO 90                                                    WAYS0350
   40 CONTINUE                                                          WAYS0360
   50 K = K + 1                                                         WAYS0370
      IF (SEARCH(LIST, 6, 16) - 4) 60, 70, 80                           WAYS0380
   60 K = 0                                                             WAYS0390
   70 K = K + 7                                                         WAYS0400
   80 K = K + 8                                                         WAYS0410
      OPEN (UNIT=11, STATUS='SCRATCH')                                  WAYS0420
      K = K + 1                                                         WAYS0430
      DO 85 I = 1, 3                                                    WAYS0440
         K = K + 1                                                      WAYS0450
         READ (UNIT=11, FMT=*, END=88, ERR=88) N                        WAYS0460
   85 CONTINUE                                                          WAYS0470
   88 K = K + 1; CALL DEEP(K, *90)                                      WAYS0480
      K = 0                                                             WAYS0490
   90 CALL REPORT (                                                     WAYS0500
     $  K)                                                              WAYS0510
      K = K + 1                                                         WAYS0515
      IF (K .GT. 0)                                                     WAYS0520
     $  STOP                                                            WAYS0525
      GO TO 50                                                          WAYS0530
      END                                                               WAYS0540
      INTEGER FUNCTION SEARCH(LIST, N, WANTED)
      INTEGER N, LIST(N), WANTED
      SEARCH = 0
      DO I = 1, N
	 SEARCH = I
	 IF (LIST(I) .EQ. WANTED)
     1	    RETURN
      ENDDO
      SEARCH = -1
      END
      SUBROUTINE DEEP(K, *)
      INTEGER K
      K = K + 1
      IF (K .LT. 0)
     $  GO TO 99
      K = K + 1
  100 FORMAT (1X, I8)
      WRITE (*, 100) K
      RETURN 1
   99 END
      SUBROUTINE REPORT(K)
C$OMP PARALLEL
      PRINT *, K
C$OMP END PARALLEL
      END
