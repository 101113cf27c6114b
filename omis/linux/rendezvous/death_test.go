//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis/linux/subject"
)

// monitorEnv makes the test binary a monitor of the process that its value names: PATH
// PID ADDRESS serve|hold|mixed.
const monitorEnv = "MIRADOR_TEST_RENDEZVOUS"

// patience is how long threads wait for a monitor that is stopped.
const patience = time.Second

// killsEnv sets the number of monitors to kill.
const killsEnv = "MIRADOR_TEST_KILLS"

func kills() int {
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		return n
	}
	return 60
}

// runMonitor serves an address of a process until it is killed.
func runMonitor(spec string) {
	f := strings.Fields(spec)
	pid, _ := strconv.Atoi(f[1])
	addr, _ := strconv.ParseUint(f[2], 0, 64)
	site, err := plant(f[0], pid, patience, addr)
	if err == nil {
		var n int
		_, err = Serve(site, 0, func(h *Hit) {
			n++
			h.Regs[RFlags] ^= 1 // the carry flag is unused at the entry of a function
			switch {
			case f[3] == "serve" || f[3] == "mixed" && n%3 == 0:
			case f[3] == "mixed":
				time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, h.Hold())
			default:
				h.Hold()
			}
		})
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

func startMonitor(t *testing.T, p *party, mode string) *subject.Subject {
	t.Helper()
	return subject.StartAgain(t, fmt.Sprintf("%s=%s %d %#x %s", monitorEnv, p.path, p.PID, p.work, mode))
}

// TestKilledMonitor kills monitors at random moments, while they serve threads, hold all
// of them, or both. The target's results must not change, and the next monitor must be
// able to adopt it.
func TestKilledMonitor(t *testing.T) {
	path := build(t)
	const rounds = 5 // with one target
	args := []string{"8", "1000000"}
	want := subject.Alone(t, path, args...)
	for n := range (kills() + rounds - 1) / rounds {
		p := start(t, path, args...)
		begun := time.Now()
		for i := range rounds {
			mode := []string{"serve", "hold", "mixed"}[(n+i)%3]
			monitor := startMonitor(t, p, mode)
			if i == 0 {
				p.Begin()
			}
			time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
			if i%4 == 3 {
				p.signal(syscall.SIGSTOP)
			}
			monitor.Kill()
			p.signal(syscall.SIGCONT)
		}
		if got := p.Finish(); got != want {
			t.Fatalf("target %d: got %s, want %s", n, got, want)
		}
		if took := time.Since(begun); took > limit {
			t.Errorf("target %d took %v", n, took)
		}
	}
}

// TestStoppedMonitor stops a monitor that holds all threads: they must continue when
// their patience ends.
func TestStoppedMonitor(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "4", "300")
	p := start(t, path, "4", "300")
	monitor := startMonitor(t, p, "hold")
	p.Begin()
	p.IsSilent(2 * patience) // a live monitor may hold threads for any time
	if err := monitor.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if took := time.Since(begun); took > limit { // not 300 times the patience
		t.Errorf("held for %v", took)
	}
}

// TestContinuedMonitor stops a monitor until threads give up and continue without being
// held; when the monitor continues, it must hold the next hits in the slots they left.
func TestContinuedMonitor(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "40", "1000000")
	p := start(t, path, "40", "1000000")
	monitor := startMonitor(t, p, "hold")
	p.Begin()
	time.Sleep(2 * nap)
	if err := monitor.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(patience + 5*nap)
	if err := monitor.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.IsSilent(2 * patience)
	monitor.Kill()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRefusedFutex gives the target a seccomp filter that refuses futex.
func TestRefusedFutex(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "1", "300", "filter")
	p := start(t, path, "1", "300", "filter")
	_, s := serve(t, p, func(*Hit) {}, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if stats := s.Stats(); stats.Forsook == 0 {
		t.Errorf("%+v", stats)
	}
}
