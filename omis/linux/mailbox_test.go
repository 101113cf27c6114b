//go:build linux && amd64

package linux

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nothing is a command that does nothing.
type nothing struct{}

func (nothing) do(*owner) {}

// TestRingsDoNotMultiply posts many commands to an owner that takes none, and limits the number of signals that
// are queued for its thread.
func TestRingsDoNotMultiply(t *testing.T) {
	const commands, while = 400, 60 * time.Millisecond
	m := newMailbox()
	blocked, end := make(chan int), make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and its signals with it
		set := unix.Sigset_t{Val: [16]uint64{1 << (bell - 1)}}
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
			t.Error(err)
		}
		blocked <- unix.Gettid()
		<-end
	}()
	tid := <-blocked
	defer close(end)
	m.thread.Store(int32(tid))
	m.waiting.Store(true)
	before := queuedSignals(t, tid)
	begin := time.Now()
	for range commands {
		m.post(nothing{})
	}
	time.Sleep(while)
	rings := queuedSignals(t, tid) - before
	most := commands + int(time.Since(begin)/ringAgain) + 1
	if rings < commands || rings > most {
		t.Errorf("%d signals are queued, want %d to %d", rings, commands, most)
	}
	for m.take() != nil {
	}
}

// queuedSignals counts the signals that the kernel has queued for this user.
func queuedSignals(t *testing.T, tid int) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", tid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "SigQ:"); ok {
			if _, err := fmt.Sscanf(strings.TrimSpace(count), "%d/", &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}
