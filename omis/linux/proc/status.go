//go:build linux && amd64

package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Status holds those lines of /proc/PID/status that decide about tracing.
type Status struct {
	Name      string
	TGID      int
	Tracer    int // thread id of the tracer, 0 without one
	UIDs      [4]int
	GIDs      [4]int
	Pending   uint64 // signals for this thread, bit sig-1
	Blocked   uint64
	Caught    uint64
	Permitted uint64 // capabilities
	Effective uint64
	Seccomp   int
}

// ReadStatus reads the status of a process or thread.
func ReadStatus(pid int) (Status, error) { return readStatus(fmt.Sprintf("/proc/%d/status", pid)) }

// ReadThreadStatus reads the status of a thread of a process.
func ReadThreadStatus(pid, tid int) (Status, error) {
	return readStatus(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
}

func readStatus(path string) (Status, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Status{}, err
	}
	return parseStatus(string(b)), nil
}

func parseStatus(text string) Status {
	var s Status
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			s.Name = value
		case "Tgid":
			s.TGID = number(value)
		case "TracerPid":
			s.Tracer = number(value)
		case "Uid":
			s.UIDs = four(value)
		case "Gid":
			s.GIDs = four(value)
		case "SigPnd":
			s.Pending = hexadecimal(value)
		case "SigBlk":
			s.Blocked = hexadecimal(value)
		case "SigCgt":
			s.Caught = hexadecimal(value)
		case "CapPrm":
			s.Permitted = hexadecimal(value)
		case "CapEff":
			s.Effective = hexadecimal(value)
		case "Seccomp":
			s.Seccomp = number(value)
		}
	}
	return s
}

// SignalBit is the bit of a signal in Pending, Blocked and Caught.
func SignalBit(sig unix.Signal) uint64 { return 1 << (uint(sig) - 1) }

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func hexadecimal(s string) uint64 {
	n, _ := strconv.ParseUint(s, 16, 64)
	return n
}

func four(s string) (ids [4]int) {
	for i, f := range strings.Fields(s) {
		if i < len(ids) {
			ids[i] = number(f)
		}
	}
	return ids
}
