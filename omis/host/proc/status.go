//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Status holds the fields that the monitor uses of /proc/PID/status.
type Status struct {
	Name      string
	State     byte // letter
	TGID      int
	Parent    int
	Tracer    int // thread id of the tracer, 0 if there is none
	UIDs      [4]int
	GIDs      [4]int
	Threads   int
	Pending   uint64 // pending signals of this thread, bit sig-1
	Shared    uint64 // pending signals of the process
	Blocked   uint64
	Caught    uint64
	Permitted uint64 // capabilities
	Effective uint64
	Seccomp   int // 0, SeccompStrict or SeccompFilter

	Memory, Resident, MostResident int64 // bytes
	Locked                         int64 // locked bytes
	Voluntary, Preemptive          int64 // context switches of this thread

	// ShadowStack reports that the processor checks return addresses against a second
	// stack.
	ShadowStack bool
}

// Modes in which a thread has given up system calls.
const (
	SeccompStrict = 1 // all but four
	SeccompFilter = 2 // those that a filter selects
)

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
	return parseStatus(b), nil
}

func parseStatus(text []byte) (s Status) {
	for name, value := range Pairs(text) {
		switch string(name) {
		case "Name":
			s.Name = string(value)
		case "State":
			if len(value) > 0 {
				s.State = value[0]
			}
		case "PPid":
			s.Parent = int(Number(value))
		case "Tgid":
			s.TGID = int(Number(value))
		case "TracerPid":
			s.Tracer = int(Number(value))
		case "Uid":
			s.UIDs = four(value)
		case "Gid":
			s.GIDs = four(value)
		case "VmSize":
			s.Memory = Number(value) << 10
		case "VmLck":
			s.Locked = Number(value) << 10
		case "VmRSS":
			s.Resident = Number(value) << 10
		case "VmHWM":
			s.MostResident = Number(value) << 10
		case "Threads":
			s.Threads = int(Number(value))
		case "SigPnd":
			s.Pending = hexadecimal(value)
		case "ShdPnd":
			s.Shared = hexadecimal(value)
		case "SigBlk":
			s.Blocked = hexadecimal(value)
		case "SigCgt":
			s.Caught = hexadecimal(value)
		case "CapPrm":
			s.Permitted = hexadecimal(value)
		case "CapEff":
			s.Effective = hexadecimal(value)
		case "Seccomp":
			s.Seccomp = int(Number(value))
		case "voluntary_ctxt_switches":
			s.Voluntary = Number(value)
		case "nonvoluntary_ctxt_switches":
			s.Preemptive = Number(value)
		case "x86_Thread_features":
			s.ShadowStack = bytes.Contains(value, []byte("shstk"))
		}
	}
	return s
}

// SignalBit returns the bit of a signal in Pending, Shared, Blocked and Caught.
func SignalBit(sig unix.Signal) uint64 { return 1 << (uint(sig) - 1) }
