//go:build linux && amd64

package warden

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wakePatience limits the time for which a warden waits for a process that another
// process traces: CRIU does so while it saves a process, and leaves it stopped if it was
// stopped before.
const wakePatience = 10 * time.Minute

// awakeAfter is the time for which a process must run before the warden forgets it. A
// process with a pending SIGSTOP of the monitor or of CRIU runs for a moment only.
const awakeAfter = 200 * time.Millisecond

// wake continues the processes that the monitor has left stopped.
func (g *guard) wake() {
	const pause = 10 * time.Millisecond
	begin := time.Now()
	rested := make(map[int]time.Time) // when each was last seen stopped
	for pid := range g.stills {
		rested[pid] = begin
	}
	for ; len(g.stills) > 0 && time.Since(begin) < wakePatience; time.Sleep(pause) {
		for pid, pidfd := range g.stills {
			switch {
			case !nudge(pid, pidfd):
				rested[pid] = time.Now()
			case time.Since(rested[pid]) > awakeAfter:
				g.release(pid)
			}
		}
	}
}

// nudge reports whether a process runs or is gone; it continues a stopped process, which
// the caller must then check again.
func nudge(pid int, pidfd *os.File) bool {
	state := stateOf(pid)
	fd := int(pidfd.Fd())
	switch {
	case unix.PidfdSendSignal(fd, 0, nil, 0) != nil:
		return true // it has ended, and state belongs to another process
	case state == 'T':
		return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) != nil
	}
	return state != 't'
}

// stateOf returns the state letter of a process, 0 if it is gone.
func stateOf(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	if len(after) == 0 {
		return 0
	}
	return after[0]
}

func (g *guard) release(pid int) {
	if f := g.stills[pid]; f != nil {
		f.Close()
		delete(g.stills, pid)
	}
}
