//go:build linux

package proc

import (
	"bytes"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/node"
)

const (
	// userHz is the kernel's unit of utime and stime, fixed on x86-64.
	userHz = 100
	tick   = 1e9 / userHz // nanoseconds
	// inputUnit is the number of bytes in the kernel's unit of file input and output
	// (ru_inblock of getrusage).
	inputUnit = 512
)

// The files in which the kernel shows each component. A component that is in several
// files comes from a file that must be read anyway, else from the cheapest.
const (
	statusOnly = node.ProcUID | node.ProcGID | node.ProcMaxResidentSize | switches
	statOnly   = node.ProcPriority | node.ProcSystemTime | node.ProcUserTime | node.ProcMinorPageFaults | node.ProcMajorPageFaults
	either     = node.ProcParent | node.ProcSchedulingState
	anywhere   = node.ProcMemorySize
	statm      = node.ProcNonHeap | node.ProcHeap
	ioFields   = node.ProcFileInput | node.ProcFileOutput | node.ProcReadBytes | node.ProcWrittenBytes

	switches = node.ProcVolContSwitch | node.ProcInvolContSwitch
)

// unread returns a ProcInfo with the values that Linux does not have (OMIS 8.1.2).
func unread() node.ProcInfo { return node.ProcInfo{IntResidentSize: -1, Swaps: -1} }

// Info reads the components in f from the cheapest sources.
func (r *Reader) Info(p omis.ProcID, f node.ProcFields) (node.ProcInfo, error) {
	info := unread()
	q, err := r.ask(p)
	if err != nil {
		return info, err
	}
	if err := q.collect(f, &info); err != nil {
		return info, q.end(readError(p.PID, err))
	}
	if f&(statusOnly|statOnly|either) != 0 { // These files are read last, which proves that the process still existed.
		q.done()
		return info, nil
	}
	return info, q.end(nil)
}

// collect reads the components in f, first those that are read by the process's number.
func (q query) collect(f node.ProcFields, info *node.ProcInfo) error {
	for _, part := range [...]struct {
		needed bool
		read   func(query, node.ProcFields, *node.ProcInfo) error
	}{
		{f&node.ProcTotalTime != 0, query.time},
		{f&(node.ProcArgv|node.ProcUserArgv) != 0, query.arguments},
		{f&node.ProcEnvp != 0, query.environment},
		{f&ioFields != 0, query.inputOutput},
		{f&statm != 0 || f&node.ProcResidentSize != 0 && f&statusOnly == 0 || f&anywhere != 0 && f&(statusOnly|statOnly|either) == 0, query.sizes},
		{f&node.ProcQueuedTime != 0, query.queued},
		{f&statusOnly != 0, query.status},
		{f&statOnly != 0 || f&either != 0 && f&statusOnly == 0, query.stat},
	} {
		if !part.needed {
			continue
		}
		if err := part.read(q, f, info); err != nil {
			return err
		}
	}
	return nil
}

func (q query) stat(_ node.ProcFields, info *node.ProcInfo) error {
	text, err := q.read(fileID{name: statFile})
	if err != nil {
		return err
	}
	s, err := parseStat(text)
	switch {
	case err != nil:
		return err
	case s.over():
		return ended(q.k.id.PID)
	}
	info.Parent = s.parent
	info.State = schedulingState(s.state)
	info.Priority = s.nice
	info.SystemTime, info.UserTime = q.notLess(s.systemTime), ofTicks(s.userTime)
	info.MemorySize = s.memory
	info.MinorFaults, info.MajorFaults = s.minorFaults, s.majorFaults
	if s.state == 'Z' {
		return q.survivor(info)
	}
	return nil
}

// survivor reads the memory sizes and the state of a process whose first thread has ended
// before the others: the kernel shows them in the files of these threads only.
func (q query) survivor(info *node.ProcInfo) error {
	tids, err := q.threads()
	if err != nil {
		return err
	}
	for _, tid := range tids {
		text, err := q.read(fileID{tid, statusFile})
		if err != nil {
			continue // the thread has ended since
		}
		if s := parseStatus(text); s.Memory > 0 {
			info.State = schedulingState(s.State)
			info.MemorySize, info.ResidentSize, info.MaxResidentSize = s.Memory, s.Resident, s.MostResident
			break
		}
	}
	return nil
}

// ofTicks converts a time in the kernel's unit.
func ofTicks(n int64) time.Duration { return time.Duration(n) * tick }

// sizes reads the memory sizes from statm, in pages. Since Linux 6.2 the kernel counts
// pages for each processor, and the resident size in stat can be wrong by some hundred
// kilobytes.
func (q query) sizes(_ node.ProcFields, info *node.ProcInfo) error {
	text, err := q.read(fileID{name: statmFile})
	if err != nil {
		return err
	}
	size, rest, _ := bytes.Cut(text, []byte{' '})
	resident, shared, _ := bytes.Cut(rest, []byte{' '})
	page := int64(os.Getpagesize())
	info.MemorySize, info.ResidentSize, info.NonHeap = Number(size)*page, Number(resident)*page, Number(shared)*page
	info.Heap = info.ResidentSize - info.NonHeap
	if info.MemorySize == 0 {
		return q.survivor(info)
	}
	return nil
}

// time reads the CPU clock of the process by its number; that is the right process if it
// is still alive afterwards.
func (q query) time(_ node.ProcFields, info *node.ProcInfo) error {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^q.k.id.PID<<3|scheduled), &ts); err != nil {
		return err
	}
	info.TotalTime = time.Duration(ts.Nano())
	return nil
}

func (q query) status(f node.ProcFields, info *node.ProcInfo) error {
	text, err := q.read(fileID{name: statusFile})
	if err != nil {
		return err
	}
	s := parseStatus(text)
	if over(s.State, s.Threads) {
		return ended(q.k.id.PID)
	}
	info.UID, info.GID = int64(s.UIDs[0]), int64(s.GIDs[0])
	info.Parent, info.State = s.Parent, schedulingState(s.State)
	info.MemorySize, info.ResidentSize, info.MaxResidentSize = s.Memory, s.Resident, s.MostResident
	info.VoluntarySwitches, info.InvoluntaryOnes = s.Voluntary, s.Preemptive
	if s.State == 'Z' {
		if err := q.survivor(info); err != nil {
			return err
		}
	}
	if s.Threads > 1 && f&switches != 0 {
		return q.switches(info)
	}
	return nil
}

// queued sums up the time for which the existing threads waited for a processor.
func (q query) queued(_ node.ProcFields, info *node.ProcInfo) error {
	tids, err := q.threads()
	for _, tid := range tids {
		if text, err := q.read(fileID{tid, schedstatFile}); err == nil { // else the thread has ended since
			info.QueuedTime += queuedTime(text)
		}
	}
	return err
}

// queuedTime returns the second number of a schedstat file.
func queuedTime(text []byte) time.Duration {
	_, rest, _ := bytes.Cut(text, []byte{' '})
	return time.Duration(Number(rest))
}

// switches sums up the context switches of the existing threads: the kernel does not show
// the sum of ended threads.
func (q query) switches(info *node.ProcInfo) error {
	tids, err := q.threads()
	if err != nil {
		return err
	}
	info.VoluntarySwitches, info.InvoluntaryOnes = 0, 0
	for _, tid := range tids {
		text, err := q.read(fileID{tid, statusFile})
		if err != nil {
			continue // the thread has ended since
		}
		s := parseStatus(text)
		info.VoluntarySwitches += s.Voluntary
		info.InvoluntaryOnes += s.Preemptive
	}
	return nil
}

func (q query) arguments(_ node.ProcFields, info *node.ProcInfo) (err error) {
	info.Argv, err = q.words("cmdline")
	return err
}

func (q query) environment(_ node.ProcFields, info *node.ProcInfo) (err error) {
	info.Envp, err = q.words("environ")
	return err
}

// words splits strings that each end with a zero byte. There are more zero bytes at the
// end if a program replaced its arguments with a shorter title.
func (q query) words(path string) ([]string, error) {
	text, err := q.content(path)
	if text = bytes.TrimRight(text, "\x00"); err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(string(text), "\x00"), nil
}

func (q query) inputOutput(_ node.ProcFields, info *node.ProcInfo) error {
	text, err := q.read(fileID{name: ioFile})
	if err != nil {
		return err
	}
	parseIO(text, &info.Usage)
	return nil
}

// parseIO parses the io file of a process or a thread.
func parseIO(text []byte, u *node.Usage) {
	for name, value := range Pairs(text) {
		switch string(name) {
		case "read_bytes":
			u.FileInput = Number(value) / inputUnit
		case "write_bytes":
			u.FileOutput = Number(value) / inputUnit
		case "rchar":
			u.ReadBytes = Number(value)
		case "wchar":
			u.WrittenBytes = Number(value)
		}
	}
}
