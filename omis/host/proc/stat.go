//go:build linux

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"mirador/omis"
)

// stat is what somebody asks about of /proc/PID/stat, or of a thread's.
type stat struct {
	name                     []byte // valid as long as the text is
	state                    byte
	parent                   int
	flags                    uint64
	minorFaults, majorFaults int64
	userTime, systemTime     int64 // ticks
	nice                     int64 // what proc_set_priority sets
	threads                  int
	start                    uint64 // ticks since boot
	memory                   int64  // bytes
}

var errStat = errors.New("the kernel's statistics cannot be read: they are in an unknown form")

// parseStat keeps what it needs of the text. The name may hold anything, also
// brackets and blanks, and the kernel escapes neither.
func parseStat(text []byte) (s stat, err error) {
	begin, end := bytes.IndexByte(text, '('), nameEnd(text)
	if begin < 0 || end < begin || end+3 >= len(text) {
		return s, errStat
	}
	s.name, s.state = text[begin+1:end], text[end+2]
	// The fields by their numbers in proc_pid_stat(5), from the one behind the state.
	const first, last = 4, 23
	var field [last + 1]int64
	rest := text[end+3:]
	for i := first; i <= last; i++ {
		if field[i], rest, err = nextNumber(rest); err != nil {
			return s, err
		}
	}
	s.parent, s.flags = int(field[4]), uint64(field[9])
	s.minorFaults, s.majorFaults = field[10], field[12]
	s.userTime, s.systemTime = field[14], field[15]
	s.nice, s.threads, s.start = field[19], int(field[20]), uint64(field[22])
	s.memory = field[23]
	return s, nil
}

// nameEnd is where the name's closing bracket stands, -1 without one.
func nameEnd(text []byte) int {
	const longest = 80 // number and name
	return bytes.LastIndexByte(text[:min(len(text), longest)], ')')
}

// StateLetter is the state in the text of a process's stat, 0 if there is none.
func StateLetter(text []byte) byte {
	end := nameEnd(text)
	if end < 0 || end+2 >= len(text) {
		return 0
	}
	return text[end+2]
}

// nextNumber reads a blank and a number. It is on the way of everybody who polls
// threads, and strconv takes twice as long.
func nextNumber(text []byte) (n int64, rest []byte, err error) {
	i, negative := 1, false
	if i < len(text) && text[i] == '-' {
		i, negative = i+1, true
	}
	begin := i
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		n = 10*n + int64(text[i]-'0')
		i++
	}
	if i == begin || text[0] != ' ' {
		return 0, nil, errStat
	}
	if negative {
		n = -n
	}
	return n, text[i:], nil
}

// readStat is for those who ask once.
func readStat(pid int) (stat, error) { return readStatFile(fmt.Sprintf("/proc/%d/stat", pid)) }

func readThreadStat(pid, tid int) (stat, error) {
	return readStatFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
}

func readStatFile(path string) (stat, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

func (s *stat) over() bool { return over(s.state, s.threads) }

// over tells whether nothing of a process is left but its exit status.
func over(state byte, threads int) bool { return state == 'X' || state == 'Z' && threads <= 1 }

// schedulingState translates a state letter. Linux shows a thread that waits for
// a processor as R, like one that has it.
func schedulingState(letter byte) int {
	switch letter {
	case 'R':
		return omis.StateRunning
	case 'Z', 'X':
		return omis.StateZombie
	case 'T', 't':
		return omis.StateStopped
	}
	return omis.StateBlocked
}
