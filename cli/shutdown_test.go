package cli

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndBesideStoppedHelpers stops the helpers of a gateway and tells the gateway to end. It
// ends in a bounded time, and the next gateway starts and finds the probe's application.
func TestEndBesideStoppedHelpers(t *testing.T) {
	t.Parallel()
	for _, placements := range []string{"kernel,trap", "trap"} {
		t.Run(placements, func(t *testing.T) {
			s := startServe(t, os.Geteuid(), "--placements", placements)
			c := startTally(t)
			s.must(t, "", "attach", strconv.Itoa(c.PID))
			s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/></instrreq>`)
			helpers := s.helpers(t)
			if len(helpers) == 0 {
				t.Fatal("the gateway has no helpers")
			}
			for _, pid := range helpers {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) }) // an error means that it has ended
			}
			begin := time.Now()
			s.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-s.ended:
			case <-time.After(2 * longestEnd):
				t.Errorf("the gateway has not ended after %v\n%s", time.Since(begin), s.logged())
				s.cmd.Process.Kill()
				<-s.ended
			}
			t.Logf("ended after %v: %v\n%s", time.Since(begin), s.cmd.ProcessState, s.logged())
			s.await(t, s.begin(t))
		})
	}
}

// TestEndIsBounded ends a gateway of which a part never returns, once with a journal that returns and once with one that does not.
func TestEndIsBounded(t *testing.T) {
	t.Parallel()
	for _, blocked := range []bool{false, true} {
		var out lockedBuffer
		exits := make(chan int, 1)
		flushed := make(chan struct{})
		e := &ending{limit: 50 * time.Millisecond, out: &out, exit: func(status int) { exits <- status }}
		e.flush = func() {
			if blocked {
				<-flushed
			} else {
				close(flushed)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := e.watch(ctx)
		e.waitFor("the moon")
		time.Sleep(2 * e.limit)
		if len(exits) > 0 {
			t.Fatal("it ended without being told to")
		}
		cancel()
		select {
		case status := <-exits:
			if status != exitFailed {
				t.Errorf("exit status %d", status)
			}
		case <-time.After(patience):
			t.Fatal("it does not end")
		}
		if !blocked {
			<-flushed
		} else {
			close(flushed)
		}
		if !strings.Contains(out.String(), "still waits for the moon") {
			t.Errorf("it says %q", out.String())
		}
		done()
	}
}

// TestEndInTime checks that nothing is forced if the gateway ends in time.
func TestEndInTime(t *testing.T) {
	var out bytes.Buffer
	e := &ending{limit: 50 * time.Millisecond, out: &out, flush: func() {}, exit: func(int) { t.Error("it was forced to end") }}
	ctx, cancel := context.WithCancel(t.Context())
	done := e.watch(ctx)
	cancel()
	done()
	time.Sleep(2 * e.limit)
	if out.Len() > 0 {
		t.Errorf("it says %q", out.String())
	}
}
