//go:build linux && amd64

package warden

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wakePatience bounds how long a warden stays for a process that somebody else
// traces: CRIU, which saves it, and in the end leaves it stopped as it was.
const wakePatience = 10 * time.Minute

// awakeAfter is how long a process must have been seen running. One that has a
// SIGSTOP before it, of the monitor's or of CRIU's, is for a moment.
const awakeAfter = 200 * time.Millisecond

// wake sets going what the monitor has left stopped.
func (g *guard) wake() {
	const pause = 10 * time.Millisecond
	begin := time.Now()
	rested := make(map[int]time.Time) // when it was last seen stopped
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

// nudge tells whether a process runs, or is gone; one that is stopped it sets
// going, to be looked at again.
func nudge(pid int, pidfd *os.File) bool {
	state := stateOf(pid)
	fd := int(pidfd.Fd())
	switch {
	case unix.PidfdSendSignal(fd, 0, nil, 0) != nil:
		return true // it has ended, and what was read is another's
	case state == 'T':
		return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) != nil
	}
	return state != 't'
}

// stateOf is the state letter of a process, 0 when it is gone.
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
