package calls

import "testing"

// TestWaitsForLock checks which calls of futex wait for a lock.
func TestWaitsForLock(t *testing.T) {
	const private, realtime = 128, 256
	for _, c := range []struct {
		op, word uint64
		want     bool
	}{
		{FutexWait | private, 2, true}, {FutexWait, 2, true}, {FutexWait | private, 0, false}, {FutexWait | private, 1<<32 | 2, true},
		{FutexWaitBits | private | realtime, 2, true}, {FutexWaitBits | private, 3, false},
		{FutexLockPI | private, 0, true}, {FutexLockPI2, 7, true}, {1 | private, 2, false}, {5, 2, false},
	} {
		if got := WaitsForLock(c.op, c.word); got != c.want {
			t.Errorf("futex %d with %d: %v, want %v", c.op, c.word, got, c.want)
		}
	}
}
