//go:build linux

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"mirador/omis/node"
)

// stat holds the fields that this package uses of /proc/PID/stat or of a thread's stat.
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

var errStat = errors.New("the kernel's statistics have an unknown format")

// parseStat parses a stat file. The name may contain any character, including brackets
// and blanks, and the kernel does not escape them.
func parseStat(text []byte) (s stat, err error) {
	begin, end := bytes.IndexByte(text, '('), nameEnd(text)
	if begin < 0 || end < begin || end+3 >= len(text) {
		return s, errStat
	}
	s.name, s.state = text[begin+1:end], text[end+2]
	// Fields have their numbers of proc_pid_stat(5), beginning after the state.
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

// nameEnd returns the index of the name's closing bracket, -1 if there is none.
func nameEnd(text []byte) int {
	const longest = 80 // bytes of number and name
	return bytes.LastIndexByte(text[:min(len(text), longest)], ')')
}

// StateLetter returns the state in the text of a stat file, 0 if there is none.
func StateLetter(text []byte) byte {
	end := nameEnd(text)
	if end < 0 || end+2 >= len(text) {
		return 0
	}
	return text[end+2]
}

// nextNumber parses a blank and a number. It is on the fast path of reading threads;
// strconv takes twice as long.
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

// readStat reads the file by its path, for callers without a Reader.
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

// over reports whether only the exit status of a process is left.
func over(state byte, threads int) bool { return state == 'X' || state == 'Z' && threads <= 1 }

// schedulingState translates a state letter. Linux shows a thread that waits for a
// processor as R, like a running one.
func schedulingState(letter byte) int {
	switch letter {
	case 'R':
		return node.StateRunning
	case 'Z', 'X':
		return node.StateZombie
	case 'T', 't':
		return node.StateStopped
	}
	return node.StateBlocked
}
